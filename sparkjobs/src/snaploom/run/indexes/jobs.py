"""Skipping indexes as jobs in a session: create, refresh, apply and describe."""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from pyspark.sql import SparkSession

from snaploom.errors import IndexNotFound, Interrupted, SnaploomError, StatementInvalid
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.findings import InvalidDeclarations, make_finding
from snaploom.models.run import RunSettings
from snaploom.run.indexes import indexrequests
from snaploom.run.job import Job, JobGroup, run_in_group
from snaploom.run.joblog import warnings_as_events
from snaploom.run.runevents import Event, IndexFollowed, Interruption, Warned
from snaploom.run.session.spark import build_session, translated
from snaploom.skipping.lifecycle.declaration import Declaration, DeclarationNotPossible
from snaploom.skipping.lifecycle.operations import RefreshResult
from snaploom.skipping.spark.interfaces.enable import enable, explain
from snaploom.skipping.spark.interfaces.manage import SkippingIndexes
from snaploom.skipping.statements.syntax import Properties
from snaploom.spark.gate import SqlPlace, checked_statement

# The session of Spark in which commands about skipping indexes work, and how their work ends.

T = TypeVar("T")


def in_session(
    run: RunSettings,
    settings: Properties,
    allow: Allowances,
    work: Callable[[SparkSession, JobGroup], T],
    on_tick: Callable[[], None],
    interruption: Interruption,
) -> T:
    """Do something with Spark in a thread of its own.

    `settings` win over those of `run`; `on_tick` is called several times a second from this thread.
    """
    group = JobGroup()

    def begun() -> T:
        interruption.check()
        return work(build_session("snaploom index", run, allow, settings), group)

    return run_in_group(begun, group, interruption, on_tick)


# Skipping indexes as jobs: create, refresh, apply and describe them, in one session of Spark.

FILES_IN_SQL = "spark.sql.runSQLOnFiles"
"""Spark's setting that allows SQL to read files by their path."""

_EXPLAINED = SqlPlace(None, None, StatementInvalid, "one SELECT, of listed functions")

ReportProgress = Callable[[str, int, int], None]
"""Takes a label, the number of files done and of all."""


def carry_out(
    requests: Sequence[indexrequests.IndexRequest],
    progress: ReportProgress,
    on_tick: Callable[[], None],
    interruption: Interruption,
) -> tuple[indexrequests.IndexReport, ...]:
    """Carry out requests one after the other; the first failure ends it.

    One session serves all, with the settings of the first; `progress` is called from any thread.
    """
    first = requests[0].place
    warnings: list[str] = []

    def work(spark: SparkSession, group: JobGroup) -> tuple[indexrequests.IndexReport, ...]:
        reports = []
        for number, request in enumerate(requests):
            interruption.check()
            group.enter(spark, f"snaploom-index-{number}", request.place.label)
            warnings.clear()
            with translated():
                report = carry_out_one(spark, request, report_progress)
            reports.append(replace(report, warnings=(*report.warnings, *warnings)))
        return tuple(reports)

    def report_progress(label: str, done: int, files: int) -> None:
        # What reads files without Spark is stopped here: between two pieces of them.
        interruption.check()
        progress(label, done, files)

    def note(event: Event) -> None:
        if isinstance(event, Warned):
            warnings.append(event.message)

    try:
        with warnings_as_events(note):
            return in_session(first.run, first.settings, first.allow, work, on_tick, interruption)
    except Interrupted as error:
        raise interrupted(is_left=interruption.is_insisted_on) from error


def interrupted(*, is_left: bool) -> Interrupted:
    """The error about a command that somebody stopped.

    `is_left`: it was left at once, so that what it began was not put back.
    """
    if is_left:
        return Interrupted(
            "interrupted twice, and left at once",
            found="an operation that may still be noted as being in flight",
            hint="queries use what was there before; the next command about this index puts it in "
            "order, one minute from now",
        )
    return Interrupted(
        "interrupted",
        found="work that was not done yet; what was under way is put back",
        hint="queries use what was there before; run the command again, or "
        "`snaploom index refresh` where the index was created",
    )


def follow_publication(
    spark: SparkSession, run_id: str, places: Sequence[indexrequests.IndexedPlace], job: Job
) -> None:
    """Bring the indexes of an output up to date with what a run published; never fails the run.

    A failed refresh is a warning: queries read the files that the index does not know.
    """
    if job.interruption.is_requested:
        return
    for number, place in enumerate(places):
        request = indexrequests.IndexRequest(indexrequests.IndexAction.APPLY, place)
        try:
            with translated(place.owner):
                job.group.enter(spark, f"{run_id}-index-{number}", place.label)
                report = carry_out_one(spark, request, lambda label, done, files: None)
            job.emit(IndexFollowed(report.label, report.done))
        except SnaploomError as error:
            job.emit(Warned(f"{place.label} was not refreshed: {error}"))


def explain_query(
    query: str, locations: Sequence[str], settings: Properties, interruption: Interruption
) -> indexrequests.Explained:
    """Plan a query, and return which files it would read and why; nothing is run.

    In SQL, ``parquet.`/path` `` reads files without a table.

    Raises:
        SkippingNotAvailable: a Spark that the optimizer rule does not fit.
    """

    def work(spark: SparkSession, group: JobGroup) -> indexrequests.Explained:
        group.enter(spark, "snaploom-explain", "planning a query")
        with translated():
            # Sessions of ours refuse files in SQL, so that declared queries read only what is
            # declared; here a person asks for them.
            spark.conf.set(FILES_IN_SQL, "true")
            enable(spark, *locations)
            explanation = explain(checked_statement(spark, query, _EXPLAINED))
        return indexrequests.Explained(str(explanation), json.loads(explanation.to_json()))

    return in_session(RunSettings(), settings, NO_ALLOWANCES, work, lambda: None, interruption)


def carry_out_one(
    spark: SparkSession, request: indexrequests.IndexRequest, progress: ReportProgress
) -> indexrequests.IndexReport:
    """Do one thing in a session that is there."""
    place = request.place
    indexes = SkippingIndexes(
        spark,
        location=place.store.location,
        acting_for=place.owner,
        allow=place.allow,
        progress=lambda done, files: progress(place.label, done, files),
    )
    try:
        done = _act(indexes, request)
    except DeclarationNotPossible as error:
        if place.owner:
            raise InvalidDeclarations(
                [
                    make_finding(
                        "SL186",
                        problem.message,
                        resource=place.owner,
                        path=f"spec.{path}",
                        found=problem.found or "",
                        expected=problem.expected or "",
                        hint=problem.hint or "",
                    )
                    for path, problem in error.problems
                ]
            ) from error
        raise
    except SnaploomError as error:
        error.resource = error.resource or place.owner or None
        raise
    description = indexes.describe(
        place.subject, place.store, is_counted=request.action is indexrequests.IndexAction.DESCRIBE
    )
    if request.action is indexrequests.IndexAction.DESCRIBE and not (
        description.definition or description.problem
    ):
        raise IndexNotFound(
            "there is no skipping index",
            resource=place.owner or None,
            found=f"nothing about {place.subject.label} in {description.uri}",
        )
    return indexrequests.IndexReport(place.label, done, description)


def _act(indexes: SkippingIndexes, request: indexrequests.IndexRequest) -> tuple[str, ...]:
    place = request.place
    subject, store = place.subject, place.store

    def declared() -> Declaration:
        if place.declaration is None:
            raise ValueError(f"{request.action} needs a declaration")
        return place.declaration

    match request.action:
        case indexrequests.IndexAction.CREATE:
            state = indexes.create(
                subject, declared(), store, ignore_if_exists=request.ignore_if_exists
            )
            return (f"created, version {state.version}",)
        case indexrequests.IndexAction.BUILD:
            indexes.create(subject, declared(), store, ignore_if_exists=request.ignore_if_exists)
            return (_summary(indexes.refresh(subject)),)
        case indexrequests.IndexAction.REFRESH:
            return (_summary(indexes.refresh(subject, request.mode)),)
        case indexrequests.IndexAction.APPLY:
            return indexes.apply(subject, declared(), store).steps
        case indexrequests.IndexAction.PLAN:
            return indexes.plan(subject, declared(), store).steps
        case indexrequests.IndexAction.IMPORT:
            result = indexes.import_(
                subject, request.directory, store, is_trusted=request.is_trusted
            )
            return (str(result),)
        case indexrequests.IndexAction.DELETE:
            # Each where it is still to be done, so that it can be done again.
            done = []
            with suppress(IndexNotFound):
                indexes.drop(subject)
                done.append("dropped")
            with suppress(IndexNotFound):
                indexes.vacuum(subject)
                done.append("its files removed")
            return tuple(done)
        case indexrequests.IndexAction.DESCRIBE:
            return ()


def _summary(result: RefreshResult) -> str:
    left_out = f"; {result.left_out} could not be indexed" if result.left_out else ""
    return f"refreshed, {result.plan}{left_out}"
