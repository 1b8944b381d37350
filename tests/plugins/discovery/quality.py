"""Relationships found and wrongly proposed, against what is known of a data set."""

from collections.abc import Iterable
from dataclasses import dataclass

from support.discovery.datasetfiles import DataSet, Link

from snaploom.plugins.discovery.discover import Discovery


@dataclass(frozen=True)
class Judged:
    """What was found of one data set."""

    right: frozenset[Link]
    missed: frozenset[Link]
    wrong: frozenset[Link]


def judged(data: DataSet, found: Discovery) -> Judged:
    """Compare what was declared with the truth; the order of columns does not count."""
    declared = _ordered(
        (r.child, r.child_columns, r.parent, r.parent_columns) for r in found.relationships.declared
    )
    truth = _ordered(data.truth)
    return Judged(
        right=declared & truth,
        missed=truth - declared,
        wrong=declared - truth - _ordered(data.also_right),
    )


def _ordered(links: Iterable[Link]) -> frozenset[Link]:
    result = set()
    for child, mine, parent, theirs in links:
        pairs = sorted(zip(mine, theirs, strict=True))
        result.add((child, tuple(a for a, _ in pairs), parent, tuple(b for _, b in pairs)))
    return frozenset(result)
