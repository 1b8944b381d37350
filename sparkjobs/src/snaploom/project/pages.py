"""Result of `Project.page`: pages of outputs, for a notebook or a folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from html import escape
from pathlib import Path

from snaploom.errors import FolderNotWritable
from snaploom.models.times import EpochNanos
from snaploom.site.pagedata import OutputPage
from snaploom.site.sitefiles import INDEX, site_of, write_site

_HEIGHT = 720
"""Pixels of a page in a notebook, which scrolls."""


@dataclass(frozen=True)
class Pages:
    """The state of outputs, drawn as `snaploom page` draws it."""

    outputs: tuple[OutputPage, ...]
    """Content of each page."""
    now: EpochNanos
    """The instant to which ages are measured."""

    @property
    def html(self) -> str:
        """The page of a single output, or the overview of several: one document."""
        return site_of(self.outputs, self.now)[INDEX]

    def save(self, folder: str | os.PathLike[str]) -> tuple[Path, ...]:
        """Write the pages, as `snaploom page --to FOLDER`; returns the files.

        Args:
            folder: where to; made where it is not there.

        Raises:
            ArgumentInvalid: a file of another origin is in the way.
            FolderNotWritable: the folder cannot be written.
        """
        try:
            return write_site(Path(folder), site_of(self.outputs, self.now))
        except OSError as error:
            raise FolderNotWritable(
                "this folder cannot be written",
                found=f"{error.strerror or error} at {error.filename or folder}",
                expected="a folder that this process may write to, with room for the files",
                hint="name another one, or check permissions and free space",
            ) from error

    def __str__(self) -> str:
        names = ", ".join(page.name for page in self.outputs)
        return f"<Pages: {names or 'no output is declared'}>"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Each page in a frame of its own: its script reaches nothing of the notebook."""
        return "".join(
            f'<iframe title="{escape(page.name)}" sandbox="allow-scripts" width="100%" '
            f'height="{_HEIGHT}" style="border:0" '
            f'srcdoc="{escape(site_of((page,), self.now)[INDEX])}"></iframe>'
            for page in self.outputs
        )
