"""Repairs of a data model that lacks its one join tree, as messages may suggest them.

A suggestion that does not work is worse than none, so each repair here is exact: tests apply it and
plan again. For a source out of reach it is the least set of changes along one path from what is
within reach (a changed groupBy, a source taken out of an exclusion, an unlisted source added). For
a tie it is an exclusion, which touches nothing but the tied source; a raised antiPriority touches
every source of that relationship, so it is offered only where planning with it showed that the tie
goes and no other comes.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import networkx as nx

from snaploom.planning.graph import JoinGraph, Link, Part
from snaploom.planning.tree import JoinTree, Tie, plan_tree


@dataclass(frozen=True, slots=True)
class AddSource:
    """List a source that bridges the gap."""

    source: str

    def __str__(self) -> str:
        return f"add DataSource/{self.source} to otherDataSources"


@dataclass(frozen=True, slots=True)
class SetGroupBy:
    """Group a source by its key in the relationship that leads to it."""

    field_name: str
    relationship: str
    fields: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"set groupBy of {self.field_name} to [{', '.join(self.fields)}], "
            f"its key in DataRelationship/{self.relationship} (or remove the groupBy)"
        )


@dataclass(frozen=True, slots=True)
class NarrowExclusions:
    """Take a source out of exclusions of a relationship."""

    relationship: str
    exclusions: tuple[int, ...]
    source: str

    def __str__(self) -> str:
        places = ", ".join(f"exclusions[{number}]" for number in self.exclusions)
        return f"take {self.source} out of {places} of DataRelationship/{self.relationship}"


@dataclass(frozen=True, slots=True)
class Exclude:
    """Exclude sources from each other in a relationship."""

    relationship: str
    sources: tuple[str, ...]

    def __str__(self) -> str:
        return f"exclude {{{', '.join(self.sources)}}} from DataRelationship/{self.relationship}"


@dataclass(frozen=True, slots=True)
class RaiseAntiPriority:
    """Make a relationship dearer than the others."""

    relationship: str
    value: int

    def __str__(self) -> str:
        return f"raise the antiPriority of DataRelationship/{self.relationship} to {self.value}"


ReachRepair = AddSource | SetGroupBy | NarrowExclusions


_MOST_PAIRS = 100_000
"""Pairs of parts of relationships whose exclusions are compared; beyond, a source may be suggested
to be reached by one repair more than necessary."""


def reach_repairs(graph: JoinGraph, tree: JoinTree) -> dict[str, tuple[ReachRepair, ...]]:
    """By source out of reach, the fewest repairs that bring it within reach, from the root outward.

    A source that no chain of relationships connects to the root is left out.
    """
    ways = _ways(graph, tree.depths)
    ways.add_nodes_from(tree.depths)
    paths = nx.multi_source_dijkstra_path(ways, sorted(tree.depths), weight="repairs")
    return {
        missing.source: tuple(_repairs_along(graph, path[::3], path[1::3]))
        for missing in tree.unreachable
        if (path := paths.get(missing.source))
    }


def _ways(graph: JoinGraph, reached: Container[str]) -> nx.DiGraph:
    """The ways to join sources out of reach, listed or not, with the repairs that each takes.

    A join is three edges: from a source to its part of a relationship, to what leaves a part, and
    to a source. Of the sources within reach, the first by name enters a part for all.
    """
    ways = nx.DiGraph()
    pairs = 0
    for link in graph.links:
        parts = graph.parts[link.name]
        pairs += len(parts) ** 2
        compared = parts if pairs <= _MOST_PAIRS else ()
        repairs = {s: _misfits(graph, link, s) for s in sorted(link.keys) if s not in reached}
        for part in parts:
            near = sorted(graph.network[part])
            first = next((source for source in near if source in reached), None)
            entering = (source for source in near if source == first or source in repairs)
            ways.add_edges_from(((source, part) for source in entering), repairs=0)
            free = (other for other in compared if part.held.isdisjoint(other.held))
            ways.add_edges_from(((part, (other,)) for other in free), repairs=0)
            for source in near:
                if source in repairs:
                    ways.add_edge((part,), source, repairs=repairs[source])
        if link.exclusions:
            ways.add_edges_from(((part, (link.name,)) for part in parts), repairs=0)
            for source, misfits in repairs.items():
                ways.add_edge((link.name,), source, repairs=1 + misfits)
    return ways


def _misfits(graph: JoinGraph, link: Link, source: str) -> int:
    vertex = graph.vertices.get(source)
    return int(vertex is None or not link.fits_grouping(vertex))


def _repairs_along(
    graph: JoinGraph, sources: Sequence[str], parts: Sequence[Part]
) -> Iterator[ReachRepair]:
    for (parent, source), part in zip(pairwise(sources), parts, strict=True):
        yield from _repairs_at(graph, graph.link[part.relationship], parent, source)


def _repairs_at(graph: JoinGraph, link: Link, parent: str, source: str) -> list[ReachRepair]:
    found: list[ReachRepair] = []
    vertex = graph.vertices.get(source)
    if vertex is None:
        found.append(AddSource(source))
    elif not link.fits_grouping(vertex):
        found.append(SetGroupBy(vertex.field_name, link.name, link.keys[source]))
    shared = link.exclusions_of(parent) & link.exclusions_of(source)
    if shared:
        found.append(NarrowExclusions(link.name, tuple(sorted(shared)), source))
    return found


def tie_exclusions(tie: Tie) -> tuple[Exclude, ...]:
    """The exclusions that leave one way to a tied source.

    They hold the losing parents together with the source: parents of one layer are never joined to
    each other, so nothing else changes.
    """
    kept = _kept_way(tie)
    found = []
    for relationship, parents in tie.ways:
        losers = [p.source for p in parents if (relationship, p.source) != kept]
        if losers:
            found.append(Exclude(relationship, (*losers, tie.source)))
    return tuple(found)


def _kept_way(tie: Tie) -> tuple[str, str]:
    """A way whose relationship leads to the source only once, if there is one."""
    relationship, parents = min(tie.ways, key=lambda way: (len(way[1]) > 1, way[1][0].number))
    return relationship, parents[0].source


class PriorityRepairs:
    """Finds raised antiPriorities that resolve ties, each proved by planning with it."""

    def __init__(self, graph: JoinGraph, tree: JoinTree, limit: int = 16) -> None:
        # Planning again costs as much as planning did; a model has few kinds of ties, and beyond
        # this many only the exclusions are suggested.
        self._limit = limit
        self._graph = graph
        self._tied = {tie.source for tie in (*tree.ties, *tree.ties_below)}
        self._value = max((link.anti_priority for link in graph.links), default=1) + 1
        self._left: dict[frozenset[str], set[str]] = {}

    def of(self, tie: Tie) -> tuple[RaiseAntiPriority, ...]:
        """The priorities to raise so that this tie goes and no other comes; empty if none does."""
        kept, _ = _kept_way(tie)
        single = any(name == kept and len(parents) == 1 for name, parents in tie.ways)
        raised = frozenset(name for name, _ in tie.ways if name != kept)
        if not single or self._value > 1_000_000:
            return ()
        if raised not in self._left:
            if len(self._left) == self._limit:
                return ()
            self._left[raised] = self._tied_with(raised)
        left = self._left[raised]
        if tie.source in left or not left < self._tied:
            return ()
        return tuple(RaiseAntiPriority(name, self._value) for name in sorted(raised))

    def _tied_with(self, raised: frozenset[str]) -> set[str]:
        links = tuple(
            replace(link, anti_priority=self._value) if link.name in raised else link
            for link in self._graph.links
        )
        tree = plan_tree(replace(self._graph, links=links))
        return {tie.source for tie in (*tree.ties, *tree.ties_below)}
