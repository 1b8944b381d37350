"""Prints plans (`plan`, `run --dry-run`)."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from snaploom.cli.console import (
    OutputForm,
    message_console,
    print_error,
    print_findings,
    print_json,
    result_console,
)
from snaploom.jobs.declarations.declarationfiles import Declarations
from snaploom.jobs.plannedoutput import Planned


def show_plans(plans: Sequence[Planned], declarations: Declarations, form: OutputForm) -> None:
    """One plan as it is, several as a list; what is wrong on standard error."""
    if form is OutputForm.JSON:
        documents: list[JsonValue] = [planned.document for planned in plans]
        print_json(documents[0] if len(documents) == 1 else documents)
    for planned in plans:
        if planned.plan is not None and form is OutputForm.TEXT:
            result_console().print(planned.text, markup=False, end="")
        print_findings(planned.findings, message_console())
        if planned.failure is not None:
            print_error(planned.failure, lambda finding: declarations.placed([finding])[0])
