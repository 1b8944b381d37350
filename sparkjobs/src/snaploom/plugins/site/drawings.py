"""The join graph, the fields and the snapshots on a page, as HTML and as text."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pydantic import JsonValue

from snaploom.models.common import NANOS_PER_MILLISECOND, EpochNanos, parse_instant
from snaploom.models.report import JoinMeasure
from snaploom.output.entries import SnapshotRecord
from snaploom.plan import drawings
from snaploom.plan.drawings import published_tree
from snaploom.plan.explain import tree_text
from snaploom.plan.history import PublishedModel, PublishedNode
from snaploom.plan.retention import Removal
from snaploom.plugins.site.pagedata import (
    NOTHING,
    Column,
    Html,
    Node,
    OutputPage,
    counted,
    data_block,
    join,
    number,
    share,
    shortened,
    size,
    size_of,
    span,
    table,
    tag,
)
from snaploom.plugins.site.timeline import Lane, Span, ends_of, marks_of
from snaploom.policy.references import DATA
from snaploom.types.schemas import Struct, Type, describe, struct_at, structs_in

# Columns of published schemas: those of each source, and differences between two schemas.

MOST_COLUMNS = 5_000
"""Columns of one schema that a page lists: more is no reading matter, and would be heavy."""


def columns_at(schema: Struct, path: Iterable[str]) -> tuple[Column, ...]:
    """The own columns of the source at a path of fields, inside arrays too."""
    found = struct_at(schema, (*path, DATA))
    return tuple(Column(field.name, describe(field.type)) for field in found.fields)


def flat(schema: Struct) -> Mapping[str, Column]:
    """All columns without parts, by path in lower case."""
    found: dict[str, Column] = {}
    for path, type_ in _leaves(schema, ""):
        if len(found) == MOST_COLUMNS:
            break
        found.setdefault(path.casefold(), Column(path, describe(type_)))
    return found


def changes(
    before: Mapping[str, Column], after: Mapping[str, Column]
) -> tuple[tuple[Column, ...], tuple[Column, ...], tuple[tuple[Column, str], ...]]:
    """Columns that were added, that were removed, and those of another type with the old one."""
    added = tuple(column for name, column in after.items() if name not in before)
    removed = tuple(column for name, column in before.items() if name not in after)
    retyped = tuple(
        (column, before[name].type)
        for name, column in after.items()
        if name in before and before[name].type != column.type
    )
    return added, removed, retyped


def _leaves(struct: Struct, prefix: str) -> Iterator[tuple[str, Type]]:
    for field in struct.fields:
        path = f"{prefix}{field.name}"
        parts = tuple(structs_in(field.type))
        if not parts:
            yield path, field.type
        for part in parts:
            yield from _leaves(part, f"{path}.")


# The join graph on a page: the drawing of `snaploom graph`, and the same as text beside it.

MOST_SHOWN = 200
"""Columns of one source that its part of the page lists."""
WIDEST_GRAPH = 2_200
"""Pixels of the widest drawing whose names can be read on a screen of 1280 pixels."""
INDENT, ROW = 28, drawings.CARD_HEIGHT + 14
"""Pixels from a source to those joined to it, where they stand below it."""
_TOP = 20
"""Top of the drawing: its title, which the page has, is left out; buttons need the room."""


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
    return f"{share(measure.matched, measure.in_)}{of_left(measure)} matched"


def of_left(measure: JoinMeasure) -> str:
    """Return the owner of the rows that matches are counted among; empty for the output."""
    return f" of {measure.left}" if measure.left else ""


def graph_section(picture: drawings.Picture | None, nodes: Sequence[Node]) -> Html:
    """The drawing, with buttons to move it, and the facts about each source."""
    if picture is None:
        return tag("p", "Nothing is declared or published that could be drawn.")
    facts = [tag("div", *(_node(node) for node in nodes), class_="nodes")]
    return join([
        tag("div", *_drawings(picture, nodes), class_="graphbox"),
        tag("p", picture.caption, class_="quiet") if picture.caption else NOTHING,
        tag("h3", "Sources"),
        *facts,
        _joins(nodes),
    ])  # fmt: skip


def _drawings(picture: drawings.Picture, nodes: Sequence[Node]) -> Iterator[Html]:
    """The drawing from left to right, and one from top to bottom for screens too narrow for it."""
    if picture.width <= WIDEST_GRAPH:
        yield _toolbar()
        yield _drawing(picture, nodes)
    yield _stacked(picture, nodes)


def _stacked(picture: drawings.Picture, nodes: Sequence[Node]) -> Html:
    """The tree from top to bottom: each source is indented below the one that it is joined to."""
    by_number = {node.number: node for node in nodes}
    below: dict[int, list[drawings.Line]] = {}
    for line in picture.lines:
        if line.is_chosen:
            below.setdefault(line.parent.number, []).append(line)
    cards: list[drawings.Card] = []
    lines: list[Html] = []
    waiting: list[tuple[drawings.Card, drawings.Card | None, str]] = [(picture.cards[0], None, "")]
    while waiting:
        card, above, keys = waiting.pop()
        about = f"{card.subtitle} · {keys}" if keys else card.subtitle
        x, y = (above.x + INDENT if above else 1), ROW * len(cards) + 1
        placed = replace(card, x=x, y=y, subtitle=about[: drawings.SUBTITLE_LIMIT])
        cards.append(placed)
        if above is not None:
            path = f"M{above.x + INDENT / 2:.0f} {above.y + drawings.CARD_HEIGHT:.0f}"
            path += f"V{y + drawings.CARD_HEIGHT / 2:.0f}H{x:.0f}"
            lines.append(tag("path", d=Html(path), class_="chosen"))
        joined = below.get(card.number, ())
        waiting.extend((line.child, placed, line.keys) for line in reversed(joined))
    width = max(card.x for card in cards) + drawings.CARD_WIDTH + 8
    return tag(
        "svg",
        *lines,
        *(_card(card, by_number.get(card.number)) for card in cards),
        viewBox=f"0 0 {width:.0f} {ROW * len(cards):.0f}",
        class_="graph stacked" if picture.width <= WIDEST_GRAPH else "graph stacked only",
        role="group",
        aria_label=f"Join graph: {counted(len(cards), 'source')}",
    )


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


def _drawing(picture: drawings.Picture, nodes: Sequence[Node]) -> Html:
    by_number = {node.number: node for node in nodes}
    width, height = f"{picture.width:.0f}", f"{picture.height:.0f}"
    drawn = tag(
        "g",
        *(Html(drawings.curve(line)) for line in picture.lines),
        *(_card(card, by_number.get(card.number)) for card in picture.cards),
        *(Html(drawings.label(line)) for line in picture.lines if line.is_chosen),
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


def _card(card: drawings.Card, node: Node | None) -> Html:
    about = summary(node) if node is not None else f"{card.title}, {card.subtitle}"
    # A name begins with what is seen, so that it can be spoken to select it.
    seen = " ".join(filter(None, (card.title, card.subtitle, card.note)))
    return tag(
        "a",
        tag("title", about),
        Html(drawings.card_group(card).replace("</text><text", "</text> <text")),  # words apart
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
        rows = f"{share(measure.matched, measure.in_)} of rows{of_left(measure)}"
        parts.append(f"{rows} matched")
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
    unmatched = measure.unmatched
    return [
        ("matched", f"{number(measure.matched)} of {number(measure.in_)} rows{of_left(measure)}, "
                    f"{share(measure.matched, measure.in_)}"),
        ("in the output", "" if measure.rows is None else f"{number(measure.rows)} rows have it"),
        ("NULL keys", f"{number(measure.null_keys)}, {share(measure.null_keys, measure.in_)}"),
        ("NULL times", "" if measure.null_times is None else number(measure.null_times)),
        ("beyond tolerance", number(measure.beyond_tolerance) if measure.beyond_tolerance else ""),
        ("without a match", number(unmatched) if unmatched > 0 else ""),
        *(("warning", text) for text in node.warnings),
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
            *(_counts(node.measure) if node.measure is not None else ("–", "–", "–")),
        )
        for node in nodes
        if node.number
    ]
    if not rows:
        return NOTHING
    columns = (
        "field", "source", "joined to", "relationship", "key", "matched", "NULL keys",
        "rows of the output",
    )  # fmt: skip
    return join([tag("h3", "Joins"), table("Joins", columns, rows, numbers=(5, 6, 7))])


def _counts(measure: JoinMeasure) -> tuple[str, str, str]:
    """Shares of the left side's rows, and the rows of the output that have the source."""
    rows = measure.rows if measure.left else measure.matched
    return (
        f"{share(measure.matched, measure.in_)}{of_left(measure)}",
        share(measure.null_keys, measure.in_),
        "–" if rows is None else number(rows),
    )


def definitions(facts: Sequence[tuple[str, str | Html]]) -> Html:
    """Names and values; those without a value are left out."""
    pairs = [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts if value]
    return tag("dl", *pairs) if pairs else NOTHING


# The table of snapshots: the newest as HTML, all as data that the page's script pages through.

ROWS = 30
"""Rows of one page of the table, and those that are there without scripts."""
MOST_ROWS = 20_000
"""Snapshots that are in the page's data; of older ones the drawings and sums remain."""
LONGEST_MARK = 300
"""Characters of the notes about one snapshot."""
_MINUTE = 60 * 10**9
COLUMNS = ("snapshot", "rows", "size", "files", "published", "from source snapshots", "notable")


def snapshot_table(page: OutputPage) -> Html:
    """The newest snapshots, and controls by which the script shows the others."""
    records = page.snapshots[-MOST_ROWS:]
    if not records:
        return tag("p", "No snapshot is published.")
    going = {removal.time: removal for removal in page.going}
    rows = [_row(record, going) for record in reversed(records[-ROWS:])]
    total, listed = len(page.snapshots), len(records)
    notes = [
        tag("p", f"The newest {listed:,} of {total:,} are listed.", class_="quiet")
        if listed < total
        else NOTHING,
        tag(
            "p",
            f"Shown are the newest {len(rows):,} of {total:,}: `snaploom snapshots` lists all, "
            "and so does this page where scripts run.",
            class_="quiet unscripted",
        )
        if len(rows) < total
        else NOTHING,
    ]
    return join([
        _controls() if len(rows) > 1 else NOTHING,
        table(
            "Snapshots, the newest first", COLUMNS, rows, numbers=(1, 2, 3), name="snapshot-table"
        ),
        *notes,
        data_block("snapshot-data", _document(records, going)),
    ])  # fmt: skip


def _controls() -> Html:
    return tag(
        "form",
        tag(
            "label",
            "On or before ",
            tag("input", type="search", id="until", placeholder="2024-05-31", size=12),
        ),
        tag("label", tag("input", type="checkbox", id="notable"), " only what is notable"),
        tag("button", "Newer", type="button", id="newer"),
        tag("button", "Older", type="button", id="older"),
        tag("output", "", id="shown", aria_live="polite"),
        class_="controls scripted",
        id="paging",
        aria_label="Snapshots to show",
    )


def _row(record: SnapshotRecord, going: dict[EpochNanos, Removal]) -> tuple[str | Html, ...]:
    return (
        tag("code", shortened(record.time)),
        number(record.rows),
        size(size_of(record)),
        number(len(record.files)),
        shortened(EpochNanos(record.created_at // _MINUTE * _MINUTE)),
        "; ".join(f"{name} {lag}" for name, lag in _lags_in_words(record)) or "same time",
        "; ".join(_marks(record, going)),
    )


def _marks(record: SnapshotRecord, going: dict[EpochNanos, Removal]) -> tuple[str, ...]:
    removal = going.get(record.time)
    ending = () if removal is None else (f"deleted next by {removal.rule.value}",)
    return tuple(mark[:LONGEST_MARK] for mark in (*marks_of(record), *ending))


def lags_of(record: SnapshotRecord) -> Iterable[tuple[str, int]]:
    """Return each source's age beyond the root's, in nanoseconds."""
    for source in record.sources:
        if source.field_name:
            yield source.field_name, record.time - parse_instant(source.time)


def _lags_in_words(record: SnapshotRecord) -> Iterable[tuple[str, str]]:
    for name, lag in lags_of(record):
        if lag:
            taken = shortened(EpochNanos(record.time - lag))
            yield name, f"{taken}, {span(lag)} {'before' if lag > 0 else 'after'}"


def _document(records: Sequence[SnapshotRecord], going: dict[EpochNanos, Removal]) -> JsonValue:
    """Columns instead of rows, and differences instead of instants: a third of the bytes."""
    names = list(dict.fromkeys(name for record in records for name, _ in lags_of(record)))
    lags: dict[str, list[JsonValue]] = {name: [] for name in names}
    for record in records:
        known = dict(lags_of(record))
        for name in names:
            lag = known.get(name)
            lags[name].append(None if lag is None else lag // NANOS_PER_MILLISECOND)
    notable = ["; ".join(_marks(record, going)) for record in records]
    texts = list(dict.fromkeys(notable))
    places = {mark: place for place, mark in enumerate(texts)}
    return {
        "t": _differences([record.time // NANOS_PER_MILLISECOND for record in records]),
        "c": _differences([record.created_at // NANOS_PER_MILLISECOND for record in records]),
        "r": [record.rows for record in records],
        "b": [size_of(record) for record in records],
        "f": [len(record.files) for record in records],
        "s": {name: _runs(values) for name, values in lags.items()},
        "marks": list(texts),
        "m": _runs(places[mark] for mark in notable),
        "page": ROWS,
    }


def _differences(values: Sequence[int]) -> list[JsonValue]:
    return [value - before for before, value in zip((0, *values), values, strict=False)]


def _runs(values: Iterable[JsonValue]) -> list[JsonValue]:
    found: list[list[JsonValue]] = []
    counts: list[int] = []
    for value in values:
        if found and found[-1][1] == value:
            counts[-1] += 1
            found[-1][0] = counts[-1]
        else:
            found.append([1, value])
            counts.append(1)
    return list(found)


# The drawings of pages as lines of text: the join tree with match rates, and the timeline.

WIDEST = 100
"""Columns of a timeline on a terminal that has more: beyond, eyes lose the line."""
FEWEST_CELLS = 24
"""Cells of a timeline however narrow the terminal is: two dates stand below it."""


def tree_drawing(nodes: Sequence[Node]) -> str:
    """The join tree as `snaploom plan` draws it, with counts of the newest snapshot's joins.

    The nodes have the root first, parents before children, and are not empty.
    """
    tree, found = published_tree(model_of_nodes("", "", nodes))
    return tree_text(
        tree,
        {
            number: f"left out: {node.left_out}" if node.left_out else node.matched
            for number, node in found.items()
        },
    )


def timeline_drawing(lanes: Sequence[Lane], width: int) -> str:
    """The lanes, a line each, with the dates at both ends below; empty where there is none.

    `width` is the number of columns.
    """
    if not lanes:
        return ""
    first, last = ends_of(lanes)
    titles = max(len(lane.title) for lane in lanes)
    counts = max(len(f"{lane.count:,}") for lane in lanes)
    before = titles + counts + 4
    cells = max(FEWEST_CELLS, min(width, WIDEST) - before)
    rows = [
        f"{lane.title:<{titles}}  {lane.count:>{counts},}  "
        f"{_text_marks(lane.spans, first, last, cells)}"
        for lane in lanes
    ]
    ends = (shortened(first), shortened(last))
    rows.append(f"{'':{before}}{ends[0]}{ends[1]:>{cells - len(ends[0])}}")
    return "\n".join(rows)


def _text_marks(spans: Sequence[Span], first: int, last: int, cells: int) -> str:
    length = max(1, last - first)
    marked = ["·"] * cells
    for start, end in spans:
        left = min(cells - 1, (start - first) * cells // length)
        right = max(left + 1, -((first - end) * cells // length))
        marked[left:right] = "█" * (right - left)
    return "".join(marked)


def staleness(page: OutputPage) -> str:
    """Return when the output is stale, or since when; empty where no age is declared."""
    if page.freshness.expires is None:
        return ""
    left = page.freshness.expires - page.now
    return f"stale in {span(left)}" if left > 0 else f"stale for {span(left)}"
