"""The history of an output as lanes over time: published, missing, restated, ending snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from snaploom.models.times import EpochNanos, parse_instant
from snaploom.site.charts import WIDTH, time_axis
from snaploom.site.markup import Html, join, tag
from snaploom.site.pagedata import OutputPage
from snaploom.site.quantities import counted, shortened
from snaploom.storage.entries import SnapshotRecord

CELLS = 500
"""Cells of a lane: two pixels each on a wide screen."""
SEPARATE = 120
"""Cells up to this number stand apart from each other."""

Span = tuple[int, int]

LABEL_WIDTH, PLOT_WIDTH, LANE_HEIGHT = 130, 590, 22
"""Pixels of a picture that stands by itself: as wide as a cell of a notebook at least is."""
COLOURS = {
    "published": "#0f4c5c",
    "missing": "#b91c1c",
    "failed": "#b91c1c",
    "restated": "#b45309",
    "doubtful": "#b45309",
    "going": "#94a3b8",
    "deleted": "#cbd5e1",
}
"""By the name of a lane."""


@dataclass(frozen=True)
class Lane:
    """One kind of event over time."""

    name: str
    title: str
    count: int
    spans: tuple[Span, ...]
    """From one instant to another, in nanoseconds."""


def marks_of(record: SnapshotRecord) -> tuple[str, ...]:
    """Notes about a snapshot, for people."""
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
    length = usual_length(times)

    def spans(instants: Iterable[int]) -> tuple[Span, ...]:
        return spans_of(instants, length)

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
    first, last = ends_of(lanes)
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
        time_axis(first, last),
        tag("p", class_="readout", aria_hidden="true"),
        class_="timeline",
        id="lanes",
        data_first=first // 1_000_000,
        data_last=last // 1_000_000,
    )


def ends_of(lanes: Sequence[Lane]) -> tuple[EpochNanos, EpochNanos]:
    """From when to when lanes reach; there is one at least."""
    return (
        EpochNanos(min(start for lane in lanes for start, _ in lane.spans)),
        EpochNanos(max(end for lane in lanes for _, end in lane.spans)),
    )


def timeline_svg(lanes: Sequence[Lane]) -> Html:
    """The lanes as a picture that needs no page around it; nothing where there is none."""
    if not lanes:
        return Html("")
    first, last = ends_of(lanes)
    height = LANE_HEIGHT * (len(lanes) + 1)
    rows = [_lane_svg(lane, LANE_HEIGHT * place, first, last) for place, lane in enumerate(lanes)]
    axis = [
        _label(LABEL_WIDTH, height, shortened(first), "start"),
        _label(LABEL_WIDTH + PLOT_WIDTH, height, shortened(last), "end"),
    ]
    return tag(
        "svg",
        *rows,
        *axis,
        xmlns="http://www.w3.org/2000/svg",
        width=LABEL_WIDTH + PLOT_WIDTH,
        height=height + LANE_HEIGHT // 2,
        role="img",
        aria_label="; ".join(f"{lane.title}: {counted(lane.count, 'interval')}" for lane in lanes),
    )


def _lane_svg(lane: Lane, top: int, first: int, last: int) -> Html:
    plot = tag(
        "svg",
        tag("path", d=Html(_path(lane.spans, first, last)), fill=COLOURS[lane.name]),
        x=LABEL_WIDTH,
        y=top + LANE_HEIGHT // 4,
        width=PLOT_WIDTH,
        height=LANE_HEIGHT // 2,
        viewBox=f"0 0 {WIDTH} 10",
        preserveAspectRatio="none",
    )
    title = _label(0, top + LANE_HEIGHT, f"{lane.title} {lane.count:,}", "start")
    return join([title, plot])


def _label(x: int, bottom: int, text: str, anchor: str) -> Html:
    return tag(
        "text",
        text,
        x=x,
        y=bottom - LANE_HEIGHT // 3,
        text_anchor=anchor,
        font_family="sans-serif",
        font_size=12,
        fill="#6b7280",
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


def spans_of(instants: Iterable[int], length: int) -> tuple[Span, ...]:
    """The spans of snapshots, from their times and the length of time that each stands for."""
    return tuple((instant, instant + length) for instant in instants)


def usual_length(times: Sequence[int]) -> int:
    """The length of time that a snapshot stands for, in nanoseconds: the median between two."""
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
