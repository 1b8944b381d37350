"""`snaploom schema`: JSON Schemas, with which editors complete and check declarations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from snaploom.cli.console import result_console
from snaploom.cli.options import writing_to
from snaploom.models.editor import schema_text, write_schemas


def schema(
    *, folder: Annotated[Path | None, Parameter(name="--dir", help="Where to write.")] = None
) -> int:
    """Print the JSON Schema of all kinds, or write it to a folder for editors."""
    console = result_console()
    if folder is None:
        console.print(schema_text(), markup=False, end="")
        return 0
    with writing_to(folder):
        written = write_schemas(folder)
    for path in written:
        console.print(f"wrote {path}", markup=False)
    return 0
