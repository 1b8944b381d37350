"""Result of `Project.status`: the state of outputs, as the drawings of a page."""

from __future__ import annotations

from dataclasses import dataclass

from snaploom.models.times import EpochNanos
from snaploom.planning.picture import published_picture
from snaploom.planning.svg import to_svg
from snaploom.project import html
from snaploom.site.graphview import model_of_nodes
from snaploom.site.pagedata import OutputPage, size_of
from snaploom.site.quantities import counted, shortened, size, span
from snaploom.site.sections import state_of
from snaploom.site.textdrawings import WIDEST, staleness, timeline_drawing, tree_drawing
from snaploom.site.timeline import lanes_of, timeline_svg


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
