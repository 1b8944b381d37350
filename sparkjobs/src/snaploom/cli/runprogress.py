"""Progress of a run: one live line on a terminal, plain lines elsewhere, on standard error.

The worker emits events; they are shown from the main thread, which ticks several times a second.
"""

from __future__ import annotations

from queue import SimpleQueue
from time import monotonic

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from snaploom.jobs.reports.textlines import EventLines, outcome_line
from snaploom.jobs.runevents import (
    Event,
    IndexFollowed,
    JoinPlanned,
    OfOutput,
    RunPlanned,
    SnapshotLeftOut,
    SnapshotPublished,
    SnapshotStarted,
    TasksDone,
    Warned,
)
from snaploom.models.times import format_instant


class RunProgress:
    """Shows events; `update` may be called from any thread, the rest from the main thread only."""

    def __init__(self, console: Console) -> None:
        """Nothing is shown until the first event."""
        self._console = console
        self._events: SimpleQueue[Event] = SimpleQueue()
        self._view = _Live(console) if console.is_terminal else _Plain(console)

    def update(self, event: Event) -> None:
        """Take an event."""
        self._events.put(event)

    def show(self) -> None:
        """Show the events since the last call."""
        while not self._events.empty():
            self._view.show(self._events.get())

    def close(self) -> None:
        """Show the rest, and leave the terminal as it was."""
        self.show()
        self._view.close()


class _Plain:
    """A line an event; no line for what changes several times a second."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lines = EventLines()

    def show(self, event: Event) -> None:
        _print(self._console, event, self._lines.line(event))

    def close(self) -> None:
        return None


class _Live:
    """One line that moves, with outcomes printed above it; of several outputs, outcomes only."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[detail]}", style="dim"),
            TimeElapsedColumn(),
            TextColumn("left", style="dim"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self._task: TaskID | None = None
        self._done = 0
        self._started = monotonic()

    def show(self, event: Event) -> None:
        match event:
            case RunPlanned(output, snapshots, _) if snapshots:
                self._task = self._progress.add_task(output, total=snapshots, detail="")
                self._progress.start()
            case SnapshotStarted(number, snapshots, time):
                self._update(f"snapshot {number} of {snapshots} {format_instant(time)}")
            case JoinPlanned(number, joins, field_name):
                self._update(detail=f"join {number} of {joins} ({field_name})")
            case TasksDone(done, tasks):
                part = done / tasks if tasks else 0.0
                self._update(detail=f"task {done} of {tasks}", done=part)
            case SnapshotPublished():
                self._done += 1
                self._update(done=0.0)
                _print(self._progress.console, event, outcome_line(event))
            case _:
                _print(self._progress.console, event, outcome_line(event))

    def close(self) -> None:
        self._progress.stop()

    def _update(
        self, text: str | None = None, detail: str | None = None, done: float | None = None
    ) -> None:
        if self._task is None:
            return
        if text is not None:
            self._progress.update(self._task, description=text, detail="")
        if detail is not None:
            self._progress.update(self._task, detail=detail)
        if done is not None:
            self._progress.update(self._task, completed=self._done + done)


def _print(console: Console, event: Event, line: str | None) -> None:
    if line is not None:
        console.print(line, style=_style(event), markup=False)


def _style(event: Event) -> str | None:
    match event:
        case OfOutput(_, inner):
            return _style(inner)
        case SnapshotPublished() | IndexFollowed():
            return "green"
        case SnapshotLeftOut():
            return "bold red"
        case Warned():
            return "yellow"
    return None
