"""`snaploom backfill`: publish what is due in a span of history, a bounded number at a time."""

from __future__ import annotations

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
    allowed_by,
    instant_of,
    refuse_unlisted_strict,
    time_of,
)
from snaploom.cli.outputruns import weave_and_show
from snaploom.jobs.declarations.declarationfiles import read_declarations, runnable_bundles
from snaploom.jobs.interruption import signal_handlers
from snaploom.jobs.sparkentry import with_drivers
from snaploom.jobs.weaving.runoptions import RunOptions
from snaploom.jobs.weaving.runs import estimate_run
from snaploom.models.codes import make_finding
from snaploom.models.finding import InvalidDeclarations
from snaploom.planning.selection import Selection


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
    moment = instant_of(now)
    selection = _span(from_, to)
    if estimate:
        declarations = read_declarations(file, allowed_by(allow), project.choice)
        (bundle,), _ = runnable_bundles(declarations, [name])
        found = estimate_run(
            bundle, moment, limit, selection, declarations.allow, with_drivers(declarations)
        )
        if output is OutputForm.JSON:
            print_json(found.document)
        else:
            result_console().print(f"{name}: {found}", markup=False)
        return 0
    options = RunOptions(
        selection=selection,
        keep_going=keep_going,
        parallel_snapshots=parallel_snapshots,
        is_strict=strict,
    )
    with signal_handlers() as interruption:
        declarations = read_declarations(file, allowed_by(allow), project.choice)
        return weave_and_show(declarations, [name], moment, limit, interruption, output, options)


def _span(first: str, end: str) -> Selection:
    hint = "write it as 2020-01-31T00:00:00Z"
    selection = Selection(time_of(first, "--from", hint), time_of(end, "--to", hint))
    assert selection.first is not None
    assert selection.end is not None
    if selection.first >= selection.end:
        finding = make_finding(
            "SL191",
            "no time lies in this span",
            path="--to",
            found=f"from {first} to {end}",
            expected="a time after that of --from",
            hint="give a later --to, or an earlier --from",
        )
        raise InvalidDeclarations([finding])
    return selection
