"""Skipping in a session: switched on and off, by SQL, with statistics and explanations.

`enable(spark, "s3://lake/indexes")`, and every query of the session skips; nothing else changes.
`spark.sql` of the session is wrapped then and put back when it is disabled: it is replaced on the
one object, so that other sessions and the class stay as they are. Statements that are not about
skipping indexes go to Spark untouched.
"""

import json
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import wraps
from importlib.metadata import entry_points
from typing import cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types

from snaploom.errors import SkippingNotAvailable
from snaploom.installed import load_registered, plugged
from snaploom.models.skippingindex import RefreshMode
from snaploom.skipping.core.predicates import size_text, wrapped
from snaploom.skipping.formats.parquetfiles import ParquetKeys
from snaploom.skipping.indexes.base import registered_types
from snaploom.skipping.lifecycle.description import Description
from snaploom.skipping.spark.interfaces.declaredindex import forget_locations, remember_locations
from snaploom.skipping.spark.interfaces.manage import SkippingIndexes
from snaploom.skipping.spark.optimizer import requests, usage
from snaploom.skipping.spark.optimizer.decision import Decider
from snaploom.skipping.spark.optimizer.requests import Request
from snaploom.skipping.spark.relations.hadoop import JavaRule
from snaploom.skipping.spark.targets.sparktarget import SparkTarget
from snaploom.skipping.statements import syntax
from snaploom.skipping.statements.syntax import parse
from snaploom.spark.jvm import is_connect

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
        case syntax.PlainStatement("DROP"):
            indexes.drop(statement.subject)
        case syntax.PlainStatement("VACUUM"):
            indexes.vacuum(statement.subject)
        case syntax.PlainStatement("RECOVER"):
            indexes.recover(statement.subject)
        case syntax.PlainStatement("DESCRIBE"):
            return described(spark, indexes.describe(statement.subject))
        case syntax.PlainStatement("ANALYZE"):
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


ENTRY_POINTS = "snaploom.skipping.sessions"
"""Entry-point group: functions that are called with each session in which skipping is enabled."""

_deciders: dict[str, Decider] = {}
"""By the id of the Spark application: sessions of one application share what is known."""
_lock = threading.Lock()


def enable(spark: SparkSession, *bases: str, keys: ParquetKeys | None = None) -> None:
    """Let the queries of a session, and of sessions made from it, skip files.

    `spark.sql` of the session takes statements about skipping indexes from then on. Enabling again
    adds locations. After `spark.stop()` a new session is enabled anew. `DataFrame.inputFiles` goes
    on naming every file of the relations: those that may be read, not those that are.

    Raises:
        SkippingNotAvailable: Spark Connect, or a Spark that the optimizer rule does not fit.
        StorageError: no store is known for the scheme of a location.
    """
    refuse_connect(spark)
    with _lock:
        decider = _deciders.get(_application(spark)) or Decider()
        decider.add_bases(bases, keys)
        requests.install(spark, decider, requests.REQUESTED, decider.concerns)
        # What stopped applications knew is of no use to anybody.
        gone = [each for each in _deciders.values() if each is not decider]
        _deciders.clear()
        _deciders[_application(spark)] = decider
    for each in gone:
        each.recorder.close()
    for entry in entry_points(group=ENTRY_POINTS):
        extend = load_registered(entry, "the extension of sessions")
        cast(Callable[[SparkSession], None], extend)(spark)
    accept_statements(spark, bases, keys)


def disable(spark: SparkSession) -> None:
    """Let a session, and the sessions of its family, read every file again.

    Locations and keys with which it was enabled are forgotten, and what its queries made of indexes
    is written down beside these, where that can be done.
    """
    refuse_connect(spark)
    with _lock:
        requests.uninstall(spark)
        decider = _deciders.pop(_application(spark), None)
    if decider is not None:
        decider.recorder.close()
    leave_statements(spark)


def is_enabled(spark: SparkSession) -> bool:
    """Whether queries of this session skip files."""
    refuse_connect(spark)
    is_switched_on = requests.SkippingSettings.of(
        {name: spark.conf.get(name, None) for name in (requests.ENABLED, requests.FLINT_ENABLED)}
    ).is_enabled
    return is_switched_on and _application(spark) in _deciders and requests.is_installed(spark)


@contextmanager
def without_skipping(spark: SparkSession) -> Iterator[None]:
    """Read every file in a `with` block: queries that are planned in it do not skip.

    A frame whose plan was made before keeps it. The switch is the session's, for all its threads.
    """
    with setting(spark, requests.ENABLED, "false"):
        yield


@contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """Set a session setting for the duration of the block."""
    before = spark.conf.get(name, None)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, before)


def decider_of(spark: SparkSession) -> Decider:
    """Return the session's decider; `SkippingNotAvailable` if skipping is not enabled."""
    refuse_connect(spark)
    decider = _deciders.get(_application(spark))
    if decider is None or not requests.is_installed(spark):
        raise SkippingNotAvailable(
            "skipping is not enabled in this session",
            hint="call snaploom.skipping.enable(spark, <location of indexes>) first",
        )
    return decider


def refuse_connect(spark: object) -> None:
    """Raise `SkippingNotAvailable` for a session that has no JVM in this process."""
    if is_connect(spark):
        raise SkippingNotAvailable(
            "a Spark Connect session cannot skip files by itself: its plans are made in the server",
            found=f"a session of {type(spark).__module__}",
            expected="a classic session: SparkSession.builder.master(...).getOrCreate()",
        )


def _application(spark: SparkSession) -> str:
    return str(spark.sparkContext.applicationId)


def statistics(spark: SparkSession) -> usage.Statistics:
    """Sums over the queries of a session and of all sessions of its application.

    Raises:
        SkippingNotAvailable: skipping is not enabled.
    """
    counted = decider_of(spark).counting.read()
    failures, message = requests.errors(spark)
    # What goes wrong in the JVM is counted there, since it started.
    return replace(
        counted,
        errors=counted.errors + failures,
        last_error=counted.last_error or message or "",
    )


def reset_statistics(spark: SparkSession) -> None:
    """Begin to sum anew; when indexes were last used stays known.

    Raises:
        SkippingNotAvailable: skipping is not enabled.
    """
    decider_of(spark).counting.reset()


_CLAUSE = 40
"""Columns of the condition in a line about a clause."""


@dataclass(frozen=True)
class Explanation:
    """Effect of skipping on a query; `print` it."""

    relations: tuple[usage.RelationOutcome, ...]
    """Each relation of files in the query."""

    @property
    def data(self) -> list[dict[str, object]]:
        """Plain values."""
        return [asdict(relation) for relation in self.relations]

    def to_json(self) -> str:
        """JSON text."""
        return json.dumps(self.data, ensure_ascii=False)

    def __str__(self) -> str:
        parts = ["\n".join(_relation_lines(relation)) for relation in self.relations]
        return "\n\n".join(parts) or "The query reads no files."


def explain(frame: DataFrame) -> Explanation:
    """Plan a query once more, and explain the effect of skipping; nothing is run or counted.

    Raises:
        SkippingNotAvailable: skipping is not enabled in the frame's session.
    """
    spark = frame.sparkSession
    decider = decider_of(spark)
    trace = secrets.token_hex(8)
    with decider.tracing(trace) as outcomes, setting(spark, requests.TRACE, trace):
        _plan_again(spark, frame)
        headers = JavaRule(spark).describe(frame._jdf, requests.REQUESTED)
    asked = {outcome.name for outcome in outcomes}
    names = (Request.parse(header).name for header in headers)
    unasked = tuple(
        usage.RelationOutcome(name, "", reasons=("no condition of the query reaches its files",))
        for name in dict.fromkeys(names)
        if name not in asked
    )
    return Explanation((*outcomes, *unasked))


def _plan_again(spark: SparkSession, frame: DataFrame) -> None:
    jvm = spark._jvm
    mode = jvm.org.apache.spark.sql.execution.CommandExecutionMode.SKIP()  # type: ignore[union-attr]
    logical = frame._jdf.queryExecution().logical()
    spark._jsparkSession.sessionState().executePlan(logical, mode).optimizedPlan()


def _relation_lines(relation: usage.RelationOutcome) -> Iterator[str]:
    yield from wrapped(relation.name, "")
    if relation.files:
        yield from wrapped(
            f"{relation.kept_files} of {relation.files} files, {size_text(relation.kept_bytes)} of "
            f"{size_text(relation.bytes)} are read"
            + " (evaluated only: all are)"
            * relation.is_evaluated_only,
            "  ",
        )
    if relation.condition:
        yield from wrapped(f"condition: {relation.condition}", "  ")
    for reason in relation.reasons:
        yield from wrapped(f"not skipping: {reason}", "  ")
    for index in relation.indexes:
        yield from _index_lines(index)


def _index_lines(index: usage.IndexOutcome) -> Iterator[str]:
    yield from wrapped(f"index of {index.target or 'unknown target'} in {index.uri}", "  ")
    for reason in index.unused:
        yield from wrapped(f"not used: {reason}", "    ")
    if not index.is_used:
        return
    unknown = [
        f"{count} files {why}, so they are read"
        for count, why in ((index.stale, "changed since indexing"), (index.missing, "are unknown"))
        if count
    ]
    yield from wrapped("; ".join([f"{index.dropped} files dropped", *unknown]), "    ")
    for clause in index.clauses:
        yield from _clause_lines(clause)


def _clause_lines(clause: usage.ClauseOutcome) -> Iterator[str]:
    served = ", ".join(clause.report.served_by)
    line = f"{_short(clause.text):<{_CLAUSE}} {clause.dropped:>8} dropped"
    yield f"    {line}"
    if served:
        yield from wrapped(f"by {served}", "      ")
    # Where an index served it, what others could not do interests nobody.
    for reason in () if served else (*clause.report.unserved, *clause.hints):
        yield from wrapped(f"- {reason}", "      ")


def _short(text: str) -> str:
    return text if len(text) <= _CLAUSE else f"{text[: _CLAUSE - 3]}..."
