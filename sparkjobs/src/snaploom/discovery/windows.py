"""Intervals of the root's snapshots, and how far back a snapshot of a child is looked for."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from snaploom.discovery.dates import Unit
from snaploom.models.common import TimeOffset

EVER = TimeOffset(year=100)
"""Further than any data reaches: where one side has no history, the other one's is not compared."""
_DAY = timedelta(days=1)
_LADDER = (
    (timedelta(hours=1), TimeOffset(hour=1)),
    (_DAY, TimeOffset(day=1)),
    (7 * _DAY, TimeOffset(day=7)),
    (28 * _DAY, TimeOffset(month=1)),
    (89 * _DAY, TimeOffset(month=3)),
    (365 * _DAY, TimeOffset(year=1)),
    (3650 * _DAY, TimeOffset(year=10)),
)
"""Lags, and the window that holds each: round lengths, so that a late file is found as well. The
shortest month has 28 days, the shortest quarter 89."""


@dataclass(frozen=True)
class Interval:
    """When snapshots of the output begin, and how long each is."""

    start: datetime
    length: TimeOffset
    reason: str


@dataclass(frozen=True)
class Window:
    """Where a child's snapshot is looked for."""

    before: TimeOffset
    after: TimeOffset
    may_miss: bool
    """Whether snapshots of the root are older than the child's first."""
    reason: str
    """For people; empty where it is the default, a snapshot of the same time."""


def interval_of(times: Sequence[datetime], unit: Unit) -> Interval:
    """The intervals of an output by the times of its root.

    The times ascend, and are empty for a root without history; `unit` is their precision.
    """
    if not times:
        start = datetime(2000, 1, 1)
        return Interval(start, TimeOffset(day=1), "one snapshot a day, of the data at the run")
    gaps = [later - earlier for earlier, later in pairwise(times)]
    count = f"{len(times):,} snapshots" if len(times) > 1 else "1 snapshot"
    count += f", the first of {times[0]:%Y-%m-%d}"
    smallest = min(gaps, default=_DAY)
    if unit is Unit.YEAR or smallest >= 365 * _DAY:
        return Interval(
            _midnight(times[0]).replace(month=1, day=1), TimeOffset(year=1), f"{count}, one a year"
        )
    if unit is Unit.MONTH or smallest >= 28 * _DAY:
        return Interval(
            _midnight(times[0]).replace(day=1), TimeOffset(month=1), f"{count}, one a month"
        )
    are_weeks = smallest >= 7 * _DAY and all(gap % (7 * _DAY) == timedelta() for gap in gaps)
    if unit is Unit.WEEK or are_weeks:
        return Interval(_midnight(times[0]), TimeOffset(week=1), f"{count}, one a week")
    if smallest >= _DAY:
        return Interval(_midnight(times[0]), TimeOffset(day=1), f"{count}, one a day at most")
    if smallest >= timedelta(hours=1):
        start = times[0].replace(minute=0, second=0, microsecond=0)
        return Interval(start, TimeOffset(hour=1), f"{count}, one an hour at most")
    start = times[0].replace(second=0, microsecond=0)
    return Interval(start, TimeOffset(minute=1), f"{count}, several an hour")


def _midnight(time: datetime) -> datetime:
    return time.replace(hour=0, minute=0, second=0, microsecond=0)


def window_of(root: Sequence[datetime], child: Sequence[datetime]) -> Window:
    """The window of a child by the times of both; empty for a source without history.

    Both ascend.
    """
    none = TimeOffset()
    if not child and not root:
        return Window(none, none, False, "")
    if not child:
        return Window(none, EVER, False, "no history: every snapshot gets the data at the run")
    if not root:
        return Window(EVER, none, False, "the newest snapshot at the time of the run")
    lags: list[timedelta] = []
    missed = 0
    for time in root:
        place = bisect_right(child, time)
        if place == 0:
            missed += 1
        else:
            lags.append(time - child[place - 1])
    most = max(lags, default=timedelta())
    late = f"; {missed} of {len(root)} snapshots are older than its first" if missed else ""
    if most == timedelta():
        return Window(none, none, missed > 0, late.removeprefix("; "))
    shown = f"{most.days} days" if most >= _DAY else f"{most.seconds // 60} minutes"
    if len(child) == 1:  # when the next one comes is not known
        most = max(most, 365 * _DAY)
    length = next((offset for lag, offset in _LADDER if most <= lag), EVER)
    return Window(length, none, missed > 0, f"its newest snapshot is up to {shown} older{late}")
