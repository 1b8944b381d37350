"""The SQL interface: statements about skipping indexes, by a function or in `spark.sql` itself.

`spark.sql` of a session is wrapped when skipping is enabled and put back when it is disabled: it is
replaced on the one object, so that other sessions and the class stay as they are. Other statements
go to Spark untouched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types

from snaploom.models.skippingindex import RefreshMode
from snaploom.ondemand import plugged
from snaploom.skipping.formats.parquetfiles import ParquetKeys
from snaploom.skipping.indexes.base import registered_types
from snaploom.skipping.lifecycle.description import Description
from snaploom.skipping.spark.interfaces.declaredindex import forget_locations, remember_locations
from snaploom.skipping.spark.interfaces.manage import SkippingIndexes
from snaploom.skipping.spark.targets.sparktarget import SparkTarget
from snaploom.skipping.statements import syntax
from snaploom.skipping.statements.parser import parse

DESCRIPTION_COLUMNS = ("indexed_col_name", "data_type", "skip_type")
LIST_COLUMNS = (
    "flint_index_name",
    "kind",
    "database",
    "table",
    "index_name",
    "auto_refresh",
    "status",
)
STATEMENTS = "snaploom.skipping.statements"
"""Entry-point group of functions that carry out a statement, by its first word."""
Analyze = Callable[[SparkTarget], tuple[Sequence[str], Sequence[tuple[str | None, ...]]]]
"""Names of columns and rows of text of `ANALYZE SKIPPING INDEX`."""
ERROR = "error"
"""The further column of EXTENDED."""
_WRAPPED = "__snaploom_wrapped__"


def sql(spark: SparkSession, text: str, *args: object, **kwargs: object) -> DataFrame:
    """Run a statement about skipping indexes; pass others to `spark.sql` with their arguments.

    Raises:
        StatementInvalid: it is about skipping indexes, and something is wrong with it.
        SkippingError: it cannot be done.
    """
    statement = parse(text, registered_types())
    if statement is None:
        return _original(spark)(text, *args, **kwargs)
    return _carried_out(spark, SkippingIndexes(spark), statement)


def accept_statements(
    spark: SparkSession, locations: Sequence[str] = (), keys: ParquetKeys | None = None
) -> None:
    """Let `spark.sql` of this session take the statements as well; idempotent."""
    remember_locations(spark, locations, keys)
    if _WRAPPED not in vars(spark):
        original = spark.sql

        @wraps(original)
        def accepting(sqlQuery: str, *args: object, **kwargs: object) -> DataFrame:  # noqa: N803
            return sql(spark, sqlQuery, *args, **kwargs)

        vars(spark).update({_WRAPPED: original, "sql": accepting})


def leave_statements(spark: SparkSession) -> None:
    """Put `spark.sql` of this session back as it was, and forget the locations it was given."""
    forget_locations(spark)
    if vars(spark).pop(_WRAPPED, None) is not None:
        vars(spark).pop("sql", None)


def _original(spark: SparkSession) -> Callable[..., DataFrame]:
    wrapped = vars(spark).get(_WRAPPED)
    return spark.sql if wrapped is None else wrapped


def _carried_out(
    spark: SparkSession, indexes: SkippingIndexes, statement: syntax.Statement
) -> DataFrame:
    match statement:
        case syntax.CreateIndex():
            indexes.create(
                statement.subject,
                syntax.declaration_of_statement(statement),
                syntax.place_of_statement(statement),
                ignore_if_exists=statement.if_not_exists,
            )
        case syntax.RefreshIndex():
            mode = RefreshMode(statement.mode) if statement.mode else None
            indexes.refresh(statement.subject, mode)
        case syntax.AlterIndex():
            indexes.alter(statement.subject, syntax.alteration_of_statement(statement))
        case syntax.DropIndex():
            indexes.drop(statement.subject)
        case syntax.VacuumIndex():
            indexes.vacuum(statement.subject)
        case syntax.RecoverIndex():
            indexes.recover(statement.subject)
        case syntax.DescribeIndex():
            return described(spark, indexes.describe(statement.subject))
        case syntax.AnalyzeIndex():
            analyze = cast(Analyze, plugged(STATEMENTS, "ANALYZE", "ANALYZE SKIPPING INDEX"))
            return _frame(spark, *analyze(indexes.target(statement.subject)))
        case syntax.ShowIndexes():
            found = indexes.list()
            return listed(spark, found, statement.namespace, is_extended=statement.is_extended)
    return _frame(spark, (), ())


def described(spark: SparkSession, description: Description) -> DataFrame:
    """Indexes of a description, one row per index and column: `DESCRIBE SKIPPING INDEX`."""
    definition = description.definition
    rows = [
        (term.label, term.data_type, index.type)
        for index in (() if definition is None else definition.indexes)
        for term in index.terms
    ]
    return _frame(spark, DESCRIPTION_COLUMNS, rows)


def listed(
    spark: SparkSession,
    descriptions: Iterable[Description],
    namespace: Sequence[str],
    *,
    is_extended: bool = False,
) -> DataFrame:
    """Indexes of tables of a catalog or database: `SHOW FLINT INDEXES` (`EXTENDED` adds errors)."""
    rows: list[tuple[str | None, ...]] = []
    for description in descriptions:
        definition = description.definition
        parts = definition.target.table.split(".") if definition is not None else []
        if definition is not None and _is_in(parts, namespace):
            name = "_".join(("flint", *parts, "skipping_index"))
            auto = str(definition.mode == RefreshMode.AUTO).lower()
            phase = description.state.phase.value
            row = (name, "skipping", parts[-2], parts[-1], None, auto, phase)
            wrong = description.problem or description.state.message
            rows.append((*row, wrong) if is_extended else row)
    return _frame(spark, (*LIST_COLUMNS, *((ERROR,) if is_extended else ())), rows)


def _is_in(parts: Sequence[str], namespace: Sequence[str]) -> bool:
    folded = [part.casefold() for part in parts[: len(namespace)]]
    return len(parts) > len(namespace) and folded == [part.casefold() for part in namespace]


def _frame(
    spark: SparkSession, names: Iterable[str], rows: Sequence[tuple[str | None, ...]]
) -> DataFrame:
    text = spark_types.StringType()
    return spark.createDataFrame(
        list(rows), spark_types.StructType([spark_types.StructField(n, text) for n in names])
    )
