"""Prints plans (`plan`, `run --dry-run`)."""

from __future__ import annotations

from collections.abc import Sequence

from snaploom.cli.console import (
    OutputForm,
    message_console,
    print_documents,
    print_error,
    print_findings,
    result_console,
)
from snaploom.jobs.declarations.declarationfiles import Declarations
from snaploom.jobs.plannedoutput import Planned


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
