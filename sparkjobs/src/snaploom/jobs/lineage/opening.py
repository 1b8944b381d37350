"""Whether lineage is told at all; without an address nothing of it is even imported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol, cast
from uuid import UUID, uuid4

from snaploom import lazy
from snaploom.jobs.events import Event, Tell, Warned
from snaploom.jobs.lineage.settings import (
    LineageSettings,
    LineageSettingsInvalid,
    lineage_settings,
)
from snaploom.models.report import Report
from snaploom.models.times import EpochNanos, now
from snaploom.planning.bundle import Bundle


class Follower(Protocol):
    """Tells of one run of one output; none of it raises, or waits."""

    def take(self, event: Event) -> None:
        """Something happened."""
        ...

    def ended(self, report: Report) -> None:
        """The run ended."""
        ...

    def broke_off(self) -> None:
        """The run ended by a fault of Snaploom itself."""
        ...


Begin = Callable[[Bundle], Follower]
"""A run of an output begins."""


class _Teller(Protocol):
    """`snaploom.jobs.lineage.following.LineageTeller`, which brings OpenLineage along."""

    def begin(self, bundle: Bundle) -> Follower: ...

    def close(self, *, is_hurried: bool) -> None: ...


class _Silent:
    """Tells nothing."""

    def take(self, event: Event) -> None:
        pass

    def ended(self, report: Report) -> None:
        pass

    def broke_off(self) -> None:
        pass


@contextmanager
def telling_lineage(
    environment: Mapping[str, str], tell: Tell, is_hurried: Callable[[], bool]
) -> Iterator[Begin]:
    """Tell the lineage of runs, as long as the block lasts, where the environment names a place.

    Args:
        environment: of the process.
        tell: takes what a person should know, from any thread.
        is_hurried: whether the end must not take long.
    """
    teller = _teller(environment, tell)
    if teller is None:
        yield lambda bundle: _Silent()
        return
    try:
        yield teller.begin
    finally:
        teller.close(is_hurried=is_hurried())


def _teller(environment: Mapping[str, str], tell: Tell) -> _Teller | None:
    def warn(message: str) -> None:
        tell(Warned(message))

    try:
        settings = lineage_settings(environment)
        if settings is None:
            return None
        open_teller = cast(_Open, lazy.resolve(lazy.LINEAGE))
    except LineageSettingsInvalid as error:
        warn(f"lineage is not told: {error}")
        return None
    except ImportError:
        warn("lineage is not told: it needs the extra `lineage` (pip install 'snaploom[lineage]')")
        return None
    return open_teller(settings, now, uuid4, warn)


_Open = Callable[
    [LineageSettings, Callable[[], EpochNanos], Callable[[], UUID], Callable[[str], None]], _Teller
]
