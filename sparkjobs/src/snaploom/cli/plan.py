"""`snaploom plan`: the join tree, and the very list that a run would visit."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from snaploom.cli.console import OutputForm
from snaploom.cli.options import (
    DEFAULT_PROJECT,
    Allow,
    Files,
    Form,
    Now,
    OutputName,
    ProjectOptions,
    Strict,
    instant_of,
    refuse_unlisted_strict,
)
from snaploom.cli.planview import show_plans
from snaploom.jobs.plannedoutput import plan_output


def plan(
    name: OutputName,
    /,
    *,
    file: Files,
    project: ProjectOptions = DEFAULT_PROJECT,
    now: Now = None,
    offline: Annotated[
        bool, Parameter(help="Plan the join tree only; data is not looked at, Spark not started.")
    ] = False,
    strict: Strict = False,
    allow: Allow = (),
    output: Form = OutputForm.TEXT,
) -> int:
    """Show how an output is joined together, and what a run would publish now."""
    if offline and strict:
        refuse_unlisted_strict("--offline", "plan without --offline, which lists the root")
    moment = instant_of(now)
    declarations = project.read(file, allow)
    planned = plan_output(declarations, name, moment, offline=offline, strict=strict)
    show_plans([planned], declarations, output)
    return planned.exit_code
