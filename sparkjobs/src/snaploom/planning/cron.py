"""Ticks of a cron expression, in the clock of a zone; daylight saving as Debian's cron has it.

An expression whose minutes or hours begin with `*` is due at every minute of the local clock that
matches: at none of those that the clock leaves out, at both of those that it shows twice. Any other
names times of the day, and each of them comes once: where the clock leaves it out, at the end of
the gap; where the clock shows it twice, the first time. `run.schedule` means the same.

Which local times match is asked of cronsim, without a zone. Local times are turned into instants
here: cronsim does that too, but forgets which of two equal local times it began from, and misses
minutes where a clock moves by half an hour (Australia/Lord_Howe).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from cronsim import CronSim
from whenever import Instant, PlainDateTime, TimeDelta, ZonedDateTime

from snaploom.models.times import EpochNanos

FURTHEST_SHIFT = timedelta(hours=25)
"""How far apart the order of local times and that of instants may be: the widest change of a clock
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
        """When the local clock shows a time that matches; in the order of instants."""
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
            return () if self._is_every else _instants_of(earlier.next_transition())
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


def _instants_of(moment: ZonedDateTime | None) -> tuple[EpochNanos, ...]:
    return () if moment is None else (_nanos(moment),)


def _nanos(moment: ZonedDateTime) -> EpochNanos:
    return EpochNanos(moment.timestamp(unit="nanosecond"))
