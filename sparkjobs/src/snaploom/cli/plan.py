"""`snaploom plan`: the join tree, and the very list that a run would visit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from snaploom.cli.console import (
    OutputForm,
    message_console,
    print_documents,
    print_error,
    print_findings,
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
    Strict,
    instant_of,
    refuse_unlisted_strict,
)
from snaploom.jobs.declarations.declarationfiles import Declarations
from snaploom.jobs.plannedoutput import Planned, plan_output


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


def show_plans(plans: Sequence[Planned], declarations: Declarations, form: OutputForm) -> None:
    """Print plans: one as it is, several as a list; findings go to standard error."""
    if form is OutputForm.JSON:
        print_documents([planned.document for planned in plans])
    for planned in plans:
        if planned.plan is not None and form is OutputForm.TEXT:
            result_console().print(planned.text, markup=False, end="")
        print_findings(planned.findings, message_console())
        if planned.failure is not None:
            print_error(planned.failure, lambda finding: declarations.placed([finding])[0])
