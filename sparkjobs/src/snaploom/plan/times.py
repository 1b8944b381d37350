"""Calendar arithmetic, ticks of cron expressions, and the partition of a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, dataclass
from datetime import datetime, timedelta

from cronsim import CronSim
from whenever import Date, Instant, PlainDateTime, TimeDelta, TimeZoneNotFoundError, ZonedDateTime

from snaploom.models import outputdataset
from snaploom.models.common import (
    NANOS_PER_MILLISECOND,
    NANOS_PER_SECOND,
    EpochNanos,
    TimeOffset,
    format_instant,
)
from snaploom.models.findings import Finding

# Arithmetic with calendar lengths on instants, as java.time does it (rule W14).

FIRST_INSTANT = EpochNanos(Instant.MIN.timestamp(unit="nanosecond"))
"""Start of the year 1, UTC."""
LAST_INSTANT = EpochNanos(Instant.MAX.timestamp(unit="nanosecond"))
"""End of the year 9999, UTC."""


class OutOfCalendar(ArithmeticError):
    """A result lies before the year 1 or after the year 9999."""


@dataclass(frozen=True, slots=True)
class CalendarLength:
    """A calendar length whose parts may be negative, the exact ones summed to nanoseconds."""

    years: int
    months: int
    weeks: int
    days: int
    nanos: int

    def times(self, factor: int) -> CalendarLength:
        """Every part multiplied; not the same as applying the length `factor` times."""
        return CalendarLength(*(part * factor for part in astuple(self)))


def length_of(offset: TimeOffset) -> CalendarLength:
    """The length that a declaration gives."""
    seconds = (offset.hour * 60 + offset.minute) * 60 + offset.second
    return CalendarLength(
        offset.year,
        offset.month,
        offset.week,
        offset.day,
        seconds * NANOS_PER_SECOND + offset.nano,
    )


def times(offset: TimeOffset, factor: int) -> CalendarLength:
    """The length with every part multiplied by `factor`."""
    return length_of(offset).times(factor)


def plus(instant: EpochNanos, offset: TimeOffset, zone: str) -> EpochNanos:
    """The instant moved forward by a calendar length."""
    return advance(instant, length_of(offset), zone)


def minus(instant: EpochNanos, offset: TimeOffset, zone: str) -> EpochNanos:
    """The instant moved back: the parts negated, in the same order; not the inverse of `plus`."""
    return advance(instant, times(offset, -1), zone)


def plus_bounded(instant: EpochNanos, offset: TimeOffset, zone: str) -> EpochNanos:
    """As `plus`, with the calendar's end for everything beyond it."""
    return _bounded(plus, instant, offset, zone, LAST_INSTANT)


def minus_bounded(instant: EpochNanos, offset: TimeOffset, zone: str) -> EpochNanos:
    """As `minus`, with the calendar's beginning for everything before it."""
    return _bounded(minus, instant, offset, zone, FIRST_INSTANT)


def _bounded(
    move: Callable[[EpochNanos, TimeOffset, str], EpochNanos],
    instant: EpochNanos,
    offset: TimeOffset,
    zone: str,
    bound: EpochNanos,
) -> EpochNanos:
    try:
        return move(instant, offset, zone)
    except OutOfCalendar:
        return bound


def advance(instant: EpochNanos, length: CalendarLength, zone: str) -> EpochNanos:
    """The instant moved by a length, forward or back.

    Raises:
        OutOfCalendar: when a step leaves the years 1 to 9999.
        whenever.TimeZoneNotFoundError: when the tz database does not have the zone.
    """
    try:
        moved = _advance_date(instant, length, zone)
    except TimeZoneNotFoundError:
        raise
    except (ValueError, OverflowError) as error:
        raise OutOfCalendar("beyond the years 1 to 9999") from error
    result = EpochNanos(moved + length.nanos)
    if not FIRST_INSTANT <= result <= LAST_INSTANT:
        raise OutOfCalendar("beyond the years 1 to 9999")
    return result


def _advance_date(instant: EpochNanos, length: CalendarLength, zone: str) -> EpochNanos:
    if not (length.years or length.months or length.weeks or length.days):
        return instant
    moment = Instant.from_timestamp(instant, unit="nanosecond").to_tz(zone)
    for unit in ("years", "months", "weeks", "days"):
        if count := getattr(length, unit):
            moment = _on_date(moment, moment.date().add(**{unit: count}), zone)
    return EpochNanos(moment.timestamp(unit="nanosecond"))


def _on_date(previous: ZonedDateTime, date: Date, zone: str) -> ZonedDateTime:
    """The same local time on another date, preferring the same offset where the time repeats."""
    local = date.at(previous.time())
    earlier = local.assume_tz(zone, disambiguation="compatible")
    if earlier.offset != previous.offset and earlier.is_repeated():
        later = local.assume_tz(zone, disambiguation="later")
        if later.offset == previous.offset:
            return later
    return earlier


def local_instant(local: PlainDateTime, zone: str) -> EpochNanos:
    """The instant of a local date and time in a zone.

    A local time that occurs twice is the earlier of the two; one that does not occur moves forward
    by the length of the gap, so that a missing midnight is the start of the day.
    """
    try:
        moment = local.assume_tz(zone, disambiguation="compatible")
    except TimeZoneNotFoundError:
        raise
    except ValueError as error:
        raise OutOfCalendar("beyond the years 1 to 9999") from error
    return EpochNanos(moment.timestamp(unit="nanosecond"))


# Ticks of a cron expression, in the clock of a zone; daylight saving as Debian's cron has it.

FURTHEST_SHIFT = timedelta(hours=25)
"""Maximum distance between the orders of local times and of instants: the widest change of a clock
is a day (Pacific/Apia, 30 December 2011), and one hour more makes every comparison a plain one."""

_MARGIN = TimeDelta(hours=25)


@dataclass(frozen=True)
class CronTicks:
    """The instants at which an expression comes due, which validation has accepted."""

    schedule: str
    zone: str

    def latest(self, instant: EpochNanos) -> EpochNanos | None:
        """The last tick at or before an instant; None where there is none for fifty years."""
        moment = self._moment(instant)
        local = _local(moment)
        is_calm = self._is_calm(moment)
        beginning = local.replace(second=0) + timedelta(minutes=1)
        best: EpochNanos | None = None
        for time in self._local_ticks(beginning + _reach(is_calm), reverse=True):
            if best is not None and (is_calm or time < self._local_of(best) - FURTHEST_SHIFT):
                break
            for tick in self._instants(time):
                if tick <= instant and (best is None or tick > best):
                    best = tick
        return best

    def following(self, instant: EpochNanos) -> EpochNanos | None:
        """The first tick after an instant; None where there is none for fifty years."""
        moment = self._moment(instant)
        is_calm = self._is_calm(moment)
        best: EpochNanos | None = None
        for time in self._local_ticks(_local(moment) - _reach(is_calm), reverse=False):
            if best is not None and (is_calm or time > self._local_of(best) + FURTHEST_SHIFT):
                break
            for tick in self._instants(time):
                if tick > instant and (best is None or tick < best):
                    best = tick
        return best

    def _moment(self, instant: EpochNanos) -> ZonedDateTime:
        return Instant.from_timestamp(instant, unit="nanosecond").to_tz(self.zone)

    def _local_of(self, instant: EpochNanos) -> datetime:
        return _local(self._moment(instant))

    def _is_calm(self, moment: ZonedDateTime) -> bool:
        """Whether the clock does not change near a moment, so that local order is the order."""
        changes = (moment.prev_transition(), moment.next_transition())
        is_near = any(c is not None and abs(c.difference(moment)) <= _MARGIN for c in changes)
        return not is_near and not _changes_at(moment)

    def _local_ticks(self, beginning: datetime, *, reverse: bool) -> Iterator[datetime]:
        try:
            yield from CronSim(self.schedule, beginning, reverse=reverse)
        except OverflowError:  # the calendar ends
            return

    def _instants(self, time: datetime) -> tuple[EpochNanos, ...]:
        """Return instants, in order, at which the local clock shows a time that matches."""
        local = PlainDateTime(time.year, time.month, time.day, time.hour, time.minute)
        try:
            earlier = local.assume_tz(self.zone, disambiguation="earlier")
            later = local.assume_tz(self.zone, disambiguation="later")
        except ValueError:  # the calendar ends
            return ()
        if earlier == later:
            return (_nanos(earlier),)
        is_left_out = earlier.to_plain() != local
        if is_left_out:
            after = None if self._is_every else earlier.next_transition()
            return () if after is None else (_nanos(after),)
        return (_nanos(earlier), _nanos(later)) if self._is_every else (_nanos(earlier),)

    @property
    def _is_every(self) -> bool:
        """Whether the expression is about every so many minutes or hours, not times of the day."""
        minutes, hours, *_ = self.schedule.split()
        return minutes.startswith("*") or hours.startswith("*")


def _changes_at(moment: ZonedDateTime) -> bool:
    """Whether the clock changes at this very moment, which is none of those around it."""
    try:
        return moment.subtract(nanoseconds=1).offset != moment.offset
    except ValueError:  # the calendar begins
        return False


def _reach(is_calm: bool) -> timedelta:
    return timedelta() if is_calm else FURTHEST_SHIFT


def _local(moment: ZonedDateTime) -> datetime:
    return moment.to_plain().to_stdlib()


def _nanos(moment: ZonedDateTime) -> EpochNanos:
    return EpochNanos(moment.timestamp(unit="nanosecond"))


# The hive partition of a snapshot: one folder `<field>=<value>` (rule P12).

PARTITION_CLASH = "SL305"
"""Two snapshots would share a partition."""

_RESOLUTION = {
    outputdataset.TimestampFormat.UNIX_MILLISECONDS: NANOS_PER_MILLISECOND,
    outputdataset.TimestampFormat.UNIX_SECONDS: NANOS_PER_SECOND,
    # ISO 8601 is written with as many fractional digits as the time has.
    outputdataset.TimestampFormat.ISO8601_DATE_TIME: 1,
}
_PATH = "spec.outputFolder.snapshotFormat.hivePartitioned"


@dataclass(frozen=True, slots=True)
class Partition:
    """The partition of one snapshot."""

    value: str
    """Value of the partition column, as readers see it."""
    folder: str
    """Name of the folder, escaped as Spark does."""


def hive_of(folder: outputdataset.OutputFolder) -> outputdataset.HivePartitioned:
    """The partitioning of a folder; the model allows exactly this form."""
    hive = folder.snapshot_format.hive_partitioned
    assert hive is not None  # guaranteed by one_of
    return hive


def partition_of(hive: outputdataset.HivePartitioned, time: EpochNanos) -> Partition:
    """The partition of a snapshot time; times before 1970 round down."""
    value = _value(hive, time)
    return Partition(value, f"{hive.field_name}={value.replace(':', '%3A')}")


def _value(hive: outputdataset.HivePartitioned, time: EpochNanos) -> str:
    if hive.timestamp_format is not outputdataset.TimestampFormat.ISO8601_DATE_TIME:
        return str(time // _RESOLUTION[hive.timestamp_format])
    moment = Instant.from_timestamp(time, unit="nanosecond").to_tz(hive.output_timezone)
    if moment.offset == TimeDelta.ZERO:
        return format_instant(time)
    return moment.to_fixed_offset().format_iso()


def partition_clashes(
    output: outputdataset.OutputDataset,
    new: Iterable[EpochNanos],
    published: Iterable[EpochNanos] = (),
) -> tuple[Finding, ...]:
    """A finding for every new snapshot that another one's partition would hold too."""
    hive = hive_of(output.spec.output_folder)
    holders = {partition_of(hive, time).folder: time for time in published}
    found = []
    for time in new:
        folder = partition_of(hive, time).folder
        holder = holders.setdefault(folder, time)
        if holder != time:
            found.append(_clash(output, folder, holder, time))
    return tuple(found)


def _clash(
    output: outputdataset.OutputDataset, folder: str, holder: EpochNanos, time: EpochNanos
) -> Finding:
    return output.finding(
        PARTITION_CLASH,
        f"{_PATH}.timestampFormat",
        f"the snapshots {format_instant(holder)} and {format_instant(time)} would share "
        f"the partition {folder}",
        found=f"timestampFormat {hive_of(output.spec.output_folder).timestamp_format}",
        expected="a partition for each snapshot",
    )


# The due snapshots that one run is to publish: all, a span of time, or one again.


@dataclass(frozen=True, slots=True)
class Selection:
    """The snapshots requested; all others are treated as not due."""

    first: EpochNanos | None = None
    """Earliest snapshot time; None for no limit."""
    end: EpochNanos | None = None
    """Snapshot times are before it; None for no limit."""
    restated: EpochNanos | None = None
    """The one published snapshot that is woven again; None to publish those that are due."""

    def holds(self, time: EpochNanos) -> bool:
        """Whether a snapshot time lies in the span."""
        after = self.first is None or self.first <= time
        return after and (self.end is None or time < self.end)


EVERYTHING = Selection()
"""All that is due."""
