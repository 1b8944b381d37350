"""Progress and results of runs: one live line on a terminal, plain lines elsewhere."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import groupby
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
from rich.table import Table

from snaploom.cli import console
from snaploom.errors import SnaploomError
from snaploom.models.common import EpochNanos, format_instant
from snaploom.models.report import Report, Unpublished
from snaploom.plan.bundle import Bundle
from snaploom.run import runevents
from snaploom.run.declarations import (
    Declarations,
    combined_exit_code,
    report_exit_code,
    runnable_bundles,
    unstarted_report,
)
from snaploom.run.joblog import EventLines, outcome_line
from snaploom.run.session.providers import index_places, no_indexes, with_drivers
from snaploom.run.weaving.requests import RunOptions, RunRequest
from snaploom.run.weaving.runs import weave_outputs

# Progress of a run: one live line on a terminal, plain lines elsewhere, on standard error.


class RunProgress:
    """Shows events; `update` may be called from any thread, the rest from the main thread only."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._events: SimpleQueue[runevents.Event] = SimpleQueue()
        self._view = _Live(console) if console.is_terminal else _Plain(console)

    def update(self, event: runevents.Event) -> None:
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

    def show(self, event: runevents.Event) -> None:
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

    def show(self, event: runevents.Event) -> None:
        match event:
            case runevents.RunPlanned(output, snapshots, _) if snapshots:
                self._task = self._progress.add_task(output, total=snapshots, detail="")
                self._progress.start()
            case runevents.SnapshotStarted(number, snapshots, time):
                self._update(f"snapshot {number} of {snapshots} {format_instant(time)}")
            case runevents.JoinPlanned(number, joins, field_name):
                self._update(detail=f"join {number} of {joins} ({field_name})")
            case runevents.TasksDone(done, tasks):
                part = done / tasks if tasks else 0.0
                self._update(detail=f"task {done} of {tasks}", done=part)
            case runevents.SnapshotPublished():
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


def _print(console: Console, event: runevents.Event, line: str | None) -> None:
    if line is not None:
        console.print(line, style=_style(event), markup=False)


def _style(event: runevents.Event) -> str | None:
    match event:
        case runevents.OfOutput(_, inner):
            return _style(inner)
        case runevents.SnapshotPublished() | runevents.IndexFollowed():
            return "green"
        case runevents.SnapshotLeftOut():
            return "bold red"
        case runevents.Warned():
            return "yellow"
    return None


# Runs outputs for commands: shows progress, and prints the Reports.

Elsewhere = Callable[[Bundle], Bundle]
"""Sends what an output weaves to another folder."""


def weave_and_show(
    declarations: Declarations,
    names: Sequence[str],
    moment: EpochNanos,
    options: RunOptions,
    form: console.OutputForm,
    elsewhere: Elsewhere | None = None,
) -> int:
    """Weave outputs, show the results, and return the exit code.

    `elsewhere` changes where the outputs are published; their indexes do not follow then.
    """
    messages = console.message_console()
    with runevents.signal_handlers() as interruption:
        try:
            bundles, warnings = runnable_bundles(declarations, names)
            console.print_findings(warnings, messages)
            indexes = index_places(declarations, console.warn) if elsewhere is None else no_indexes
            if elsewhere is not None:
                bundles = tuple(elsewhere(bundle) for bundle in bundles)
            allowing = replace(options, allow=declarations.allow)
            with closing(RunProgress(messages)) as progress:
                request = RunRequest(
                    bundles, moment, progress.update, interruption, progress.show, allowing
                )
                reports = weave_outputs(
                    request, indexes, with_drivers(declarations, options.accelerator)
                )
        except SnaploomError as error:
            if form is console.OutputForm.JSON:
                console.print_documents(
                    [unstarted_report(name, moment, error).dump() for name in names]
                )
            raise
        _show(reports, declarations, form)
    return combined_exit_code([report_exit_code(report) for report in reports])


def _show(reports: Sequence[Report], declarations: Declarations, form: console.OutputForm) -> None:
    messages = console.message_console()
    for report in reports:
        console.print_findings(declarations.placed(report.findings), messages)
        if report.message and not report.failed:
            messages.print(f"error {report.output}: {report.message}", markup=False, style="red")
    if form is console.OutputForm.JSON:
        console.print_documents([report.dump() for report in reports])
        return
    for report in reports:
        _print_report(report, declarations, console.result_console())


def _print_report(report: Report, declarations: Declarations, console: Console) -> None:
    if not report.snapshots and not report.failed and not report.message:
        console.print(f"{report.output}: nothing to publish.", markup=False)
    if report.snapshots:
        console.print(_table(report))
    for line in _skipped_lines(report.skipped):
        console.print(line, markup=False)
    for left in report.failed:
        place = declarations.place_of(left.resource, left.path)
        console.print(f"failed  {_left_line(left)}{f' ({place})' if place else ''}", markup=False)
    for finding in report.data_findings:
        console.print("\n".join(finding.lines), markup=False)
    if report.accelerator and report.snapshots:
        console.print(f"native  {_native_line(report)}", markup=False)
    if report.manifest is not None and report.snapshots:
        where = f"{report.manifest.uri} at manifest {report.manifest.sequence}"
        console.print(f"{report.output}: published to {where}", markup=False)


def _native_line(report: Report) -> str:
    first, *more = report.fallbacks or ("",)
    left = f"; left to Spark: {first}" if first else ""
    return f"{report.accelerator}{left}" + (f", and {len(more)} more reasons" if more else "")


def _table(report: Report) -> Table:
    table = Table(
        "snapshot", "rows", "files", "MiB", "seconds", "joins", "without", box=None, pad_edge=False
    )
    for snapshot in report.snapshots:
        matched = ", ".join(join.label for join in snapshot.joins)
        table.add_row(
            snapshot.time,
            f"{snapshot.rows:,}",
            str(snapshot.files),
            f"{snapshot.bytes / 2**20:.1f}",
            f"{snapshot.seconds:.1f}",
            matched or "-",
            ", ".join(item.field_name for item in snapshot.excluded) or "-",
        )
    return table


def _skipped_lines(skipped: Sequence[Unpublished]) -> Iterator[str]:
    """A line for each snapshot; behind the first, those that are skipped alike have one."""
    for (reason, message), alike in groupby(skipped, key=lambda one: (one.reason, one.message)):
        first, *more = alike
        yield f"skipped {_left_line(first)}"
        if len(more) == 1:
            yield f"skipped {_left_line(more[0])}"
        elif more:
            why = f"{reason.value}" + (f": {message.splitlines()[0]}" if message else "")
            yield f"{len(more):>7} more, {more[0].time} to {more[-1].time}  {why}"


def _left_line(left: Unpublished) -> str:
    first = left.message.splitlines()[0] if left.message else ""
    return f"{left.time}  {left.reason.value}" + (f": {first}" if first else "")
