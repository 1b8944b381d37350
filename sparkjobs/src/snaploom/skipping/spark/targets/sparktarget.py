"""Targets of indexes as Spark reads them: names of columns and paths of outputs."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import cast

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from snaploom.errors import IndexNotPossible, SnaploomError
from snaploom.files.stores import open_store
from snaploom.output import layout
from snaploom.policy.fileformats import format_of
from snaploom.policy.sqlfunctions import CHANGES_ROWS
from snaploom.skipping.core.definition import (
    IndexDefinition,
    ReaderFingerprint,
    Target,
    Term,
    arrow_type,
)
from snaploom.skipping.core.predicates import Predicate, normal_form
from snaploom.skipping.indexes.columns import SUPPORTED
from snaploom.skipping.lifecycle.declaration import Progress
from snaploom.skipping.spark.builds.filerows import BuildPlan, Counters, PartitionRows, build_rows
from snaploom.skipping.spark.builds.footers import FooterTerm
from snaploom.skipping.spark.builds.scan import Relation
from snaploom.skipping.spark.optimizer.translation import catalyst, conditions
from snaploom.skipping.spark.relations.expressions import Columns, parse
from snaploom.skipping.spark.relations.fingerprint import columns, fingerprint, partition_columns
from snaploom.skipping.spark.relations.hadoop import JavaRule, cause_of
from snaploom.skipping.spark.targets import targetfiles
from snaploom.spark.gate import SqlPlace, check_resolved, checked_expression
from snaploom.spark.hadoopstore import hadoop_stores
from snaploom.spark.jvm import jvm_of

# Resolves names of columns as people write them.


def column_named(
    columns: Columns,
    session: SparkSession,
    name: str,
    advice: Callable[[], str] | None = None,
) -> Term:
    """Term of a column such as `a.b`, spelt as in the schema; `advice` ends the error's hint."""
    term = columns.find(_names(session, name))
    if term is None:
        raise IndexNotPossible(
            f"there is no column {name}",
            found=name,
            expected=", ".join(each.label for each in columns.terms[:20]),
            hint="names with dots need backticks, fields of structs are written a.b; "
            + (
                "where only some files have the column, read the folder with a schema that has it: "
                "mergeSchema=true for Parquet and ORC"
                if advice is None
                else advice()
            ),
        )
    if arrow_type(term.data_type) is None:
        raise IndexNotPossible(
            f"no index can be kept about {term.label} of type {term.data_type}",
            found=term.data_type,
            expected=SUPPORTED,
            hint="index a field of a struct, or an expression of a supported type; declare CHAR, "
            "whose padding changes what is compared, as VARCHAR or STRING",
        )
    return term


def column_at(names: Iterable[str]) -> Column:
    """The column or field with these names, from the outermost one on."""
    return sql.col(".".join("`" + name.replace("`", "``") + "`" for name in names))


def _names(session: SparkSession, name: str) -> tuple[str, ...]:
    names = tuple(name.split("."))
    if "`" not in name and all(names):
        return names
    jvm = jvm_of(session)
    parser = jvm.org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
    try:
        return tuple(parser.parseAttributeName(name).mkString("\n").split("\n"))
    except (Py4JJavaError, PySparkException) as error:
        raise IndexNotPossible(
            f"{name} is no name of a column", found=name, hint="put odd names in backticks"
        ) from error


# Paths at which an output publishes, and advice in messages about their indexes.


def root_hint(spark: SparkSession, path: str) -> str:
    """Hint for the folder of an output, whose files are in `data/`."""
    if not _is_output(spark, path):
        return ""
    return (
        "this is the folder of an output: give its data as the path, "
        f"{path.rstrip('/')}/{layout.DATA}, or name the output itself (target.outputDataset)"
    )


def column_hint(spark: SparkSession, target: Target) -> str:
    """Hint where files lack a column; newer ones of an output may have it."""
    option = format_of(target.format).schema_option
    if not option:
        return "choose one of those that are there"
    root, _, folder = target.uri.rpartition("/")
    if f"{folder}/" == layout.DATA and _is_output(spark, root):
        return (
            f"the columns of all snapshots are in {root}/{layout.MERGED_SCHEMA}; to "
            f"index one that only some of them have, give {target.uri}/ as the path, not the "
            f"output, with the option {option}, and read with it too"
        )
    return (
        f"where only some files have the column, read the folder with the option "
        f"{option}, in queries too"
    )


def _is_output(spark: SparkSession, path: str) -> bool:
    try:
        store = open_store(path, create=False, others=hadoop_stores(spark))
        return store.head(layout.MARKER) is not None
    except (SnaploomError, ValueError):
        return False


# Target read by Spark: `snaploom.skipping.lifecycle.declaration` for Spark.

_PLACE = SqlPlace(
    None, None, IndexNotPossible, "a deterministic expression over the columns, without aggregates",
    varying=CHANGES_ROWS,
)  # fmt: skip


@dataclass(frozen=True)
class _Listed:
    listed: targetfiles.ListedFiles
    read: Callable[[], DataFrame]

    @cached_property
    def frame(self) -> DataFrame:
        """The files as Spark reads them; those that came or went since the listing with them."""
        return self.read()


class SparkTarget:
    """Files that Spark reads as one relation: `snaploom.skipping.lifecycle.declaration`."""

    def __init__(self, spark: SparkSession, target: Target, header: Mapping[str, object]) -> None:
        self._target = target
        self._header = header
        self._rule = JavaRule(spark)
        self._session = targetfiles.own_session(spark)
        self._last: _Listed | None = None
        self.counters = Counters()
        """Counts of builds of this target."""

    @property
    def target(self) -> Target:
        return self._target

    @cached_property
    def fingerprint(self) -> ReaderFingerprint:
        return fingerprint(self._header)

    @cached_property
    def partition_columns(self) -> tuple[tuple[str, str], ...]:
        return partition_columns(self._header)

    @property
    def terms(self) -> tuple[Term, ...]:
        """Every column and field of a struct about which an index can be kept, in order."""
        return tuple(term for term in self._columns.terms if arrow_type(term.data_type) is not None)

    def predicate(
        self, condition: str, indexed: conditions.IndexedConditions | None = None
    ) -> Predicate:
        """Predicate of a SQL condition over the columns; `IndexNotPossible` for invalid SQL."""
        (analysed,) = self._analysed(condition)
        return normal_form(catalyst.predicate([analysed["expression"]], self._columns, indexed))

    def column(self, name: str) -> Term:
        """The term of a column or nested field, with names as the schema spells them."""
        hint = partial(column_hint, self._session, self._target)
        return column_named(self._columns, self._session, name, hint)

    def expression(self, text: str) -> Term:
        (analysed,) = self._analysed(text)
        parsed, data_type = parse(analysed["expression"]), str(analysed["type"])
        if data_type == "boolean":
            found = conditions.condition_term(parsed, self._columns)
        else:
            found = conditions.term_of(parsed, self._columns, data_type)
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
        """Relation of the files, with computed terms, in a session of our own."""
        current = self._current
        columns = {term.key: self._term_column(term) for term in terms}
        return Relation(self._session, lambda: current.frame, columns)

    def list_files(self, where: str) -> pa.Table:
        self._last = self._list()
        return targetfiles.only_chosen(
            self._session, where, self.partition_columns, self._last.listed
        )

    def build(
        self, indexes: Sequence[IndexDefinition], files: pa.Table, progress: Progress
    ) -> Iterator[pa.Table]:
        current = self._current
        plan = BuildPlan(
            relation=self.relation(term for index in indexes for term in index.terms),
            file_count=current.listed.files.num_rows,
            partitions=PartitionRows(
                tuple(name for name, _ in self.partition_columns),
                current.listed.files.column("path").combine_chunks(),
                current.listed.runs,
            ),
            footer_terms=self._footer_terms(indexes),
            is_parquet=format_of(self._target.format).has_footers,
            is_case_sensitive=self._columns.is_case_sensitive,
        )
        return build_rows(plan, indexes, files, progress, self.counters)

    @property
    def left_out(self) -> Mapping[str, str]:
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
        read = partial(targetfiles.fresh_frame, self._session, self._target, schema)
        found = self._listed_folder()
        if found is not None:
            return _Listed(found, read)
        frame = read()
        listed = targetfiles.list_relation(self._rule, frame, self.partition_columns)
        return _Listed(listed, lambda: frame)

    def _listed_folder(self) -> targetfiles.ListedFiles | None:
        """The files without Spark; of a table only Spark knows the folders."""
        target = self._target
        if target.table:
            return None
        found = targetfiles.list_folder(
            self._session, target.uri, target.format, dict(target.options)
        )
        if found is None or partition_columns(found[0]) != self.partition_columns:
            return None
        return found[1]

    @cached_property
    def _columns(self) -> Columns:
        return columns(self._header)

    def _analysed(self, text: str) -> Sequence[Mapping[str, object]]:
        column = self._checked(text)
        try:
            frame = self._current.frame.select(column.alias("value"))
            check_resolved(frame, [self._current.frame], _PLACE)
            return cast(
                Sequence[Mapping[str, object]], json.loads(self._rule.serialise(frame._jdf))
            )
        except (PySparkException, Py4JJavaError) as error:
            raise IndexNotPossible(
                "the expression cannot be kept",
                found=f"{text}: {cause_of(error)}",
                expected="a deterministic expression over the columns, without aggregates",
                hint=f"check it with SELECT {text} FROM ...",
            ) from error

    def _term_column(self, term: Term) -> Column:
        if term.names is not None:
            return column_at(term.names)
        if self.expression(term.label) != term:
            raise IndexNotPossible(
                f"{term.label} means something else than when it was declared",
                found=self.expression(term.label).key,
                expected=term.key,
                hint="drop this index and declare it again",
            )
        return self._checked(term.label)

    def _checked(self, text: str) -> Column:
        return checked_expression(self._session, text, _PLACE).column

    def _footer_terms(self, indexes: Sequence[IndexDefinition]) -> dict[str, FooterTerm]:
        """Terms that Parquet footers may prove: columns inside the files, matched by name."""
        is_by_id = str(self._session.conf.get("spark.sql.parquet.fieldId.read.enabled")) == "true"
        if not format_of(self._target.format).has_footers or is_by_id:
            return {}
        partitions = {name for name, _ in self.partition_columns}
        found = {}
        for term in (term for definition in indexes for term in definition.terms):
            names = term.names
            if names is not None and names[0] not in partitions:
                has_default = names[0] in self._columns.defaulted
                found[term.key] = FooterTerm(names, term.data_type, has_default)
        return found


def _fields(schema: object) -> list[Mapping[str, object]]:
    return list(cast(Mapping[str, list[Mapping[str, object]]], schema)["fields"])
