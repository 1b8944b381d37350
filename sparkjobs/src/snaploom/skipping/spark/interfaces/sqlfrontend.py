"""The SQL interface: statements about skipping indexes, by a function or in `spark.sql` itself.

`spark.sql` of a session is wrapped when skipping is enabled and put back when it is disabled: it is
replaced on the one object, so that other sessions and the class stay as they are. Other statements
go to Spark untouched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types

from snaploom.models.skippingindex import RefreshMode
from snaploom.skipping.advice.report import Report
from snaploom.skipping.formats.parquetfiles import ParquetKeys
from snaploom.skipping.indexes.base import registered_types
from snaploom.skipping.lifecycle.description import Description
from snaploom.skipping.lifecycle.operations import silent
from snaploom.skipping.spark.interfaces.advise import AdviceRequest, advise_target
from snaploom.skipping.spark.interfaces.declaredindex import forget_locations, remember_locations
from snaploom.skipping.spark.interfaces.manage import SkippingIndexes
from snaploom.skipping.statements.parser import parse
from snaploom.skipping.statements.syntax import (
    AlterIndex,
    AnalyzeIndex,
    CreateIndex,
    DescribeIndex,
    DropIndex,
    RecoverIndex,
    RefreshIndex,
    ShowIndexes,
    Statement,
    VacuumIndex,
    alteration_of_statement,
    declaration_of_statement,
    place_of_statement,
)

DESCRIPTION_COLUMNS = ("indexed_col_name", "data_type", "skip_type")
ADVICE_COLUMNS = ("column_name", "data_type", "skipping_type", "reason", "skipped", "bytes")
LIST_COLUMNS = (
    "flint_index_name",
    "kind",
    "database",
    "table",
    "index_name",
    "auto_refresh",
    "status",
)
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


def _carried_out(spark: SparkSession, indexes: SkippingIndexes, statement: Statement) -> DataFrame:
    match statement:
        case CreateIndex():
            indexes.create(
                statement.subject,
                declaration_of_statement(statement),
                place_of_statement(statement),
                ignore_if_exists=statement.if_not_exists,
            )
        case RefreshIndex():
            mode = RefreshMode(statement.mode) if statement.mode else None
            indexes.refresh(statement.subject, mode)
        case AlterIndex():
            indexes.alter(statement.subject, alteration_of_statement(statement))
        case DropIndex():
            indexes.drop(statement.subject)
        case VacuumIndex():
            indexes.vacuum(statement.subject)
        case RecoverIndex():
            indexes.recover(statement.subject)
        case DescribeIndex():
            return described(spark, indexes.describe(statement.subject))
        case AnalyzeIndex():
            target = indexes.target(statement.subject)
            return advised(spark, advise_target(target, AdviceRequest(), silent))
        case ShowIndexes():
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


def advised(spark: SparkSession, report: Report) -> DataFrame:
    """The indexes that would help, best first: `ANALYZE SKIPPING INDEX`.

    `skipped` is the share of the files that queries about the column would leave out, from 0 to 1.
    """
    on = f"{report.queries} queries {'of the log' if report.is_logged else 'drawn from the data'}"
    seen = f"{on}, tried on {report.seen_files} of {report.files} files"
    estimates = sorted(
        (
            estimate
            for column in report.advice.columns
            for estimate in column.estimates
            if estimate.is_advised
        ),
        key=lambda estimate: -estimate.share,
    )
    rows = [
        (
            term.label,
            term.data_type,
            estimate.index.type,
            f"skips {estimate.share:.0%} of the files: {seen}",
            f"{estimate.share:.4f}",
            str(estimate.bytes),
        )
        for estimate in estimates
        for term in estimate.index.terms
    ]
    return _frame(spark, ADVICE_COLUMNS, rows)


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
