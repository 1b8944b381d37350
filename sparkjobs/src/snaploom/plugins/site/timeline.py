"""The history of an output as lanes over time, with gaps, and lines over time as SVG."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from snaploom.models.common import NANOS_PER_MILLISECOND, EpochNanos, parse_instant
from snaploom.output.entries import SnapshotRecord
from snaploom.plugins.site.pagedata import (
    Html,
    OutputPage,
    counted,
    data_block,
    join,
    shortened,
    tag,
)

# Lines over time as SVG that stretches to any width: labels stand beside it, as text.

MOST_POINTS = 240
"""Points of a line: one every three pixels of a wide screen."""
MOST_LINES = 6
"""Lines of one chart: as many as differ clearly by dashes and colours."""
WIDTH, HEIGHT = 1000, 100
"""Units of a drawing, which stretches."""

Format = Callable[[float], str]
Choice = Callable[[Sequence[float]], float]


@dataclass(frozen=True)
class Series:
    """One line."""

    name: str
    values: tuple[float | None, ...]
    """A value a snapshot; None where there is none."""


@dataclass(frozen=True)
class Axis:
    """Scale and format of drawn values."""

    write: Format
    choose: Choice
    """The value of several snapshots that matters: the newest, the worst ..."""
    lowest: float | None = None
    """Lower end of the axis; None: as low as the values need."""
    highest: float | None = None


@dataclass(frozen=True)
class _Point:
    time: EpochNanos
    value: float
    low: float
    high: float


def newest(values: Sequence[float]) -> float:
    """The last one."""
    return values[-1]


def chart(
    name: str, title: str, times: Sequence[EpochNanos], lines: Sequence[Series], axis: Axis
) -> Html:
    """A chart; nothing where there is no value.

    `name` is the id of the chart in its page; the times ascend.
    """
    drawn = [(line.name, _points(times, line.values, axis.choose)) for line in lines[:MOST_LINES]]
    drawn = [(label, points) for label, points in drawn if any(points)]
    if not drawn:
        return Html("")
    known = [point for _, points in drawn for point in points if point is not None]
    low = min(point.low for point in known) if axis.lowest is None else axis.lowest
    high = max(point.high for point in known) if axis.highest is None else axis.highest
    if low == high:
        low, high = (low - 1, high + 1) if axis.lowest is None else (low, low + 1)
    ends = (times[0], times[-1])
    paths = [_shape(points, ends, (low, high), number) for number, (_, points) in enumerate(drawn)]
    about = "; ".join(f"{label}: {_summary(points, axis)}" for label, points in drawn)
    plot = tag(
        "svg",
        *paths,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        preserveAspectRatio="none",
        role="img",
        aria_label=f"{title}. {about}",
    )
    return tag(
        "figure",
        tag("figcaption", tag("span", title, class_="charttitle"), _legend(drawn, axis)),
        tag(
            "div",
            tag("span", axis.write(high), class_="high", aria_hidden="true"),
            plot,
            tag("span", axis.write(low), class_="low", aria_hidden="true"),
            class_="plot",
        ),
        time_axis(*ends),
        tag("p", class_="readout", aria_hidden="true"),
        _data(f"{name}-data", drawn, axis),
        class_="chart",
        id=name,
    )


def time_axis(first: EpochNanos, last: EpochNanos) -> Html:
    """Both ends of the time that is drawn."""
    labels = (tag("span", shortened(first)), tag("span", shortened(last)))
    return tag("div", *labels, class_="axis", aria_hidden="true")


def _points(
    times: Sequence[EpochNanos], values: Sequence[float | None], choose: Choice
) -> list[_Point | None]:
    """As many points as are seen as several; None where a stretch has no value."""
    step = max(1, -(-len(times) // MOST_POINTS))
    found: list[_Point | None] = []
    for start in range(0, len(times), step):
        part = [value for value in values[start : start + step] if value is not None]
        at = times[min(start + step, len(times)) - 1]
        found.append(_Point(at, choose(part), min(part), max(part)) if part else None)
    return found


def _shape(
    points: Iterable[_Point | None],
    ends: tuple[EpochNanos, EpochNanos],
    limits: tuple[float, float],
    number: int,
) -> Html:
    low, high = limits

    def x(time: EpochNanos) -> str:
        length = ends[1] - ends[0]
        return f"{WIDTH * (time - ends[0]) / length if length else WIDTH / 2:.1f}"

    def y(value: float) -> str:
        return f"{HEIGHT - 4 - (HEIGHT - 8) * (value - low) / (high - low):.1f}"

    runs: list[list[_Point]] = [[]]
    for point in points:
        if point is None:
            runs.append([])
        else:
            runs[-1].append(point)
    line, band = "", ""
    for run in filter(None, runs):
        # A run of one point is a dot: a line of no length, whose round ends show.
        line += "M" + "L".join(f"{x(p.time)} {y(p.value)}" for p in run)
        line += "h0" if len(run) == 1 else ""
        if len(run) > 1 and any(p.low < p.high for p in run):
            there = "L".join(f"{x(p.time)} {y(p.high)}" for p in run)
            back = "L".join(f"{x(p.time)} {y(p.low)}" for p in reversed(run))
            band += f"M{there}L{back}Z"
    return join([
        tag("path", d=Html(band), class_=f"band series{number}") if band else Html(""),
        tag("path", d=Html(line), class_=f"line series{number}"),
    ])  # fmt: skip


def _summary(points: Iterable[_Point | None], axis: Axis) -> str:
    known = [point for point in points if point is not None]
    low, high = min(p.low for p in known), max(p.high for p in known)
    last = f"now {axis.write(known[-1].value)}"
    return last if low == high else f"{last}, from {axis.write(low)} to {axis.write(high)}"


def _legend(drawn: Sequence[tuple[str, list[_Point | None]]], axis: Axis) -> Html:
    return tag(
        "span",
        *(
            tag("span", label, " ", tag("strong", axis.write(_last(points))), class_=f"key key{n}")
            for n, (label, points) in enumerate(drawn)
        ),
        class_="legend",
    )


def _last(points: Sequence[_Point | None]) -> float:
    return next(point.value for point in reversed(points) if point is not None)


def _data(name: str, drawn: Sequence[tuple[str, list[_Point | None]]], axis: Axis) -> Html:
    times = {p.time for _, points in drawn for p in points if p is not None}
    ordered = sorted(times)
    by_line = [(label, {p.time: p for p in points if p is not None}) for label, points in drawn]
    return data_block(
        name,
        {
            "t": [time // NANOS_PER_MILLISECOND for time in ordered],
            "s": [
                {
                    "n": label,
                    "v": [_written(found.get(time), axis) for time in ordered],
                }
                for label, found in by_line
            ],
        },
    )


def _written(point: _Point | None, axis: Axis) -> str | None:
    if point is None:
        return None
    if point.low == point.high:
        return axis.write(point.value)
    return f"{axis.write(point.low)} to {axis.write(point.high)}"


# The history of an output as lanes over time: published, missing, restated, ending snapshots.

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
    "due": "#0369a1",
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
    outcomes = (one.time for run in page.runs for one in run.failed)
    failed = sorted(set(_instants(outcomes)) - live)
    due = () if page.due is None else page.due.times
    lanes = (
        Lane("published", "published", len(times), spans(times)),
        Lane(
            "missing",
            "gaps",
            sum(gap.intervals for gap in page.gaps),
            tuple((gap.start, gap.end) for gap in page.gaps),
        ),
        Lane("due", "due", len(due), spans(due)),
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


def _instants(times: Iterable[str]) -> list[EpochNanos]:
    found = []
    for time in times:
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
