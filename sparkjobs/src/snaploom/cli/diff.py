"""`snaploom diff`: what changed declarations would do, before anything runs."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

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
    ProjectOptions,
    allowed_by,
    instant_of,
)
from snaploom.jobs.declarations.declarationfiles import read_declarations, runnable_bundles
from snaploom.jobs.published.declarationdiff import compare
from snaploom.jobs.weaving.runs import preview
from snaploom.models.allowances import Allowances
from snaploom.models.times import EpochNanos
from snaploom.planning.bundle import Bundle
from snaploom.planning.plan import RunPlan


def diff(
    name: Annotated[str, Parameter(name="OUTPUT", help="Name of an OutputDataset.")],
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
    now: Now = None,
    allow: Allow = (),
    output: Form = OutputForm.TEXT,
) -> int:
    """Show what the declarations would change in plan, schema and history; nothing is run.

    What retention would delete depends on what the next run publishes: where snapshotAutoDelete has
    rules, the sources are listed for it, as `plan` does.

    Ends with 0 where all stays the same and with 1 where something differs, as `kubectl diff` does.
    What a run would refuse is marked with `!`.
    """
    allowed = allowed_by(allow)
    (after,), warnings = runnable_bundles(read_declarations(file, allowed, project.choice), [name])
    before = None
    if against:
        # What is replaced may be at fault; all that matters is that it can be read.
        before = read_declarations(against, allowed, project.choice).bundle(name)
    print_findings(warnings, message_console())
    moment = instant_of(now)
    look = None if offline else partial(_looked_at, after, moment, allowed)
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


def _looked_at(bundle: Bundle, moment: EpochNanos, allowed: Allowances) -> RunPlan:
    """The plan of the next run; Spark is started for it."""
    return preview(bundle, moment, None, allowed, False)
