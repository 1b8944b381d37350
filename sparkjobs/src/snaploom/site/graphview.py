"""The join graph on a page: the drawing of `snaploom graph`, and the same as text beside it."""

from __future__ import annotations

from collections.abc import Sequence

from snaploom.models.times import parse_instant
from snaploom.planning.picture import Card, Picture
from snaploom.planning.publishedmodel import PublishedModel, PublishedNode
from snaploom.planning.svg import card_group, curve, label
from snaploom.site.markup import NOTHING, Html, join, table, tag
from snaploom.site.pagedata import Node
from snaploom.site.quantities import counted, number, share, shortened

MOST_SHOWN = 200
"""Columns of one source that its part of the page lists."""
_TOP = 20
"""Where the drawing begins: its title, which the page has, is left out; buttons need the room."""


def model_of_nodes(title: str, caption: str, nodes: Sequence[Node]) -> PublishedModel:
    """The join tree of nodes with facts about the newest snapshot, to be drawn by itself.

    The nodes have the root first, parents before children.
    """
    return PublishedModel(
        title,
        caption,
        tuple(
            PublishedNode(
                node.field_name, node.parent, node.source, node.relationship, node.group_by,
                taken=node.taken, left_out=node.left_out, matched=match_rate(node),
            )
            for node in nodes
        ),
    )  # fmt: skip


def match_rate(node: Node) -> str:
    """The share of its parent's rows that found a match, for people; empty where nobody counted."""
    measure = node.measure
    if measure is None or not measure.in_:
        return ""
    return f"{share(measure.matched, measure.in_)} matched"


def graph_section(picture: Picture | None, nodes: Sequence[Node]) -> Html:
    """The drawing, with buttons to move it, and the facts about each source."""
    if picture is None:
        return tag("p", "Nothing is declared or published that could be drawn.")
    facts = [tag("div", *(_node(node) for node in nodes), class_="nodes")]
    return join([
        tag("div", _toolbar(), _drawing(picture, nodes), class_="graphbox"),
        tag("p", picture.caption, class_="quiet") if picture.caption else NOTHING,
        tag("h3", "Sources"),
        *facts,
        _joins(nodes),
    ])  # fmt: skip


def _toolbar() -> Html:
    buttons = (
        ("in", "+", "Zoom in"),
        ("out", "−", "Zoom out"),
        ("fit", "Fit", "Fit the whole graph"),
    )
    return tag(
        "div",
        *(
            tag("button", sign, type="button", aria_label=title, title=title, data_zoom=name)
            for name, sign, title in buttons
        ),
        class_="toolbar scripted",
    )


def _drawing(picture: Picture, nodes: Sequence[Node]) -> Html:
    by_number = {node.number: node for node in nodes}
    width, height = f"{picture.width:.0f}", f"{picture.height:.0f}"
    drawn = tag(
        "g",
        *(Html(curve(line)) for line in picture.lines),
        *(_card(card, by_number.get(card.number)) for card in picture.cards),
        *(Html(label(line)) for line in picture.lines if line.is_chosen),
        class_="scene",
    )
    return tag(
        "svg",
        drawn,
        viewBox=f"0 {_TOP} {width} {int(height) - _TOP}",
        class_="graph",
        id="join-drawing",
        role="group",
        tabindex=0,
        aria_label=f"Join graph: {counted(len(picture.cards), 'source')}, "
        f"{counted(sum(line.is_chosen for line in picture.lines), 'join')}. Arrow keys move it, "
        "plus and minus zoom. The table below has the same as text.",
    )


def _card(card: Card, node: Node | None) -> Html:
    about = summary(node) if node is not None else f"{card.title}, {card.subtitle}"
    # A name begins with what is seen, so that it can be spoken to select it.
    seen = " ".join(filter(None, (card.title, card.subtitle, card.note)))
    return tag(
        "a",
        tag("title", about),
        Html(card_group(card).replace("</text><text", "</text> <text")),  # words apart
        href=f"#source-{card.number}",
        class_="node",
        aria_label=f"{seen}. {about}",
    )


def summary(node: Node) -> str:
    """A source in one line."""
    parts = [node.title, node.kind or node.source]
    if node.keys:
        parts.append(f"key {', '.join(node.keys)}")
    measure = node.measure
    if measure is not None:
        parts.append(f"{share(measure.matched, measure.in_)} of rows matched")
        if measure.null_keys:
            parts.append(f"{share(measure.null_keys, measure.in_)} with a NULL key")
    if node.left_out:
        parts.append(f"left out: {node.left_out}")
    if node.columns:
        parts.append(counted(len(node.columns), "column"))
    return " · ".join(parts)


def _node(node: Node) -> Html:
    shown = node.columns[:MOST_SHOWN]
    hidden = len(node.columns) - len(shown)
    facts = [
        ("source", node.source),
        ("reads", node.kind),
        ("joined to", (node.parent or "the root") if node.relationship else ""),
        ("relationship", node.relationship),
        ("key", ", ".join(node.keys)),
        ("grouped by", ", ".join(node.group_by)),
        ("snapshot taken", shortened(parse_instant(node.taken)) if node.taken else ""),
        ("left out", node.left_out),
        *_measures(node),
    ]
    columns = tag(
        "ul",
        *(
            tag("li", tag("code", column.name), " ", tag("span", column.type, class_="quiet"))
            for column in shown
        ),
        tag("li", f"and {hidden:,} more: `snaploom schema` prints all") if hidden else NOTHING,
        class_="columns",
    )
    return tag(
        "details",
        tag("summary", tag("strong", node.title), " ", tag("span", _in_short(node))),
        definitions(facts),
        columns if shown else NOTHING,
        id=f"source-{node.number}",
        data_about=summary(node),
    )


def _in_short(node: Node) -> str:
    parts = [] if node.source == node.title else [node.source]
    if match_rate(node):
        parts.append(match_rate(node))
    if node.left_out:
        parts.append("left out")
    if not node.relationship:
        parts.append("root")
    return " · ".join(parts)


def _measures(node: Node) -> list[tuple[str, str]]:
    measure = node.measure
    if measure is None:
        return []
    return [
        ("matched", f"{number(measure.matched)} of {number(measure.in_)} rows, "
                    f"{share(measure.matched, measure.in_)}"),
        ("NULL keys", f"{number(measure.null_keys)}, {share(measure.null_keys, measure.in_)}"),
    ]  # fmt: skip


def _joins(nodes: Sequence[Node]) -> Html:
    """The tree as a table, for readers who do not see the drawing, and for paper."""
    rows = [
        (
            tag("a", node.title, href=f"#source-{node.number}"),
            node.source,
            node.parent or "the root",
            node.relationship,
            ", ".join(node.keys),
            "–" if node.measure is None else share(node.measure.matched, node.measure.in_),
            "–" if node.measure is None else share(node.measure.null_keys, node.measure.in_),
        )
        for node in nodes
        if node.number
    ]
    if not rows:
        return NOTHING
    columns = ("field", "source", "joined to", "relationship", "key", "matched", "NULL keys")
    return join([tag("h3", "Joins"), table("Joins", columns, rows, numbers=(5, 6))])


def definitions(facts: Sequence[tuple[str, str | Html]]) -> Html:
    """Names and values; those without a value are left out."""
    pairs = [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts if value]
    return tag("dl", *pairs) if pairs else NOTHING
