"""`snaploom diff`: what changed declarations would do, before anything runs."""

from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from snaploom import ondemand
from snaploom.cli import options
from snaploom.cli.console import (
    OutputForm,
    message_console,
    print_findings,
    print_json,
    result_console,
    show_result,
    warn,
)
from snaploom.models.common import EpochNanos
from snaploom.plan.bundle import Bundle
from snaploom.plan.differences import MOST_SAMPLES
from snaploom.run.declarations import Declarations, runnable_bundles
from snaploom.run.folders import open_named
from snaploom.run.published.diff import SAMPLES, compare, data_diff_request
from snaploom.run.runevents import signal_handlers
from snaploom.run.session.providers import with_drivers
from snaploom.run.weaving.preflight import PlanRequest
from snaploom.run.weaving.requests import RunOptions
from snaploom.run.weaving.runs import preview


def diff(
    name: options.OutputName,
    /,
    *,
    file: options.Files,
    project: options.ProjectOptions = options.DEFAULT_PROJECT,
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
        Parameter(help="Estimate deletions by retention without sources and Spark."),
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
    now: options.Now = None,
    allow: options.Allow = (),
    output: options.Form = OutputForm.TEXT,
) -> int:
    """Show what the declarations would change in plan, schema and history; nothing is run.

    Deletions by retention depend on what the next run publishes: where snapshotAutoDelete has
    rules, the sources are listed for it, as `plan` does.

    Ends with 0 where all stays the same and with 1 where something differs, as `kubectl diff` does.
    Changes that a run would refuse are marked with `!`.

    With `--data`, rows of two versions of snapshots are matched by `rootKey` and compared column by
    column; both are read, or woven for a dry run, and nothing is written.
    """
    if data is not None:
        _refuse_with_data(against, offline)
    declarations = project.read(file, allow)
    (after,), warnings = runnable_bundles(declarations, [name])
    print_findings(warnings, message_console())
    moment = options.instant_of(now)
    if data is not None:
        return _diff_data(declarations, after, data, samples, moment, output)
    # What is replaced may be at fault; all that matters is that it can be read.
    before = project.read(against, allow).bundle(name) if against else None
    request = PlanRequest(after, moment, RunOptions(allow=declarations.allow))
    look = None if offline else partial(preview, request, with_drivers(declarations))
    comparison = compare(after, before, moment, look)
    for warning in comparison.warnings:
        warn(warning)
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
        raise options.refuse_request(
            f"--data compares rows, and {' and '.join(given)} declarations",
            "--data",
            found=f"--data with {' and '.join(given)}",
            expected="one of the two",
            hint=f"leave out {' and '.join(given)}, or --data",
        )


def _diff_data(
    declarations: Declarations,
    bundle: Bundle,
    versions: tuple[str, str],
    samples: int,
    moment: EpochNanos,
    output: OutputForm,
) -> int:
    store = open_named(bundle.output.spec.output_folder.folder_uri)
    request = data_diff_request(bundle, store, *versions, samples, argument="--data")
    opened = with_drivers(declarations)
    with signal_handlers() as interruption:
        found = ondemand.compare_data(
            request, store, moment, interruption, declarations.allow, opened
        )
    show_result(found, output)
    return int(not found.is_same)
