"""The clock of a run against the log of its folder (rule P18).

Time must not go back from one publication to the next: ages are counted from it, so that a snapshot
dated too early would be deleted too early. A run whose clock is behind the newest moment of the log
therefore dates what it writes with that moment. That by itself harms nothing, whichever of the two
clocks is wrong: what is dated later is kept longer. But where a source is read as of "now", a
clock that is behind would publish wrong snapshot times, and the run is refused.
"""

from __future__ import annotations

from collections.abc import Callable

from snaploom.errors import PublicationError
from snaploom.models.times import EpochNanos, format_instant
from snaploom.planning.bundle import Bundle
from snaploom.planning.sources.registry import declared
from snaploom.storage.state import FolderState

TOLERATED = 60 * 1_000_000_000
"""Nanoseconds that a clock may be behind without a word: clocks that are kept by NTP differ by far
less than a second, so that a minute is a fault, and no intervals are as short."""

Clock = Callable[[], EpochNanos]


class ClockBehind(PublicationError):
    """The clock is before the newest moment of the log, and sources are read as of now."""

    reason = "ClockBehind"
    retryable = True


def newest_moment(state: FolderState) -> EpochNanos | None:
    """The latest time at which something was published or deleted; None when nothing was."""
    created = (version.created_at for version in state.versions.values())
    deleted = (ended.deleted_at for ended in state.ended)
    return max((*created, *deleted), default=None)


def never_before(clock: Clock, newest: EpochNanos | None) -> Clock:
    """A clock that is never before a moment."""
    return clock if newest is None else lambda: max(clock(), newest)


def check_clock(bundle: Bundle, state: FolderState, present: EpochNanos) -> tuple[str, ...]:
    """Compare a clock with the log.

    Args:
        bundle: the output, and what it reads.
        state: of its folder.
        present: the time of the clock.

    Returns:
        What a person should know.

    Raises:
        ClockBehind: the clock is behind, and a source would be read at a wrong time.
    """
    newest = newest_moment(state)
    if newest is None or newest - present <= TOLERATED:
        return ()
    found = f"the clock has {format_instant(present)}, the log has {format_instant(newest)}"
    read_now = [source.name for source in bundle.data_sources if declared(source).is_read_now]
    if read_now:
        raise ClockBehind(
            "the clock of this machine is behind the newest entry of the output's log",
            resource=bundle.output.identity,
            found=f"{found}; read as of now: {', '.join(read_now)}",
            expected="clocks that agree to the minute on all machines that publish here",
            hint="set the clock; if the log is what is wrong, written by a machine whose clock "
            "was ahead, wait until that time has passed",
        )
    return (
        f"a clock is wrong, here or where was published last: {found}; what is published now is "
        "dated with the latter",
    )
