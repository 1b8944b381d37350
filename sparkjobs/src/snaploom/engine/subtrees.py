"""Folded subtrees that several snapshots share, and samples of the root's rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from snaploom.engine.fold import Counts, Point, Weave
from snaploom.errors import FieldMissing
from snaploom.output.layout import content_hash
from snaploom.spark.types import find_field

# A share of the root's rows, the same in every run and every snapshot: by a hash of their key.

_BUCKETS = 1 << 32
"""Equal parts into which hashes fall: fine enough for any share that somebody writes down."""


def sampled(frame: DataFrame, key: Sequence[str], share: float, source: str) -> DataFrame:
    """The rows whose key falls into a share of all hashes.

    `key` is the `rootKey`, `share` is between 0 and 1.
    """
    columns = []
    for name in key:
        found = find_field(frame.schema, name)
        if found is None:
            raise FieldMissing(
                "the root has no such column in this snapshot",
                resource=f"DataSource/{source}",
                path="spec.dataModel.rootDataSource.rootKey",
                found=name,
                expected="a column of the root",
                hint="correct rootKey, or the root's data",
            )
        columns.append(sf.col(found.expression))
    bucket = sf.pmod(sf.xxhash64(*columns), sf.lit(_BUCKETS))
    return frame.where(bucket < sf.lit(int(share * _BUCKETS)))


# Folded subtrees that several snapshots share: folded once, counted once, and remembered.


@dataclass(frozen=True)
class FoldedSubtree:
    """A subtree as its parent joins it."""

    frame: DataFrame
    """Its packed rows beside the key."""
    counts: Mapping[Point, Counts]


Recall = Callable[[str], FoldedSubtree | None]
"""Looks for a subtree outside this run, by signature."""


class SubtreeMemory:
    """The subtrees that one run remembers, by signature."""

    def __init__(self, plan_hash: str, recall: Recall | None = None) -> None:
        """Nothing is remembered yet.

        `plan_hash` covers the declarations of every source and relationship; `recall` is another
        place to look in.
        """
        self._plan_hash = plan_hash
        self._recall = recall
        self._known: dict[str, FoldedSubtree] = {}
        self._names: dict[int, str] = {}

    def for_snapshot(
        self, weave: Weave, kept: Mapping[int, int], fingerprints: Mapping[str, str]
    ) -> SnapshotSubtrees:
        """The subtrees that one snapshot shares with others.

        `kept` is from `recurring_subtrees`; `fingerprints` has time and fingerprint of each
        source's snapshot.
        """
        included = {node.number for node in weave.nodes}
        signatures: dict[int, str] = {}
        for number, name in kept.items():
            if number in included:
                signature = subtree_signature(weave, number, fingerprints, self._plan_hash)
                signatures[number] = self._names[name] = signature
        return SnapshotSubtrees(self, weave, signatures)

    def find(self, signature: str) -> FoldedSubtree | None:
        """The subtree remembered under a signature."""
        if signature not in self._known and self._recall is not None:
            found = self._recall(signature)
            if found is not None:
                self._known[signature] = found
        return self._known.get(signature)

    def knows(self, name: int) -> bool:
        """Whether a subtree, by its name from `recurring_subtrees`, is remembered."""
        return self._names.get(name) in self._known

    def remember(self, signature: str, subtree: FoldedSubtree) -> None:
        """Remember a subtree whose counts are proved."""
        self._known[signature] = subtree

    def forget_all_but(self, names: Collection[int]) -> None:
        """Release subtrees that no later snapshot shares.

        `names` are those of `recurring_subtrees` for later snapshots.
        """
        for name in self._names.keys() - set(names):
            subtree = self._known.pop(self._names.pop(name), None)
            if subtree is not None:
                unpersist(subtree.frame)


class SnapshotSubtrees:
    """The subtrees that one snapshot reads from memory, and adds to it."""

    def __init__(self, memory: SubtreeMemory, weave: Weave, signatures: Mapping[int, str]) -> None:
        self._memory = memory
        self._weave = weave
        self._signatures = signatures
        self._recalled: dict[int, FoldedSubtree] = {}
        self._pending: dict[int, DataFrame] = {}
        below: set[int] = set()
        for node in weave.joins:
            if node.number in signatures and node.number not in below:
                found = memory.find(signatures[node.number])
                if found is not None:
                    self._recalled[node.number] = found
                    below |= weave.subtrees([node.number])

    def recall(self, number: int) -> DataFrame | None:
        """The subtree below and at a node, where it is remembered."""
        found = self._recalled.get(number)
        return None if found is None else found.frame

    def keep(self, number: int, frame: DataFrame) -> DataFrame:
        """The frame to go on with: one whose rows Spark keeps, where snapshots share it."""
        if number not in self._signatures:
            return frame
        kept = self._pending[number] = frame.persist(StorageLevel.MEMORY_AND_DISK)
        return kept

    @property
    def counts(self) -> dict[Point, Counts]:
        """The counts taken in the subtrees that were recalled."""
        return {
            point: counts
            for found in self._recalled.values()
            for point, counts in found.counts.items()
        }

    def remember(self, counts: Mapping[Point, Counts]) -> dict[str, FoldedSubtree]:
        """Remember the kept subtrees by signature, now that their counts are proved."""
        fresh: dict[str, FoldedSubtree] = {}
        for number, frame in self._pending.items():
            inside = self._weave.subtrees([number])
            own = {point: found for point, found in counts.items() if point.number in inside}
            subtree = FoldedSubtree(frame, own)
            fresh[self._signatures[number]] = subtree
            self._memory.remember(self._signatures[number], subtree)
        self._pending.clear()
        return fresh

    def drop(self) -> None:
        """Release the subtrees kept for a snapshot that is not published."""
        for frame in self._pending.values():
            unpersist(frame)
        self._pending.clear()


def unpersist(frame: DataFrame) -> None:
    """Drop the cached rows of a frame; does nothing where Spark has ended."""
    with suppress(PySparkException, OSError):
        frame.unpersist()


def subtree_signature(
    weave: Weave, top: int, fingerprints: Mapping[str, str], plan_hash: str
) -> str:
    """A hash that is equal only for subtrees with equal rows.

    `top` is the number of the subtree's top; `plan_hash` covers the declarations of every source
    and relationship.
    """
    inside = weave.subtrees([top])
    nodes = [
        [
            node.number,
            node.parent_number,
            node.field_name,
            node.source,
            list(node.group_by),
            fingerprints[node.field_name],
            weave.frames[node.field_name].schema.json(),
            [] if node.number == top else [one.identity for one in weave.keys[node.number].left],
            [one.identity for one in weave.keys[node.number].right],
        ]
        for node in weave.nodes
        if node.number in inside
    ]
    return content_hash(json.dumps([plan_hash, nodes], separators=(",", ":")).encode())
