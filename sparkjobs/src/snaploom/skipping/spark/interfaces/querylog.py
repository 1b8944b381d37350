"""Converts a log of queries to their conditions on the files of one target."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from snaploom.errors import SnaploomError, StatementInvalid
from snaploom.skipping.advice.recommendations import Log, Query
from snaploom.skipping.core.predicates import normal_form
from snaploom.skipping.spark.interfaces.enable import decider_of, setting
from snaploom.skipping.spark.optimizer import requests as settings
from snaploom.skipping.spark.optimizer import rule
from snaploom.skipping.spark.optimizer.requests import Request
from snaploom.skipping.spark.optimizer.translation import catalyst
from snaploom.skipping.spark.relations import fingerprint
from snaploom.skipping.spark.targets.sparktarget import SparkTarget
from snaploom.spark.gate import SqlPlace, checked_statement

FILES_IN_SQL = "spark.sql.runSQLOnFiles"
_PLACE = SqlPlace(None, None, StatementInvalid, "one SELECT, of listed functions")
_WHOLE = re.compile(r"(?is)\s*(SELECT|WITH|FROM)\b")
_WHERE = re.compile(r"(?is)\A\s*WHERE\b")


def read_log(spark: SparkSession, target: SparkTarget, texts: Sequence[str]) -> Log:
    """Analyse queries, or conditions on the target's columns, as Spark does; none is run."""
    queries: list[Query] = []
    doubts: list[str] = []
    for text in (text.strip().rstrip(";") for text in texts):
        if not text or text.startswith("--"):
            continue
        try:
            found = _understood(spark, target, text)
        except (PySparkException, Py4JJavaError, SnaploomError) as error:
            doubts.append(f"{_short(text)}: {_short(str(error))}")
            continue
        queries += found
        if not found:
            doubts.append(f"{_short(text)}: it demands nothing of the rows of the target")
    return Log(tuple(queries), tuple(doubts))


def _understood(spark: SparkSession, target: SparkTarget, text: str) -> list[Query]:
    if not _WHOLE.match(text):
        condition = _WHERE.sub("", text, count=1)
        return [Query(condition, target.predicate(condition))]
    return [
        Query(
            text,
            normal_form(catalyst.predicate(request.filters, fingerprint.columns(request.header))),
        )
        for request in _requests(spark, text)
        if _is_about(request, target)
    ]


def _is_about(request: Request, target: SparkTarget) -> bool:
    uri = target.target.uri
    return any(place == uri or place.startswith(f"{uri}/") for place in request.targets)


def _requests(spark: SparkSession, text: str) -> list[Request]:
    found: dict[tuple[str, str], Request] = {}
    # Sessions of ours refuse files in SQL otherwise; queries of people name them so.
    with _recording(spark) as recorder, setting(spark, FILES_IN_SQL, "true"):
        checked_statement(spark, text, _PLACE)._jdf.queryExecution().optimizedPlan()
    for request in recorder:
        if request.filters:
            found.setdefault((request.name, repr(request.filters)), request)
    return list(found.values())


@contextmanager
def _recording(spark: SparkSession) -> Iterator[list[Request]]:
    requests: list[Request] = []
    trace = secrets.token_hex(8)
    former = decider_of(spark) if rule.is_installed(spark) else None

    def note(text: str) -> str | None:
        request = Request.parse(text)
        if settings.SkippingSettings.of(request.settings).trace != trace:
            return None if former is None else former(text)
        requests.append(request)
        return None

    rule.install(spark, note, settings.REQUESTED)
    try:
        with setting(spark, settings.TRACE, trace):
            yield requests
    finally:
        if former is None:
            rule.uninstall(spark)
        else:
            rule.install(spark, former, settings.REQUESTED, former.concerns)


def _short(text: str) -> str:
    line = " ".join(text.split("\n", 1)[0].split())
    return line if len(line) <= 100 else f"{line[:97]}..."
