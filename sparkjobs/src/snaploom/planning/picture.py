"""Contents of a drawing of a join tree: cards in columns by depth, and the lines between them.

The tree is a declared one, a published one, or the difference of two. Pure data with positions, in
pixels; `svg.py` renders it. The layout is that of a tidy tree: leaves
take the next free row, a parent stands in the middle of its children, so that no lines of the
chosen tree ever cross. A line bends right behind its parent and runs straight into its child; its
label stands on the straight part, so that labels lie in rows of their own and cover nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count, islice

import networkx as nx

from snaploom.planning.bundle import Bundle
from snaploom.planning.graph import JoinGraph
from snaploom.planning.publishedmodel import Change, PublishedModel, PublishedNode
from snaploom.planning.sources.registry import declared
from snaploom.planning.tree import JoinNode, JoinTree, published_tree

CARD_WIDTH = 280
CARD_HEIGHT = 76
BEND = 72
LABEL_GAP = 16
"""Room on both sides of a label."""
ROW_GAP = 22
MARGIN = 36
TITLE_HEIGHT = 56
MOST_ALTERNATIVES = 60
"""Arcs that the tree does not use are drawn up to this number; beyond, they only make noise."""
TITLE_LIMIT, SUBTITLE_LIMIT, NOTE_LIMIT = 26, 40, 38
"""Characters that fit into a card at their font sizes, in a wide font (DejaVu Sans)."""
LABEL_LIMIT, KEYS_LIMIT = 32, 38
"""Characters of a label; columns are set apart as far as the longest needs."""
LABEL_CHARACTER, KEYS_CHARACTER = 7.6, 6.2
"""Widths of a character of a label's two lines, in pixels, in a wide font."""


@dataclass(frozen=True)
class Card:
    """One source."""

    number: int
    title: str
    subtitle: str
    note: str
    is_root: bool
    is_grouped: bool
    x: float
    y: float
    mark: str = ""
    """Its change between two snapshots: added, removed or changed."""


@dataclass(frozen=True)
class Face:
    """The texts of a card."""

    title: str
    subtitle: str
    note: str
    mark: str = ""


@dataclass(frozen=True)
class Line:
    """A relationship between two cards; chosen ones are the join tree."""

    parent: Card
    child: Card
    label: str
    keys: str
    is_chosen: bool

    @property
    def label_width(self) -> float:
        """Pixels that the label takes."""
        return _label_width(self.label, self.keys)


@dataclass(frozen=True)
class Picture:
    """Everything that is drawn."""

    title: str
    caption: str
    width: float
    height: float
    cards: tuple[Card, ...]
    lines: tuple[Line, ...]


def picture_of(bundle: Bundle, graph: JoinGraph, tree: JoinTree) -> Picture:
    """The drawing of an output's join tree, with the ways that were not taken."""
    labels = {node.number: _label(bundle, node) for node in tree.joins}
    faces = {node.number: _face(bundle, node) for node in tree.nodes}
    drawn = _laid_out(f"OutputDataset/{bundle.output.name}", "", tree, faces, labels)
    others = _alternatives(graph, tree, {card.number: card for card in drawn.cards})
    return replace(
        drawn,
        caption=_caption(tree, bool(others)),
        width=drawn.width + (BEND if others else 0),
        lines=(*others, *drawn.lines),
    )


def published_picture(model: PublishedModel) -> Picture:
    """The drawing of a published data model, or of the difference of two."""
    tree, nodes = published_tree(model)
    labels = {
        number: (_cut(node.relationship, LABEL_LIMIT), _cut(node.matched, KEYS_LIMIT))
        for number, node in nodes.items()
        if number
    }
    faces = {number: _published_face(node) for number, node in nodes.items()}
    return _laid_out(model.title, model.caption, tree, faces, labels)


def _laid_out(
    title: str,
    caption: str,
    tree: JoinTree,
    faces: Mapping[int, Face],
    labels: dict[int, tuple[str, str]],
) -> Picture:
    columns, rows = _columns(tree, labels), _rows(tree)
    cards = {
        node.number: _card(node, faces[node.number], columns[node.depth], rows[node.number])
        for node in tree.nodes
    }
    return Picture(
        title=title,
        caption=caption,
        width=columns[-1] + CARD_WIDTH + MARGIN,
        height=TITLE_HEIGHT + 2 * MARGIN + _y(max(rows.values())) + CARD_HEIGHT,
        cards=tuple(cards.values()),
        lines=tuple(
            Line(cards[node.parent_number], cards[node.number], *labels[node.number], True)
            for node in tree.joins
        ),
    )


def _caption(tree: JoinTree, has_others: bool) -> str:
    joins = len(tree.joins)
    depth = tree.nodes[-1].depth
    counted = f"{joins} join{'' if joins == 1 else 's'}, depth {depth}"
    return f"{counted}; dashed: relationships that the tree does not use" if has_others else counted


def _columns(tree: JoinTree, labels: dict[int, tuple[str, str]]) -> list[float]:
    """Left edge of the cards of each depth: as far apart as the labels between them need."""
    columns = [float(MARGIN)]
    for layer in islice(tree.layers, 1, None):
        widest = max(_label_width(*labels[node.number]) for node in layer)
        columns.append(columns[-1] + CARD_WIDTH + BEND + widest + 2 * LABEL_GAP)
    return columns


def _label_width(label: str, keys: str) -> float:
    return max(len(label) * LABEL_CHARACTER, len(keys) * KEYS_CHARACTER) + 16


def _rows(tree: JoinTree) -> dict[int, float]:
    rows: dict[int, float] = {}
    free = count()
    for number in nx.dfs_postorder_nodes(tree.network, tree.root.number):
        below = [rows[child] for child in tree.network[number]]
        rows[number] = (below[0] + below[-1]) / 2 if below else float(next(free))
    return rows


def _y(row: float) -> float:
    return row * (CARD_HEIGHT + ROW_GAP)


def _card(node: JoinNode, face: Face, x: float, row: float) -> Card:
    return Card(
        number=node.number,
        title=_cut(face.title, TITLE_LIMIT),
        subtitle=_cut(face.subtitle, SUBTITLE_LIMIT),
        note=_cut(face.note, NOTE_LIMIT),
        is_root=node.number == 0,
        is_grouped=bool(node.group_by),
        x=x,
        y=TITLE_HEIGHT + MARGIN + _y(row),
        mark=face.mark,
    )


def _face(bundle: Bundle, node: JoinNode) -> Face:
    source = bundle.source(node.source)
    named_alike = node.field_name == source.name
    about = ("root",) if node.number == 0 else () if named_alike else (source.name,)
    return Face(
        node.field_name or source.name,
        " · ".join((*about, declared(source).caption)),
        _grouped(node),
    )


def _published_face(node: PublishedNode) -> Face:
    if node.left_out:
        note = f"left out: {node.left_out}"
    elif node.notes:
        note = ", ".join(node.notes)
    else:
        note = _grouped(node)
    about = () if node.field_name in ("", node.source) else (node.source,)
    mark = "" if node.change is Change.SAME else node.change.value
    subtitle = " · ".join((*about, node.taken or mark or "no snapshot"))
    return Face(node.field_name or node.source, subtitle, note, mark)


def _grouped(node: JoinNode | PublishedNode) -> str:
    return f"grouped by {', '.join(node.group_by)}" if node.group_by else ""


def _label(bundle: Bundle, node: JoinNode) -> tuple[str, str]:
    relationship = bundle.relationship(node.relationship)
    parts = relationship.spec.join_key_of(node.source) or ()
    keys = ", ".join(
        part.query or ", ".join(field.field_name for field in part.fields_) for part in parts
    )
    return _cut(node.relationship, LABEL_LIMIT), _cut(keys, KEYS_LIMIT)


def _alternatives(graph: JoinGraph, tree: JoinTree, cards: dict[int, Card]) -> tuple[Line, ...]:
    by_source = {node.source: node for node in tree.nodes}
    chosen = {(node.parent_number, node.number) for node in tree.joins}
    pairs: dict[tuple[int, int], str] = {}
    for parent, child, link in graph.arcs(graph.links):
        if parent.source in by_source and child.source in by_source:
            ends = (by_source[parent.source].number, by_source[child.source].number)
            if ends not in chosen and ends[::-1] not in chosen and ends[::-1] not in pairs:
                pairs.setdefault(ends, link.name)
        if len(pairs) > MOST_ALTERNATIVES:
            return ()
    return tuple(Line(cards[a], cards[b], name, "", False) for (a, b), name in pairs.items())


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
