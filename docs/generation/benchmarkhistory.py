"""The page that draws how the figures of benchmarks have changed: `benchmarks/history.jsonl`."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from xml.sax.saxutils import escape

from generation.markdown import NOTE
from snaploom.models.base import ApiModel

HISTORY = Path(__file__).parents[2] / "benchmarks" / "history.jsonl"
PAGE = "reference/benchmark-history.md"
IMAGES = "images/benchmarks/"
NAMES, PLOT, VALUES, GOALS, WIDTH = 0, 440, 680, 700, 800
"""Left ends of the columns of a picture, and its width, in pixels; values end at theirs."""
PLOT_WIDTH = 180
ROW = 26
"""Height of a figure's row, in pixels."""
_COMPARISONS = {"<=": operator.le, ">=": operator.ge, "=": operator.eq}
"""How a value is held against the bound of its goal, by the goal's sign."""
STYLE = """
text { font-family: 'Inter', 'Segoe UI', 'Helvetica Neue', Arial, sans-serif; font-size: 12px;
  fill: #1f2937; }
.value { text-anchor: end; font-weight: 600; }
.missed { fill: #b91c1c; }
.goal { fill: #6b7280; }
.line { fill: none; stroke: #0f4c5c; stroke-width: 1.5; }
.end { fill: #0f4c5c; }
.limit { stroke: #b45309; stroke-dasharray: 3 3; }
"""
HEAD = f"""{NOTE}
# How benchmarks have changed

Each row is one figure that has a goal, over the runs of its benchmark, the oldest at the left. The
dashed line is the goal of today; a value in red does not meet it. Zero is at the bottom. Machines
and what else they did differ from run to run: only ratios compare across them. The numbers, with
commit and machine of each run, are in `benchmarks/history.jsonl`; the newest of them, with those
that have no goal, in [Benchmarks](../benchmarks.md). `make bench` runs them all.
"""


class Run(ApiModel):
    """One run of the benchmarks of a section."""

    section: str
    time: str
    commit: str
    machine: str
    values: dict[str, float]
    goals: dict[str, str]
    """By figure; a bound with its sign before it."""


@cache
def runs() -> tuple[Run, ...]:
    """What is kept, the oldest first."""
    lines = HISTORY.read_text(encoding="utf-8").splitlines()
    return tuple(Run.model_validate_json(line) for line in lines)


def history_pages() -> dict[str, str]:
    """The page and its pictures: the path of each below `docs/`, and its text."""
    sections = list(dict.fromkeys(run.section for run in runs()))
    pictures: dict[str, str] = {}
    parts = [HEAD]
    for section in sections:
        own = [run for run in runs() if run.section == section]
        if not own[-1].goals:
            continue
        name = f"{IMAGES}{_slug(section)}.svg"
        pictures[name] = picture(own)
        about = f"{section}: figures over {len(own)} runs, the last at {own[-1].commit}"
        parts.append(f"## {section}\n\n![{about}](../{name})\n")
    return {PAGE: "\n".join(parts), **pictures}


def picture(section: Sequence[Run]) -> str:
    """The figures of one section that have a goal, a row each.

    Args:
        section: its runs, the oldest first.
    """
    goals = section[-1].goals
    rows = [
        part
        for number, (name, goal) in enumerate(goals.items())
        for part in _row(number, name, goal, [run.values.get(name) for run in section])
    ]
    height = ROW * len(goals) + 4
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'width="{WIDTH}" height="{height}">',
            f"<style>{STYLE}</style>",
            f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
            *rows,
            "</svg>\n",
        ]
    )


def _row(number: int, name: str, goal: str, values: Sequence[float | None]) -> Iterator[str]:
    sign, bound = goal.split()
    limit = float(bound)
    known = [(place, value) for place, value in enumerate(values) if value is not None]
    newest = known[-1][1]
    is_met = _COMPARISONS[sign](newest, limit)
    top, base = ROW * number + 3, ROW * number + ROW - 3
    highest = max(limit, *(value for _, value in known)) or 1.0

    def x(place: int) -> float:
        return round(PLOT + PLOT_WIDTH * place / max(len(values) - 1, 1), 1)

    def y(value: float) -> float:
        return round(base - (base - top) * value / highest, 1)

    text = base - 5
    points = " ".join(f"{x(place)},{y(value)}" for place, value in known)
    yield f'<text x="{NAMES}" y="{text}">{escape(name)}</text>'
    ends = f'x1="{PLOT}" y1="{y(limit)}" x2="{PLOT + PLOT_WIDTH}" y2="{y(limit)}"'
    yield f'<line class="limit" {ends}/>'
    yield f'<polyline class="line" points="{points}"/>'
    yield f'<circle class="end" cx="{x(known[-1][0])}" cy="{y(newest)}" r="2.5"/>'
    kind = "value" if is_met else "value missed"
    yield f'<text class="{kind}" x="{VALUES}" y="{text}">{newest:g}</text>'
    yield f'<text class="goal" x="{GOALS}" y="{text}">{escape(goal)}</text>'


def _slug(section: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", section.lower()).strip("-")
