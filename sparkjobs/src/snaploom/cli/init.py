"""`snaploom init`: a small model to start from, or declarations of one's own data."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from snaploom import ondemand
from snaploom.cli.console import counted, message_console, result_console
from snaploom.cli.options import writing_to
from snaploom.errors import ArgumentInvalid, SnaploomError
from snaploom.localfiles import write_file
from snaploom.models.allowances import PROJECT_FILE
from snaploom.models.schemas import EDITOR_SCHEMA_FILE, write_schemas

if TYPE_CHECKING:
    from snaploom.discovery.discover import Discovery
    from snaploom.discovery.profiles import DatabaseAddress, DatabaseContent
    from snaploom.discovery.relationships import Relationship

# The line by which editors find the schema of a YAML file, and the schema beside the files.

SCHEMA_FOLDER = ".snaploom"
"""Folder of the schema: hidden, so that no command takes it for declarations."""
SCHEMA_LINE = "# yaml-language-server: $schema="
"""Beginning of the line, as editors with the YAML language server read it."""
_SEPARATOR = re.compile(r"^---\n", re.MULTILINE)


def add_editor_schema(folder: Path) -> list[Path]:
    """Write the schema into a folder, and a line that names it into all YAML files below.

    Every document of a file has the line: the language server looks for it in each.

    Args:
        folder: holds YAML files with declarations; project files have another form and get none.

    Returns:
        The files that are new.
    """
    written = write_schemas(folder / SCHEMA_FOLDER)
    for file in sorted(folder.rglob("*.yaml")):
        text = file.read_text("utf-8")
        if file.name != PROJECT_FILE and not text.startswith(SCHEMA_LINE):
            write_file(file, with_schema_lines(text, schema_line(folder, file)), is_durable=True)
    return written


def schema_line(folder: Path, file: Path) -> str:
    """The line of a file below a folder that has the schema."""
    place = os.path.relpath(folder / SCHEMA_FOLDER / EDITOR_SCHEMA_FILE, file.parent)
    return f"{SCHEMA_LINE}{Path(place).as_posix()}"


def with_schema_lines(text: str, line: str) -> str:
    """A text of YAML with a line before it, and at the beginning of each further document."""
    rest = _SEPARATOR.sub(lambda found: f"{found[0]}{line}\n", text)
    return f"{line}\n{rest}"


# `snaploom init`: a small model to start from, with data, so that the first run works at once.

TEMPLATES = "templates"
MOST_SHOWN = 20
"""Things left out that are printed; the files have more of them."""
PLACEHOLDER = "@FOLDER@"
"""Stands for the absolute path of the new folder in the templates' YAML files."""


SPECIAL = frozenset('{}[]*?\\"')
"""Letters that globs, prefixes or YAML would take for their own."""


class FolderNotUsable(SnaploomError):
    """`snaploom init` writes into new or empty folders with plain names only."""


def init(
    folder: Annotated[Path, Parameter(name="DIR", help="A new or empty folder.")],
    /,
    *,
    from_: Annotated[
        tuple[str, ...],
        Parameter(
            name="--from",
            consume_multiple=True,
            negative=(),
            help="What there is to start from: paths of folders and files, URIs of buckets, and "
            "databases (`jdbc:postgresql://HOST/DATABASE`, user and password from the environment "
            "variables `DATABASE_DB_USER` and `DATABASE_DB_PASSWORD`). They are looked into, and "
            "never changed.",
        ),
    ] = (),
    root: Annotated[
        str | None,
        Parameter(
            help="With --from: the source whose rows the output has; omitted, one is chosen."
        ),
    ] = None,
    interactive: Annotated[
        bool, Parameter(help="With --from: ask about relationships with weak evidence.")
    ] = False,
) -> int:
    """Write a small model with data; or, with --from, declarations of data that is there."""
    target = folder.absolute()
    with writing_to(folder):
        _refuse_special(target)
        _refuse_full(folder)
    if from_:
        return _from_data(folder, target, from_, root, interactive)
    if root is not None or interactive:
        raise ArgumentInvalid(
            "this option is about data to start from, and there is none",
            path="--interactive" if root is None else "--root",
            found="no --from",
            expected="--from with a folder or a file of data",
            hint="add --from, or leave the option out",
        )
    with writing_to(folder):
        written = _copy(files("snaploom.cli").joinpath(TEMPLATES), target, target.as_posix())
        written += add_editor_schema(target)
    console = result_console()
    for path in written:
        console.print(f"wrote {folder / path.relative_to(target)}", markup=False)
    _show_next(folder, "orders-wide")
    return 0


def _show_next(folder: Path, output: str) -> None:
    console = result_console()
    console.print("\nNext:", style="bold")
    for command in (
        "validate",
        f"plan {output} -f",
        f"run {output} -f",
        f"page {output} --to site -f",
    ):
        console.print(f"  snaploom {command} {quote(str(folder))}", markup=False)


def _from_data(
    folder: Path, target: Path, uris: Sequence[str], root: str | None, interactive: bool
) -> int:
    try:
        discover = ondemand.discover
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pyarrow", "numpy"):
            raise
        raise ArgumentInvalid(
            "packages that read data files are missing",
            path="--from",
            found=f"no {error.name}",
            expected="pyarrow and numpy",
            hint="install them: pip install 'snaploom[data]'",
        ) from error
    found = discover(uris, f"{target.as_uri()}/", root, _ask if interactive else None, _read)
    with writing_to(folder):
        target.mkdir(parents=True, exist_ok=True)
        for name, text in found.files.items():
            write_file(target / name, text)
        add_editor_schema(target)
    console = result_console()
    for name in found.files:
        console.print(f"wrote {folder / name}", markup=False)
    _show_found(found)
    _show_next(folder, found.declarations.output.resource.name)
    return 0


def _read(address: DatabaseAddress) -> DatabaseContent:
    return ondemand.read_database(address)


def _show_found(found: Discovery) -> None:
    console = result_console()
    read = []
    if found.files_listed:
        read.append(
            f"{counted(found.files_opened, 'file')} of {found.files_listed:,} read "
            f"({found.bytes_read:,} bytes)"
        )
    if found.tables_read:
        read.append(f"{counted(found.tables_read, 'table')} read")
    console.print(f"\n{', '.join([counted(len(found.profiles), 'source'), *read])}", markup=False)
    console.print("\nRelationships, best evidence first:", style="bold")
    for one in found.relationships.declared:
        console.print(f"  {one.evidence}", markup=False)
    if not found.relationships.declared:
        console.print("  none", markup=False)
    if found.relationships.weak:
        console.print("\nWeak evidence, in comments only (--interactive asks):", style="bold")
        for one in found.relationships.weak:
            console.print(f"  {one.evidence}", markup=False)
    root = found.tree.root.table
    others = ", ".join(found.tree.other_roots)
    more = f" (--root takes another one: {others})" if others else ""
    console.print(f"\nEach row of the output is one of {root}{more}", markup=False)
    if found.declarations.left_out:
        console.print("\nLeft out:", style="bold")
        for each in found.declarations.left_out[:MOST_SHOWN]:
            console.print(f"  {each.what}: {each.why}", markup=False)
        rest = len(found.declarations.left_out) - MOST_SHOWN
        if rest > 0:
            console.print(f"  and {rest:,} more, which sources.yaml lists", markup=False)


def _ask(one: Relationship) -> bool:
    """Ask on the terminal; the end of the input is a no."""
    console = message_console()
    console.print(f"{one.evidence}\nDeclare it? [y/N] ", markup=False, end="")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _refuse_special(target: Path) -> None:
    special = sorted(SPECIAL & set(target.as_posix()))
    if special:
        raise FolderNotUsable(
            "the path of this folder means something else in a glob",
            found=f"{target} with {' '.join(special)}",
            expected=f"a path without {' '.join(sorted(SPECIAL))}",
        )


def _refuse_full(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FolderNotUsable(
            "this folder is not empty" if folder.is_dir() else "this is a file",
            found=str(folder),
            expected="a new or empty folder",
        )


def _copy(source: Traversable, target: Path, place: str) -> list[Path]:
    target.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for item in sorted(source.iterdir(), key=lambda item: item.name):
        path = target / item.name
        if item.is_dir():
            written.extend(_copy(item, path, place))
        elif not item.name.endswith(".py"):
            write_file(path, item.read_text("utf-8").replace(PLACEHOLDER, place))
            written.append(path)
    return written
