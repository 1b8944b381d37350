"""The port of an index type, its registry, and the evaluation of conditions by all indexes.

A file is dropped only on proof. A condition that no index serves may be TRUE for any row, and has
the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol, cast

import numpy as np
import pyarrow as pa

from snaploom.errors import IndexNotPossible, SkippingError
from snaploom.installed import load_registered
from snaploom.skipping.core import predicates
from snaploom.skipping.core.definition import IndexDefinition, SkippingDefinition, Term
from snaploom.skipping.core.filetable import FileTable, Mask, nulls_column, values_column
from snaploom.skipping.core.predicates import Leaf

# Port of an index type: kept fields, builder, and proof.


class Feed(StrEnum):
    """Form of the values that a builder takes for each term, in batches of rows of one file."""

    VALUES = "VALUES"
    """Values in the term's Arrow type (`snaploom.skipping.core.definition`)."""
    HASHES = "HASHES"
    """Spark's `xxhash64(term)` as int64, computed in the JVM, NULL where the term is NULL."""


@dataclass(frozen=True)
class FooterColumn:
    """Exact facts from Parquet footers about one term, one entry per file."""

    values: pa.Array
    """Rows in which it is not NULL (int64); null where the footer proves nothing about it."""
    nulls: pa.Array
    """Rows in which it is NULL (int64), likewise."""
    minimum: pa.Array
    """Least value, in the Arrow type in which the term is kept; null where the footer cannot prove
    it, or where there is no non-null value."""
    maximum: pa.Array


@dataclass(frozen=True)
class ProvedFields:
    """Fields of many files at once."""

    files: Mask
    """For each file, whether its row is proved; the others have to be read."""
    fields: Mapping[str, pa.Array]
    """For each of the type's fields one entry a file, null where the row is not proved."""


class FileBuilder(Protocol):
    """Collects an index's fields for one file; bounded memory at any file size."""

    def add(self, columns: Sequence[pa.Array]) -> None:
        """Add a batch: one array for each term, rows aligned, NULLs included."""

    def merge(self, other: bytes) -> None:
        """Add the `partial` of another builder that saw other rows of the same file."""

    def partial(self) -> bytes:
        """Collected state, to be merged elsewhere."""

    def finish(self) -> Mapping[str, object]:
        """One row: a value (None if unknown) for each of the type's fields."""


class IndexType(Protocol):
    """One type of index."""

    @property
    def name(self) -> str:
        """Name such as `MIN_MAX`."""

    def check(self, definition: IndexDefinition) -> None:
        """Refuse a definition that the type cannot keep (number of terms, their types, parameters).

        Raises:
            IndexNotPossible: with what would be possible.
        """

    def fields(self, definition: IndexDefinition) -> Mapping[str, pa.DataType]:
        """Fields that are kept beside the counts, by name without the index's id; all nullable."""

    def feed(self, definition: IndexDefinition) -> Feed:
        """Form of the values that `builder` takes."""

    def builder(self, definition: IndexDefinition) -> FileBuilder:
        """A collector for one file."""

    def from_footers(
        self, definition: IndexDefinition, columns: Sequence[FooterColumn]
    ) -> ProvedFields:
        """Rows as `finish` gives them, from footers only."""

    def may_match(self, definition: IndexDefinition, files: FileTable, leaf: Leaf) -> Mask | None:
        """For each file, whether a non-null value in it may make the leaf TRUE.

        Returns:
            None when the type proves nothing about this kind of leaf. Where a file's kept value is
            null (over a limit, cut bounds) the answer is True.
        """

    def unserved(self, definition: IndexDefinition, leaf: Leaf) -> str:
        """Reason why `may_match` does not serve a leaf, and an index that would, for users."""


# Partial states of builders as bytes: Arrow's own format, which runs nothing when it is read.


def pack(arrays: Sequence[pa.Array]) -> bytes:
    """Arrays of any lengths and types as bytes."""
    columns = [
        pa.LargeListArray.from_arrays(pa.array([0, len(array)], pa.int64()), array)
        for array in arrays
    ]
    batch = pa.record_batch(columns, [str(position) for position in range(len(columns))])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def unpack(content: bytes) -> list[pa.Array]:
    """Arrays that `pack` was given; `pa.ArrowInvalid` for other bytes."""
    with pa.ipc.open_stream(content) as reader:
        batch = reader.read_next_batch()
    return [column.flatten() for column in batch.columns]


# Registry of index types, built-in and from other packages.

ENTRY_POINTS = "snaploom.skipping.indexes"
"""Entry-point group: the name is the type's, the value an object of it."""

_MEMBERS = tuple(name for name in vars(IndexType) if not name.startswith("_"))


def registered_types() -> tuple[str, ...]:
    """Names of all types, sorted; ours are registered like any other, in `pyproject.toml`."""
    return tuple(sorted(_entries()))


@cache
def index_type(name: str) -> IndexType:
    """The type of that name."""
    entry = _entries().get(name)
    if entry is None:
        raise IndexNotPossible(
            f"there is no index type {name}",
            found=name,
            expected=", ".join(registered_types()),
            hint="choose one of these, or install the package that registers it in the entry-point "
            f"group {ENTRY_POINTS}",
        )
    return cast(IndexType, load_registered(entry, "the index type", _MEMBERS))


def is_hashed(definition: IndexDefinition) -> bool:
    """Whether the builder of an index takes hashes."""
    return index_type(definition.type).feed(definition) is Feed.HASHES


@cache
def _entries() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}


_LEAVES = (
    predicates.Comparison,
    predicates.In,
    predicates.Residue,
    predicates.StartsWith,
    predicates.Contains,
    predicates.EndsWith,
    predicates.IsNull,
    predicates.IsNotNull,
)


@dataclass(frozen=True)
class ClauseReport:
    """Result for one part of a condition."""

    text: str
    """The part, as people write it."""
    served_by: tuple[str, ...]
    """Labels of the indexes that answered it, in order of declaration."""
    dropped: int
    """Rows of the table that only it would drop."""
    unserved: tuple[str, ...]
    """Reasons why indexes, or none, did not answer; empty where one did and none failed."""
    parts: tuple[ClauseReport, ...] = ()


@dataclass(frozen=True)
class Evaluation:
    """Files that a query needs, with reasons."""

    keep: Mask
    """For each row of the table."""
    clauses: tuple[ClauseReport, ...]
    """One for each part that the condition demands all at once."""

    @property
    def dropped(self) -> int:
        """Number of rows whose files are not needed."""
        return int(len(self.keep) - np.count_nonzero(self.keep))


def evaluate(
    predicate: predicates.Predicate, definition: SkippingDefinition, files: FileTable
) -> Evaluation:
    """Decide for each row of the table whether its file may hold a row that the condition keeps."""
    evaluator = _Evaluator(definition, files)
    keep = np.ones(files.count, dtype=np.bool_)
    clauses = []
    for part in predicates.conjuncts(predicates.normal_form(predicate)):
        needed, report = evaluator.clause(part)
        keep &= needed
        clauses.append(report)
    return Evaluation(keep, tuple(clauses))


@dataclass(frozen=True)
class _Evaluator:
    definition: SkippingDefinition
    files: FileTable

    def clause(self, predicate: predicates.Predicate) -> tuple[Mask, ClauseReport]:
        match predicate:
            case predicates.And(parts) | predicates.Or(parts):
                return self._joined(predicate, parts)
            case predicates.Constant(is_true):
                return self._reported(predicate, np.full(self.files.count, is_true))
            case predicates.Unknown(_, reason):
                why = reason or "the condition is not understood"
                return self._reported(predicate, self._all(), unserved=(why,))
            case leaf if isinstance(leaf, _LEAVES):
                return self._leaf(leaf)
            case _:
                raise TypeError(f"not in normal form: {predicates.predicate_text(predicate)}")

    def _joined(
        self, predicate: predicates.Predicate, parts: Sequence[predicates.Predicate]
    ) -> tuple[Mask, ClauseReport]:
        is_and = isinstance(predicate, predicates.And)
        keep, reports = np.full(self.files.count, is_and), []
        # One mask at a time: conditions may have thousands of parts, and tables a million rows.
        for part in parts:
            needed, report = self.clause(part)
            keep = keep & needed if is_and else keep | needed
            reports.append(report)
        served = dict.fromkeys(label for report in reports for label in report.served_by)
        unserved = dict.fromkeys(reason for report in reports for reason in report.unserved)
        return self._reported(predicate, keep, tuple(served), tuple(unserved), tuple(reports))

    def _leaf(self, leaf: predicates.Leaf) -> tuple[Mask, ClauseReport]:
        candidates = [index for index in self.definition.indexes if leaf.term in index.terms]
        usable = [index for index in candidates if index.enabled and self.definition.enabled]
        keep, served = self._all(), []
        unserved = [f"{index.label} is disabled" for index in candidates if index not in usable]
        for index in usable:
            answer = self._answer(index, leaf)
            if isinstance(answer, str):
                unserved.append(f"{index.label}: {answer}")
            else:
                keep &= answer
                served.append(index.label)
        if not candidates:
            unserved.append(_no_index(leaf.term, self.definition.indexes))
        return self._reported(leaf, keep, tuple(served), tuple(unserved))

    def _answer(self, index: IndexDefinition, leaf: predicates.Leaf) -> Mask | str:
        try:
            return self._needed(index, leaf)
        except KeyError as absent:
            return f"it is not built yet: no column {absent.args[0]}"
        except SkippingError as refused:
            return refused.message
        except Exception as failure:  # noqa: BLE001
            # Types come from anywhere; a query of a user never fails by one (rule S14).
            return f"it failed with {type(failure).__name__}: {failure}"

    def _needed(self, index: IndexDefinition, leaf: predicates.Leaf) -> Mask | str:
        position = index.terms.index(leaf.term)
        if isinstance(leaf, predicates.IsNull):
            return self._has_rows(nulls_column(index.index_id, position))
        some_value = self._has_rows(values_column(index.index_id, position))
        if isinstance(leaf, predicates.IsNotNull):
            return some_value
        kind = index_type(index.type)
        answer = kind.may_match(index, self.files, leaf)
        if answer is None:
            return kind.unserved(index, leaf)
        if answer.shape != some_value.shape or answer.dtype != np.bool_:
            return "it did not answer for every file"
        known = self._known(values_column(index.index_id, position))
        return some_value & (answer | ~known)

    def _has_rows(self, column: str) -> Mask:
        def find() -> Mask:
            counts = self.files.column(column)
            known: Mask = counts.fill_null(1).to_numpy(zero_copy_only=False) != 0
            return known

        return self.files.derived(f"{column} is not nought", find)

    def _known(self, column: str) -> Mask:
        def find() -> Mask:
            known: Mask = self.files.column(column).is_valid().to_numpy(zero_copy_only=False)
            return known

        return self.files.derived(f"{column} is known", find)

    def _all(self) -> Mask:
        return np.ones(self.files.count, dtype=np.bool_)

    def _reported(
        self,
        predicate: predicates.Predicate,
        keep: Mask,
        served_by: tuple[str, ...] = (),
        unserved: tuple[str, ...] = (),
        parts: tuple[ClauseReport, ...] = (),
    ) -> tuple[Mask, ClauseReport]:
        dropped = int(len(keep) - np.count_nonzero(keep))
        text = predicates.predicate_text(predicate)
        return keep, ClauseReport(text, served_by, dropped, unserved, parts)


def _no_index(term: Term, indexes: Sequence[IndexDefinition]) -> str:
    others = {
        other.data_type for index in indexes for other in index.terms if other.key == term.key
    }
    if others:
        types = ", ".join(sorted(others))
        return f"{term.label} is read as {term.data_type} and indexed as {types}"
    return f"no index on {term.label}"
