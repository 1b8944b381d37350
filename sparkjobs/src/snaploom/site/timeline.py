"""The history of an output as lanes over time: what is published, missing, restated, ending."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from snaploom.models.times import EpochNanos, parse_instant
from snaploom.site.charts import WIDTH, time_axis
from snaploom.site.markup import Html, tag
from snaploom.site.pagedata import OutputPage
from snaploom.site.quantities import counted
from snaploom.storage.entries import SnapshotRecord

CELLS = 500
"""Cells of a lane: two pixels each on a wide screen."""
SEPARATE = 120
"""Cells up to this number stand apart from each other."""

Span = tuple[int, int]


@dataclass(frozen=True)
class Lane:
    """One kind of event over time."""

    name: str
    title: str
    count: int
    spans: tuple[Span, ...]
    """From one instant to another, in nanoseconds."""


def marks_of(record: SnapshotRecord) -> tuple[str, ...]:
    """What is notable about a snapshot, for people."""
    marks = []
    if record.replaces is not None:
        marks.append(f"restated: {record.reason}" if record.reason else "restated")
    marks.extend(f"without {x.field_name} ({x.reason.value})" for x in record.excluded)
    marks.extend(f"check {check.name} is not met" for check in record.checks if not check.holds)
    marks.extend(record.warnings)
    return tuple(marks)


def lanes_of(page: OutputPage) -> tuple[Lane, ...]:
    """The lanes that have anything, the published one first."""
    times = [record.time for record in page.snapshots]
    live = frozenset(times)
    cell = _cell(times)

    def spans(instants: Iterable[int]) -> tuple[Span, ...]:
        return tuple((instant, instant + cell) for instant in instants)

    restated = [record.time for record in page.snapshots if record.replaces is not None]
    doubtful = [record.time for record in page.snapshots if _is_doubtful(record)]
    going = [removal.time for removal in page.going]
    deleted = sorted({ended.time for ended in page.ended if ended.time not in live})
    failed = sorted({time for run in page.runs for time in _instants(run.failed)} - live)
    lanes = (
        Lane("published", "published", len(times), spans(times)),
        Lane(
            "missing",
            "gaps",
            sum(gap.intervals for gap in page.gaps),
            tuple((gap.start, gap.end) for gap in page.gaps),
        ),
        Lane("failed", "failed", len(failed), spans(failed)),
        Lane("restated", "restated", len(restated), spans(restated)),
        Lane("doubtful", "with warnings", len(doubtful), spans(doubtful)),
        Lane("going", "deleted next", len(going), spans(going)),
        Lane("deleted", "deleted", len(deleted), spans(deleted)),
    )
    return tuple(lane for lane in lanes if lane.count)


def timeline(page: OutputPage) -> Html:
    """The lanes as a drawing; nothing where there is no snapshot."""
    lanes = lanes_of(page)
    if not lanes:
        return Html("")
    first = min(start for lane in lanes for start, _ in lane.spans)
    last = max(end for lane in lanes for _, end in lane.spans)
    rows = [
        tag(
            "div",
            tag("span", lane.title, class_="lanetitle"),
            tag("span", f"{lane.count:,}", class_="lanecount"),
            tag(
                "svg",
                tag("path", d=Html(_path(lane.spans, first, last))),
                viewBox=f"0 0 {WIDTH} 10",
                preserveAspectRatio="none",
                role="img",
                aria_label=f"{lane.title}: {counted(lane.count, 'interval')}",
            ),
            class_=f"lane {lane.name}",
        )
        for lane in lanes
    ]
    return tag(
        "div",
        *rows,
        time_axis(EpochNanos(first), EpochNanos(last)),
        tag("p", class_="readout", aria_hidden="true"),
        class_="timeline",
        id="lanes",
        data_first=first // 1_000_000,
        data_last=last // 1_000_000,
    )


def _is_doubtful(record: SnapshotRecord) -> bool:
    return bool(record.warnings or record.excluded or any(not c.holds for c in record.checks))


def _instants(failed: Iterable[tuple[str, str, str]]) -> list[EpochNanos]:
    found = []
    for time, _, _ in failed:
        try:
            found.append(parse_instant(time))
        except ValueError:  # a Report is somebody else's text
            continue
    return found


def _cell(times: Sequence[int]) -> int:
    """The length of time that a snapshot stands for: that between two, as a rule."""
    steps = [after - before for before, after in pairwise(times)]
    return max(1, int(median(steps))) if steps else 86_400 * 1_000_000_000


def _path(spans: Sequence[Span], first: int, last: int) -> str:
    """The spans as rectangles; neighbours without room between them are one."""
    scale = WIDTH / max(1, last - first)
    step = WIDTH / CELLS
    is_apart = len(spans) <= SEPARATE
    drawn: list[tuple[float, float]] = []
    for start, end in spans:
        left, right = (start - first) * scale, (end - first) * scale
        if is_apart:
            right -= (right - left) * 0.12
        right = max(right, left + step)
        if not is_apart and drawn and left <= drawn[-1][1] + step / 2:
            drawn[-1] = (drawn[-1][0], max(right, drawn[-1][1]))
        else:
            drawn.append((left, right))
    return "".join(f"M{left:.1f} 0H{right:.1f}V10H{left:.1f}Z" for left, right in drawn)
