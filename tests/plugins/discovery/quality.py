"""Relationships found and wrongly proposed, against what is known of a data set."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from support.discovery.datasetfiles import DataSet, Link
from support.discovery.stars import write_tables

from snaploom.plugins.discovery.discover import Discovery, discover


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


def found(folder: Path, **tables: str | Sequence[str]) -> Discovery:
    """What is found of tables, each the text that `write_tables` takes or lines of CSV."""
    specs = {name: each for name, each in tables.items() if isinstance(each, str)}
    data = write_tables(folder / "data", **specs)
    for name in tables.keys() - specs.keys():
        (data / f"{name}.csv").write_text("\n".join(tables[name]) + "\n")
    return discover([str(data)], "file:///m/")


def links(result: Discovery) -> set[str]:
    return {f"{one.source} > {one.target}" for one in result.relationships.declared}
