"""The page of benchmarks: the newest figures with goals, and how they have changed.

All figures are in `benchmarks/history.jsonl`, a line a run.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from xml.sax.saxutils import escape

from generation.markdown import NOTE, table
from snaploom.models.base import ApiModel

HISTORY = Path(__file__).parents[2] / "benchmarks" / "history.jsonl"
PAGE = "benchmarks.md"
IMAGES = "images/benchmarks/"
NAMES, PLOT, VALUES, GOALS, WIDTH = 0, 440, 680, 700, 800
"""Left ends of the columns of a picture, and its width, in pixels; values end at theirs."""
PLOT_WIDTH = 180
ROW = 26
"""Height of a figure's row, in pixels."""
_SIGNS = {"<=": "≤", ">=": "≥", "=": "="}
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
# Benchmarks

The newest figures that have a goal: in tables those that miss it (bold; [why](design/speed.md)) or
take more than half of what it allows, in pictures all of them over the runs, the oldest at the
left, with the goal as a dashed line. Ratios compare with code that ran in turn with ours, in the
same run. Seconds are those of two cores with 24 GiB, whose pace, seconds for ten million additions
in Python, stands above each table. All figures, with commits, are in `benchmarks/history.jsonl`;
`make bench` runs everything.
"""
ABOUT = {
    "Joins": "Line items of TPC-H, checks included, beside the same joins by hand.",
    "Backlog": "Two years of monthly snapshots in one run, beside a loop by hand.",
    "As-of joins": "Beside one sort of both sides by hand, and the range join that people write.",
    "Native": "With Comet on the oldest Spark: [how](how-to/run-it-natively.md).",
    "Growth": "Scale factors of TPC-H; [cluster sizes](how-to/size-a-cluster.md) follow from it.",
    "Models": "Planning of wide models, beside the same joins by hand.",
    "Start": "From the shell, beside PySpark without a setting.",
    "Commands without Spark": "Wall time and processor time of whole processes.",
    "Enumeration": "Sources of a million files.",
    "Histories": "One day of 10,000 published snapshots, beside its folder.",
    "Publication": "Histories of up to 100,000 snapshots on a disk.",
    "Publication in a bucket": "The same in a bucket of S3.",
    "Databases": "PostgreSQL, beside Spark's own reader.",
    "Skipping": "Indexes, queries with and without them, and a bound: Spark reading the one file.",
    "Skipping, share of files without a row": "Of conditions of 60 forms over seven types.",
    "Xskipper": "Beside the metadata and queries of Xskipper.",
    "Start from files": "`init --from` over 26 public data sets. On 2026-11-28 developers saw the "
    "truth of those that are only counted: figures on them are no longer blind.",
    "Pages": "Pages of outputs.",
    "Operator": "A real API server, without nodes.",
    "Admission": "The webhook.",
}
"""What each section measures, in the order of the page."""
PEERS = re.compile(r"Skipping beside peers, ([\d,]+) files")
COMPARED = re.compile(r"(\w+) query, (cold|warm), total, Snaploom / (\w+)")


class Run(ApiModel):
    """One run of the benchmarks of a section."""

    section: str
    command: str
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


def benchmark_pages() -> dict[str, str]:
    """The page and its pictures: the path of each below `docs/`, and its text."""
    pictures: dict[str, str] = {}
    parts = [HEAD]
    for section, about in ABOUT.items():
        own = [run for run in runs() if run.section == section]
        if not own:
            continue  # it has not been run yet
        name = f"{IMAGES}{_slug(section)}.svg"
        pictures[name] = picture(own)
        parts.append(
            f"## {section}\n\n{about} {_place(own[-1])}\n\n{_goals(own[-1])}\n"
            f"![{section}]({name})\n"
        )
    return {PAGE: "\n".join([*parts, _peers()]), **pictures}


def _place(run: Run) -> str:
    pace = re.search(r"([\d.]+) s for ten million", run.machine)
    return f"`{run.command}`, {run.time[:10]}{f', pace {pace[1]} s' if pace else ''}."


def _goals(run: Run) -> str:
    """The figures of a run that miss their goal, or take more than half of what it allows."""
    rows = []
    for name, goal in run.goals.items():
        value, (sign, bound) = run.values[name], goal.split()
        if sign != "<=" or value > float(bound) / 2:
            shown = f"{value:,}" if _is_met(value, goal) else f"**{value:,}**"
            rows.append([name, shown, f"{_SIGNS[sign]}{bound}"])
    return table(["figure", "value", "goal"], rows) if rows else ""


def _is_met(value: float, goal: str) -> bool:
    sign, bound = goal.split()
    return _COMPARISONS[sign](value, float(bound))


def _peers() -> str:
    """Ratios of whole queries to those over tables of Delta and Iceberg."""
    newest = {run.section: run for run in runs() if PEERS.fullmatch(run.section)}
    ratios: dict[tuple[str, str, str], dict[str, float]] = {}
    for section, run in newest.items():
        for name, value in run.values.items():
            if (found := COMPARED.fullmatch(name)) and (count := PEERS.fullmatch(section)):
                key = (count[1], found[1], found[3])
                ratios.setdefault(key, {})[found[2]] = value
    rows = [[*key, f"{each['cold']}", f"{each['warm']}"] for key, each in ratios.items()]
    head = (
        "## Skipping beside peers\n\nSeconds of a query over an index of ours, divided by those "
        "over a table of Delta or Iceberg: the first in a process, and repeated. "
    )
    columns = ["files", "query", "beside", "first", "repeated"]
    return f"{head}{_place(max(newest.values(), key=_time))}\n\n{table(columns, rows)}"


def _time(run: Run) -> str:
    return run.time


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
    limit = float(goal.split()[1])
    known = [(place, value) for place, value in enumerate(values) if value is not None]
    newest = known[-1][1]
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
    kind = "value" if _is_met(newest, goal) else "value missed"
    yield f'<text class="{kind}" x="{VALUES}" y="{text}">{newest:g}</text>'
    yield f'<text class="goal" x="{GOALS}" y="{text}">{escape(goal)}</text>'


def _slug(section: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", section.lower()).strip("-")
