"""Listens to runs and sends their lineage: the only part of lineage with effects."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from openlineage.client.event_v2 import RunEvent
from openlineage.client.uuid import generate_new_uuid

from snaploom.jobs.lineage.lineagesettings import LineageSettings
from snaploom.jobs.lineage.openlineageevents import (
    LineageRun,
    end_of,
    events_of,
    fault_of,
    start_of,
)
from snaploom.jobs.lineage.sender import HURRIED, PATIENCE, Sender, open_transport
from snaploom.jobs.runevents import Event, SnapshotLeftOut, SnapshotPublished, SnapshotStarted
from snaploom.models.report import Report
from snaploom.models.times import EpochNanos, format_instant
from snaploom.planning.bundle import Bundle

Warn = Callable[[str], None]


class RunListener:
    """Sends events of one run of one output.

    Args:
        run: the run.
        clock: the time.
        send: takes events; never raises.
        warn: takes what a person should know.
    """

    def __init__(
        self,
        run: LineageRun,
        clock: Callable[[], EpochNanos],
        send: Callable[[RunEvent], None],
        warn: Warn,
    ) -> None:
        self._run = run
        self._clock = clock
        self._send = send
        self._warn = warn
        self._begun = ""
        self._send_events(lambda: (start_of(run, clock()),))

    def take(self, event: Event) -> None:
        """Something happened; never raises."""
        self._send_events(lambda: events_of(self._run, self._begun, event, self._clock()))
        match event:
            case SnapshotStarted(_, _, time):
                self._begun = format_instant(time)
            case SnapshotPublished() | SnapshotLeftOut():
                self._begun = ""

    def ended(self, report: Report) -> None:
        """The run ended; never raises."""
        self._send_events(lambda: (end_of(self._run, report, self._clock()),))

    def broke_off(self) -> None:
        """The run ended by a fault of Snaploom itself; never raises."""
        self._send_events(lambda: (fault_of(self._run, self._clock()),))

    def _send_events(self, events: Callable[[], tuple[RunEvent, ...]]) -> None:
        try:
            for event in events():
                self._send(event)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with it, the run goes on
            self._warn(f"lineage of an event is not sent: {type(error).__name__}: {error}")


class LineageListener:
    """Sends events of the runs of one process.

    Args:
        settings: where they are sent.
        clock: the time.
        warn: takes what a person should know; from any thread.
        new_id: makes ids of runs.
    """

    def __init__(
        self,
        settings: LineageSettings,
        clock: Callable[[], EpochNanos],
        warn: Warn,
        new_id: Callable[[], UUID] = generate_new_uuid,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._new_id = new_id
        self._warn = warn
        self._sender = Sender(open_transport(settings), settings.place, warn)

    def begin(self, bundle: Bundle) -> RunListener:
        """A run of an output begins."""
        run = LineageRun(bundle, self._new_id(), self._settings.namespace)
        return RunListener(run, self._clock, self._sender.send, self._warn)

    def close(self, *, is_hurried: bool) -> None:
        """Wait a while until everything is sent; shorter when the process is to end."""
        self._sender.close(HURRIED if is_hurried else PATIENCE)
