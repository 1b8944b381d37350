"""Clustering in Spark: rows in the order of a curve, in as many files as are wanted."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql import types as spark_types
from pyspark.sql.pandas.functions import arrow_udf

from snaploom.errors import IndexNotPossible
from snaploom.skipping.core import valueorder
from snaploom.skipping.core.definition import Term, arrow_type
from snaploom.skipping.spark.builds.scan import Relation, as_kept
from snaploom.skipping.spark.relations.expressions import columns_of
from snaploom.skipping.spark.targets.sparktarget import column_at, column_named

MOST_COLUMNS = 8
"""Columns of a curve; with more, files are hardly narrower in any of them."""
_SAMPLED_ROWS = 50_000
"""Rows from which quantiles are taken: each is exact to about half a percent of the rows."""
_ORDER = "__snaploom_order"
"""Column that holds the position on the curve while rows are exchanged."""


@dataclass(frozen=True)
class Clustering:
    """Order of rows."""

    curve: valueorder.Curve
    terms: tuple[Term, ...]
    """By which columns, the most important one first."""


@dataclass(frozen=True)
class _OnCurve:
    """The function that workers run: from values of all columns to positions."""

    curve: valueorder.Curve
    boundaries: tuple[valueorder.Boundaries, ...]
    bits: int

    def __call__(self, columns: Sequence[pa.Array]) -> pa.Array:
        ranks = [
            each.ranks(as_kept(column, arrow_type(each.data_type)))
            for each, column in zip(self.boundaries, columns, strict=True)
        ]
        return pa.array(valueorder.position(self.curve, ranks, self.bits), pa.int64())


def clustered(
    relation: Relation,
    clustering: Clustering,
    files: int,
    rows: int,
    partition_names: Sequence[str],
    seed: int,
) -> DataFrame:
    """Rows of a relation in the order of a curve, one Spark partition for each of `files` files."""
    columns = [relation.columns[term.key] for term in clustering.terms]
    frame = relation.read()
    folders = [sql.col(f"`{name.replace('`', '``')}`") for name in partition_names]
    if clustering.curve is valueorder.Curve.LINEAR:
        order = [*folders, *columns]
        return frame.repartitionByRange(files, *order).sortWithinPartitions(*order)
    on_curve = _on_curve(frame, clustering, columns, rows, seed)
    taken = {name.lower() for name in frame.columns}
    name = _ORDER
    while name in taken:
        name = f"_{name}"
    placed = frame.withColumn(name, on_curve)
    order = [*folders, sql.col(name)]
    # Within one cell of the curve the first column decides, so that encodings find runs.
    sorted_rows = placed.repartitionByRange(files, *order).sortWithinPartitions(*order, *columns)
    return sorted_rows.drop(name)


def _on_curve(
    frame: DataFrame, clustering: Clustering, columns: Sequence[Column], rows: int, seed: int
) -> Column:
    bits = min(valueorder.MOST_RANK_BITS, valueorder.MOST_BITS // len(columns))
    sample = sampled(frame, columns, rows, _SAMPLED_ROWS, seed)
    boundaries = tuple(
        valueorder.boundaries_of(kept_column(sample, number, term), term.data_type, bits)
        for number, term in enumerate(clustering.terms)
    )
    place = _OnCurve(clustering.curve, boundaries, bits)

    # Spark takes plain functions only, and finds out by their annotations what they are.
    def on_curve(*values: pa.Array) -> pa.Array:
        return place(values)

    placed: Column = arrow_udf(on_curve, "bigint")(*columns)  # type: ignore[call-overload]
    return placed


def sampled(
    frame: DataFrame, columns: Sequence[Column], rows: int, wanted: int, seed: int
) -> pa.Table:
    """Random sample of about `wanted` of `rows` rows, by column number; the first ones if 0."""
    chosen = frame if rows else frame.limit(wanted)
    if rows > wanted:
        chosen = frame.sample(withReplacement=False, fraction=wanted / rows, seed=seed)
    named = [column.alias(str(number)) for number, column in enumerate(columns)]
    return chosen.select(*named).toArrow()


def kept_column(sample: pa.Table, number: int, term: Term) -> pa.Array:
    """One column of a sample, in the Arrow type in which the term's values are kept."""
    return as_kept(sample.column(number).combine_chunks(), arrow_type(term.data_type))


def balanced(bytes_: int, target_file_size: int) -> int:
    """Number of files of about one size that hold a number of bytes."""
    return max(1, int(np.ceil(bytes_ / target_file_size)))


def clustering_under(
    session: SparkSession, schema: spark_types.StructType, request: valueorder.SortRequest
) -> Clustering:
    """The columns of a request, resolved among those of a schema."""
    columns = columns_of(json.loads(schema.json()), {})
    terms = tuple(column_named(columns, session, name) for name in request.columns)
    return clustering_by(terms, request)


def sorted_frame(
    frame: DataFrame, clustering: Clustering, request: valueorder.SortRequest, size: int, rows: int
) -> DataFrame:
    """Rows of a frame of one folder in an order, one Spark partition for each new file."""
    computed = {term.key: column_at(term.names or ()) for term in clustering.terms}
    relation = Relation(frame.sparkSession, lambda: frame, computed)
    files = balanced(size, request.target_file_size)
    return clustered(relation, clustering, files, rows, (), request.seed)


def clustering_by(terms: tuple[Term, ...], request: valueorder.SortRequest) -> Clustering:
    """The order of a request by resolved columns; refuses none, too many, and one twice."""
    if not 0 < len(set(terms)) == len(terms) <= MOST_COLUMNS:
        raise IndexNotPossible(
            "rows cannot be sorted by these columns",
            found=", ".join(request.columns) or "none",
            expected=f"one to {MOST_COLUMNS} columns, each once",
            hint="choose other columns to sort by",
        )
    return Clustering(valueorder.Curve.LINEAR if len(terms) == 1 else request.curve, terms)
