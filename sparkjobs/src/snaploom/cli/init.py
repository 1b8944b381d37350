"""`snaploom init`: a small model to start from, or declarations of one's own data."""

import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from shlex import quote
from typing import Annotated, cast

from cyclopts import Parameter
from cyclopts.validators import Number

from snaploom.cli.console import result_console
from snaploom.cli.options import writing_to
from snaploom.errors import ArgumentInvalid, SnaploomError
from snaploom.installed import plugged
from snaploom.localfiles import absolute_path, write_file
from snaploom.models.allowances import PROJECT_FILE
from snaploom.models.schemas import EDITOR_SCHEMA_FILE, write_schemas


@dataclass(frozen=True)
class DataOptions:
    """Choices about data to start from."""

    root: str | None = None
    """Source whose rows the output has; one is chosen where it is None."""
    only: tuple[str, ...] = ()
    """Sources to declare; empty for all."""
    without: tuple[str, ...] = ()
    depth: int | None = None
    """Most joins between the root and a source."""
    is_asking: bool = False
    """Whether to ask where the evidence is close."""
    explain: str | None = None
    """`TABLE.COLUMN` or `TABLE.COLUMN=OTHER.COLUMN`, of which only the evidence is shown."""


StartFromData = Callable[[Path | None, Sequence[str], DataOptions], tuple[str, Sequence[str]]]
"""Writes declarations of data into a folder, and returns the name of their output and those of the
drivers that a run needs and has not. It takes URIs of the data. Without a folder it only explains,
and returns an empty text."""

# The line by which editors find the schema of a YAML file, and the schema beside the files.

SCHEMA_FOLDER = ".snaploom"
"""Folder of the schema: hidden, so that no command takes it for declarations."""
SCHEMA_LINE = "# yaml-language-server: $schema="
"""Beginning of the line, as editors with the YAML language server read it."""
_SEPARATOR = re.compile(r"^---\n", re.MULTILINE)


def add_editor_schema(folder: Path) -> list[Path]:
    """Write the schema into a folder, and a line that names it into all YAML files below.

    Every document of a file has the line: the language server looks for it in each.

    Project files have another form and get none. Returns the files that are new.
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
PLACEHOLDER = "@FOLDER@"
"""Stands for the absolute path of the new folder in the templates' YAML files."""


SPECIAL = frozenset('{}[]*?\\"')
"""Letters that globs, prefixes or YAML would take for their own."""


class FolderNotUsable(SnaploomError):
    """`snaploom init` writes into new or empty folders with plain names only."""


def init(
    folder: Annotated[
        Path | None,
        Parameter(name="DIR", help="A new or empty folder; with --explain none is needed."),
    ] = None,
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
    only: Annotated[
        tuple[str, ...],
        Parameter(
            consume_multiple=True,
            negative=(),
            help="With --from: the sources to declare; omitted, all that are found.",
        ),
    ] = (),
    without: Annotated[
        tuple[str, ...],
        Parameter(
            name="--not",
            consume_multiple=True,
            negative=(),
            help="With --from: sources to leave out.",
        ),
    ] = (),
    depth: Annotated[
        int | None,
        Parameter(
            validator=Number(gte=1),
            help="With --from: most joins between the root and a source.",
        ),
    ] = None,
    explain: Annotated[
        str | None,
        Parameter(
            help="With --from: show what TABLE.COLUMN may refer to, or why it does not refer to "
            "another column (TABLE.COLUMN=OTHER.COLUMN). Nothing is written."
        ),
    ] = None,
    yes: Annotated[
        bool,
        Parameter(
            name=["--yes", "-y"],
            negative="",
            help="With --from: ask nothing, and take the defaults. Without a terminal nothing is "
            "asked either.",
        ),
    ] = False,
) -> int:
    """Write a small model with data; or, with --from, declarations of data that is there."""
    given = {
        "--root": root, "--only": only, "--not": without, "--depth": depth, "--explain": explain,
        "--yes": yes,
    }  # fmt: skip
    lone = next((name for name, value in given.items() if value), None)
    if lone is not None and not from_:
        raise ArgumentInvalid(
            "this option is about data to start from, and there is none",
            path=lone,
            found="no --from",
            expected="--from with a folder or a file of data",
            hint="add --from, or leave the option out",
        )
    options = DataOptions(root, only, without, depth, not yes and sys.stdin.isatty(), explain)
    if explain is not None:
        _start()(None, from_, options)
        return 0
    if folder is None:
        raise ArgumentInvalid(
            "there is no folder to write to",
            path="DIR",
            found="no argument",
            expected="a new or empty folder",
            hint="name one, as in `snaploom init shop --from data`",
        )
    target = absolute_path(folder)
    with writing_to(folder):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise FolderNotUsable(
                "this folder is not empty" if folder.is_dir() else "this is a file",
                found=str(folder),
                expected="a new or empty folder",
            )
    if from_:
        _show_next(folder, *_start()(folder, from_, options))
        return 0
    with writing_to(folder):
        special = sorted(SPECIAL & set(target.as_posix()))
        if special:
            raise FolderNotUsable(
                "the path of this folder means something else in a glob",
                found=f"{target} with {' '.join(special)}",
                expected=f"a path without {' '.join(sorted(SPECIAL))}",
            )
        written = _copy(files("snaploom.cli").joinpath(TEMPLATES), target, target.as_posix())
        written += add_editor_schema(target)
    console = result_console()
    for path in written:
        console.print(f"wrote {folder / path.relative_to(target)}", markup=False)
    _show_next(folder, "orders-wide")
    return 0


def _start() -> StartFromData:
    return cast(StartFromData, plugged("snaploom.project", "discover", "discovery of data"))


def _show_next(folder: Path, output: str, drivers: Sequence[str] = ()) -> None:
    console = result_console()
    console.print("\nNext:", style="bold")
    for command in (
        *(f"drivers install {name} --folder" for name in drivers),
        "validate",
        f"plan {output} -f",
        f"run {output} -f",
        f"page {output} --to site -f",
    ):
        console.print(f"  snaploom {command} {quote(str(folder))}", markup=False)


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
