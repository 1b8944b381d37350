"""Lines over time as SVG that stretches to any width: labels stand beside it, as text.

However many snapshots there are, a line has at most `MOST_POINTS` points: each stands for a stretch
of time with its lowest and highest value, and with the one that matters as the line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from snaploom.models.times import NANOS_PER_MILLISECOND, EpochNanos
from snaploom.site.markup import Html, data_block, join, tag
from snaploom.site.quantities import shortened

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
    """How values are drawn and written."""

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
