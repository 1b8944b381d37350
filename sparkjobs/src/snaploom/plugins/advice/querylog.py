"""Converts a log of queries to their conditions on the files of one target."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from snaploom.errors import SnaploomError, StatementInvalid
from snaploom.plugins.advice.advise import AdviceRequest, advise_target
from snaploom.plugins.advice.recommendations import Log, Query
from snaploom.plugins.advice.report import Report
from snaploom.run.indexes.indexrequests import IndexedPlace
from snaploom.run.indexes.jobs import T, in_session
from snaploom.run.job import JobGroup
from snaploom.run.runevents import Interruption
from snaploom.run.session.spark import translated
from snaploom.skipping.core.predicates import normal_form
from snaploom.skipping.spark.interfaces.enable import decider_of, setting
from snaploom.skipping.spark.interfaces.manage import SkippingIndexes
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


# Advice about files, as a job in a session of Spark.


def advise_files(
    place: IndexedPlace,
    queries: Sequence[str],
    files: int,
    seed: int,
    report: Callable[[str, int, int], None],
    on_tick: Callable[[], None],
    interruption: Interruption,
) -> Report:
    """Estimate which indexes and which order would help; nothing is written.

    Args:
        place: what is looked at, and where the index would be.
        queries: SQL, or conditions over the columns; without any, some are drawn from the data.
        files: how many to read.
        seed: of what is drawn.
        report: takes a label, the number of files done and of all; from any thread.
        on_tick: called several times a second from this thread.
        interruption: from `signal_handlers`.

    Raises:
        SparkNotStarted: there is no Spark to work with.
        SkippingError: there is nothing to advise from.
        Interrupted: somebody asked to stop.
    """

    def work(spark: SparkSession) -> Report:
        target = SkippingIndexes(spark, allow=place.allow).target(place.subject)
        log = read_log(spark, target, queries) if queries else None
        request = AdviceRequest(log, place.store.location, files, seed)
        return advise_target(target, request, lambda done, total: report(place.label, done, total))

    return in_session_at(place, work, on_tick, interruption)


def in_session_at(
    place: IndexedPlace,
    work: Callable[[SparkSession], T],
    on_tick: Callable[[], None],
    interruption: Interruption,
) -> T:
    """Do something with the files of a place, as one job in a session of Spark."""

    def run(spark: SparkSession, group: JobGroup) -> T:
        group.enter(spark, "snaploom-index", place.label)
        with translated(place.owner):
            return work(spark)

    return in_session(place.run, place.settings, place.allow, run, on_tick, interruption)
