"""Intervals of the root and the one candidate of each (rule W15), as unions of inclusive spans."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from operator import attrgetter
from typing import Protocol

from whenever import PlainDateTime

from snaploom.errors import SnaploomError
from snaploom.models.common import (
    NANOS_PER_MILLISECOND,
    NANOS_PER_SECOND,
    EpochNanos,
    LocalDateTime,
    Preference,
    TimeOffset,
    parse_instant,
)
from snaploom.models.outputdataset import FromCron, FromInterval, SnapshotFilter
from snaploom.models.report import SnapshotReason
from snaploom.plan.times import (
    FIRST_INSTANT,
    LAST_INSTANT,
    CalendarLength,
    CronTicks,
    OutOfCalendar,
    advance,
    length_of,
    local_instant,
    minus_bounded,
)

# Times without gaps: the union of inclusive intervals of whole milliseconds.

_FIRST = -(-FIRST_INSTANT // NANOS_PER_MILLISECOND)
_LAST = LAST_INSTANT // NANOS_PER_MILLISECOND


class ReversedInterval(ValueError):
    """An interval ends before it begins."""


@dataclass(frozen=True, slots=True)
class Span:
    """Milliseconds since the epoch from `first` to `last`, both of them included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class IntervalSet:
    """Spans in ascending order, at least one millisecond between any two."""

    spans: tuple[Span, ...] = ()

    @staticmethod
    def of(intervals: Iterable[tuple[int, int]]) -> IntervalSet:
        """The union of inclusive intervals of milliseconds, in any order.

        Times beyond the calendar are cut off: "for ever" is often written as the largest number
        that there is.
        """
        spans: list[Span] = []
        for first, last in sorted(intervals):
            if last < first:
                raise ReversedInterval(first, last)
            first, last = max(first, _FIRST), min(last, _LAST)
            if last < first:
                continue
            if spans and first <= spans[-1].last + 1:
                spans[-1] = Span(spans[-1].first, max(spans[-1].last, last))
            else:
                spans.append(Span(first, last))
        return IntervalSet(tuple(spans))

    def newest(self, first: int, last: int) -> EpochNanos | None:
        """The last time from one instant to another, both inclusive, in nanoseconds."""
        latest = last // NANOS_PER_MILLISECOND
        index = bisect_right(self.spans, latest, key=attrgetter("first")) - 1
        if index < 0:
            return None
        found = min(self.spans[index].last, latest) * NANOS_PER_MILLISECOND
        return EpochNanos(found) if found >= first else None

    def oldest(self, first: int, last: int) -> EpochNanos | None:
        """The first time from one instant to another, both inclusive, in nanoseconds."""
        earliest = -(-first // NANOS_PER_MILLISECOND)
        index = bisect_left(self.spans, earliest, key=attrgetter("last"))
        if index == len(self.spans):
            return None
        found = max(self.spans[index].first, earliest) * NANOS_PER_MILLISECOND
        return EpochNanos(found) if found <= last else None

    def without(self, ranges: Iterable[tuple[int, int]]) -> IntervalSet:
        """The rest of it outside half-open ranges of nanoseconds."""
        kept = list(self.spans)
        for start, end in ranges:
            # The first and the last millisecond that lie in the range.
            low = -(-start // NANOS_PER_MILLISECOND)
            high = -(-end // NANOS_PER_MILLISECOND) - 1
            kept = [part for span in kept for part in _cut(span, low, high)]
        return IntervalSet(tuple(kept))


def _cut(span: Span, low: int, high: int) -> tuple[Span, ...]:
    if high < low or high < span.first or span.last < low:
        return (span,)
    sides = Span(span.first, low - 1), Span(high + 1, span.last)
    return tuple(side for side in sides if side.first <= side.last)


NO_TIME = IntervalSet()
"""Not a millisecond."""


# Intervals of the root and the one candidate of each (rule W15).

NEVER = EpochNanos(LAST_INSTANT + 1)
"""End of an interval whose end is beyond the calendar."""
_MINUTE = 60 * NANOS_PER_SECOND
MOST_CANDIDATES = 1_000_000
"""Candidates that an interval set may give: hourly ones for a century are fewer."""


class TooManyCandidates(SnaploomError):
    """A source that has a snapshot at any time, and tiny intervals."""


@dataclass(frozen=True, slots=True)
class Interval:
    """One interval, half-open."""

    index: int
    """Grows from one interval of a sequence to the next."""
    start: EpochNanos
    end: EpochNanos

    def __contains__(self, instant: int) -> bool:
        return self.start <= instant < self.end


class IntervalSequence(Protocol):
    """Intervals in order, none of which overlaps another."""

    @property
    def start(self) -> EpochNanos:
        """Nothing before it is in an interval."""

    @property
    def zone(self) -> str:
        """Zone of every calendar length of the OutputDataset."""

    def containing(self, instant: EpochNanos) -> Interval | None:
        """The interval that holds an instant, if one does."""

    def of_each(self, instants: Iterable[EpochNanos]) -> Iterator[tuple[EpochNanos, Interval]]:
        """Each of the ascending instants with its interval; those in none are left out."""

    def covering(self, first: EpochNanos, last: EpochNanos) -> Iterator[Interval]:
        """The intervals that have a time from `first` to `last`, in order."""


@dataclass(frozen=True)
class Intervals:
    """Intervals without gaps between them; `length` must be longer than nothing."""

    start: EpochNanos
    length: CalendarLength
    zone: str

    def boundary(self, index: int) -> EpochNanos:
        """B(index), or `NEVER` where that is beyond the calendar."""
        try:
            return advance(self.start, self.length.times(index), self.zone)
        except OutOfCalendar:
            return NEVER

    def at(self, index: int) -> Interval:
        """Interval number `index`."""
        return Interval(index, self.boundary(index), self.boundary(index + 1))

    def containing(self, instant: EpochNanos, not_before: int = 0) -> Interval | None:
        """The interval that holds an instant, or None when it lies before the first.

        `not_before` is an interval known not to be later; near it the search is shortest.
        """
        low = not_before
        if instant < self.boundary(low):
            return None
        step = 1
        while self.boundary(low + step) <= instant:
            low, step = low + step, step * 2
        high = low + step
        while high - low > 1:
            middle = (low + high) // 2
            if self.boundary(middle) <= instant:
                low = middle
            else:
                high = middle
        return self.at(low)

    def of_each(self, instants: Iterable[EpochNanos]) -> Iterator[tuple[EpochNanos, Interval]]:
        interval: Interval | None = None
        for instant in instants:
            if interval is None or instant >= interval.end:
                interval = self.containing(instant, interval.index if interval else 0)
            if interval is not None:
                yield instant, interval

    def covering(self, first: EpochNanos, last: EpochNanos) -> Iterator[Interval]:
        interval = self.containing(max(first, self.start))
        while interval is not None and interval.start <= last:
            yield interval
            interval = self.at(interval.index + 1)


@dataclass(frozen=True)
class CronIntervals:
    """An interval from each tick on, no longer than to the next one."""

    start: EpochNanos
    ticks: CronTicks
    length: TimeOffset

    @property
    def zone(self) -> str:
        return self.ticks.zone

    def containing(self, instant: EpochNanos) -> Interval | None:
        found = self._latest(instant)
        return found if found is not None and instant in found else None

    def of_each(self, instants: Iterable[EpochNanos]) -> Iterator[tuple[EpochNanos, Interval]]:
        latest: Interval | None = None
        following: EpochNanos | None = self.start
        for instant in instants:
            if following is not None and instant >= following:
                latest = self._latest(instant)
                following = self.ticks.following(instant)
            if latest is not None and instant in latest:
                yield instant, latest

    def covering(self, first: EpochNanos, last: EpochNanos) -> Iterator[Interval]:
        first = max(first, self.start)
        latest = self._latest(first)
        if latest is not None and first in latest and first <= last:
            yield latest
        tick = self.ticks.following(first)
        while tick is not None and tick <= last:
            interval = self._latest(tick)
            if interval is not None:
                yield interval
            tick = self.ticks.following(tick)

    def _latest(self, instant: EpochNanos) -> Interval | None:
        """The interval that began last, even if it is over."""
        tick = self.ticks.latest(instant) if instant >= self.start else None
        if tick is None or tick < self.start:
            return None
        following = self.ticks.following(tick)
        end = min(self._end_of(tick), NEVER if following is None else following)
        return Interval(tick // _MINUTE, tick, end)

    def _end_of(self, tick: EpochNanos) -> EpochNanos:
        try:
            return advance(tick, length_of(self.length), self.zone)
        except OutOfCalendar:
            return NEVER


@dataclass(frozen=True, slots=True)
class IntervalSettings:
    """A `snapshotFilter`, resolved to instants."""

    intervals: IntervalSequence
    preference: Preference = Preference.NEWEST
    only_closed: bool = False
    max_age: TimeOffset | None = None
    excluded: tuple[tuple[EpochNanos, EpochNanos], ...] = ()

    def excludes(self, instant: EpochNanos) -> bool:
        """Whether nothing is to be published for this time."""
        return any(first <= instant < last for first, last in self.excluded)


@dataclass(frozen=True, slots=True)
class RootCandidate:
    """The snapshot of the root that stands for an interval."""

    time: EpochNanos
    interval: Interval
    is_open: bool
    reason: SnapshotReason = SnapshotReason.NEW_SNAPSHOT
    """NEW_SNAPSHOT, or why it is skipped."""


@dataclass(frozen=True, slots=True)
class SourceSnapshots:
    """The snapshots that a source offers.

    They are ascending times, or only what is there when it is read, or one for every millisecond of
    an interval set.
    """

    times: tuple[EpochNanos, ...] = ()
    at_read_time: bool = False
    intervalset: IntervalSet = NO_TIME

    @staticmethod
    def of(times: Iterable[EpochNanos]) -> SourceSnapshots:
        """The snapshots with these times, in any order."""
        return SourceSnapshots(tuple(sorted(set(times))))

    @property
    def is_empty(self) -> bool:
        return not (self.times or self.at_read_time or self.intervalset.spans)

    def newest(self, first: EpochNanos, last: EpochNanos, now: EpochNanos) -> EpochNanos | None:
        """The last snapshot from one time to another, both inclusive."""
        if self.intervalset.spans:
            return self.intervalset.newest(first, last)
        times = self.known_at(now)
        index = bisect_right(times, last) - 1
        return times[index] if index >= 0 and times[index] >= first else None

    def oldest(self, first: EpochNanos, last: EpochNanos, now: EpochNanos) -> EpochNanos | None:
        """The first snapshot from one time to another, both inclusive."""
        if self.intervalset.spans:
            return self.intervalset.oldest(first, last)
        times = self.known_at(now)
        index = bisect_left(times, first)
        return times[index] if index < len(times) and times[index] <= last else None

    def within(self, first: EpochNanos, last: EpochNanos) -> tuple[EpochNanos, ...]:
        """All listed snapshots from one time to another, both inclusive, in ascending order."""
        return self.times[bisect_left(self.times, first) : bisect_right(self.times, last)]

    def latest(self, now: EpochNanos) -> EpochNanos | None:
        """The last snapshot that is not in the future."""
        return self.newest(FIRST_INSTANT, now, now)

    def known_at(self, now: EpochNanos) -> Sequence[EpochNanos]:
        """Ascending times (an interval set is no list); without history, only `now`."""
        return (now,) if self.at_read_time else self.times


READ_TIME = SourceSnapshots(at_read_time=True)


@dataclass
class _Choice:
    """Candidates of one interval, in ascending order."""

    interval: Interval
    allowed: list[EpochNanos] = field(default_factory=list)
    excluded: list[EpochNanos] = field(default_factory=list)


def settings_of(snapshot_filter: SnapshotFilter) -> IntervalSettings:
    """Resolve the filter of an OutputDataset."""
    given = snapshot_filter.from_interval or snapshot_filter.from_cron
    assert given is not None  # guaranteed by one_of
    return IntervalSettings(
        intervals=_by_length(given) if isinstance(given, FromInterval) else _by_cron(given),
        preference=given.preference,
        only_closed=given.only_closed_intervals,
        max_age=given.max_snapshot_age,
        excluded=tuple(
            (parse_instant(excluded.from_), parse_instant(excluded.to))
            for excluded in given.exclude_intervals
        ),
    )


def _by_length(given: FromInterval) -> Intervals:
    start = given.interval_start_date
    return Intervals(start_of(start), length_of(given.interval_length), start.timezone)


def _by_cron(given: FromCron) -> CronIntervals:
    ticks = CronTicks(given.schedule, given.time_zone)
    return CronIntervals(parse_instant(given.start_date), ticks, given.length)


def start_of(start: LocalDateTime) -> EpochNanos:
    """The instant at which the first interval starts; gaps and overlaps as in `local_instant`."""
    local = PlainDateTime(
        start.year, start.month, start.day, start.hour, start.minute, start.second,
        nanosecond=start.nano,
    )  # fmt: skip
    return local_instant(local, start.timezone)


def root_candidates(
    settings: IntervalSettings,
    root: SourceSnapshots,
    taken: Iterable[EpochNanos],
    now: EpochNanos,
) -> tuple[RootCandidate, ...]:
    """One candidate for each interval that has a snapshot of the root, in ascending order.

    Left out without a word are snapshots in the future, intervals that have a published or
    tombstoned snapshot (`taken`), and intervals that ended before the horizon of maxSnapshotAge.
    An interval that is open, when only closed ones count, and one all of whose snapshots lie in
    `excludeIntervals`, are listed with the reason; the excluded times of other intervals are
    simply not chosen.
    """
    done = {interval.index for _, interval in settings.intervals.of_each(sorted(taken))}
    horizon = _horizon(settings, now)
    choices: dict[int, _Choice] = {}
    if root.intervalset.spans:
        past = _ends(settings, root.intervalset, horizon, now)
    else:
        past = (instant for instant in root.known_at(now) if instant <= now)
    for instant, interval in settings.intervals.of_each(past):
        if interval.index in done or interval.end <= horizon:
            continue
        choice = choices.setdefault(interval.index, _Choice(interval))
        (choice.excluded if settings.excludes(instant) else choice.allowed).append(instant)
    return tuple(_candidate(settings, choice, now) for choice in choices.values())


def _ends(
    settings: IntervalSettings, intervalset: IntervalSet, horizon: EpochNanos, now: EpochNanos
) -> Iterator[EpochNanos]:
    """Ascending times of an interval set, of which every interval's candidate is one.

    They are the first and the last of each interval, and of what excludeIntervals leave of it.
    """
    allowed = intervalset.without(settings.excluded)
    reached = settings.intervals.containing(horizon)
    begin = horizon if reached is None else reached.start
    visited = -1
    count = 0
    for span in intervalset.spans:
        first = EpochNanos(max(span.first * NANOS_PER_MILLISECOND, begin))
        last = EpochNanos(min(span.last * NANOS_PER_MILLISECOND, now))
        for interval in settings.intervals.covering(first, last) if first <= last else ():
            if interval.index <= visited:
                continue
            visited, count = interval.index, count + 1
            if count > MOST_CANDIDATES:
                raise TooManyCandidates(
                    f"the root has snapshots in more than {MOST_CANDIDATES:,} intervals",
                    path="spec.dataModel.rootDataSource.snapshotFilter",
                    expected="fewer and longer intervals, or a maxSnapshotAge",
                    found=f"interval number {count:,}",
                )
            bounds = interval.start, min(interval.end - 1, now)
            asked = (ask(*bounds) for c in (intervalset, allowed) for ask in (c.oldest, c.newest))
            yield from sorted({time for time in asked if time is not None})


def _horizon(settings: IntervalSettings, now: EpochNanos) -> EpochNanos:
    if settings.max_age is None or settings.max_age.is_zero:
        return settings.intervals.start
    return minus_bounded(now, settings.max_age, settings.intervals.zone)


def _candidate(settings: IntervalSettings, choice: _Choice, now: EpochNanos) -> RootCandidate:
    times = choice.allowed or choice.excluded
    time = times[-1] if settings.preference is Preference.NEWEST else times[0]
    is_open = now < choice.interval.end
    if not choice.allowed:
        reason = SnapshotReason.INTERVAL_EXCLUDED
    elif is_open and settings.only_closed:
        reason = SnapshotReason.INTERVAL_OPEN
    else:
        reason = SnapshotReason.NEW_SNAPSHOT
    return RootCandidate(time, choice.interval, is_open, reason)


# Intervals of an output that have no snapshot, between two that have one.

MOST_COUNTED = 1_000
"""Intervals by cron that are counted one by one in a gap: beyond, their number adds nothing."""


@dataclass(frozen=True)
class Gap:
    """Intervals without a snapshot, between two that have one."""

    start: EpochNanos
    end: EpochNanos
    """Not included."""
    intervals: int
    """Number; at least one."""
    is_bounded: bool = False
    """Whether there may be more, since counting stopped."""


def gaps_of(settings: IntervalSettings, times: Iterable[EpochNanos]) -> tuple[Gap, ...]:
    """The gaps between snapshots, by time.

    Intervals that `excludeIntervals` leaves out as a whole are none, nor are those whose snapshot
    retention deleted, if `times` has it.
    """
    intervals = [interval for _, interval in settings.intervals.of_each(sorted(set(times)))]
    return tuple(
        gap
        for before, after in pairwise(intervals)
        if before.end < after.start
        for gap in _between(settings, before, after)
    )


def _between(settings: IntervalSettings, before: Interval, after: Interval) -> Iterator[Gap]:
    parts = [(before.end, after.start)]
    for first, last in settings.excluded:
        parts = [piece for part in parts for piece in _without(part, first, last)]
    for start, end in parts:
        count = _count(settings, start, end)
        if count:
            yield Gap(start, end, min(count, MOST_COUNTED), count > MOST_COUNTED)


def _without(
    part: tuple[EpochNanos, EpochNanos], first: EpochNanos, last: EpochNanos
) -> Iterator[tuple[EpochNanos, EpochNanos]]:
    start, end = part
    if last <= start or end <= first:
        yield part
        return
    if start < first:
        yield start, first
    if last < end:
        yield last, end


def _count(settings: IntervalSettings, start: EpochNanos, end: EpochNanos) -> int:
    """Intervals that begin in a span; up to one more than `MOST_COUNTED`."""
    last = EpochNanos(end - 1)
    sequence = settings.intervals
    if isinstance(sequence, Intervals):
        first_interval, last_interval = sequence.containing(start), sequence.containing(last)
        if first_interval is None or last_interval is None:
            return 0
        return last_interval.index - first_interval.index + 1
    covering = islice(sequence.covering(start, last), MOST_COUNTED + 1)
    return sum(start <= interval.start for interval in covering)
