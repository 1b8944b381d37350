"""The library for people who write Python: `snaploom.load` and its results.

Each method calls what the command of its name calls; no rule of its own is here. Commands and
their text are in `snaploom.cli`.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from snaploom.installed import plugged

if TYPE_CHECKING:
    from snaploom.models.common import EpochNanos
    from snaploom.run.declarations import Declarations

DrawOutputs = Callable[["Declarations", Sequence[str], "EpochNanos", bool], object]
"""Result of `Project.page` or `status`, from names of outputs, an instant, and whether that is now;
an entry point of the group `snaploom.project` with the name of the method."""


class Pages(Protocol):
    """The state of outputs, drawn as `snaploom page` draws it."""

    @property
    def html(self) -> str:
        """The page of a single output, or the overview of several: one document."""

    def save(self, folder: str | os.PathLike[str]) -> tuple[Path, ...]:
        """Write the pages, as `snaploom page --to FOLDER`; returns the files.

        Raises:
            ArgumentInvalid: a file of another origin is in the way.
            FolderNotWritable: the folder cannot be written.
        """


class Status(Protocol):
    """The state of outputs: join tree with match rates, timeline, freshness, findings."""

    @property
    def is_ok(self) -> bool:
        """Whether every output can be read and run, and none is stale."""


def drawing(method: str) -> DrawOutputs:
    """Return what draws outputs for a method of a project.

    Raises:
        PackageMissing: no plug-in does.
    """
    return cast(DrawOutputs, plugged("snaploom.project", method, f"drawing by Project.{method}"))
