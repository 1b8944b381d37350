"""Drawings of a join tree: cards and lines as data, SVG, and Mermaid."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count, islice
from xml.sax.saxutils import escape as escape_markup

import networkx as nx

from snaploom.confidential import visible
from snaploom.models.common import ROOT_FIELD
from snaploom.plan.bundle import Bundle
from snaploom.plan.history import Change, PublishedModel, PublishedNode
from snaploom.plan.tree import JoinGraph, JoinNode, JoinTree
from snaploom.sources.registry import declared

# Contents of a drawing of a join tree: cards in columns by depth, and the lines between them.

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
    if isinstance(node, JoinNode) and node.timed is not None:
        return node.timed.short_text
    if isinstance(node, JoinNode) and node.history is not None and not node.group_by:
        return f"of the last {node.history.text}"
    return f"grouped by {', '.join(node.group_by)}" if node.group_by else ""


def _label(bundle: Bundle, node: JoinNode) -> tuple[str, str]:
    relationship = bundle.relationship(node.relationship)
    parts = relationship.spec.join_key_of(node.source) or ()
    keys = ", ".join(part.text for part in parts)
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


# A picture of a join tree as SVG: one file without fonts or scripts, fit for a slide.

STYLE = """
text { font-family: 'Inter', 'Segoe UI', 'Helvetica Neue', Arial, sans-serif; fill: #1f2937; }
.title { font-size: 20px; font-weight: 600; }
.caption { font-size: 13px; fill: #6b7280; }
.card { fill: #ffffff; stroke: #cbd5e1; stroke-width: 1.2; }
.root { fill: #0f4c5c; stroke: #0f4c5c; }
.root-text { fill: #ffffff; }
.added { stroke: #15803d; stroke-width: 3; }
.removed { stroke: #b91c1c; stroke-width: 3; stroke-dasharray: 6 5; }
.changed { stroke: #b45309; stroke-width: 3; }
.stack { fill: #f1f5f9; stroke: #cbd5e1; stroke-width: 1.2; }
.name { font-size: 15px; font-weight: 600; }
.source { font-size: 12px; fill: #6b7280; }
.root-source { font-size: 12px; fill: #cfe3e8; }
.note { font-size: 11px; fill: #b45309; }
.chosen { fill: none; stroke: #0f4c5c; stroke-width: 2; }
.other { fill: none; stroke: #94a3b8; stroke-width: 1.2; stroke-dasharray: 4 5; }
.pill { fill: #e6f0f2; stroke: none; }
.relationship { font-size: 12px; font-weight: 600; fill: #0f4c5c; text-anchor: middle; }
.keys { font-size: 10.5px; fill: #6b7280; text-anchor: middle; }
"""


def to_svg(picture: Picture) -> str:
    """The drawing as one SVG document."""
    size = f'width="{picture.width:.0f}" height="{picture.height:.0f}"'
    view_box = f'viewBox="0 0 {picture.width:.0f} {picture.height:.0f}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {view_box} role="img">',
        f"<title>{escape(picture.title)}</title>",
        f"<style>{STYLE}</style>",
        f'<rect width="{picture.width:.0f}" height="{picture.height:.0f}" fill="#ffffff"/>',
        _text(MARGIN, 38, "title", picture.title),
        _text(MARGIN, 60, "caption", picture.caption),
        *(curve(line) for line in picture.lines),
        *(card_group(card) for card in picture.cards),
        *(label(line) for line in picture.lines if line.is_chosen),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def escape(text: str) -> str:
    """Text safe inside SVG, with control characters made visible: XML allows none."""
    return escape_markup(visible(text))


def _text(x: float, y: float, style: str, text: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{style}">{escape(text)}</text>'


def card_group(card: Card) -> str:
    """A card, as elements of SVG."""
    kind = " ".join(filter(None, ("card", "root" if card.is_root else "", card.mark)))
    parts = []
    if card.is_grouped:  # several rows become one array: a stack of cards
        parts.append(_rectangle(card.x + 5, card.y + 5, "stack"))
    parts.append(_rectangle(card.x, card.y, kind))
    top = card.y if card.note else card.y + 8  # two lines of text stand lower than three
    name, source = ("name root-text", "root-source") if card.is_root else ("name", "source")
    parts.append(_text(card.x + 14, top + 28, name, card.title))
    parts.append(_text(card.x + 14, top + 47, source, card.subtitle))
    if card.note:
        parts.append(_text(card.x + 14, card.y + 65, "note", card.note))
    return "".join(parts)


def _rectangle(x: float, y: float, style: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{CARD_WIDTH}" height="{CARD_HEIGHT}" rx="10" '
        f'class="{style}"/>'
    )


def _ends(line: Line) -> tuple[float, float, float, float]:
    start, end = (line.parent, line.child)
    if start.x > end.x:
        start, end = end, start
    leaves = start.x + CARD_WIDTH
    enters = end.x if end.x > start.x else end.x + CARD_WIDTH
    return leaves, start.y + CARD_HEIGHT / 2, enters, end.y + CARD_HEIGHT / 2


def curve(line: Line) -> str:
    """The way of a line, as an element of SVG."""
    x1, y1, x2, y2 = _ends(line)
    if x2 > x1:  # bend behind the parent, then straight into the child
        middle = x1 + BEND / 2
        path = f"C{middle:.1f} {y1:.1f} {middle:.1f} {y2:.1f} {x1 + BEND:.1f} {y2:.1f} H{x2:.1f}"
    else:  # cards of one column are joined by an arc that bulges to the right of both
        path = f"C{x1 + BEND:.1f} {y1:.1f} {x2 + BEND:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
    return (
        f'<path d="M{x1:.1f} {y1:.1f} {path}" class="{"chosen" if line.is_chosen else "other"}"/>'
    )


def label(line: Line) -> str:
    """The label of a line, as elements of SVG."""
    _, _, x2, y = _ends(line)
    width = line.label_width
    x = x2 - LABEL_GAP - width / 2
    pill = (
        f'<rect x="{x - width / 2:.1f}" y="{y - 17:.1f}" width="{width:.1f}" height="34" rx="9" '
        'class="pill"/>'
    )
    return pill + _text(x, y - 3, "relationship", line.label) + _text(x, y + 11, "keys", line.keys)


# The graph of an output as Mermaid: sources, relationships with keys, the chosen tree.


def mermaid(graph: JoinGraph, tree: JoinTree) -> str:
    """The drawing as a Mermaid flowchart, whose order does not depend on the configuration's."""
    return "\n".join(_mermaid_lines(graph, tree)) + "\n"


def _mermaid_lines(graph: JoinGraph, tree: JoinTree) -> Iterator[str]:
    names = sorted({source for link in graph.links for source in link.keys} | set(graph.vertices))
    ids = {name: f"s{number}" for number, name in enumerate(names)}
    joined = {node.source for node in tree.nodes}
    yield "flowchart LR"
    for name in names:
        vertex = graph.vertices.get(name)
        field_name = "" if vertex is None else vertex.field_name
        label = name if field_name in ("", name) else f"{field_name}: {name}"
        style = "joined" if name in joined else "unjoined"
        if name == graph.root.source:
            style = "root"
        elif vertex is None:
            style = "unlisted"
        yield f'  {ids[name]}["{_mermaid_text(label)}"]:::{style}'
    for number, link in enumerate(graph.links):
        yield f'  r{number}{{{{"{_mermaid_text(link.name)}"}}}}:::relationship'
    for number, link in enumerate(graph.links):
        for name in sorted(link.keys):
            yield f'  r{number} -. "{_mermaid_text(", ".join(link.keys[name]))}" .- {ids[name]}'
    for node in tree.joins:
        label = f"{node.number}"
        if node.group_by:
            label += f" [{', '.join(node.group_by)}]"
        elif node.timed is not None:
            label += f" {node.timed.short_text}"
        parent = ids[tree.by_number[node.parent_number].source]
        yield f'  {parent} == "{_mermaid_text(label)}" ==> {ids[node.source]}'
    yield "  classDef root stroke-width:3px"
    yield "  classDef joined stroke-width:1px"
    yield "  classDef unjoined stroke-dasharray:4"
    yield "  classDef unlisted stroke-dasharray:1,color:#888"
    yield "  classDef relationship fill:#fff,stroke:#888"


def published_mermaid(model: PublishedModel) -> str:
    """A published data model, or the difference of two, as a Mermaid flowchart."""
    tree, nodes = published_tree(model)
    lines = [
        f"%% {model.title}: {model.caption}",
        *(f"%% {note}" for note in model.notes),
        "flowchart LR",
        *(
            f'  s{number}["{_mermaid_lines_of(node)}"]:::{_kind(number, node)}'
            for number, node in nodes.items()
        ),
        *(
            f'  s{node.parent_number} == "{_mermaid_text(_edge(nodes[node.number]))}" '
            f"==> s{node.number}"
            for node in tree.joins
        ),
        "  classDef root stroke-width:3px",
        "  classDef same stroke-width:1px",
        "  classDef added stroke:#15803d,stroke-width:3px",
        "  classDef removed stroke:#b91c1c,stroke-width:3px,stroke-dasharray:4",
        "  classDef changed stroke:#b45309,stroke-width:3px",
    ]
    return "\n".join(lines) + "\n"


def _mermaid_lines_of(node: PublishedNode) -> str:
    name = node.field_name or node.source
    shown = name if name == node.source else f"{name}: {node.source}"
    found = f"left out: {node.left_out}" if node.left_out else node.taken
    return "<br/>".join(map(_mermaid_text, tuple(filter(None, (shown, found)))))


def _edge(node: PublishedNode) -> str:
    grouped = f" [{', '.join(node.group_by)}]" if node.group_by else ""
    return f"{node.relationship}{grouped}"


def _kind(number: int, node: PublishedNode) -> str:
    return "root" if number == 0 and node.change is Change.SAME else node.change.value


def _mermaid_text(text: str) -> str:
    return text.replace("#", "#35;").replace('"', "#quot;")


def published_tree(
    model: PublishedModel,
) -> tuple[JoinTree, Mapping[int, PublishedNode]]:
    """The join tree, numbered breadth-first with children ordered by name, and its nodes."""
    root, *others = model.nodes
    by_name = {node.field_name.casefold(): node for node in others}
    network = nx.DiGraph([(node.parent.casefold(), name) for name, node in by_name.items()])
    network.add_node(ROOT_FIELD)
    joined = {ROOT_FIELD: JoinNode(0, ROOT_FIELD, root.source, "", -1, "", 0)}
    found = {0: root}
    for above, name in nx.bfs_edges(network, ROOT_FIELD, sort_neighbors=sorted):
        node, parent, number = by_name[name], joined[above], len(joined)
        found[number] = node
        joined[name] = JoinNode(
            number, node.field_name, node.source, node.parent, parent.number,
            node.relationship, parent.depth + 1, node.group_by,
        )  # fmt: skip
    return JoinTree(tuple(joined.values())), found
