"""`snaploom diff`: what changed declarations would do, before anything runs."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from snaploom.cli.console import (
    OutputForm,
    message_console,
    print_findings,
    print_json,
    result_console,
)
from snaploom.cli.options import (
    DEFAULT_PROJECT,
    Allow,
    Files,
    Form,
    Now,
    OutputName,
    ProjectOptions,
    allowed_by,
    instant_of,
)
from snaploom.jobs.declarations.declarationfiles import read_declarations, runnable_bundles
from snaploom.jobs.interruption import signal_handlers
from snaploom.jobs.namedfolders import open_named
from snaploom.jobs.published.datadiff import SAMPLES, data_diff_request
from snaploom.jobs.published.declarationdiff import compare
from snaploom.jobs.sparkentry import OpenSession, compare_data, with_drivers
from snaploom.jobs.weaving.runs import preview
from snaploom.models.allowances import Allowances
from snaploom.models.codes import make_finding
from snaploom.models.finding import InvalidDeclarations
from snaploom.models.times import EpochNanos
from snaploom.planning.bundle import Bundle
from snaploom.planning.plan import RunPlan
from snaploom.planning.rowchanges import MOST_SAMPLES


def diff(
    name: OutputName,
    /,
    *,
    file: Files,
    project: ProjectOptions = DEFAULT_PROJECT,
    against: Annotated[
        list[Path] | None,
        Parameter(
            consume_multiple=True,
            help="YAML files and folders with the declarations as they are; omitted, "
            "only published data is compared.",
        ),
    ] = None,
    offline: Annotated[
        bool,
        Parameter(help="Do not look at the sources for what retention deletes; without Spark."),
    ] = False,
    data: Annotated[
        tuple[str, str] | None,
        Parameter(
            help="Compare rows instead of declarations: two versions of snapshots, each `TIME`, "
            "`TIME@NUMBER` (as of that manifest) or `TIME@dry-run` (as it would be woven now).",
        ),
    ] = None,
    samples: Annotated[
        int,
        Parameter(
            validator=Number(gte=0, lte=MOST_SAMPLES),
            show_default=True,
            help="With `--data`, rows of each kind to show; 0 shows no value of the data.",
        ),
    ] = SAMPLES,
    now: Now = None,
    allow: Allow = (),
    output: Form = OutputForm.TEXT,
) -> int:
    """Show what the declarations would change in plan, schema and history; nothing is run.

    What retention would delete depends on what the next run publishes: where snapshotAutoDelete has
    rules, the sources are listed for it, as `plan` does.

    Ends with 0 where all stays the same and with 1 where something differs, as `kubectl diff` does.
    What a run would refuse is marked with `!`.

    With `--data`, rows of two versions of snapshots are matched by `rootKey` and compared column by
    column; both are read, or woven for a dry run, and nothing is written.
    """
    allowed = allowed_by(allow)
    if data is not None:
        _refuse_with_data(against, offline)
        return _diff_data(name, file, project, data, samples, instant_of(now), allowed, output)
    declarations = read_declarations(file, allowed, project.choice)
    (after,), warnings = runnable_bundles(declarations, [name])
    before = None
    if against:
        # What is replaced may be at fault; all that matters is that it can be read.
        before = read_declarations(against, allowed, project.choice).bundle(name)
    print_findings(warnings, message_console())
    moment = instant_of(now)
    look = (
        None if offline else partial(_looked_at, after, moment, allowed, with_drivers(declarations))
    )
    comparison = compare(after, before, moment, look)
    for warning in comparison.warnings:
        message_console().print(f"warning {warning}", style="yellow", markup=False)
    if output is OutputForm.JSON:
        print_json(comparison.document)
    else:
        console = result_console()
        for difference in comparison.differences:
            style = "red" if difference.is_refused else None
            console.print(str(difference), markup=False, style=style)
        if not comparison.differences:
            where = " in the declarations" if comparison.warnings else ""
            console.print(f"{name}: nothing would change{where}.", markup=False)
    return int(bool(comparison.differences))


def _refuse_with_data(against: list[Path] | None, offline: bool) -> None:
    given = [
        option
        for option, is_given in (("--against", bool(against)), ("--offline", offline))
        if is_given
    ]
    if given:
        finding = make_finding(
            "SL191",
            f"--data compares rows, and {' and '.join(given)} declarations",
            path="--data",
            found=f"--data with {' and '.join(given)}",
            expected="one of the two",
            hint=f"leave out {' and '.join(given)}, or --data",
        )
        raise InvalidDeclarations([finding])


def _diff_data(
    name: str,
    file: list[Path],
    project: ProjectOptions,
    data: tuple[str, str],
    samples: int,
    moment: EpochNanos,
    allowed: Allowances,
    output: OutputForm,
) -> int:
    declarations = read_declarations(file, allowed, project.choice)
    (bundle,), warnings = runnable_bundles(declarations, [name])
    print_findings(warnings, message_console())
    store = open_named(bundle.output.spec.output_folder.folder_uri)
    request = data_diff_request(bundle, store, *data, samples, argument="--data")
    with signal_handlers() as interruption:
        found = compare_data()(
            request, store, moment, interruption, allowed, with_drivers(declarations)
        )
    if output is OutputForm.JSON:
        print_json(found.document)
    else:
        result_console().print(str(found), markup=False)
    return int(not found.is_same)


def _looked_at(
    bundle: Bundle, moment: EpochNanos, allowed: Allowances, open_session: OpenSession
) -> RunPlan:
    """The plan of the next run; Spark is started for it."""
    return preview(bundle, moment, None, allowed, False, open_session)
