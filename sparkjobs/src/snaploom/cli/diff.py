"""`snaploom diff`: what changed declarations would do, before anything runs."""

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
)
from snaploom.cli.options import Allow, Files, Form, Now, allowed_by, instant_of
from snaploom.jobs.declarations.files import read_declarations, runnable_bundles
from snaploom.jobs.published.comparing import compare


def diff(
    name: Annotated[str, Parameter(name="OUTPUT", help="Name of an OutputDataset.")],
    /,
    *,
    file: Files,
    against: Annotated[
        list[Path] | None,
        Parameter(
            consume_multiple=True,
            help="YAML files and folders with the declarations as they are; omitted, what is "
            "published is compared alone.",
        ),
    ] = None,
    now: Now = None,
    allow: Allow = (),
    output: Form = OutputForm.TEXT,
) -> int:
    """Tell what the declarations would change in plan, schema and history; nothing is run.

    Ends with 0 where all stays the same and with 1 where something differs, as `kubectl diff` does.
    What a run would refuse is marked with `!`.
    """
    allowed = allowed_by(allow)
    (after,), warnings = runnable_bundles(read_declarations(file, allowed), [name])
    before = None
    if against:
        # What is replaced may be at fault; all that matters is that it can be read.
        before = read_declarations(against, allowed).bundle(name)
    print_findings(warnings, message_console())
    comparison = compare(after, before, instant_of(now))
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
