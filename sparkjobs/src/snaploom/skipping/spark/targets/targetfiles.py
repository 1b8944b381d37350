"""The files of a relation as Spark lists them now, and which of them an index covers (rule S23).

WHERE of an index is SQL over partition columns and the path. Spark decides it on a small frame with
one row for each file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from snaploom.errors import IndexNotPossible
from snaploom.hadoop.jvm import jvm_of
from snaploom.skipping.core.filetable import IDENTITY_FIELDS
from snaploom.skipping.core.terms import arrow_type
from snaploom.skipping.spark.relations.causes import cause_of
from snaploom.skipping.spark.relations.expressions import Literal, literal
from snaploom.skipping.spark.relations.hadoop import url_encoded
from snaploom.skipping.spark.relations.janino import JavaRule
from snaploom.sparkgate.gate import SqlPlace, check_resolved, checked_expression


@dataclass(frozen=True)
class ListedFiles:
    """One listing."""

    files: pa.Table
    """Identity columns of `snaploom.skipping.core.filetable`, and nothing else."""
    partitions: Mapping[str, tuple[Literal, ...]]
    """Values of the partition columns by path."""


def list_relation(
    rule: JavaRule, frame: DataFrame, partition_columns: Sequence[tuple[str, str]]
) -> ListedFiles:
    """Files of the one relation that a frame reads, at the time at which the frame was made.

    A path with a line break cannot be passed and is left out: such a file stays unknown.
    """
    header, lengths, modified, *paths = rule.listing(frame._jdf).split("\n")
    facts = cast(Mapping[str, Sequence[object]], json.loads(header))
    etags = facts.get("etags", [None] * len(paths))
    rows = zip(paths, _numbers(lengths), _numbers(modified), etags, strict=True)
    known = [row for row in rows if row[0]]
    columns = list(zip(*known, strict=True)) or [() for _ in IDENTITY_FIELDS]
    files = pa.table(
        [
            pa.array(values, kind)
            for values, (_, kind) in zip(columns, IDENTITY_FIELDS, strict=True)
        ],
        pa.schema(list(IDENTITY_FIELDS)),
    )
    values = cast(Sequence[Sequence[object]], facts["partitions"])
    types = [data_type for _, data_type in partition_columns]
    partitions = {
        path: tuple(literal(value, kind) for value, kind in zip(row, types, strict=True))
        for path, row in zip(paths, values, strict=True)
        if path
    }
    return ListedFiles(files, partitions)


def _numbers(joined: str) -> list[int]:
    return [int(number) for number in joined.split(",")] if joined else []


_HINT = "speak of partition columns and of _metadata.file_path only"

_SPARK_TYPES = {
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
"""Arrow types that Spark takes, where they are not those in which values are kept."""


def only_chosen(
    session: SparkSession,
    where: str,
    partition_columns: Sequence[tuple[str, str]],
    listed: ListedFiles,
) -> pa.Table:
    """Identity columns of the listed files that a condition chooses; all of them without one.

    Raises:
        IndexNotPossible: it speaks of something else than files.
    """
    if not where:
        return listed.files
    chosen = choose_files(session, where, partition_columns, listed.partitions)
    kept = [path in chosen for path in listed.files.column("path").to_pylist()]
    return listed.files.filter(pa.array(kept, pa.bool_()))


def choose_files(
    session: SparkSession,
    where: str,
    partition_columns: Sequence[tuple[str, str]],
    partitions: Mapping[str, tuple[Literal, ...]],
) -> frozenset[str]:
    """Paths of the files for which the condition is TRUE.

    Args:
        session: decides.
        where: the condition.
        partition_columns: names and Spark types.
        partitions: partition values of every file, by path.

    Raises:
        IndexNotPossible: the condition is wrong, speaks of something else, or is not decided by
            only these.
    """
    paths = list(partitions)
    columns = {
        f"p{place}": _column(place, kind, partitions)
        for place, (_, kind) in _placed(partition_columns)
    }
    table = pa.table(
        {
            **columns,
            "path": pa.array(paths, pa.string()),
            "encoded": [url_encoded(p) for p in paths],
        },
        schema=pa.schema(
            [(name, column.type) for name, column in columns.items()]
            + [("path", pa.string()), ("encoded", pa.string())]
        ),
    )
    given = _frame(session, table)
    named = [given[f"p{place}"].alias(name) for place, (name, _) in _placed(partition_columns)]
    metadata = sql.struct(given["encoded"].alias("file_path")).alias("_metadata")
    path = "`the path`"
    place = SqlPlace(None, None, IndexNotPossible, "a condition on partition columns and the path")
    condition = checked_expression(session, where, place).column
    try:
        listed = given.select(*named, metadata, given["path"].alias("the path"))
        frame = listed.where(condition)
        check_resolved(frame, [listed], place)
        plan = frame._jdf.queryExecution().analyzed()
        if not plan.deterministic() or not plan.subqueriesAll().isEmpty():
            raise IndexNotPossible(
                "WHERE of an index must be decided by only the file",
                found=where,
                expected="no subquery, and nothing random",
                hint=_HINT,
            )
        return frozenset(row[0] for row in frame.select(path).collect())
    except PySparkException as error:
        raise IndexNotPossible(
            "WHERE of an index chooses files",
            found=f"{where}: {cause_of(error)}",
            expected="a condition on "
            + ", ".join([name for name, _ in partition_columns] + ["_metadata.file_path"]),
            hint=_HINT,
        ) from error


def _frame(session: SparkSession, table: pa.Table) -> DataFrame:
    """A frame of a session of our own, which must not become the active one.

    PySpark makes it so; the user's queries would then be planned with our session's settings, and
    read every file, for it has none of the user's optimizer rules.
    """
    jvm = jvm_of(session)
    sessions = jvm.org.apache.spark.sql.classic.SparkSession
    in_python, in_java = SparkSession._activeSession, sessions.getActiveSession()
    try:
        return session.createDataFrame(table)
    finally:
        SparkSession._activeSession = in_python
        if in_java.isDefined():
            sessions.setActiveSession(in_java.get())
        else:
            sessions.clearActiveSession()


def _placed(columns: Sequence[tuple[str, str]]) -> list[tuple[int, tuple[str, str]]]:
    return list(enumerate(columns))


def _column(place: int, data_type: str, partitions: Mapping[str, tuple[Literal, ...]]) -> pa.Array:
    values = [row[place].value for row in partitions.values()]
    if data_type == "string":
        texts = [
            value.decode("utf-8", "replace") if isinstance(value, bytes) else None
            for value in values
        ]
        return pa.array(texts, pa.string())
    kept = pa.array(values, arrow_type(data_type) or pa.null())
    kind = _SPARK_TYPES.get(data_type)
    return kept if kind is None else kept.view(kind)
