"""A plan for readers: the JSON contract of `plan -o json`, and plain text for people."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from types import MappingProxyType

import networkx as nx
from pydantic import JsonValue

from snaploom.loading.project import AppliedProject
from snaploom.models.asof import AsOf
from snaploom.models.common import ROOT_FIELD, format_instant
from snaploom.models.findings import Finding
from snaploom.models.report import SnapshotReason
from snaploom.models.run import Accelerator
from snaploom.models.windows import Windows
from snaploom.plan.plan import PlannedSnapshot, RunPlan, Unforeseen
from snaploom.plan.retention import Removal
from snaploom.plan.steps import Action, Times
from snaploom.plan.tree import JoinNode, JoinTree
from snaploom.policy.secretdetection import secret_form

# The environment and variables of declarations, and the accelerator, as plans show them.

HIDDEN = "(not shown: it may be secret)"


def project_json(applied: AppliedProject) -> JsonValue:
    """The key `project` of `plan -o json`; null where there is neither environment nor variable."""
    if not applied.values and not applied.environment:
        return None
    values: dict[str, JsonValue] = {name: _shown(value) for name, value in _sorted(applied)}
    return {"file": applied.file, "environment": applied.environment, "variables": values}


def project_text(applied: AppliedProject) -> str:
    """Lines of the environment and of each variable; empty where there is neither."""
    if not applied.values and not applied.environment:
        return ""
    environment = f"environment {applied.environment}" if applied.environment else "no environment"
    of = f" of {applied.file}" if applied.file else ""
    lines = [f"  {name} = {_shown(value)}" for name, value in _sorted(applied)]
    return "\n".join([f"variables, {environment}{of}", *lines]) + "\n\n"


def accelerator_json(settings: Mapping[str, str]) -> JsonValue:
    """The key `accelerator` of `plan -o json`; null for a run without one."""
    return {"name": Accelerator.COMET.value, "settings": dict(settings)} if settings else None


def accelerator_text(settings: Mapping[str, str]) -> str:
    """Lines of an accelerated run's settings; empty for other runs."""
    if not settings:
        return ""
    lines = [f"  {name} = {value}" for name, value in settings.items()]
    return "\n".join([f"accelerator {Accelerator.COMET}", *lines]) + "\n\n"


def _sorted(applied: AppliedProject) -> list[tuple[str, str]]:
    return sorted(applied.values.items())


def _shown(value: str) -> str:
    return HIDDEN if secret_form(value) else value


# A plan for readers: the JSON contract of `plan -o json`, and plain text for people.

SHOWN_TIMES = 5
"""Snapshot times that a line names; the JSON has them all."""
SHOWN_SOURCES = 8
"""Sources that a line names; the JSON has them all."""


def plan_json(plan: RunPlan) -> dict[str, JsonValue]:
    """The plan as `plan -o json` prints it."""
    candidates = plan.snapshots
    return {
        "output": plan.output.name,
        "hash": plan.hash,
        "root": plan.tree.root.source,
        "joins": [_join_json(node) for node in plan.tree.joins],
        "unreachable": [
            {"fieldName": missing.field_name, "source": missing.source, "mode": missing.mode.value}
            for missing in plan.tree.unreachable
        ],
        "ties": [
            {
                "fieldName": tie.field_name,
                "depth": tie.depth,
                "antiPriority": tie.anti_priority,
                "candidates": [
                    {"parent": way.parent, "relationship": way.relationship}
                    for way in tie.candidates
                ],
            }
            for tie in plan.tree.ties
        ],
        "candidates": None if candidates is None else [_snapshot_json(one) for one in candidates],
        "deletes": [
            {"time": format_instant(removal.time), "rule": removal.rule.value}
            for removal in plan.removing
        ],
        "unforeseen": [{"source": one.source, "message": one.message} for one in plan.unforeseen],
        "collect": None if plan.collecting is None else {"endedSnapshots": plan.collecting},
        "dataFindings": [finding.dump() for finding in plan.data_findings],
        "findings": [finding_json(finding) for finding in plan.findings],
    }


def _join_json(node: JoinNode) -> JsonValue:
    return {
        "number": node.number,
        "fieldName": node.field_name,
        "source": node.source,
        "parent": node.parent,
        "relationship": node.relationship,
        "depth": node.depth,
        "groupBy": list(node.group_by),
        "asOf": node.timed.dump() if isinstance(node.timed, AsOf) else None,
        "windows": node.timed.dump() if isinstance(node.timed, Windows) else None,
        "history": None if node.history is None else node.history.text,
    }


def _snapshot_json(snapshot: PlannedSnapshot) -> JsonValue:
    return {
        "time": format_instant(snapshot.time),
        "partition": snapshot.partition,
        "action": snapshot.action.value,
        "reason": snapshot.reason.value,
        "sources": {
            name: format_instant(times[-1])
            for name, times in snapshot.sources
            if name != ROOT_FIELD
        },
        "histories": {
            name: [format_instant(time) for time in times]
            for name, times in snapshot.sources
            if len(times) > 1
        },
        "notes": list(snapshot.notes),
        "excluded": [
            {"fieldName": source.field_name, "reason": source.reason.value}
            for source in snapshot.excluded
        ],
    }


def finding_json(finding: Finding) -> JsonValue:
    """A finding as the JSON contract has it."""
    return {
        "code": finding.code,
        "severity": finding.severity.value,
        "resource": finding.resource,
        "path": finding.path,
        "message": finding.message,
        "hint": finding.hint,
    }


def plan_text(plan: RunPlan) -> str:
    """The plan as plain text: the tree and the candidates."""
    normalized = {node.number: _normalized(plan, node) for node in plan.tree.joins}
    tree = tree_text(plan.tree, normalized)
    parts = [f"{plan.output.identity}, plan {plan.hash[:12]}", tree]
    if plan.snapshots is not None:
        lines = list(_candidate_lines(plan.snapshots))
        lines.extend(_removal_lines(plan.removing))
        if plan.collecting:
            ended = f"{plan.collecting} ended snapshot{'' if plan.collecting == 1 else 's'}"
            lines.append(f"COLLECT files of {ended}, as far as readerGrace has passed")
        lines.extend(_unforeseen_lines(plan.unforeseen))
        if not lines:
            lines = ["Nothing to publish."]
        lines.extend(line for finding in plan.data_findings for line in finding.lines)
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


_NO_NOTES: Mapping[int, str] = MappingProxyType({})


def _normalized(plan: RunPlan, node: JoinNode) -> str:
    sides = plan.tree.by_number[node.parent_number].source, node.source
    known = plan.graph.link[node.relationship].normalized
    return ", ".join(known[source] for source in sides if source in known)


def tree_text(tree: JoinTree, notes: Mapping[int, str] = _NO_NOTES) -> str:
    """A drawing of the join tree, with the relationship and the grouping of each join.

    `notes` are other facts about a join, by the number of its node.
    """
    rows = [(tree.root.source, ""), *_branches(tree, notes)]
    rows.extend((f"?── {tie.field_name}", f"tied at depth {tie.depth}") for tie in tree.ties)
    rows.extend((f"×── {missing.field_name}", "no path") for missing in tree.unreachable)
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {about}".rstrip() for name, about in rows)


def _branches(tree: JoinTree, notes: Mapping[int, str]) -> Iterator[tuple[str, str]]:
    indents = {0: ""}
    for number in islice(nx.dfs_preorder_nodes(tree.network, 0), 1, None):
        node = tree.by_number[number]
        indent = indents[node.parent_number]
        last = node is tree.children(node.parent_number)[-1]
        about = f"by {node.relationship}"
        if node.group_by:
            about += f", grouped by {', '.join(node.group_by)}"
        if node.source != node.field_name:
            about += f", from {node.source}"
        if node.history is not None:
            about += f", of the last {node.history.text}"
        if node.timed is not None:
            about += f", {node.timed.text}"
        if notes.get(node.number):
            about += f", {notes[node.number]}"
        yield f"{indent}{'└── ' if last else '├── '}{node.field_name}", about
        indents[number] = indent + ("    " if last else "│   ")


def _candidate_lines(snapshots: Sequence[PlannedSnapshot]) -> Iterator[str]:
    """A line for each candidate; neighbours that are skipped alike have one for all."""
    for _, alike in groupby(snapshots, key=_sameness):
        first, *more = alike
        yield from _snapshot_lines(first)
        if len(more) == 1:
            yield from _snapshot_lines(more[0])
        elif more:
            why = _why(more[0].reason, more[0].message.partition("\n")[0])
            first_time, last_time = format_instant(more[0].time), format_instant(more[-1].time)
            yield f"{len(more):>7} more, {first_time} to {last_time}  {why}"


def _sameness(snapshot: PlannedSnapshot) -> tuple[object, ...]:
    if snapshot.action is not Action.SKIP:
        return (snapshot.time,)
    return (snapshot.action, snapshot.reason, snapshot.message, snapshot.excluded)


def _removal_lines(removing: Iterable[Removal]) -> Iterator[str]:
    by_rule: dict[str, list[str]] = {}
    for removal in removing:
        by_rule.setdefault(removal.rule.value, []).append(format_instant(removal.time))
    for rule, times in by_rule.items():
        shown = ", ".join(sorted(times)[:SHOWN_TIMES])
        more = f" and {len(times) - SHOWN_TIMES} more" if len(times) > SHOWN_TIMES else ""
        noun = "snapshot" if len(times) == 1 else "snapshots"
        yield f"DELETE  {len(times)} {noun} by {rule}: {shown}{more}"


def _unforeseen_lines(unforeseen: Iterable[Unforeseen]) -> Iterator[str]:
    by_message: dict[str, list[str]] = {}
    for one in unforeseen:
        by_message.setdefault(one.message, []).append(one.source)
    for message, names in by_message.items():
        yield f"UNKNOWN {', '.join(dict.fromkeys(names))}: {message}"


def _why(reason: SnapshotReason, message: str) -> str:
    return ": ".join(part for part in (reason.value, message) if part)


def _snapshot_lines(snapshot: PlannedSnapshot) -> Iterator[str]:
    head = f"{snapshot.action.value:<8}{format_instant(snapshot.time)}  {snapshot.partition}"
    message, *details = snapshot.message.splitlines() or [""]
    yield f"{head}  {_why(snapshot.reason, message)}"
    yield from (f"      {detail}" for detail in details)
    # The snapshots taken of the sources that are joined, a line for each time, newest first.
    by_times: dict[Times, list[str]] = {}
    for name, times in snapshot.sources:
        if name != ROOT_FIELD:
            by_times.setdefault(times, []).append(name)
    for times in sorted(by_times, key=lambda times: times[::-1], reverse=True):
        names = by_times[times]
        shown = ", ".join(names[:SHOWN_SOURCES])
        more = f" and {len(names) - SHOWN_SOURCES} more" if len(names) > SHOWN_SOURCES else ""
        first = f"{format_instant(times[0])} to " if len(times) > 1 else ""
        count = f", {len(times)} snapshots" if len(times) > 1 else ""
        yield f"        from {first}{format_instant(times[-1])}{count}  {shown}{more}"
    yield from (f"        warning: {note}" for note in snapshot.notes)
    for source in snapshot.excluded:
        note = f": {source.message}" if source.message else ""
        yield f"        without {source.field_name}  {source.reason.value}{note}"
