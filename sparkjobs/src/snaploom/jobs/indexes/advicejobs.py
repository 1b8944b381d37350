"""Advice about files, and sorting them, as jobs in a session of Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from pyspark.sql import SparkSession

from snaploom.jobs.indexes.indexrequests import IndexedPlace
from snaploom.jobs.indexes.indexsession import in_session
from snaploom.jobs.interruption import Interruption
from snaploom.jobs.job import JobGroup
from snaploom.jobs.session.errortranslation import translated
from snaploom.skipping.advice.report import Report
from snaploom.skipping.advice.sortrequest import SortRequest, SortResult
from snaploom.skipping.spark.interfaces.advise import AdviceRequest, advise_target
from snaploom.skipping.spark.interfaces.manage import SkippingIndexes
from snaploom.skipping.spark.interfaces.querylog import read_log
from snaploom.skipping.spark.interfaces.sort import sort_into

T = TypeVar("T")


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

    return _in_session(place, work, on_tick, interruption)


def sort_files(
    place: IndexedPlace,
    folder: str,
    request: SortRequest,
    on_tick: Callable[[], None],
    interruption: Interruption,
) -> SortResult:
    """Write files, clustered, as a new folder.

    Args:
        place: what is read.
        folder: the new folder.
        request: the order.
        on_tick: called several times a second from this thread.
        interruption: from `signal_handlers`.

    Raises:
        SparkNotStarted: there is no Spark to work with.
        SkippingError: it cannot be done; nothing is left behind.
        Interrupted: somebody asked to stop; nothing is left behind.
    """

    def work(spark: SparkSession) -> SortResult:
        target = SkippingIndexes(spark, allow=place.allow).target(place.subject)
        return sort_into(target, folder, request)

    return _in_session(place, work, on_tick, interruption)


def _in_session(
    place: IndexedPlace,
    work: Callable[[SparkSession], T],
    on_tick: Callable[[], None],
    interruption: Interruption,
) -> T:
    def run(spark: SparkSession, group: JobGroup) -> T:
        group.enter(spark, "snaploom-index", place.label)
        with translated(place.owner):
            return work(spark)

    return in_session(place.run, place.settings, place.allow, run, on_tick, interruption)
