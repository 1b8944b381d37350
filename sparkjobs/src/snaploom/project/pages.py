"""Pages and status of a project's outputs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from html import escape
from pathlib import Path

from snaploom.errors import FolderNotWritable
from snaploom.models.common import EpochNanos
from snaploom.plan.drawings import published_picture, to_svg
from snaploom.project import html
from snaploom.site.document import INDEX, site_of, write_site
from snaploom.site.drawings import WIDEST, model_of_nodes, staleness, timeline_drawing, tree_drawing
from snaploom.site.pagedata import OutputPage, counted, shortened, size, size_of, span
from snaploom.site.sections import state_of
from snaploom.site.timeline import lanes_of, timeline_svg

# Result of `Project.status`: the state of outputs, as the drawings of a page.


@dataclass(frozen=True)
class Status:
    """The state of outputs: join tree with match rates, timeline, freshness, findings."""

    outputs: tuple[OutputPage, ...]
    """State of each, in the order of the declarations."""
    now: EpochNanos
    """The instant to which ages are measured."""

    @property
    def is_ok(self) -> bool:
        """Whether every output can be read and run, and none is stale."""
        return not any(page.problem or page.errors or page.is_stale for page in self.outputs)

    def __str__(self) -> str:
        return "\n\n".join(map(_text, self.outputs)) or "no output is declared"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(map(_html, self.outputs)) or html.line("no output is declared")


def _text(page: OutputPage) -> str:
    parts = [f"{page.name}: {_about(page)}"]
    if page.nodes:
        parts.append(tree_drawing(page.nodes))
    parts += [timeline_drawing(lanes_of(page), WIDEST), _doubts(page)]
    return "\n".join(filter(None, parts))


def _html(page: OutputPage) -> str:
    parts = [html.heading(page.name), html.line(_about(page))]
    if page.nodes:
        joins = counted(len(page.nodes) - 1, "join")
        model = model_of_nodes(f"OutputDataset/{page.name}", joins, page.nodes)
        parts.append(to_svg(published_picture(model)))
    parts.append(timeline_svg(lanes_of(page)))
    if _doubts(page):
        parts.append(html.line(_doubts(page)))
    return "".join(parts)


def _about(page: OutputPage) -> str:
    """The state in a word, and the newest snapshot."""
    parts = [state_of(page)[0]]
    newest, published = page.newest, page.freshness.published
    if newest is not None:
        parts.append(
            f"newest snapshot {shortened(newest.time)} with {counted(newest.rows, 'row')}, "
            f"{counted(len(newest.files), 'file')}, {size(size_of(newest))}"
        )
    if published is not None:
        parts.append(f"published {span(page.now - published)} ago")
    return "; ".join(filter(None, (*parts, staleness(page))))


def _doubts(page: OutputPage) -> str:
    """Counts of errors and warnings; empty without any."""
    warnings = len(page.findings) - page.errors
    counts = ((page.errors, "error"), (warnings, "warning"))
    found = ", ".join(counted(count, noun) for count, noun in counts if count)
    return ": ".join(filter(None, (found, page.problem)))


# Result of `Project.page`: pages of outputs, for a notebook or a folder.

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
