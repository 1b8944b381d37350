"""Runs outputs for commands: shows progress, and prints the Reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import groupby

from rich.console import Console
from rich.table import Table

from snaploom.cli.console import (
    OutputForm,
    message_console,
    print_documents,
    print_findings,
    result_console,
    warn,
)
from snaploom.cli.runprogress import RunProgress
from snaploom.errors import SnaploomError
from snaploom.jobs.declarations.declarationfiles import Declarations, runnable_bundles
from snaploom.jobs.interruption import signal_handlers
from snaploom.jobs.reports.exitcodes import combined_exit_code, report_exit_code, unstarted_report
from snaploom.jobs.session.providers import index_places, no_indexes, with_drivers
from snaploom.jobs.weaving.runoptions import RunOptions
from snaploom.jobs.weaving.runrequest import RunRequest
from snaploom.jobs.weaving.runs import weave_outputs
from snaploom.models.report import Report, Unpublished
from snaploom.models.times import EpochNanos
from snaploom.planning.bundle import Bundle

Elsewhere = Callable[[Bundle], Bundle]
"""Sends what an output weaves to another folder."""


def weave_and_show(
    declarations: Declarations,
    names: Sequence[str],
    moment: EpochNanos,
    options: RunOptions,
    form: OutputForm,
    elsewhere: Elsewhere | None = None,
) -> int:
    """Weave outputs, show the results, and return the exit code.

    Args:
        declarations: hold the outputs.
        names: of the OutputDatasets.
        moment: the instant of planning.
        options: deviations of the runs from the declarations.
        form: of the result.
        elsewhere: changes where the outputs are published; their indexes do not follow then.

    Raises:
        SnaploomError: nothing could be begun.
    """
    messages = message_console()
    with signal_handlers() as interruption:
        try:
            bundles, warnings = runnable_bundles(declarations, names)
            print_findings(warnings, messages)
            indexes = index_places(declarations, warn) if elsewhere is None else no_indexes
            if elsewhere is not None:
                bundles = tuple(elsewhere(bundle) for bundle in bundles)
            allowing = replace(options, allow=declarations.allow)
            with closing(RunProgress(messages)) as progress:
                request = RunRequest(
                    bundles, moment, progress.update, interruption, progress.show, allowing
                )
                reports = weave_outputs(request, indexes, with_drivers(declarations))
        except SnaploomError as error:
            if form is OutputForm.JSON:
                print_documents([unstarted_report(name, moment, error).dump() for name in names])
            raise
        _show(reports, declarations, form)
    return combined_exit_code([report_exit_code(report) for report in reports])


def _show(reports: Sequence[Report], declarations: Declarations, form: OutputForm) -> None:
    messages = message_console()
    for report in reports:
        print_findings(declarations.placed(report.findings), messages)
        if report.message and not report.failed:
            messages.print(f"error {report.output}: {report.message}", markup=False, style="red")
    if form is OutputForm.JSON:
        print_documents([report.dump() for report in reports])
        return
    for report in reports:
        _print_report(report, declarations, result_console())


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
    if report.manifest is not None and report.snapshots:
        where = f"{report.manifest.uri} at manifest {report.manifest.sequence}"
        console.print(f"{report.output}: published to {where}", markup=False)


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
