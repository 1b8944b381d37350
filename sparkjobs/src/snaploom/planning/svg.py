"""A picture of a join tree as SVG: one file without fonts or scripts, fit for a slide."""

from __future__ import annotations

from xml.sax.saxutils import escape as escape_markup

from snaploom.planning.picture import (
    BEND,
    CARD_HEIGHT,
    CARD_WIDTH,
    LABEL_GAP,
    MARGIN,
    Card,
    Line,
    Picture,
)
from snaploom.visibletext import visible

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
