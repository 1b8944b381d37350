"""`snaploom validate`: everything that is wrong or doubtful with declarations, without any data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from snaploom.cli.console import (
    OutputForm,
    message_console,
    print_findings,
    print_json,
    result_console,
    summary_of,
)
from snaploom.cli.options import DEFAULT_PROJECT, Allow, Form, ProjectOptions
from snaploom.jobs.declarations.declarationfiles import exit_code_of
from snaploom.models.finding import errors_of


def validate(
    paths: Annotated[
        tuple[Path, ...],
        Parameter(
            name=["--file", "-f"],
            consume_multiple=True,
            help="YAML files and folders; `-f` may be left out.",
            negative=(),
        ),
    ],
    *,
    project: ProjectOptions = DEFAULT_PROJECT,
    allow: Allow = (),
    output: Form = OutputForm.TEXT,
) -> int:
    """Check declarations: all findings at once, errors and warnings apart."""
    declarations = project.read(paths, allow)
    findings = declarations.findings
    errors = errors_of(findings)
    if output is OutputForm.JSON:
        print_json(
            {
                "resources": [resource.identity for resource in declarations.resources],
                "errors": len(errors),
                "warnings": len(findings) - len(errors),
                "findings": [finding.dump() for finding in findings],
            }
        )
    else:
        console = message_console()
        print_findings([f for f in findings if f.is_error], console)
        print_findings([f for f in findings if not f.is_error], console)
        count = len(declarations.resources)
        resources = f"{count} resource{'' if count == 1 else 's'}"
        result_console().print(f"{resources}, {summary_of(findings)}.", markup=False)
    return exit_code_of(findings)
