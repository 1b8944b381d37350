"""`snaploom run`: weave and publish every snapshot that is due."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from snaploom.cli.console import OutputForm
from snaploom.cli.options import (
    DEFAULT_PROJECT,
    Allow,
    Files,
    Form,
    KeepGoing,
    Limit,
    Now,
    ParallelSnapshots,
    ProjectOptions,
    Strict,
    instant_of,
    refuse_request,
)
from snaploom.cli.outputruns import weave_and_show
from snaploom.cli.plan import show_plans
from snaploom.cli.sample import sampling_elsewhere
from snaploom.jobs.plannedoutput import plan_output
from snaploom.jobs.reports.exitcodes import combined_exit_code
from snaploom.jobs.weaving.runoptions import RunOptions


def run(
    names: Annotated[
        tuple[str, ...], Parameter(name="OUTPUT", help="Names of OutputDatasets.")
    ] = (),
    /,
    *,
    file: Files,
    project: ProjectOptions = DEFAULT_PROJECT,
    all_outputs: Annotated[
        bool, Parameter(name="--all", help="Every OutputDataset of the files.")
    ] = False,
    now: Now = None,
    limit: Limit = None,
    keep_going: KeepGoing = False,
    sample: Annotated[
        float | None,
        Parameter(
            validator=Number(gt=0, lte=1),
            help="Share of the root's rows to weave, chosen by a hash of `rootKey`; with `--to`.",
        ),
    ] = None,
    to: Annotated[
        str | None,
        Parameter(help="Folder for what is woven of a sample, as a URI or absolute path."),
    ] = None,
    parallel: Annotated[
        int,
        Parameter(
            validator=Number(gte=1),
            show_default=True,
            help="Outputs to weave at a time, in one Spark session that serves them alike.",
        ),
    ] = 1,
    parallel_snapshots: ParallelSnapshots = 1,
    strict: Strict = False,
    dry_run: Annotated[bool, Parameter(help="Show the plan instead of running it.")] = False,
    allow: Allow = (),
    output: Form = OutputForm.TEXT,
) -> int:
    """Weave and publish every snapshot that is due; those of one output in their order.

    An output that reads what another one publishes is woven after it.
    """
    moment = instant_of(now)
    declarations = project.read(file, allow)
    if bool(names) == all_outputs:
        raise refuse_request(
            "name the outputs to run, or give --all",
            "OUTPUT",
            found="names and --all" if names else "neither names nor --all",
            expected="one of the two",
            hint="outputs: " + (", ".join(declarations.output_names) or "none in these files"),
        )
    chosen = declarations.output_names if all_outputs else tuple(dict.fromkeys(names))
    if dry_run:
        plans = [
            plan_output(declarations, name, moment, limit=limit, strict=strict) for name in chosen
        ]
        show_plans(plans, declarations, output)
        return combined_exit_code([planned.exit_code for planned in plans])
    options = RunOptions(
        limit=limit,
        keep_going=keep_going,
        sample=sample,
        parallel=parallel,
        parallel_snapshots=parallel_snapshots,
        is_strict=strict,
    )
    elsewhere = sampling_elsewhere(declarations, chosen, sample, to)
    return weave_and_show(declarations, chosen, moment, options, output, elsewhere)
