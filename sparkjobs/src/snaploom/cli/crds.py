"""`snaploom crds`: the Kubernetes resource definitions, generated from the models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from snaploom.cli.console import message_console, result_console
from snaploom.cli.options import writing_to
from snaploom.models.crds import check_crds, crd_text, write_crds
from snaploom.models.kinds import KINDS

FOLDER = Path("crds")


def crds(
    *,
    folder: Annotated[
        Path | None, Parameter(name="--dir", help="Folder to write or check; `crds` by default.")
    ] = None,
    check: Annotated[
        bool, Parameter(help="Only compare with the files in the folder; 1 on a difference.")
    ] = False,
) -> int:
    """Print the resource definitions, write them to a folder, or check a folder for drift."""
    console = result_console()
    if check:
        drift = check_crds(folder or FOLDER)
        for difference in drift:
            message_console().print(difference, markup=False)
        return 1 if drift else 0
    if folder is None:
        console.print("---\n".join(crd_text(kind) for kind in KINDS), markup=False, end="")
        return 0
    with writing_to(folder):
        written = write_crds(folder)
    for path in written:
        console.print(f"wrote {path}", markup=False)
    return 0
