"""Opens targets of indexes, and finds the indexes over expressions that queries can use."""

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from snaploom.errors import IndexNotPossible, TargetNotIndexable
from snaploom.models.skippingindex import Index
from snaploom.skipping.core import predicates
from snaploom.skipping.core.definition import Target, Term
from snaploom.skipping.spark.optimizer.translation.conditions import IndexedConditions
from snaploom.skipping.spark.relations.fingerprint import FORMATS, REQUESTED, unusable
from snaploom.skipping.spark.relations.hadoop import JavaRule, cause_of
from snaploom.skipping.spark.targets.sparktarget import SparkTarget, root_hint
from snaploom.skipping.spark.targets.targetfiles import columns_frame
from snaploom.skipping.statements.columns import name_text
from snaploom.spark.jvm import readable_uri
from snaploom.types.schemas import parse_schema

_LOG = logging.getLogger("snaploom.skipping")


# Detects indexes over expressions that no query can use, by trying conditions on Spark.

_LITERALS = {
    "boolean": "",
    "string": "'a'",
    "binary": "X'61'",
    "date": "date'2024-01-01'",
    "timestamp": "timestamp'2024-01-01 00:00:00'",
    "timestamp_ntz": "timestamp_ntz'2024-01-01 00:00:00'",
}
"""Values to compare with, by type; of numbers it is 1."""


def warn_of_unasked(target: SparkTarget, indexes: Iterable[Index]) -> None:
    """Warn of each declared index over an expression that no query can use."""
    for index in indexes:
        if index.expression is not None:
            reason = why_unasked(target, index.expression)
            if reason:
                label = f"{index.type}({index.expression})"
                _LOG.warning("no query can use %s: %s", label, reason)


def why_unasked(target: SparkTarget, expression: str) -> str:
    """Reason why no condition on an expression asks an index over it; empty if one does."""
    try:
        term = target.expression(expression)
        if term.names is not None:
            return ""
        tried = [(text, _demand(target, text, term)) for text in _conditions(expression, term)]
    except IndexNotPossible:
        return ""
    if any(term in _terms(demand) for _, demand in tried):
        return ""
    text, demand = tried[0]
    read = predicates.predicate_text(demand)
    return f"Spark reads {text} as {read}; keep an index about what stands there"


def _demand(target: SparkTarget, condition: str, term: Term) -> predicates.Predicate:
    is_condition = term.data_type == "boolean"
    known = IndexedConditions(frozenset({term} if is_condition else ()))
    return target.predicate(condition, known)


def _conditions(expression: str, term: Term) -> Iterator[str]:
    value = _LITERALS.get(term.data_type, f"CAST(1 AS {term.data_type})")
    if not value:
        yield f"({expression})"
        yield f"NOT ({expression})"
        return
    yield f"({expression}) = {value}"
    yield f"({expression}) > {value}"
    if term.data_type == "string":
        yield f"({expression}) LIKE 'a%'"


def _terms(predicate: predicates.Predicate) -> Iterator[Term]:
    match predicate:
        case predicates.And(parts) | predicates.Or(parts):
            for part in parts:
                yield from _terms(part)
        case predicates.Not(part):
            yield from _terms(part)
        case predicates.Constant() | predicates.Unknown():
            return
        case leaf:
            yield leaf.term


# Opens targets: a folder of files, or a table of Spark's catalog that is files.

_VIEW = "org.apache.spark.sql.catalyst.plans.logical.View"
_PARTS_OF_A_TABLE = 3
"""Catalog, database and table."""
_COMMON_HINT = "index the folder, or the table itself"


def open_path(
    spark: SparkSession, path: str, file_format: str, options: Mapping[str, str] | None = None
) -> SparkTarget:
    """Open a file or a folder of files as a target, else `TargetNotIndexable`."""
    given = options or {}
    try:
        sampled = columns_frame(spark, path, file_format, given)
        reader = spark.read.format(file_format).options(**given)
        frame = sampled[0] if sampled else reader.load(readable_uri(spark, path))
    except (PySparkException, Py4JJavaError) as error:
        raise TargetNotIndexable(
            f"{path} cannot be read as {file_format}",
            found=cause_of(error),
            expected="a folder of files of that format, or one file",
            hint=root_hint(spark, path)
            or "give the path, format and options with which spark.read reads it",
        ) from error
    _refuse_classes(frame, path)
    header = _only_relation(spark, frame, path)
    roots = [sampled[1]] if sampled else cast(Sequence[str], header["roots"])
    if len(roots) != 1:
        raise TargetNotIndexable(
            f"{path} stands for {len(roots)} folders",
            found=", ".join(roots[:3]),
            expected="one folder",
            hint="index the folder that holds them all; queries of parts of it use the index too",
        )
    target = Target(
        uri=roots[0].rstrip("/"),
        format=str(header["format"]),
        options=tuple(sorted(given.items())),
    )
    return SparkTarget(spark, target, {**header, "roots": roots})


def _refuse_classes(frame: DataFrame, name: str) -> None:
    """Refuse a schema with types that PySpark would import as classes by their names."""
    try:
        parse_schema(str(frame._jdf.schema().json()), "")
    except ValueError as error:
        raise TargetNotIndexable(
            f"{name} has a schema that Snaploom does not read",
            found=str(error)[:1000],
            expected="types of Spark's own",
            hint="write the columns as types that every session knows",
        ) from None


def open_table(spark: SparkSession, name: str) -> SparkTarget:
    """Open a table of Spark's catalog, else `TargetNotIndexable` (views, foreign files)."""
    try:
        frame = spark.table(name)
    except PySparkException as error:
        raise TargetNotIndexable(
            f"{name} is no table",
            found=cause_of(error),
            expected="catalog.database.table, database.table or table",
            hint="check the name",
        ) from error
    _refuse_classes(frame, name)
    header = _only_relation(spark, frame, name)
    location = header["location"]
    if not isinstance(location, str):
        raise TargetNotIndexable(
            f"{name} has no location of its own",
            found="a temporary view over files",
            expected="a table of the catalog",
            hint=_COMMON_HINT,
        )
    options = cast(Mapping[str, str], header["options"])
    target = Target(
        uri=location.rstrip("/"),
        table=_full_name(spark, name, str(header["table"])),
        format=str(header["format"]),
        options=tuple(sorted((key, str(value)) for key, value in options.items())),
    )
    return SparkTarget(spark, target, header)


def _only_relation(spark: SparkSession, frame: DataFrame, name: str) -> Mapping[str, object]:
    """The one relation of files that a frame reads, else `TargetNotIndexable`."""
    plan = frame._jdf.queryExecution().analyzed()
    headers = JavaRule(spark).describe(frame._jdf, REQUESTED)
    if _is_view(plan):
        tables = [
            str(json.loads(header)["table"] or json.loads(header)["roots"]) for header in headers
        ]
        raise TargetNotIndexable(
            f"{name} is a view, which has no files",
            found="a view over " + (", ".join(tables) or "something else than files"),
            expected="a table",
            hint="index the table; queries of the view use its index",
        )
    if len(headers) != 1 or frame.isStreaming:
        raise TargetNotIndexable(
            f"{name} is not read by Spark as files of its own",
            found=plan.collectLeaves().mkString(", ").splitlines()[0][:200],
            expected="files of a format of " + ", ".join(FORMATS),
        )
    header = cast(Mapping[str, object], json.loads(headers[0]))
    reason = unusable(header)
    if reason:
        raise TargetNotIndexable(
            f"{name} cannot be indexed as it is read",
            found=reason,
            expected=f"{', '.join(FORMATS)}; and no value that depends on the columns of a query",
            hint="read it with other options or settings, and index it as it is read then",
        )
    return header


def _is_view(plan: JavaObject) -> bool:
    node = plan
    while node.children().size() == 1:
        if node.getClass().getName() == _VIEW:
            return True
        node = node.children().head()
    return False


def _full_name(spark: SparkSession, given: str, unquoted: str) -> str:
    """A table's full name, in backticks where parts need them; `unquoted` is joined by dots."""
    parsed = spark._jsparkSession.sessionState().sqlParser().parseMultipartIdentifier(given)
    lengths = [len(str(parsed.apply(position))) for position in range(parsed.size())]
    parts: list[str] = []
    rest = unquoted
    for length in reversed(lengths):
        # Taken from the full name, because catalogs spell names in their own case.
        parts.insert(0, rest[-length:])
        rest = rest[:-length].removesuffix(".")
    missing = _PARTS_OF_A_TABLE - len(parts)
    before = rest.split(".", missing - 1) if missing and rest else []
    return ".".join(name_text(name) for name in (*before, *parts))
