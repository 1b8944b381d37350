"""A picture of the dashboard, from what a real Prometheus answered; Grafana has no part in it.

`make dashboard-recording` writes the recording, of an operator at work on a real API server with
jobs that are played. So the picture follows from a committed file, and from the code here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from snaploom.models.base import ApiModel

RECORDING = Path(__file__).parents[1] / "samples" / "dashboard.json"
COLUMNS = 3
WIDTH, HEIGHT = 400, 210
"""A panel, in pixels."""
PLOT = (52, 34, 336, 104)
"""Left, top, width and height of the curves in a panel."""
MOST_LEGENDS = 4
COLOURS = ("#0f4c5c", "#b45309", "#15803d", "#7c3aed", "#b91c1c", "#2563eb", "#a16207", "#475569")
STYLE = """
text { font-family: 'Inter', 'Segoe UI', 'Helvetica Neue', Arial, sans-serif; fill: #1f2937; }
.heading { font-size: 20px; font-weight: 600; }
.caption { font-size: 13px; fill: #6b7280; }
.panel { fill: #ffffff; stroke: #cbd5e1; }
.title { font-size: 13px; font-weight: 600; }
.mark { font-size: 10px; fill: #6b7280; text-anchor: end; }
.legend { font-size: 10px; fill: #374151; }
.axis { stroke: #e5e7eb; }
"""


class Series(ApiModel):
    """One curve."""

    legend: str
    points: tuple[tuple[float, float], ...]
    """Seconds since the start, and the value."""


class Panel(ApiModel):
    """What one panel showed."""

    title: str
    unit: str
    series: tuple[Series, ...]


class Recording(ApiModel):
    """What all panels showed."""

    seconds: float
    panels: tuple[Panel, ...]


def dashboard_picture() -> str:
    """The picture of the recording."""
    recording = Recording.parse(json.loads(RECORDING.read_text("utf-8")))
    rows = -(-len(recording.panels) // COLUMNS)
    width, height = COLUMNS * (WIDTH + 12) + 12, rows * (HEIGHT + 12) + 92
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img">',
        "<title>The dashboard of the chart</title>",
        f"<style>{STYLE}</style>",
        f'<rect width="{width}" height="{height}" fill="#f8fafc"/>',
        '<text class="heading" x="12" y="34">The panels of the dashboard</text>',
        f'<text class="caption" x="12" y="58">{_caption(recording)}</text>',
    ]
    for number, panel in enumerate(recording.panels):
        row, column = divmod(number, COLUMNS)
        x, y = 12 + column * (WIDTH + 12), 80 + row * (HEIGHT + 12)
        parts.append(f'<g transform="translate({x},{y})">')
        parts.extend(_panel(panel, recording.seconds))
        parts.append("</g>")
    return "\n".join([*parts, "</svg>"]) + "\n"


def _caption(recording: Recording) -> str:
    return (
        "Drawn by docs/generate.py, not by Grafana, from what a Prometheus answered about "
        f"{recording.seconds:.0f} seconds of an operator whose jobs are played."
    )


def _panel(panel: Panel, seconds: float) -> Iterator[str]:
    left, top, width, height = PLOT
    yield f'<rect class="panel" width="{WIDTH}" height="{HEIGHT}" rx="4"/>'
    yield f'<text class="title" x="12" y="20">{escape(panel.title)}</text>'
    values = [value for series in panel.series for _, value in series.points]
    low, high = min([0.0, *values]), max([0.0, *values])
    high = high if high > low else low + 1
    for share in (0.0, 0.5, 1.0):
        y = top + height * (1 - share)
        yield f'<line class="axis" x1="{left}" x2="{left + width}" y1="{y:.1f}" y2="{y:.1f}"/>'
        label = _value(low + share * (high - low), panel.unit)
        yield f'<text class="mark" x="{left - 5}" y="{y + 3:.1f}">{label}</text>'
    if not values:
        middle = left + width / 2
        place = f'x="{middle}" y="{top + 56}" text-anchor="middle"'
        yield f'<text class="caption" {place}>nothing</text>'
    for number, series in enumerate(panel.series):
        yield _curve(series.points, seconds, low, high, COLOURS[number % len(COLOURS)])
    yield from _legends(panel.series)


def _curve(
    points: Sequence[tuple[float, float]], seconds: float, low: float, high: float, colour: str
) -> str:
    left, top, width, height = PLOT
    places = " ".join(
        f"{left + width * at / seconds:.1f},{top + height * (high - value) / (high - low):.1f}"
        for at, value in points
    )
    return f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="1.5"/>'


def _legends(series: Sequence[Series]) -> Iterator[str]:
    names = [each.legend for each in series if each.legend]
    shown = names[:MOST_LEGENDS] if len(names) <= MOST_LEGENDS else names[: MOST_LEGENDS - 1]
    for number, name in enumerate(shown):
        y = 158 + 13 * number
        yield f'<rect x="12" y="{y - 7}" width="10" height="3" fill="{COLOURS[number]}"/>'
        yield f'<text class="legend" x="28" y="{y}">{escape(name)}</text>'
    if len(shown) < len(names):
        y = 158 + 13 * len(shown)
        yield f'<text class="legend" x="28" y="{y}">and {len(names) - len(shown)} more</text>'


def _value(value: float, unit: str) -> str:
    """A value on an axis, short."""
    if unit == "percentunit":
        return f"{value:.0%}"
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    digits = f"{value:.3g}"
    return f"{digits} s" if unit == "s" and value else digits
