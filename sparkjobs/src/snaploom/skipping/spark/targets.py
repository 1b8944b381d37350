"""What can be indexed: a folder of files, or a table of Spark's catalog that is files.

A target is opened in the session of the user, whose settings say how files are read, and read for
building in a session of our own (`snaploom.skipping.spark.reading`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import pyarrow as pa
from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from snaploom.errors import IndexNotPossible, TargetNotIndexable
from snaploom.skipping.core.definition import IndexDefinition, ReaderFingerprint, Target
from snaploom.skipping.core.normalform import normal_form
from snaploom.skipping.core.predicates import Predicate
from snaploom.skipping.core.terms import Term, arrow_type
from snaploom.skipping.indexes.checks import SUPPORTED
from snaploom.skipping.lifecycle.target import Progress
from snaploom.skipping.spark import catalyst
from snaploom.skipping.spark.build import BuildPlan, Counters, build_rows
from snaploom.skipping.spark.choosing import choose_files
from snaploom.skipping.spark.columns import Columns
from snaploom.skipping.spark.expressions import parse
from snaploom.skipping.spark.fingerprint import FORMATS, SETTINGS, columns, fingerprint, unusable
from snaploom.skipping.spark.footers import FooterTerm
from snaploom.skipping.spark.janino import JavaRule
from snaploom.skipping.spark.listing import ListedFiles, list_relation
from snaploom.skipping.spark.reading import LITERAL_PATH, Reading, own_session
from snaploom.skipping.spark.scan import Relation
from snaploom.skipping.spark.subjects import term_of
from snaploom.skipping.statements.columns import name_text

_VIEW = "org.apache.spark.sql.catalyst.plans.logical.View"
_PARTS_OF_A_TABLE = 3
"""Catalog, database and table."""
_COMMON_HINT = "index the folder, or the table itself"


def open_path(
    spark: SparkSession, path: str, file_format: str, options: Mapping[str, str] | None = None
) -> SparkTarget:
    """A folder of files, or one file.

    Args:
        spark: the user's session.
        path: as Spark takes it.
        file_format: Spark's short name.
        options: reader options; queries that read with others do not use the index.

    Raises:
        TargetNotIndexable: it is no folder of files of a format that can be indexed.
    """
    return _open_path(spark, path, file_format, options or {}, {})


def _open_path(
    spark: SparkSession,
    path: str,
    file_format: str,
    options: Mapping[str, str],
    how: Mapping[str, str],
) -> SparkTarget:
    try:
        frame = spark.read.format(file_format).options(**{**options, **how}).load(path)
    except (PySparkException, Py4JJavaError) as error:
        raise TargetNotIndexable(
            f"{path} cannot be read as {file_format}",
            found=_cause(error),
            hint="give the path, format and options with which spark.read reads it",
        ) from error
    header = _only_relation(spark, frame, path)
    roots = cast(Sequence[str], header["roots"])
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
        options=tuple(sorted(options.items())),
    )
    return SparkTarget(spark, target, header)


def open_table(spark: SparkSession, name: str) -> SparkTarget:
    """A table of Spark's catalog.

    Args:
        spark: the user's session.
        name: `catalog.database.table`, `database.table` or `table`.

    Raises:
        TargetNotIndexable: there is none, it is a view, or its files are another system's.
    """
    try:
        frame = spark.table(name)
    except PySparkException as error:
        raise TargetNotIndexable(
            f"{name} is no table", found=str(error).splitlines()[0], hint="check the name"
        ) from error
    header = _only_relation(spark, frame, name)
    location = header["location"]
    if not isinstance(location, str):
        raise TargetNotIndexable(
            f"{name} has no location of its own",
            found="a temporary view over files",
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


def open_target(spark: SparkSession, target: Target) -> SparkTarget:
    """A target that was opened before, from its definition.

    Raises:
        TargetNotIndexable: it is not indexable any more.
    """
    if target.table:
        return open_table(spark, target.table)
    return _open_path(spark, target.uri, target.format, dict(target.options), LITERAL_PATH)


@dataclass(frozen=True)
class _Listed:
    """One listing, and the frame that reads exactly these files."""

    frame: DataFrame
    listed: ListedFiles


class SparkTarget:
    """Files that Spark reads as one relation: `snaploom.skipping.lifecycle.target`."""

    def __init__(self, spark: SparkSession, target: Target, header: Mapping[str, object]) -> None:
        self._target = target
        self._header = header
        self._rule = JavaRule(spark)
        self._session = own_session(spark)
        self._last: _Listed | None = None
        self.counters = Counters()
        """What builds of this target did."""

    @property
    def target(self) -> Target:
        """Where the files are."""
        return self._target

    @cached_property
    def fingerprint(self) -> ReaderFingerprint:
        """How they are read in the session in which the target was opened."""
        return fingerprint(self._header)

    @cached_property
    def partition_columns(self) -> tuple[tuple[str, str], ...]:
        """Name and Spark type of each partition column, in order."""
        fields = _fields(self._header["partitionSchema"])
        names = [str(field["name"]) for field in fields]
        found = [self._columns.find((name,)) for name in names]
        return tuple(
            (name, term.data_type)
            for name, term in zip(names, found, strict=True)
            if term is not None
        )

    @property
    def terms(self) -> tuple[Term, ...]:
        """Every column and field of a struct about which an index can be kept, in order."""
        return tuple(term for term in self._columns.terms if arrow_type(term.data_type) is not None)

    def predicate(self, condition: str) -> Predicate:
        """What a condition over the columns demands of a row.

        Raises:
            IndexNotPossible: it cannot be analysed.
        """
        (told,) = self._analysed(condition)
        return normal_form(catalyst.predicate([told["expression"]], self._columns))

    def column(self, name: str) -> Term:
        """The term of a column or nested field, with names as the schema spells them.

        Raises:
            IndexNotPossible: there is no such column, or no index can be kept about its type.
        """
        term = self._columns.find(self._names(name))
        if term is None:
            raise IndexNotPossible(
                f"there is no column {name}",
                found=name,
                expected=", ".join(each.label for each in self._columns.terms[:20]),
                hint="names with dots need backticks; fields of structs are written a.b",
            )
        if arrow_type(term.data_type) is None:
            raise IndexNotPossible(
                f"no index can be kept about {term.label} of type {term.data_type}",
                found=term.data_type,
                expected=SUPPORTED,
                hint="index a field of a struct, or an expression of a supported type",
            )
        return term

    def _names(self, name: str) -> tuple[str, ...]:
        names = tuple(name.split("."))
        if "`" not in name and all(names):
            return names
        jvm = self._session.sparkContext._gateway.jvm  # type: ignore[union-attr]
        parser = jvm.org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
        try:
            return tuple(parser.parseAttributeName(name).mkString("\n").split("\n"))
        except (Py4JJavaError, PySparkException) as error:
            raise IndexNotPossible(
                f"{name} is no name of a column", found=name, hint="put odd names in backticks"
            ) from error

    def expression(self, text: str) -> Term:
        """The term of a deterministic expression over the columns.

        Raises:
            IndexNotPossible: it cannot be analysed, or is not decided by the row alone.
        """
        (told,) = self._analysed(text)
        found = term_of(parse(told["expression"]), self._columns, str(told["type"]))
        if isinstance(found, str):
            raise IndexNotPossible(
                "the expression cannot be kept",
                found=f"{text}: {found}",
                expected="a deterministic expression over the columns",
                hint="leave out subqueries, Python functions and what is random",
            )
        if arrow_type(found.data_type) is None:
            raise IndexNotPossible(
                f"no index can be kept about values of type {found.data_type}",
                found=text,
                expected=SUPPORTED,
                hint="cast the expression to a supported type",
            )
        return found if found.names is not None else replace(found, label=text)

    def relation(self, terms: Iterable[Term]) -> Relation:
        """How Spark reads the files, and computes some terms, in a session of our own."""
        columns = {term.key: self._term_column(term) for term in terms}
        return Relation(self._session, self._current.frame, columns)

    def list_files(self, where: str) -> pa.Table:
        """The files there are now, as identity columns.

        Raises:
            IndexNotPossible: `where` speaks of something else than files.
        """
        self._last = self._list()
        listed = self._last.listed
        if not where:
            return listed.files
        chosen = choose_files(self._session, where, self.partition_columns, listed.partitions)
        kept = [path in chosen for path in listed.files.column("path").to_pylist()]
        return listed.files.filter(pa.array(kept, pa.bool_()))

    def build(
        self, indexes: Sequence[IndexDefinition], files: pa.Table, progress: Progress
    ) -> Iterator[pa.Table]:
        """Rows about some listed files, in bounded pieces.

        Raises:
            SkippingError: the files cannot be read at all.
            IndexNotPossible: an expression does not mean any more what it was declared to mean.
        """
        current = self._current
        plan = BuildPlan(
            relation=self.relation(term for index in indexes for term in index.terms),
            file_count=current.listed.files.num_rows,
            partition_names=tuple(name for name, _ in self.partition_columns),
            partitions=current.listed.partitions,
            footer_terms=self._footer_terms(indexes),
            is_parquet=self._target.format == "parquet",
            is_case_sensitive=self._columns.is_case_sensitive,
        )
        return build_rows(plan, indexes, files, progress, self.counters)

    @property
    def left_out(self) -> Mapping[str, str]:
        """Files that builds left out so far, by path, and why."""
        return self.counters.failures

    @property
    def _current(self) -> _Listed:
        if self._last is None:
            self._last = self._list()
        return self._last

    def _list(self) -> _Listed:
        schema = {
            "type": "struct",
            "fields": [
                *_fields(self._header["dataSchema"]),
                *_fields(self._header["partitionSchema"]),
            ],
        }
        frame = Reading(self._target, schema).fresh(self._session)
        return _Listed(frame, list_relation(self._rule, frame, self.partition_columns))

    @cached_property
    def _columns(self) -> Columns:
        return columns(self._header)

    def _analysed(self, text: str) -> Sequence[Mapping[str, object]]:
        """A SQL expression over the columns as the optimizer leaves it."""
        try:
            frame = self._current.frame.select(sql.expr(text).alias("value"))
            return cast(
                Sequence[Mapping[str, object]], json.loads(self._rule.serialise(frame._jdf))
            )
        except (PySparkException, Py4JJavaError) as error:
            raise IndexNotPossible(
                "the expression cannot be kept",
                found=f"{text}: {str(error).splitlines()[0]}",
                expected="a deterministic expression over the columns, without aggregates",
                hint=f"check it with SELECT {text} FROM ...",
            ) from error

    def _term_column(self, term: Term) -> Column:
        if term.names is not None:
            return sql.col(".".join(_quoted(name) for name in term.names))
        if self.expression(term.label) != term:
            raise IndexNotPossible(
                f"{term.label} means something else than when it was declared",
                found=self.expression(term.label).key,
                expected=term.key,
                hint="drop this index and declare it again",
            )
        return sql.expr(term.label)

    def _footer_terms(self, indexes: Sequence[IndexDefinition]) -> dict[str, FooterTerm]:
        """Terms that Parquet footers may prove: columns inside the files, matched by name."""
        is_by_id = self._setting("spark.sql.parquet.fieldId.read.enabled") == "true"
        if self._target.format != "parquet" or is_by_id:
            return {}
        partitions = {name for name, _ in self.partition_columns}
        found = {}
        for term in (term for definition in indexes for term in definition.terms):
            names = term.names
            if names is not None and names[0] not in partitions:
                has_default = names[0] in self._columns.defaulted
                found[term.key] = FooterTerm(names, term.data_type, has_default)
        return found

    def _setting(self, name: str) -> str:
        return str(self._session.conf.get(name))


def _only_relation(spark: SparkSession, frame: DataFrame, name: str) -> Mapping[str, object]:
    """The description of the one relation of files that a frame reads.

    Raises:
        TargetNotIndexable: there is none, or something is done to its rows.
    """
    plan = frame._jdf.queryExecution().analyzed()
    headers = JavaRule(spark).describe(frame._jdf, SETTINGS)
    if _is_view(plan):
        tables = [
            str(json.loads(header)["table"] or json.loads(header)["roots"]) for header in headers
        ]
        raise TargetNotIndexable(
            f"{name} is a view, which has no files",
            found="a view over " + (", ".join(tables) or "something else than files"),
            hint="index the table; queries of the view use its index",
        )
    if len(headers) != 1 or frame.isStreaming:
        raise TargetNotIndexable(
            f"{name} is not read by Spark as files of its own",
            found=plan.collectLeaves().mkString(", ").splitlines()[0][:200],
            expected="files of a format of " + ", ".join(FORMATS),
            hint="Delta, Iceberg and databases skip by themselves",
        )
    header = cast(Mapping[str, object], json.loads(headers[0]))
    reason = unusable(header)
    if reason:
        raise TargetNotIndexable(
            f"{name} cannot be indexed as it is read", found=reason, hint="read it otherwise"
        )
    return header


def _cause(error: PySparkException | Py4JJavaError) -> str:
    """What went wrong, in one line."""
    told = str(error.java_exception.toString()) if isinstance(error, Py4JJavaError) else str(error)
    return told.splitlines()[0]


def _is_view(plan: JavaObject) -> bool:
    """Whether an analysed plan is a view's, below whatever gives names to it."""
    node = plan
    while node.children().size() == 1:
        if node.getClass().getName() == _VIEW:
            return True
        node = node.children().head()
    return False


def _full_name(spark: SparkSession, given: str, unquoted: str) -> str:
    """A table's full name, in backticks where names in it need them.

    Args:
        spark: knows the syntax of names.
        given: the name, or the end of it, as people wrote it.
        unquoted: the full name, its parts joined with dots.
    """
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


def _fields(schema: object) -> list[Mapping[str, object]]:
    return list(cast(Mapping[str, list[Mapping[str, object]]], schema)["fields"])


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
