"""The result of comparing the rows of two snapshots; pure data, and its two forms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from pydantic import JsonValue

from snaploom.planning.commonfields import CommonFields

MOST_SAMPLES = 1_000
"""Rows of each kind that can be shown: a person looks at fewer, and the driver holds them."""
SAMPLE_COLUMNS = 20
"""Columns of a changed row that a sample shows; it has the number of the others."""
VALUE_LENGTH = 200
"""Characters of a value that a sample shows, as in other messages."""
_TEXT_COLUMNS = 20
"""Columns that the text lists; the JSON form has all."""


class RowChange(StrEnum):
    """The change of a row."""

    ADDED = "ADDED"
    """Its key is only in the second snapshot, or in more of its rows."""
    REMOVED = "REMOVED"
    """Its key is only in the first snapshot, or in more of its rows."""
    CHANGED = "CHANGED"
    """Its key is in both, and a column that both have differs."""


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """A column that differs in some rows."""

    path: str
    """Path of the column; of a struct where one side is NULL as a whole and the other is not."""
    rows: int

    @property
    def document(self) -> JsonValue:
        """For programs."""
        return {"column": self.path, "rows": self.rows}


@dataclass(frozen=True, slots=True)
class ChangedValue:
    """A column of one row; values are text, None for NULL."""

    path: str
    before: str | None
    after: str | None

    @property
    def document(self) -> JsonValue:
        """For programs."""
        return {"column": self.path, "before": self.before, "after": self.after}


@dataclass(frozen=True, slots=True)
class RowSample:
    """One row that is not the same."""

    change: RowChange
    key: tuple[tuple[str, str | None], ...]
    """Column and value of each part of `rootKey`, None for NULL."""
    values: tuple[ChangedValue, ...] = ()
    """Columns that differ; none where the whole row is new or gone."""
    omitted: int = 0
    """Columns that differ beside these."""

    @property
    def document(self) -> JsonValue:
        """For programs."""
        return {
            "change": self.change.value,
            "key": dict(self.key),
            "columns": [value.document for value in self.values],
            "omitted": self.omitted,
        }


@dataclass(frozen=True)
class RowChanges:
    """How many rows and columns differ, and some of them."""

    added: int
    """Rows whose key is only in the second, or in more of its rows."""
    removed: int
    """Rows whose key is only in the first, or in more of its rows."""
    changed: int
    """Rows with equal keys and other values."""
    unchanged: int
    """Rows with equal keys and equal values."""
    columns: tuple[ColumnChange, ...] = ()
    """Columns that differ, those of the most rows first."""
    samples: tuple[RowSample, ...] = ()
    """Some of the rows, ordered by key within each kind."""

    @property
    def is_same(self) -> bool:
        """Whether both have the same rows."""
        return not (self.added or self.removed or self.changed)


@dataclass(frozen=True)
class ComparedSnapshot:
    """One side of a comparison."""

    time: str
    sequence: int | None
    """Manifest entry that published it; None where it was woven for the comparison only."""
    rows: int

    def __str__(self) -> str:
        origin = "dry run" if self.sequence is None else f"manifest {self.sequence}"
        return f"{self.time} ({origin}, {self.rows:,} rows)"

    @property
    def document(self) -> JsonValue:
        """For programs."""
        return {"time": self.time, "sequence": self.sequence, "rows": self.rows}


@dataclass(frozen=True)
class DataComparison:
    """Two snapshots of one output, compared."""

    output: str
    key: tuple[str, ...]
    before: ComparedSnapshot
    after: ComparedSnapshot
    fields: CommonFields
    rows: RowChanges

    @property
    def is_same(self) -> bool:
        """Whether rows and columns are the same."""
        return self.rows.is_same and self.fields.is_same

    @property
    def document(self) -> JsonValue:
        """For programs; keys are added, never changed or removed."""
        rows = self.rows
        return {
            "output": self.output,
            "same": self.is_same,
            "key": list(self.key),
            "before": self.before.document,
            "after": self.after.document,
            "rows": {
                "added": rows.added,
                "removed": rows.removed,
                "changed": rows.changed,
                "unchanged": rows.unchanged,
            },
            "columns": [column.document for column in rows.columns],
            "schema": self.fields.document,
            "samples": [sample.document for sample in rows.samples],
        }

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        rows = self.rows
        yield f"{self.output}: {self.before} -> {self.after}"
        yield (
            f"rows by {', '.join(self.key)}: {rows.added:,} added, {rows.removed:,} removed, "
            f"{rows.changed:,} changed, {rows.unchanged:,} unchanged"
        )
        yield from (f"+ column {one.path} {one.type}" for one in self.fields.added)
        yield from (f"- column {one.path} {one.type}" for one in self.fields.removed)
        for one in self.fields.retyped:
            doubt = "" if one.is_compared else " (values are not compared)"
            yield f"~ column {one.path} {one.before} -> {one.after}{doubt}"
        for column in rows.columns[:_TEXT_COLUMNS]:
            yield f"~ {column.path}: {_rows(column.rows)}"
        if len(rows.columns) > _TEXT_COLUMNS:
            yield f"~ {len(rows.columns) - _TEXT_COLUMNS} more columns: -o json lists all"
        for sample in rows.samples:
            yield from _sample_lines(sample)


_SIGNS = {RowChange.ADDED: "+", RowChange.REMOVED: "-", RowChange.CHANGED: "~"}


def _sample_lines(sample: RowSample) -> Iterator[str]:
    key = ", ".join(f"{name} = {_shown(value)}" for name, value in sample.key)
    yield f"{_SIGNS[sample.change]} row {key}"
    for value in sample.values:
        yield f"    {value.path}: {_shown(value.before)} -> {_shown(value.after)}"
    if sample.omitted:
        yield f"    {sample.omitted} more columns differ"


def _shown(value: str | None) -> str:
    return "NULL" if value is None else value


def _rows(number: int) -> str:
    return "1 row" if number == 1 else f"{number:,} rows"
