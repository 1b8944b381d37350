"""Findings about a join tree: ties, unreachable sources, depth, with repairs to suggest."""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import networkx as nx

from snaploom.models.common import PathMissingMode
from snaploom.models.findings import AMBIGUOUS, UNREACHABLE, Finding, Severity
from snaploom.models.outputdataset import OutputDataset
from snaploom.plan.tree import (
    NOT_EXCLUDED,
    JoinGraph,
    JoinTree,
    Link,
    Part,
    Tie,
    Unreachable,
    Vertex,
    plan_tree,
)

# Repairs of a data model that lacks its one join tree, as messages may suggest them.


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
        repairs = {
            source: int(source not in graph.vertices or source in link.misgrouped)
            for source in sorted(link.keys)
            if source not in reached
        }
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
    elif source in link.misgrouped:
        found.append(SetGroupBy(vertex.field_name, link.name, link.keys[source]))
    shared = link.exclusions.get(parent, NOT_EXCLUDED) & link.exclusions.get(source, NOT_EXCLUDED)
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
            links = tuple(
                replace(link, anti_priority=self._value) if link.name in raised else link
                for link in self._graph.links
            )
            tree = plan_tree(replace(self._graph, links=links))
            self._left[raised] = {tie.source for tie in (*tree.ties, *tree.ties_below)}
        left = self._left[raised]
        if tie.source in left or not left < self._tied:
            return ()
        return tuple(RaiseAntiPriority(name, self._value) for name in sorted(raised))


# Findings about a join tree: ties, sources out of reach, depth.

UNREACHABLE_TOLERATED = "SL303"
"""No path leads to a source whose pathMissingMode is CONTINUE_WARN."""
TOO_DEEP = "SL304"
"""The tree is deeper than maxDepth."""
NEVER_USED = "SL308"
"""A relationship could join sources of the output, and joins none in the tree."""
LISTED = 20
"""Members of a list that a message shows before the number of the others."""


def tree_findings(output: OutputDataset, graph: JoinGraph, tree: JoinTree) -> tuple[Finding, ...]:
    """Every finding about the tree, in the order ties, unreachable sources, depth, unused."""
    return (
        *_ties(output, graph, tree),
        *_unreachable(output, graph, tree),
        *_depth(output, graph, tree),
        *_never_used(output, tree),
    )


def _ties(output: OutputDataset, graph: JoinGraph, tree: JoinTree) -> list[Finding]:
    priorities = PriorityRepairs(graph, tree)
    return [
        Finding(
            code=AMBIGUOUS,
            severity=Severity.ERROR,
            resource=output.identity,
            path=_path_of(output, tie.source),
            message=_tie_message(tie),
            found=f"{tie.count} ways of antiPriority {tie.anti_priority} at depth {tie.depth}",
            expected="one way that is shorter, or has a lower antiPriority, than all others",
            hint=_tie_hint(tie, priorities),
        )
        for tie in tree.ties
    ]


def _tie_message(tie: Tie) -> str:
    ways = tie.candidates
    shown = ways[:LISTED]
    width = max(len(way.relationship) for way in shown)
    lines = [
        f"{tie.count} equivalent ways to reach DataSource/{tie.source} "
        f"(fieldName {tie.field_name}) at depth {tie.depth}, antiPriority {tie.anti_priority}:"
    ]
    lines.extend(
        f"  * DataRelationship/{way.relationship:<{width}} - DataSource/{way.source} "
        f"(#{way.number}) --> DataSource/{tie.source} (#{tie.number})"
        for way in shown
    )
    if len(ways) > LISTED:
        lines.append(f"  * and {len(ways) - LISTED} more")
    return "\n".join(lines)


def _tie_hint(tie: Tie, priorities: PriorityRepairs) -> str:
    ways = [" and ".join(map(str, repairs)) for repairs in (priorities.of(tie),) if repairs]
    ways.append(" and ".join(map(str, tie_exclusions(tie))))
    return ", or ".join(ways)


def _unreachable(output: OutputDataset, graph: JoinGraph, tree: JoinTree) -> list[Finding]:
    reported = [m for m in tree.unreachable if m.mode is not PathMissingMode.CONTINUE_IGNORE]
    if not reported:
        return []
    repairs = reach_repairs(graph, tree)
    found = []
    for missing in reported:
        error = missing.mode is PathMissingMode.ERROR
        fixes = repairs.get(missing.source)
        found.append(
            Finding(
                code=UNREACHABLE if error else UNREACHABLE_TOLERATED,
                severity=Severity.ERROR if error else Severity.WARNING,
                resource=output.identity,
                path=_path_of(output, missing.source),
                message=f"no path leads from the root DataSource/{graph.root.source} to "
                f"DataSource/{missing.source} (fieldName {missing.field_name})",
                found="; ".join(_obstacles(graph, tree, missing)),
                expected="relationships that lead to it from the root, over listed sources only",
                hint="; then ".join(map(str, fixes)) if fixes else _new_link(graph, missing),
            )
        )
    return found


def _obstacles(graph: JoinGraph, tree: JoinTree, missing: Unreachable) -> list[str]:
    links = [link for link in graph.links if missing.source in link.keys]
    if not links:
        return [f"no relationship of this output mentions DataSource/{missing.source}"]
    vertex = graph.vertices[missing.source]
    found = [_obstacle(graph, tree, vertex, link) for link in links[:LISTED]]
    if len(links) > LISTED:
        found.append(f"{len(links) - LISTED} more relationships likewise")
    return found


def _obstacle(graph: JoinGraph, tree: JoinTree, vertex: Vertex, link: Link) -> str:
    others = sorted(source for source in link.keys if source != vertex.source)
    reached = [source for source in others if source in tree.depths]
    listed = [source for source in others if source in graph.vertices]
    name = f"DataRelationship/{link.name}"
    if not others:
        return f"{name} has no other source"
    if vertex.source in link.misgrouped:
        key = ", ".join(link.keys[vertex.source])
        return f"groupBy [{', '.join(vertex.group_by)}] is not its key in {name}, which is [{key}]"
    if reached:
        return f"an exclusion of {name} cuts it off from {_listing(reached)}"
    if listed:
        return f"{name} reaches only other unreachable sources: {_listing(listed)}"
    return f"{name} leads only to sources that this output does not list: {_listing(others)}"


def _new_link(graph: JoinGraph, missing: Unreachable) -> str:
    vertex = graph.vertices[missing.source]
    key = f", with the key [{', '.join(vertex.group_by)}] for it," if vertex.group_by else ""
    return (
        f"add to dataRelationships a DataRelationship that has DataSource/{missing.source}{key} "
        f"and a source within reach, such as DataSource/{graph.root.source}"
    )


def _depth(output: OutputDataset, graph: JoinGraph, tree: JoinTree) -> Iterator[Finding]:
    deepest = max(tree.depths.values())
    if deepest <= graph.max_depth:
        return
    names = sorted(
        graph.vertices[source].field_name
        for source, depth in tree.depths.items()
        if depth > graph.max_depth
    )
    yield Finding(
        code=TOO_DEEP,
        severity=Severity.ERROR,
        resource=output.identity,
        path="spec.dataModel.maxDepth",
        message=f"the join tree is deeper than maxDepth at {_listing(names)}",
        found=f"depth {deepest}",
        expected=f"at most {graph.max_depth}",
        hint=f"raise maxDepth to {deepest}"
        if deepest <= 32  # the model's upper bound of maxDepth
        else "add a relationship that shortens the chain; maxDepth may be 32 at most",
    )


def _never_used(output: OutputDataset, tree: JoinTree) -> list[Finding]:
    """Relationships whose every way lost against another."""
    positions = enumerate(output.spec.data_model.data_relationships)
    return [
        output.finding(
            NEVER_USED,
            f"spec.dataModel.dataRelationships[{index}]",
            f"DataRelationship/{relationship.name} is never used: every source that it "
            "could join is joined by another, on a shorter or cheaper way",
            found="no join by it",
            expected="relationships that the join tree uses",
        )
        for index, relationship in positions
        if relationship.name in tree.unused
    ]


def _listing(names: Sequence[str]) -> str:
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more


def _path_of(output: OutputDataset, source: str) -> str:
    others = output.spec.data_model.other_data_sources
    index = next(i for i, other in enumerate(others) if other.data_source == source)
    return f"spec.dataModel.otherDataSources[{index}]"
