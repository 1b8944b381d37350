"""The steps of a run, as data: `plan` prints and `run` visits this one list.

A snapshot is woven from the leaves up: in descending number, every node that has children is
joined with all of them at once; a grouped child is grouped right before, when its own children are
already in it. Numbers are breadth-first, so a node's children are complete when its turn comes
(rule W13).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from snaploom.models.report import SnapshotReason
from snaploom.models.times import EpochNanos
from snaploom.planning.availability import Availability
from snaploom.planning.tree import JoinNode, JoinTree


@dataclass(frozen=True, slots=True)
class ReadSource:
    """Read one snapshot of one source."""

    field_name: str
    source: str
    time: EpochNanos


@dataclass(frozen=True, slots=True)
class GroupNode:
    """Collect the rows of a node, its children in them, into one array a key."""

    node: JoinNode


@dataclass(frozen=True, slots=True)
class JoinChildren:
    """Join a node with all its children."""

    junction: JoinNode
    children: tuple[JoinNode, ...]


@dataclass(frozen=True, slots=True)
class WriteSnapshot:
    """Write the woven snapshot to staging."""

    time: EpochNanos
    partition: str
    """Folder below `data/`."""


@dataclass(frozen=True, slots=True)
class PublishSnapshot:
    """Make the written snapshot visible, atomically."""

    time: EpochNanos
    partition: str


@dataclass(frozen=True, slots=True)
class SkipSnapshot:
    """Leave a snapshot out of this run."""

    time: EpochNanos
    reason: SnapshotReason
    warn: bool = False
    message: str = ""


@dataclass(frozen=True, slots=True)
class FailSnapshot:
    """Fail because of a snapshot; nothing is published for it."""

    time: EpochNanos
    reason: SnapshotReason
    message: str = ""


@dataclass(frozen=True, slots=True)
class CollectEnded:
    """Remove files of ended snapshots whose readers' grace has passed; the last step of a run."""

    snapshots: int
    """Ended snapshots whose files may still be there, before the run ends any."""


Step = (
    ReadSource
    | GroupNode
    | JoinChildren
    | WriteSnapshot
    | PublishSnapshot
    | SkipSnapshot
    | FailSnapshot
    | CollectEnded
)


def weaving_steps(tree: JoinTree, found: Availability, partition: str) -> tuple[Step, ...]:
    """The steps that weave and publish one snapshot from the source snapshots available for it."""
    time = found.sources[0][1]
    times = dict(found.sources)
    included = [node for node in tree.nodes if node.field_name in times]
    reads = (ReadSource(n.field_name, n.source, times[n.field_name]) for n in included)
    return (
        *reads,
        *_joins(tree, {node.number for node in included}),
        WriteSnapshot(time, partition),
        PublishSnapshot(time, partition),
    )


def _joins(tree: JoinTree, included: Collection[int]) -> list[Step]:
    steps: list[Step] = []
    for junction in reversed(tree.nodes):
        joined = [node for node in tree.children(junction.number) if node.number in included]
        steps.extend(GroupNode(child) for child in joined if child.group_by)
        if joined:
            steps.append(JoinChildren(junction, tuple(joined)))
    return steps
