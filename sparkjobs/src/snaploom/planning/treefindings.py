"""Findings about a join tree: ties, sources out of reach, depth.

Every tie and every unreachable source is a finding of its own, with what was found at it and a fix
that works (see `repairs`).
"""

from __future__ import annotations

from collections.abc import Sequence

from snaploom.models.common import PathMissingMode
from snaploom.models.finding import Finding, Severity
from snaploom.models.outputdataset import OutputDataset
from snaploom.planning.graph import JoinGraph, Link, Vertex
from snaploom.planning.repairs import PriorityRepairs, reach_repairs, tie_exclusions
from snaploom.planning.tree import JoinTree, Tie, Unreachable

AMBIGUOUS = "SL301"
"""A source has several equally good ways to be joined."""
UNREACHABLE = "SL302"
"""No path leads to a source whose pathMissingMode is ERROR."""
UNREACHABLE_TOLERATED = "SL303"
"""No path leads to a source whose pathMissingMode is CONTINUE_WARN."""
TOO_DEEP = "SL304"
"""The tree is deeper than maxDepth."""
NEVER_USED = "SL308"
"""A relationship could join sources of the output, and joins none in the tree."""
NO_UNIQUE_TREE = frozenset({AMBIGUOUS, UNREACHABLE})
"""When every error is one of these, the caller raises `NoUniqueJoinTree`."""

LISTED = 20
"""Members of a list that a message shows before the number of the others."""


def tree_findings(output: OutputDataset, graph: JoinGraph, tree: JoinTree) -> tuple[Finding, ...]:
    """Every finding about the tree, in the order ties, unreachable sources, depth, unused."""
    return (
        *_ties(output, graph, tree),
        *_unreachable(output, graph, tree),
        *_depth(output, graph, tree),
        *_never_used(output, graph, tree),
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
    links = graph.links_of(missing.source)
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
    if not link.fits_grouping(vertex):
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


def _depth(output: OutputDataset, graph: JoinGraph, tree: JoinTree) -> list[Finding]:
    deepest = max(tree.depths.values())
    if deepest <= graph.max_depth:
        return []
    names = sorted(
        graph.vertices[source].field_name
        for source, depth in tree.depths.items()
        if depth > graph.max_depth
    )
    return [
        Finding(
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
    ]


def _never_used(output: OutputDataset, graph: JoinGraph, tree: JoinTree) -> list[Finding]:
    """Relationships whose every way lost against another; reported once the tree is decided."""
    if tree.ties or tree.unreachable:
        return []
    used = {node.relationship for node in tree.joins}
    unused = {
        link.name for link in graph.links if link.name not in used and any(graph.arcs([link]))
    }
    positions = enumerate(output.spec.data_model.data_relationships)
    return [
        Finding(
            code=NEVER_USED,
            severity=Severity.WARNING,
            resource=output.identity,
            path=f"spec.dataModel.dataRelationships[{index}]",
            message=f"DataRelationship/{relationship.name} is never used: every source that it "
            "could join is joined by another, on a shorter or cheaper way",
            found="no join by it",
            expected="relationships that the join tree uses",
            hint="remove it, or lower its antiPriority; 'snaploom graph' draws it dashed",
        )
        for index, relationship in positions
        if relationship.name in unused
    ]


def _listing(names: Sequence[str]) -> str:
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more


def _path_of(output: OutputDataset, source: str) -> str:
    others = output.spec.data_model.other_data_sources
    index = next(i for i, other in enumerate(others) if other.data_source == source)
    return f"spec.dataModel.otherDataSources[{index}]"
