"""The run of one output: visit the steps of the plan, publish each snapshot, return the Report.

Snapshots of one output are woven one after the other, and each is one atomic publication. A
snapshot that fails ends the run of its output: what is committed stays, what is left is for the
next run (rule W30). What is known to fail fails before anything is written (rule W18).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace

from pyspark.sql import SparkSession

import snaploom
from snaploom.engine.schemachecks import MissingField
from snaploom.errors import (
    Interrupted,
    LeaseNotObtained,
    PublicationError,
    RunRevoked,
    SnaploomError,
    SnapshotMissing,
    StorageError,
)
from snaploom.jobs.job import Job
from snaploom.jobs.reports.runrecord import RunRecord, SessionFacts
from snaploom.jobs.runevents import RunEstimated, SnapshotStarted
from snaploom.jobs.session.errortranslation import SparkStopped
from snaploom.jobs.session.spark import result_settings
from snaploom.jobs.weaving.clocks import check_clock, never_before, newest_moment
from snaploom.jobs.weaving.folderlease import holding_lease, leave_to_others
from snaploom.jobs.weaving.preparation import (
    Prepared,
    estimate,
    folder_store,
    prepare,
    table_library,
)
from snaploom.jobs.weaving.registration import TableRegistration
from snaploom.jobs.weaving.retention import delete_old_snapshots
from snaploom.jobs.weaving.sharedsubtrees import Sharing
from snaploom.jobs.weaving.snapshot import SnapshotWeaver
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.report import Report, SnapshotReason
from snaploom.models.times import EpochNanos, format_instant
from snaploom.planning.availability import Action
from snaploom.planning.bundle import Bundle
from snaploom.planning.plan import PlannedSnapshot
from snaploom.storage.fixedsettings import folder_identity, folder_settings
from snaploom.storage.folder import Folder, open_folder, prepare_folder
from snaploom.storage.layout import new_run_id
from snaploom.storage.publication import AlreadyPublished
from snaploom.storage.runcleanup import store_present, sweep
from snaploom.storage.writeridentity import Run

_ENDS = (Interrupted, SparkStopped, RunRevoked, LeaseNotObtained)
"""What ends a run, whatever else it may be asked to go on after."""


def weave_output(spark: SparkSession, bundle: Bundle, job: Job) -> Report:
    """Weave and publish every snapshot of one output that is due.

    Whatever goes wrong is in the Report; only faults of Snaploom itself are raised.
    """
    output = bundle.output
    run = Run(new_run_id(job.clock()), snaploom.__version__, job.clock, job.reached)
    facts = SessionFacts(spark.version, result_settings(spark))
    record = RunRecord(bundle, run.run_id, job, facts)
    try:
        job.interruption.check()
        job.group.enter(spark, f"{run.run_id}-plan", f"{output.identity}: listing sources")
        options = job.options
        with prepare(
            spark, bundle, job.now, job.limit, record.observations, options.selection, job.clock,
            options.allow, options.is_strict,
        ) as prepared:  # fmt: skip
            for message in check_clock(bundle, prepared.state, job.clock()):
                record.warn(message)
            clock = never_before(job.clock, newest_moment(prepared.state))
            _estimate(prepared, job)
            _visit(spark, prepared, replace(run, clock=clock), job, record)
    except SnaploomError as error:
        record.stop(_reason_behind(job, error))
    return record.report()


def _visit(spark: SparkSession, prepared: Prepared, run: Run, job: Job, record: RunRecord) -> None:
    snapshots = prepared.plan.snapshots or ()
    due = [planned for planned in snapshots if planned.action is Action.PUBLISH]
    failing = [planned for planned in snapshots if planned.action is Action.FAIL]
    record.plan(prepared.plan, len(due))
    for planned in snapshots:
        if planned.action is Action.SKIP:
            record.leave_out(planned, planned.reason, planned.message, warn=planned.warn)
    for planned in failing:
        # Retention would delete what is to be restated, or a source has no snapshot for it.
        if planned.reason is SnapshotReason.RETENTION:
            identity, path = prepared.bundle.output.identity, "spec.outputFolder.snapshotAutoDelete"
            record.fail(
                planned,
                planned.reason,
                planned.message,
                PublicationError,
                resource=identity,
                path=path,
            )
        else:
            record.fail(planned, planned.reason, planned.message, SnapshotMissing)
    if failing and not job.options.keep_going:
        for planned in due:
            message = f"left for the next run: {failing[0].message}"
            record.leave_out(planned, SnapshotReason.EARLIER_FAILURE, message)
    elif due:
        _weave(due, spark, prepared, run, job, record)
    elif prepared.state.timeline:
        _keep_listings(prepared, record)
        output = prepared.bundle.output
        _register(spark, output, open_folder(folder_store(output)), record)


def _weave(
    due: Sequence[PlannedSnapshot],
    spark: SparkSession,
    prepared: Prepared,
    run: Run,
    job: Job,
    record: RunRecord,
) -> None:
    output = prepared.bundle.output
    try:
        folder = _begin(spark, output, run)
    except SnaploomError as error:
        record.give_up(due, _reason_behind(job, error))
        return
    with ExitStack() as held:
        try:
            check = held.enter_context(holding_lease(folder, run, job))
        except SnaploomError as error:
            leave_to_others(folder, due, job, record, _reason_behind(job, error))
        else:
            _weave_each(due, spark, prepared, run, job, record, folder, check)
    _see_newest(folder, record)


def _weave_each(
    due: Sequence[PlannedSnapshot],
    spark: SparkSession,
    prepared: Prepared,
    run: Run,
    job: Job,
    record: RunRecord,
    folder: Folder,
    check: Callable[[], None],
) -> None:
    output = prepared.bundle.output
    _keep_listings(prepared, record)
    sharing = Sharing(spark, prepared, due, run.run_id, record.warn)
    weaver = SnapshotWeaver(spark, prepared, run, job, folder, record.observations, sharing)
    for index, planned in enumerate(due):
        job.emit(SnapshotStarted(index + 1, len(due), planned.time))
        try:
            job.interruption.check()
            check()
            coming = [later.time for later in due[index + 1 :]]
            stopped = _weave_one(weaver, planned, f"{run.run_id}-{index}", record, coming)
        except SnaploomError as error:
            behind = _reason_behind(job, error)
            record.give_up(_given_up(due[index:], job, behind), behind)
            if not _goes_on(job, behind):
                break
        else:
            if stopped is not None:
                behind, reason = stopped.error(), SnapshotReason(stopped.reason.value)
                record.give_up(_given_up(due[index:], job, behind), behind, reason)
                if not _goes_on(job, behind):
                    break
        _register(spark, output, folder, record)
    else:
        # A run that ends early leaves this to the next.
        if prepared.plan.collecting is not None:
            _collect(folder, run, job, record, check)
    sharing.close()


def _keep_listings(prepared: Prepared, record: RunRecord) -> None:
    """Leave what was learned of files to the next run, which asks again where that fails."""
    try:
        prepared.listings.keep()
    except SnaploomError as error:
        record.warn(f"the listing cache is not written: {error.message}")


def _goes_on(job: Job, error: SnaploomError) -> bool:
    """Whether the next snapshot has its turn after one that failed."""
    return job.options.keep_going and not isinstance(error, _ENDS)


def _given_up(
    remaining: Sequence[PlannedSnapshot], job: Job, error: SnaploomError
) -> Sequence[PlannedSnapshot]:
    return remaining[:1] if _goes_on(job, error) else remaining


def _estimate(prepared: Prepared, job: Job) -> None:
    """Emit an estimate of a backfill, before it begins."""
    selection = job.options.selection
    if selection.first is None and selection.end is None:
        return
    job.emit(RunEstimated(prepared.bundle.output.name, estimate(prepared)))


def _begin(spark: SparkSession, output: OutputDataset, run: Run) -> Folder:
    return prepare_folder(
        folder_store(output, create=True),
        folder_settings(output),
        folder_identity(output),
        run,
        accept_root_change=output.spec.run.accept_root_change,
        adopt_folder=output.spec.run.adopt_folder,
        reader_grace=output.spec.output_folder.reader_grace,
        library=table_library(spark, output),
    )


def _weave_one(
    weaver: SnapshotWeaver,
    planned: PlannedSnapshot,
    group: str,
    record: RunRecord,
    coming: Sequence[EpochNanos],
) -> MissingField | None:
    """Weave one snapshot and record its outcome; a missing field whose mode is ERROR is left."""
    outcome = weaver.weave(planned, group)
    if isinstance(outcome, MissingField):
        is_restated = weaver.job.options.selection.restated is not None
        if is_restated or not outcome.mode.skips:
            return outcome
        reason = SnapshotReason(outcome.reason.value)
        record.leave_out(planned, reason, outcome.message, warn=outcome.mode.warns)
    elif isinstance(outcome, AlreadyPublished):
        message = f"run {outcome.record.run_id} published it meanwhile"
        record.leave_out(planned, SnapshotReason.ALREADY_PUBLISHED, message)
    else:
        record.publish(outcome.record, weaver.seconds, weaver.warnings, weaver.columns)
        _delete_old(weaver, record, coming)
        _see_newest(weaver.folder, record)
        record.show_published()
    return None


def _delete_old(weaver: SnapshotWeaver, record: RunRecord, coming: Sequence[EpochNanos]) -> None:
    """Apply retention; the snapshot is published whatever comes of it."""
    try:
        gone = delete_old_snapshots(
            weaver.folder, weaver.run, weaver.output, weaver.job.now, coming
        )
    except SnaploomError as error:
        record.warn(
            f"old snapshots were not deleted, which the next publication tries again: "
            f"{error.message}"
        )
        return
    for time in gone:
        record.warn(f"deleted snapshot {format_instant(time)} (snapshotAutoDelete)")


def _collect(
    folder: Folder, run: Run, job: Job, record: RunRecord, check: Callable[[], None]
) -> None:
    """Remove files of ended snapshots whose grace has passed; the run has done its work anyway."""
    try:
        job.interruption.check()
        check()
    except SnaploomError:
        return  # another run, or the next one, does it
    try:
        present = store_present(folder.store, folder.log.read(), run.clock())
        record.collect(sweep(folder, run, present))
    except SnaploomError as error:
        record.warn(
            "files of deleted and replaced snapshots were not all removed, which the next run and "
            f"'snaploom gc' try again: {error}"
        )


def _register(
    spark: SparkSession, output: OutputDataset, folder: Folder, record: RunRecord
) -> None:
    """Bring the catalog table up to date; what is published is, whatever comes of it."""
    if output.spec.output_folder.register_table is None:
        return
    registration = TableRegistration(spark, output, folder)
    is_first = record.registered is None
    try:
        state = folder.log.read()
        if state.timeline:
            record.registered = registration.bring_up_to(state)
    except SnaploomError as error:
        record.registered = None
        record.warn(f"the table is not up to date; the next run updates it: {error.message}")
        return
    if is_first and registration.is_private:
        record.warn(
            "the session's catalog is kept in memory, so that nobody else sees the table "
            "(spark.sql.catalogImplementation: hive)"
        )


def _see_newest(folder: Folder, record: RunRecord) -> None:
    """Let the Report point to the manifest as it is now; what was published is known anyway."""
    try:
        record.observations.state = folder.log.read()
    except StorageError as error:
        record.warn(f"the manifest cannot be read any more: {error.message}")


def _reason_behind(job: Job, error: SnaploomError) -> SnaploomError:
    """Report errors after an interrupt or the end of Spark as that cause."""
    try:
        job.interruption.check()
    except Interrupted as interrupted:
        return interrupted
    return job.group.stopped() or error
