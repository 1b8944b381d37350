"""`snaploom backfill`: publish what is due in a span of history, a bounded number at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from cyclopts import Parameter

from snaploom.cli.console import OutputForm, print_json, result_console
from snaploom.cli.options import (
    DEFAULT_PROJECT,
    Allow,
    Files,
    Form,
    KeepGoing,
    Limit,
    Now,
    OutputName,
    ParallelSnapshots,
    ProjectOptions,
    Strict,
    instant_of,
    refuse_unlisted_strict,
    time_of,
)
from snaploom.cli.outputruns import weave_and_show
from snaploom.jobs.declarations.declarationfiles import runnable_bundles
from snaploom.jobs.session.providers import with_drivers
from snaploom.jobs.weaving.runoptions import RunOptions, span_of
from snaploom.jobs.weaving.runrequest import PlanRequest
from snaploom.jobs.weaving.runs import estimate_run


def backfill(
    name: OutputName,
    /,
    *,
    file: Files,
    project: ProjectOptions = DEFAULT_PROJECT,
    from_: Annotated[
        str,
        Parameter(name="--from", help="Earliest snapshot time, ISO 8601 with `Z` or an offset."),
    ],
    to: Annotated[str, Parameter(help="Snapshot times are before it.")],
    limit: Limit = None,
    keep_going: KeepGoing = False,
    parallel_snapshots: ParallelSnapshots = 1,
    strict: Strict = False,
    estimate: Annotated[
        bool, Parameter(help="Estimate time and bytes, and publish nothing.")
    ] = False,
    now: Now = None,
    allow: Allow = (),
    output: Form = OutputForm.TEXT,
) -> int:
    """Publish what is due in a span of snapshot times, and nothing else.

    Prints an estimate first, from what is published. What is published stays so whenever it
    is stopped; the same command goes on where it ended.
    """
    if estimate and strict:
        refuse_unlisted_strict("--estimate", "run 'snaploom plan --strict', which lists the root")
    moment, hint = instant_of(now), "write it as 2020-01-31T00:00:00Z"
    selection = span_of(time_of(from_, "--from", hint), time_of(to, "--to", hint), "--to")
    options = RunOptions(
        selection, limit, keep_going, parallel_snapshots=parallel_snapshots, is_strict=strict
    )
    declarations = project.read(file, allow)
    if not estimate:
        return weave_and_show(declarations, [name], moment, options, output)
    (bundle,), _ = runnable_bundles(declarations, [name])
    request = PlanRequest(bundle, moment, replace(options, allow=declarations.allow))
    found = estimate_run(request, with_drivers(declarations))
    if output is OutputForm.JSON:
        print_json(found.document)
    else:
        result_console().print(f"{name}: {found}", markup=False)
    return 0
