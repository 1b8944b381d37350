"""`snaploom plan`: the join tree, and the very list that a run would visit."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from snaploom.cli.console import OutputForm
from snaploom.cli.options import Allow, Files, Form, Now, allowed_by, instant_of
from snaploom.cli.planned import plan_output, show_plans
from snaploom.jobs.declarations.files import read_declarations


def plan(
    name: Annotated[str, Parameter(name="OUTPUT", help="Name of the OutputDataset.")],
    /,
    *,
    file: Files,
    now: Now = None,
    offline: Annotated[
        bool, Parameter(help="Plan the join tree only; data is not looked at, Spark not started.")
    ] = False,
    allow: Allow = (),
    output: Form = OutputForm.TEXT,
) -> int:
    """Show how an output is joined together, and what a run would publish now."""
    moment = instant_of(now)
    declarations = read_declarations(file, allowed_by(allow))
    planned = plan_output(declarations, name, moment, offline=offline)
    show_plans([planned], declarations, output)
    return planned.exit_code
