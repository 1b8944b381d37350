"""Explains why a query reads its files: the indexes that served it, and why others did not."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from pyspark.sql import DataFrame, SparkSession

from snaploom.skipping.core.predicates import size_text, wrapped
from snaploom.skipping.spark.interfaces.enable import decider_of, setting
from snaploom.skipping.spark.optimizer import requests
from snaploom.skipping.spark.optimizer.requests import Request
from snaploom.skipping.spark.optimizer.usage import ClauseOutcome, IndexOutcome, RelationOutcome
from snaploom.skipping.spark.relations.janino import JavaRule

_CLAUSE = 40
"""Columns of the condition in a line about a clause."""


@dataclass(frozen=True)
class Explanation:
    """Effect of skipping on a query; `print` it."""

    relations: tuple[RelationOutcome, ...]
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
        RelationOutcome(name, "", reasons=("no condition of the query reaches its files",))
        for name in dict.fromkeys(names)
        if name not in asked
    )
    return Explanation((*outcomes, *unasked))


def _plan_again(spark: SparkSession, frame: DataFrame) -> None:
    jvm = spark._jvm
    mode = jvm.org.apache.spark.sql.execution.CommandExecutionMode.SKIP()  # type: ignore[union-attr]
    logical = frame._jdf.queryExecution().logical()
    spark._jsparkSession.sessionState().executePlan(logical, mode).optimizedPlan()


def _relation_lines(relation: RelationOutcome) -> Iterator[str]:
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


def _index_lines(index: IndexOutcome) -> Iterator[str]:
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


def _clause_lines(clause: ClauseOutcome) -> Iterator[str]:
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
