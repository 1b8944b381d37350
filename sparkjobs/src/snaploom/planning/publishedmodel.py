"""The data model of a published snapshot as its manifest describes it, and the difference of two.

A field is known by its name, ignoring case. What it is joined to, by which relationship, from which
source and how it is grouped may differ between snapshots; so may whether it was there at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from snaploom.planning.compatibility import Structure


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
    """Why it was left out; empty where it was not."""
    matched: str = ""
    """How many rows found a match, for people."""
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
