"""`snaploom init`: a small model to start from, with data, so that the first run works at once."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from shlex import quote
from typing import Annotated

from cyclopts import Parameter

from snaploom.cli.console import result_console
from snaploom.cli.options import writing_to
from snaploom.errors import SnaploomError

TEMPLATES = "templates"
PLACEHOLDER = "@FOLDER@"
"""Stands for the absolute path of the new folder in the templates' YAML files."""


SPECIAL = frozenset('{}[]*?\\"')
"""Letters that globs, prefixes or YAML would take for their own."""


class FolderNotUsable(SnaploomError):
    """`snaploom init` writes into new or empty folders with plain names only."""

    reason = "FolderNotUsable"
    exit_code = 2


def init(folder: Annotated[Path, Parameter(name="DIR", help="A new or empty folder.")], /) -> int:
    """Write a small model with data: orders of customers, in two snapshots."""
    target = folder.absolute()
    with writing_to(folder):
        _refuse_special(target)
        _refuse_full(folder)
        written = _copy(files("snaploom.cli").joinpath(TEMPLATES), target, target.as_posix())
    console = result_console()
    for path in written:
        console.print(f"wrote {folder / path.relative_to(target)}", markup=False)
    console.print("\nNext:", style="bold")
    for command in ("validate", "plan orders-wide -f", "run orders-wide -f"):
        console.print(f"  snaploom {command} {quote(str(folder))}", markup=False)
    return 0


def _refuse_special(target: Path) -> None:
    special = sorted(SPECIAL & set(target.as_posix()))
    if special:
        raise FolderNotUsable(
            "the path of this folder means something else in a glob",
            found=f"{target} with {' '.join(special)}",
            expected=f"a path without {' '.join(sorted(SPECIAL))}",
            hint="name another one; nothing was changed",
        )


def _refuse_full(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FolderNotUsable(
            "this folder is not empty" if folder.is_dir() else "this is a file",
            found=str(folder),
            expected="a new or empty folder",
            hint="name another one; nothing was changed",
        )


def _copy(source: Traversable, target: Path, place: str) -> list[Path]:
    target.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for item in sorted(source.iterdir(), key=lambda item: item.name):
        path = target / item.name
        if item.is_dir():
            written.extend(_copy(item, path, place))
        elif not item.name.endswith(".py"):
            path.write_text(item.read_text("utf-8").replace(PLACEHOLDER, place), "utf-8")
            written.append(path)
    return written
