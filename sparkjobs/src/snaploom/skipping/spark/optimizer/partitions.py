"""Values of partition columns as Spark itself listed them, beside those of an index.

A catalog may have other values of the same files tomorrow, so an index's own are of no use in a
table. Those of the listing are exact for the query. Spark drops by them what it can; they are sent
only with a condition such as `(day = 1 AND x = 3) OR (day = 2 AND x = 5)`, of which it cannot make
use by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from snaploom.skipping.core.definition import IndexDefinition, SkippingDefinition
from snaploom.skipping.core.filetable import (
    FileTable,
    Mask,
    field_column,
    nulls_column,
    values_column,
)
from snaploom.skipping.core.listedfiles import UNKNOWN_ROW, Matched
from snaploom.skipping.core.terms import Term, arrow_type, column_term
from snaploom.skipping.evaluation import Evaluation
from snaploom.skipping.indexes import partition
from snaploom.skipping.spark.optimizer.requests import Request
from snaploom.skipping.spark.relations import fingerprint
from snaploom.skipping.spark.relations.expressions import Literal, literal


@dataclass(frozen=True)
class Known:
    """Facts to evaluate a condition on."""

    definition: SkippingDefinition
    files: FileTable
    matched: Matched | None
    """Files of the listing by rows; None where there is a row for each file, in order."""

    def keep(self, evaluation: Evaluation) -> Mask:
        """For each file of the listing, whether it must be read."""
        return evaluation.keep if self.matched is None else self.matched.keep(evaluation.keep)


def known_of(
    definition: SkippingDefinition, files: FileTable, matched: Matched, request: Request
) -> Known:
    """Facts about the files of a request's listing, by index rows and partition values."""
    partitions, names = request.partitions, request.partition_columns
    if partitions is None:
        return Known(definition, files, matched)
    columns = fingerprint.columns(request.header)
    terms = {
        position: term
        for position, name in enumerate(names)
        if (term := columns.find((name,))) is not None and arrow_type(term.data_type) is not None
    }
    added = {
        position: IndexDefinition(f"partition {position}", partition.PARTITION.name, (term,))
        for position, term in terms.items()
    }
    own = {column_term((name,), "").key for name in names}
    kept = [
        index for index in definition.indexes if not any(term.key in own for term in index.terms)
    ]
    rows = pa.array(matched.rows, mask=matched.rows == UNKNOWN_ROW)
    made: dict[str, pa.Array] = {}

    def load(wanted: Sequence[str]) -> pa.Table:
        for position, index in added.items():
            if not made.keys() >= set(_names(index)) and set(wanted) & set(_names(index)):
                values = [row[position] for row in partitions]
                made.update(_columns(index, terms[position], values))
        return pa.table(
            {name: made[name] if name in made else files.column(name).take(rows) for name in wanted}
        )

    indexes = (*kept, *added.values())
    return Known(
        replace(definition, indexes=indexes), FileTable(len(matched.rows), load), matched=None
    )


def _names(index: IndexDefinition) -> tuple[str, str, str]:
    name = index.index_id
    return values_column(name), nulls_column(name), field_column(name, partition.FIELD)


def _columns(
    index: IndexDefinition, term: Term, values: Sequence[object]
) -> Mapping[str, pa.Array]:
    """Counts of one row per file show which value is NULL; unknown files have none."""
    # Many files share few values, and reading one costs more than finding it again.
    names = [repr(value) for value in values]
    different = {
        name: literal(value, term.data_type)
        for name, value in dict(zip(names, values, strict=True)).items()
    }
    found = [different[name] for name in names]
    counts = [_count(each) for each in found]
    nulls = [None if count is None else 1 - count for count in counts]
    kept_as = arrow_type(term.data_type)
    arrays = (
        pa.array(counts, pa.int64()),
        pa.array(nulls, pa.int64()),
        pa.array([each.value for each in found], kept_as),
    )
    return dict(zip(_names(index), arrays, strict=True))


def _count(value: Literal) -> int | None:
    if value.is_null:
        return 0
    return None if value.value is None else 1
