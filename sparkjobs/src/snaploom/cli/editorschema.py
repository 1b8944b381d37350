"""The line by which editors find the schema of a YAML file, and the schema beside the files."""

from __future__ import annotations

import os
import re
from pathlib import Path

from snaploom.localfiles import write_file
from snaploom.models.editor import EDITOR_SCHEMA_FILE, write_schemas
from snaploom.models.projectfile import PROJECT_FILE

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
