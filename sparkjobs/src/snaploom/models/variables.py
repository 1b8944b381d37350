"""Marks of fields: where a declaration may have variables of a project, or a path from its file.

`snaploom.loading` replaces both before a model is parsed, so that models only ever hold values. The
pattern refuses what was not replaced, here as in the API server.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

WITHOUT_VARIABLE = r"^([^$]|\$+[^$(])*\$*$"
"""Pattern of a text without `$(`."""


@dataclass(frozen=True)
class Variables:
    """Marks a text in which `$(name)` stands for the value of a variable."""

    of: str
    """The kind of the text, for messages: a URI, a name or a time."""


class PathForm(StrEnum):
    """How characters of a folder are written in a path."""

    PLAIN = "PLAIN"
    """As they are."""
    GLOB = "GLOB"
    """As Hadoop's globs: `*`, `?`, `[`, `{` and their like behind a backslash."""
    PREFIX = "PREFIX"
    """As a prefix with captures: braces are doubled."""


@dataclass(frozen=True)
class LocalPath:
    """Marks a text that may be a path relative to the file which declares it."""

    form: PathForm = PathForm.PLAIN
    """How the folder of the file is written in front of it."""
    field: str = ""
    """A field beside it that decides whether it is a path at all; empty, it always is."""
    values: frozenset[str] = frozenset()
    """Values of that field with which it is one."""
