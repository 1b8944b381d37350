"""Today's join tree and data model against published ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from operator import itemgetter
from typing import TYPE_CHECKING

from snaploom.models.common import ROOT_FIELD, EpochNanos, format_instant

if TYPE_CHECKING:
    from snaploom.plan.tree import JoinTree

# Continuation of the published output by today's join tree: the structure of history.


@dataclass(frozen=True, slots=True)
class StructureNode:
    """One field of the output: where it hangs, and how it is grouped."""

    field_name: str
    parent: str
    group_by: tuple[str, ...]
    source: str
    relationship: str


Structure = Mapping[str, StructureNode]
"""By casefolded field name; the root is implied."""


@dataclass(frozen=True, slots=True)
class StructureConflict:
    """A field that differs from its published form."""

    field_name: str
    aspect: str
    found: str
    expected: str

    def __str__(self) -> str:
        return f"{self.field_name}: {self.aspect} is {self.found}, but was {self.expected}"


@dataclass(frozen=True, slots=True)
class StructureBreak:
    """Two snapshots in which one field stands for different things."""

    conflict: StructureConflict
    first_seen: str
    """Snapshot that has the field as expected."""
    second_seen: str
    """Snapshot that has it as found."""

    def __str__(self) -> str:
        one = self.conflict
        return (
            f"{one.field_name}: {one.aspect} is {one.expected} in snapshot {self.first_seen} "
            f"and {one.found} in snapshot {self.second_seen}"
        )


@dataclass(frozen=True, slots=True)
class Swap:
    """A field that comes from another source, or by another relationship, than before."""

    field_name: str
    aspect: str
    before: str
    after: str

    def __str__(self) -> str:
        kind = "DataSource" if self.aspect == "source" else "DataRelationship"
        return f"`{self.field_name}` comes by {kind}/{self.after} from here on, not {self.before}"


@dataclass(frozen=True)
class StructureMerge:
    """History and today together."""

    structure: Structure
    conflicts: tuple[StructureConflict, ...]
    swaps: tuple[Swap, ...]


def structure_of(tree: JoinTree) -> Structure:
    """The structure that a join tree gives its output."""
    return structure_from(
        StructureNode(n.field_name, n.parent, n.group_by, n.source, n.relationship)
        for n in tree.joins
    )


def structure_from(nodes: Iterable[StructureNode]) -> Structure:
    """Index nodes by casefolded name."""
    return {node.field_name.casefold(): node for node in nodes}


def merge_structures(history: Structure, today: Structure) -> StructureMerge:
    """Continue `history`, the structure of everything published so far, with today's.

    On a conflict history's node is kept. The merge takes source and relationship from today.
    """
    conflicts: list[StructureConflict] = []
    swaps: list[Swap] = []
    merged = dict(history)
    for name, now in today.items():
        before = history.get(name)
        if before is None:
            merged[name] = now
            continue
        found = list(_conflicts(history, before, today, now))
        conflicts.extend(found)
        if not found:
            swaps.extend(_swaps(before, now))
            merged[name] = StructureNode(
                before.field_name, before.parent, before.group_by, now.source, now.relationship
            )
    return StructureMerge(merged, tuple(conflicts), tuple(swaps))


def continued(structures: Iterable[Structure]) -> Structure:
    """The structure that the next snapshot has to continue, from all that were ever published.

    They are in order of publication: of two that contradict each other, the later one was published
    in spite of it, and counts.
    """
    merged: dict[str, StructureNode] = {}
    for structure in structures:
        for name, node in structure.items():
            first = merged.get(name, node)
            merged[name] = replace(node, field_name=first.field_name)
    return merged


def structure_breaks(history: Iterable[tuple[EpochNanos, Structure]]) -> tuple[StructureBreak, ...]:
    """Return contradictions of the snapshots' structures, so that no reader mixes them.

    `history` is in any order; equal structures are the same object, or at least few.
    """
    merged: Structure = {}
    seen: dict[str, str] = {}
    known: set[int] = set()
    breaks: list[StructureBreak] = []
    for time, structure in sorted(history, key=itemgetter(0)):
        if id(structure) in known:
            continue
        known.add(id(structure))
        merge = merge_structures(merged, structure)
        at = format_instant(time)
        breaks.extend(
            StructureBreak(conflict, seen[conflict.field_name.casefold()], at)
            for conflict in merge.conflicts
        )
        merged = merge.structure
        for name in structure:
            seen.setdefault(name, at)
    return tuple(breaks)


def _conflicts(
    history: Structure, before: StructureNode, today: Structure, now: StructureNode
) -> Iterable[StructureConflict]:
    was, is_now = path_to(history, before), path_to(today, now)
    if [name.casefold() for name in was] != [name.casefold() for name in is_now]:
        yield StructureConflict(now.field_name, "its place", _place(is_now), _place(was))
    if [n.casefold() for n in now.group_by] != [n.casefold() for n in before.group_by]:
        yield StructureConflict(
            now.field_name, "groupBy", _listing(now.group_by), _listing(before.group_by)
        )


def path_to(structure: Structure, node: StructureNode) -> tuple[str, ...]:
    """Field names from the root's child down to the node's parent."""
    path: list[str] = []
    while node.parent != ROOT_FIELD:
        node = structure[node.parent.casefold()]
        path.insert(0, node.field_name)
    return tuple(path)


def _swaps(before: StructureNode, now: StructureNode) -> Iterable[Swap]:
    if before.source != now.source:
        yield Swap(now.field_name, "source", before.source, now.source)
    if before.relationship != now.relationship:
        yield Swap(now.field_name, "relationship", before.relationship, now.relationship)


def _place(path: tuple[str, ...]) -> str:
    return f"below {'.'.join(path)}" if path else "below the root"


def _listing(names: tuple[str, ...]) -> str:
    return f"[{', '.join(names)}]"


# The data model of a published snapshot as its manifest describes it, and the difference of two.


class Change(StrEnum):
    """The change of a field from one snapshot to another."""

    SAME = "same"
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True)
class PublishedNode:
    """One source of a snapshot."""

    field_name: str
    """Field of the output; empty for the root."""
    parent: str
    """Field name of the parent; empty when that is the root, and at the root."""
    source: str
    relationship: str
    """Empty at the root."""
    group_by: tuple[str, ...] = ()
    taken: str = ""
    """Time of the source's snapshot; empty where it was left out."""
    left_out: str = ""
    """Reason why it was left out; empty if it was not."""
    matched: str = ""
    """Rows that found a match, for people."""
    change: Change = Change.SAME
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class PublishedModel:
    """A join tree with its inputs."""

    title: str
    caption: str
    nodes: tuple[PublishedNode, ...]
    """The root first, parents before children."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Everything that changed, for people."""
        return tuple(
            f"{node.field_name or 'root'}: {', '.join(node.notes) or node.change.value}"
            for node in self.nodes
            if node.change is not Change.SAME
        )


def model_of_structure(title: str, caption: str, root: str, structure: Structure) -> PublishedModel:
    """A join tree without its inputs.

    `root` is the name of the root's source, and `structure` has its other fields.
    """
    joined = (
        PublishedNode(node.field_name, node.parent, node.source, node.relationship, node.group_by)
        for node in structure.values()
    )
    return PublishedModel(title, caption, (PublishedNode("", "", root, ""), *joined))


def difference(before: PublishedModel, after: PublishedModel) -> PublishedModel:
    """Both models in one: added, removed and changed parts are marked and described."""
    was = {node.field_name.casefold(): node for node in before.nodes}
    now = {node.field_name.casefold(): node for node in after.nodes}
    nodes = [_compared(was.get(name), node) for name, node in now.items()]
    gone = [replace(node, change=Change.REMOVED) for name, node in was.items() if name not in now]
    return PublishedModel(after.title, f"from {before.caption} to {after.caption}", (*nodes, *gone))


def _compared(was: PublishedNode | None, now: PublishedNode) -> PublishedNode:
    if was is None:
        return replace(now, change=Change.ADDED)
    notes = tuple(_differences(was, now))
    return replace(now, change=Change.CHANGED if notes else Change.SAME, notes=notes)


def _differences(was: PublishedNode, now: PublishedNode) -> Iterator[str]:
    if was.parent.casefold() != now.parent.casefold():
        yield f"below {now.parent or 'the root'}, was below {was.parent or 'the root'}"
    if was.source != now.source:
        yield f"from {now.source}, was from {was.source}"
    if was.relationship != now.relationship:
        yield f"by {now.relationship}, was by {was.relationship}"
    if _folded(was.group_by) != _folded(now.group_by):
        yield f"groupBy [{', '.join(now.group_by)}], was [{', '.join(was.group_by)}]"
    if was.left_out != now.left_out:
        yield (
            f"left out ({now.left_out})" if now.left_out else f"no longer left out ({was.left_out})"
        )


def _folded(names: Iterable[str]) -> list[str]:
    return [name.casefold() for name in names]
