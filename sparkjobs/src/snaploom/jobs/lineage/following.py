"""Runs as they go on, told to a place: the only part of lineage that does anything."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from openlineage.client.event_v2 import RunEvent

from snaploom.jobs.events import Event, SnapshotLeftOut, SnapshotPublished, SnapshotStarted
from snaploom.jobs.lineage.events import LineageRun, end_of, events_of, fault_of, start_of
from snaploom.jobs.lineage.sending import HURRIED, PATIENCE, Sender, open_transport
from snaploom.jobs.lineage.settings import LineageSettings
from snaploom.models.report import Report
from snaploom.models.times import EpochNanos, format_instant
from snaploom.planning.bundle import Bundle

Warn = Callable[[str], None]


class RunTeller:
    """Tells of one run of one output.

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
        self._tell(lambda: (start_of(run, clock()),))

    def take(self, event: Event) -> None:
        """Something happened; never raises."""
        self._tell(lambda: events_of(self._run, self._begun, event, self._clock()))
        match event:
            case SnapshotStarted(_, _, time):
                self._begun = format_instant(time)
            case SnapshotPublished() | SnapshotLeftOut():
                self._begun = ""

    def ended(self, report: Report) -> None:
        """The run ended; never raises."""
        self._tell(lambda: (end_of(self._run, report, self._clock()),))

    def broke_off(self) -> None:
        """The run ended by a fault of Snaploom itself; never raises."""
        self._tell(lambda: (fault_of(self._run, self._clock()),))

    def _tell(self, events: Callable[[], tuple[RunEvent, ...]]) -> None:
        try:
            for event in events():
                self._send(event)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with it, the run goes on
            self._warn(f"lineage cannot tell of this: {type(error).__name__}: {error}")


class LineageTeller:
    """Tells of the runs of one process.

    Args:
        settings: where they are told.
        clock: the time.
        new_id: makes ids of runs.
        warn: takes what a person should know; from any thread.
    """

    def __init__(
        self,
        settings: LineageSettings,
        clock: Callable[[], EpochNanos],
        new_id: Callable[[], UUID],
        warn: Warn,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._new_id = new_id
        self._warn = warn
        self._sender = Sender(open_transport(settings), settings.place, warn)

    def begin(self, bundle: Bundle) -> RunTeller:
        """A run of an output begins."""
        run = LineageRun(bundle, self._new_id(), self._settings.namespace)
        return RunTeller(run, self._clock, self._sender.send, self._warn)

    def close(self, *, is_hurried: bool) -> None:
        """Wait a while until everything is told; not long where somebody waits for the end."""
        self._sender.close(HURRIED if is_hurried else PATIENCE)
