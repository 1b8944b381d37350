"""The drawings of pages as lines of text: the join tree with match rates, and the timeline."""

from __future__ import annotations

from collections.abc import Sequence

from snaploom.planning.explain import tree_text
from snaploom.planning.publishedmodel import PublishedNode
from snaploom.planning.tree import published_tree
from snaploom.site.graphview import model_of_nodes
from snaploom.site.pagedata import Node, OutputPage
from snaploom.site.quantities import shortened, span
from snaploom.site.timeline import Lane, Span, ends_of

WIDEST = 100
"""Columns of a timeline on a terminal that has more: beyond, eyes lose the line."""
FEWEST_CELLS = 24
"""Cells of a timeline however narrow the terminal is: two dates stand below it."""


def tree_drawing(nodes: Sequence[Node]) -> str:
    """The join tree as `snaploom plan` draws it, with counts of the newest snapshot's joins.

    The nodes have the root first, parents before children, and are not empty.
    """
    tree, found = published_tree(model_of_nodes("", "", nodes))
    return tree_text(tree, {number: _note(node) for number, node in found.items()})


def _note(node: PublishedNode) -> str:
    return f"left out: {node.left_out}" if node.left_out else node.matched


def timeline_drawing(lanes: Sequence[Lane], width: int) -> str:
    """The lanes, a line each, with the dates at both ends below; empty where there is none.

    `width` is the number of columns.
    """
    if not lanes:
        return ""
    first, last = ends_of(lanes)
    titles = max(len(lane.title) for lane in lanes)
    counts = max(len(f"{lane.count:,}") for lane in lanes)
    before = titles + counts + 4
    cells = max(FEWEST_CELLS, min(width, WIDEST) - before)
    rows = [
        f"{lane.title:<{titles}}  {lane.count:>{counts},}  {_marks(lane.spans, first, last, cells)}"
        for lane in lanes
    ]
    ends = (shortened(first), shortened(last))
    rows.append(f"{'':{before}}{ends[0]}{ends[1]:>{cells - len(ends[0])}}")
    return "\n".join(rows)


def _marks(spans: Sequence[Span], first: int, last: int, cells: int) -> str:
    length = max(1, last - first)
    marked = ["·"] * cells
    for start, end in spans:
        left = min(cells - 1, (start - first) * cells // length)
        right = max(left + 1, -((first - end) * cells // length))
        marked[left:right] = "█" * (right - left)
    return "".join(marked)


def staleness(page: OutputPage) -> str:
    """When the output is stale, or since when; empty where no age is declared."""
    if page.freshness.expires is None:
        return ""
    left = page.freshness.expires - page.now
    return f"stale in {span(left)}" if left > 0 else f"stale for {span(left)}"
