"""Enables lineage where an address is configured; otherwise nothing of it is imported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from snaploom import ondemand
from snaploom.jobs.lineage.lineagesettings import (
    LineageSettingsInvalid,
    lineage_settings,
)
from snaploom.jobs.runevents import EmitEvent, Event, Warned
from snaploom.models.report import Report
from snaploom.models.times import now
from snaploom.planning.bundle import Bundle

if TYPE_CHECKING:
    from snaploom.jobs.lineage.runlistener import LineageListener


class Follower(Protocol):
    """Sends events of one run of one output; none of it raises, or waits."""

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


class _Silent:
    """Sends nothing."""

    def take(self, event: Event) -> None:
        pass

    def ended(self, report: Report) -> None:
        pass

    def broke_off(self) -> None:
        pass


@contextmanager
def lineage_listener(
    environment: Mapping[str, str], emit: EmitEvent, is_hurried: Callable[[], bool]
) -> Iterator[Begin]:
    """Send the lineage of runs during the block, where the environment names a place.

    Args:
        environment: of the process.
        emit: takes what a person should know, from any thread.
        is_hurried: whether the end must not take long.
    """
    listener = _listener(environment, emit)
    if listener is None:
        yield lambda bundle: _Silent()
        return
    try:
        yield listener.begin
    finally:
        listener.close(is_hurried=is_hurried())


def _listener(environment: Mapping[str, str], emit: EmitEvent) -> LineageListener | None:
    def warn(message: str) -> None:
        emit(Warned(message))

    try:
        settings = lineage_settings(environment)
        if settings is None:
            return None
        open_listener = ondemand.LineageListener
    except LineageSettingsInvalid as error:
        warn(f"lineage is not sent: {error}")
        return None
    except ImportError:
        warn("lineage is not sent: it needs the extra `lineage` (pip install 'snaploom[lineage]')")
        return None
    return open_listener(settings, now, warn)
