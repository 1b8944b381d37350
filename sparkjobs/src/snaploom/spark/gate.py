"""The one way from a text of SQL to a column or a frame of Spark."""

import json
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession

from snaploom.errors import SnaploomError
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.policy.sqlfunctions import (
    FUNCTIONS,
    REASONS,
    Determinism,
    hint_for,
    is_moment,
    moments,
    varying_calls,
)
from snaploom.policy.sqltext import SqlRefused, scan
from snaploom.spark.kinds import USER_FUNCTIONS
from snaploom.spark.trees import (
    OF_QUERIES,
    VALUES,
    Refusal,
    Scope,
    Trees,
    Use,
    bare_kind,
    judge_parsed,
    judge_resolved,
)
from snaploom.types.schemas import parse_schema, quote

# Finds nondeterministic parts of a resolved plan.

_OF_CONVERSIONS = frozenset({"UnixTimestamp"})
"""Classes that read the clock by an argument of their own class only, which is seen by itself."""
_OTHER_CLASSES: Mapping[str, tuple[Determinism, str]] = MappingProxyType(
    {
        "CurrentTimestampNanos": (Determinism.SESSION, "current_timestamp()"),
        "LocalTimestampNanos": (Determinism.SESSION, "localtimestamp()"),
        "Sample": (Determinism.RANDOM, "TABLESAMPLE"),
    }
)
"""Classes that functions and clauses come to, and that the list of functions does not name."""


def _classes() -> dict[str, tuple[Determinism, str]]:
    varying = (one for one in FUNCTIONS.values() if one.determinism is not Determinism.ROW)
    found = {name: (one.determinism, f"{one.name}()") for one in varying for name in one.classes}
    return {**found, **_OTHER_CLASSES}


_CLASSES = MappingProxyType(
    {name: shown for name, shown in _classes().items() if name not in _OF_CONVERSIONS}
)


def varying_uses(uses: Iterable[Use]) -> Iterator[tuple[Determinism, str]]:
    """Parts of a plan with varying results, in SQL's notation, and their cause."""
    for use in uses:
        name = bare_kind(use.class_name).rpartition(".")[2]
        if name in _CLASSES:
            yield _CLASSES[name]
        elif use.moment and is_moment(use.moment):
            yield Determinism.SESSION, f"'{use.moment}' as a date or a time"
        elif use.class_name in USER_FUNCTIONS and not use.is_deterministic:
            yield Determinism.RANDOM, f"{use.detail}()"


# The one way from a text of SQL to a column or a frame of Spark.

ALLOW_SETTING = "spark.snaploom.allow"
"""Setting of a session with its allowances as JSON. `snaploom.run.session` writes it last, after
all that declarations ask for; a query cannot set anything."""

MOST_NODES = 50_000
"""Parts of a text's tree: some six for each token that a text may have."""
MOST_NAMED = 5
"""Number of forbidden parts of a text that one message names."""

_NOT_FOR_PEOPLE = re.compile(r"^\[[A-Z0-9_.]+\] |(?:^|(?<=\S))\s*+SQLSTATE: \w+\.?")


@dataclass(frozen=True)
class SqlPlace:
    """Place of a text, and the wording of its refusal."""

    resource: str | None
    """`Kind/name` of the resource, where there is one."""
    path: str | None
    error: type[SnaploomError]
    expected: str
    about: str = ""
    """End of the message, in brackets."""
    varying: frozenset[Determinism] = frozenset()
    """Facts on which the text's result may not depend."""

    def refused(
        self, message: str, found: str | None = None, hint: str | None = None
    ) -> SnaploomError:
        """Build the error about this place."""
        return self.error(
            f"{message} ({self.about})" if self.about else message,
            resource=self.resource,
            path=self.path,
            found=found,
            expected=self.expected,
            hint=hint,
        )


@dataclass(frozen=True)
class CheckedExpression:
    """An expression that may be computed; `check_resolved` judges its resolved form."""

    text: str
    """Without comments."""
    column: Column
    """The tree that was judged."""
    trees: Trees

    def within(self, text: str) -> Column:
        """An expression of ours around this one's text."""
        return self.trees.column(self.trees.parse(text, is_query=False))


def allowances_of(spark: SparkSession) -> Allowances:
    """Entries allowed in a session beyond the lists."""
    return _allowances(spark.conf.get(ALLOW_SETTING, "") or "")


@cache
def _allowances(text: str) -> Allowances:
    return Allowances.parse(json.loads(text)) if text else NO_ALLOWANCES


def checked_expression(
    spark: SparkSession,
    text: str,
    place: SqlPlace,
    scope: Scope = VALUES,
    columns: Mapping[tuple[str, ...], Column] | None = None,
) -> CheckedExpression:
    """Parse an expression; raises the error of the place for anything not allowed in it."""
    clean = _scanned(text, place)
    trees = Trees(spark)
    parsed = _judged(spark, trees, clean, place, scope)
    read = trees.replaced(parsed, columns) if columns else parsed
    return CheckedExpression(clean, trees.column(read), trees)


def check_resolved(
    made: DataFrame, over: Iterable[DataFrame], place: SqlPlace, scope: Scope = VALUES
) -> None:
    """Refuse a frame that uses more, above the frames that it was built from, than SQL may."""
    spark = made.sparkSession
    given = [frame._jdf.queryExecution().analyzed() for frame in over]
    plan = made._jdf.queryExecution().analyzed()
    uses = Trees(spark).uses(plan, given)
    _refuse(judge_resolved(uses, scope, allowances_of(spark)), place)
    _refuse_varying(varying_uses(uses), place)
    _refuse_types(made, place)


def checked_query(
    spark: SparkSession, text: str, frames: Mapping[str, DataFrame], place: SqlPlace
) -> DataFrame:
    """The result of a query over frames by alias; not computed yet.

    An alias is a common table expression around its frame, so no name of the session is meant.
    Positions in Spark's messages are off by one line where the query is resolved, not where it is
    parsed.
    """
    scope = Scope(OF_QUERIES, is_query=True, relations=frozenset(map(str.lower, frames)))
    clean = _scanned(text, place).strip().removesuffix(";")
    trees = Trees(spark)
    _judged(spark, trees, clean, place, scope)
    views = {alias: f"snaploom_{uuid.uuid4().hex}" for alias in frames}
    try:
        for alias, view in views.items():
            frames[alias].createTempView(view)
        heads = (f"{quote(alias)} AS (SELECT * FROM {view})" for alias, view in views.items())
        whole = f"WITH {', '.join(heads)} SELECT * FROM (\n{clean}\n)"
        made = trees.frame(trees.parse(whole, is_query=True))
    finally:
        for view in views.values():
            spark.catalog.dropTempView(view)
    uses = trees.uses(made._jdf.queryExecution().analyzed(), (), views.values())
    _refuse(judge_resolved(uses, scope, allowances_of(spark)), place)
    _refuse_varying(varying_uses(uses), place)
    _refuse_types(made, place)
    return made


def checked_statement(spark: SparkSession, text: str, place: SqlPlace) -> DataFrame:
    """A query that a person asks about the tables and files of a session; not computed yet."""
    scope = Scope(OF_QUERIES, is_query=True, relations=None)
    clean = _scanned(text, place).strip().removesuffix(";")
    trees = Trees(spark)
    made = trees.frame(_judged(spark, trees, clean, place, scope))
    uses = trees.uses(made._jdf.queryExecution().analyzed(), ())
    _refuse(judge_resolved(uses, scope, allowances_of(spark)), place)
    _refuse_types(made, place)
    return made


def _scanned(text: str, place: SqlPlace) -> str:
    try:
        scanned = scan(text)
    except SqlRefused as refused:
        raise place.refused(f"this SQL is refused: {refused}", refused.found or None) from None
    # Spark's parser makes dates of `DATE 'now'`, so that no tree shows them.
    _refuse_varying([*varying_calls(scanned.tokens), *moments(scanned.tokens)], place)
    return scanned.text


def _judged(
    spark: SparkSession, trees: Trees, clean: str, place: SqlPlace, scope: Scope
) -> JavaObject:
    try:
        parsed = trees.parse(clean, is_query=scope.is_query)
        nodes = trees.nodes(parsed, MOST_NODES + 1)
    except (PySparkException, Py4JError) as error:
        raise place.refused(f"Spark cannot parse this SQL: {_cause(error)}") from error
    if len(nodes) > MOST_NODES:
        raise place.refused(
            f"this SQL is too large: Spark makes more than {MOST_NODES:,} parts of it",
            hint="write CASE WHEN a = 1 THEN ... for CASE a WHEN 1 THEN ... where a is long: Spark "
            "repeats it for each WHEN",
        )
    _refuse(judge_parsed(nodes, scope, allowances_of(spark)), place)
    return parsed


def _refuse_varying(varying: Iterable[tuple[Determinism, str]], place: SqlPlace) -> None:
    refused = [one for one in varying if one[0] in place.varying]
    if not refused:
        return
    found = list(dict.fromkeys(shown for _, shown in refused))
    raise place.refused(
        f"this SQL gives other rows when it is computed again: {found[0]}, because "
        f"{REASONS[refused[0][0]]}",
        ", ".join(found[:MOST_NAMED]),
        hint_for(found, refused[0][0]),
    )


def _refuse_types(made: DataFrame, place: SqlPlace) -> None:
    try:
        parse_schema(str(made._jdf.schema().json()), "")
    except ValueError as error:
        raise place.refused("this SQL may not make such a column", str(error)[:1000]) from None


def _refuse(refusals: Sequence[Refusal], place: SqlPlace) -> None:
    if not refusals:
        return
    things = list(dict.fromkeys(one.found for one in refusals))
    found = ", ".join([*things[:MOST_NAMED], *(["..."] if len(things) > MOST_NAMED else [])])
    hints = dict.fromkeys(
        f"have '{one.entry}' added to the list '{one.list_}' (chart value "
        f"allow.{one.list_}, or --allow {one.list_}={one.entry})"
        for one in refusals
        if one.list_ and one.entry
    )
    hint = f"leave it out, or {' and '.join(list(hints)[:MOST_NAMED])}" if hints else None
    raise place.refused(
        f"this SQL may not have {refusals[0].found}: {refusals[0].why}", found, hint
    )


def _cause(error: Exception) -> str:
    text = error.java_exception.toString() if hasattr(error, "java_exception") else str(error)
    line = next((line.strip() for line in str(text).splitlines() if line.strip()), "no message")
    return _NOT_FOR_PEOPLE.sub("", line)
