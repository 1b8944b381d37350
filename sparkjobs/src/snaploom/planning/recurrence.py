"""Which subtrees of the join tree recur from snapshot to snapshot, so that each is folded once.

In a backlog, sources that change rarely give the same snapshot to many snapshots of the root
(rule W29). A subtree recurs when all of its sources do. It is worth keeping at
its top; a part of it is kept by itself only where it recurs more often than what it is a part of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from snaploom.models.times import EpochNanos
from snaploom.planning.tree import JoinTree

Visit = Mapping[str, EpochNanos]
"""The snapshots that one snapshot is woven from: times by field name, the root's included."""


def recurring_subtrees(tree: JoinTree, visits: Sequence[Visit]) -> tuple[Mapping[int, int], ...]:
    """For each visit, the subtrees to keep: their signatures, by the number of their top.

    Args:
        tree: the join tree.
        visits: the snapshots to weave, in the order of work. A source that is missing, and its
            descendants, are left out of its visit.

    Returns:
        Equal values in two visits mean the same subtree of the same snapshots.
    """
    names: dict[tuple[int, EpochNanos, tuple[int, ...]], int] = {}
    found = [_subtrees(tree, visit, names) for visit in visits]
    uses = Counter(name for visit in found for name in visit.values())
    return tuple(_kept(tree, visit, uses) for visit in found)


def _subtrees(
    tree: JoinTree, visit: Visit, names: dict[tuple[int, EpochNanos, tuple[int, ...]], int]
) -> dict[int, int]:
    left_out = tree.subtrees(n.number for n in tree.joins if n.field_name not in visit)
    found: dict[int, int] = {}
    for node in reversed(tree.joins):
        if node.number not in left_out:
            children = (child.number for child in tree.children(node.number))
            parts = tuple(found[number] for number in children if number in found)
            name = (node.number, visit[node.field_name], parts)
            found[node.number] = names.setdefault(name, len(names))
    return found


def _kept(tree: JoinTree, found: Mapping[int, int], uses: Mapping[int, int]) -> dict[int, int]:
    kept: dict[int, int] = {}
    most = {0: 1}
    for node in tree.joins:
        if node.number in found:
            name, above = found[node.number], most[node.parent_number]
            if uses[name] > above:
                kept[node.number] = name
            most[node.number] = max(uses[name], above)
    return kept
