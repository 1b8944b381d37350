"""Column key lists: encrypted columns of a store, by keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from snaploom.errors import IndexUnreadable


def column_keys(columns: Mapping[str, Sequence[str]]) -> str:
    """The column key list as Parquet's Hadoop client writes it: `label:leaf,leaf;label:leaf`."""
    return ";".join(f"{label}:{','.join(leaves)}" for label, leaves in columns.items())


def parse_column_keys(text: str) -> dict[str, tuple[str, ...]]:
    """Leaf paths by key label, from a column key list; `IndexUnreadable` for another form.

    Parquet's Hadoop client takes entries with exactly one colon, so others are refused here too.
    """
    found: dict[str, tuple[str, ...]] = {}
    for entry in filter(None, (part.strip() for part in text.split(";"))):
        label, _, leaves = (part.strip() for part in entry.partition(":"))
        names = tuple(name.strip() for name in leaves.split(",") if name.strip())
        if entry.count(":") != 1 or not label or not names:
            raise IndexUnreadable(
                "a column key list cannot be parsed",
                found=entry,
                expected="label:leaf,leaf",
                hint="write KEY: column, column; KEY: column",
            )
        found[label] = found.get(label, ()) + names
    return found
