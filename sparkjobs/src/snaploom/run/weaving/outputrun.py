"""The run of one output: lease the folder, visit the steps of the plan, publish each snapshot."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace

from pyspark.sql import SparkSession

from snaploom.engine.schemachecks import MissingField
from snaploom.engine.write import read_files
from snaploom.errors import Interrupted, LeaseNotObtained, RunRevoked, SnaploomError, StorageError
from snaploom.installed import VERSION
from snaploom.models.common import EpochNanos, format_instant
from snaploom.models.report import Report, SnapshotReason
from snaploom.output.folder import Folder, Run, open_folder, prepare_folder
from snaploom.output.gc import store_present, sweep
from snaploom.output.history import folder_identity, folder_settings, left_open
from snaploom.output.layout import new_run_id
from snaploom.output.leaseholder import LeaseKeeper
from snaploom.output.manifest import read_schema
from snaploom.output.publication import AlreadyPublished
from snaploom.plan.bundle import Bundle
from snaploom.plan.plan import PlannedSnapshot
from snaploom.run.job import POOL, Job
from snaploom.run.reports.record import RunRecord, SessionFacts
from snaploom.run.runevents import LeaseAwaited, SnapshotStarted
from snaploom.run.session.accelerator import Fallbacks, used_by
from snaploom.run.session.spark import SparkStopped, result_settings, translated
from snaploom.run.weaving import datafindings
from snaploom.run.weaving.history import delete_old_snapshots
from snaploom.run.weaving.inputs import Sharing
from snaploom.run.weaving.parallel import OrderedWork, Turn
from snaploom.run.weaving.preflight import PlanRequest, begin, never_before, newest_moment
from snaploom.run.weaving.preparation import OutputRun, folder_store, prepare, table_library
from snaploom.run.weaving.registration import TableRegistration
from snaploom.run.weaving.snapshot import SnapshotWeaver, WovenSnapshot
from snaploom.sources.sourcefiles import SourceFiles
from snaploom.spark.types import struct_from
from snaploom.types.schemas import parse_schema

_log = logging.getLogger(__name__)

# Holds the lease of an output folder during a run, so that one run at a time works on it.


@contextmanager
def holding_lease(folder: Folder, run: Run, job: Job) -> Iterator[Callable[[], None]]:
    """Hold the lease of a folder as long as the block lasts, where the job has leases.

    Yields:
        Function that raises `LeaseNotObtained` when no further snapshot is to be begun.

    Raises:
        LeaseNotObtained: another run is at work.
    """
    if job.lease is None:
        yield job.interruption.check
        return

    def wait(seconds: float) -> None:
        time.sleep(seconds)
        job.interruption.check()

    keeper = LeaseKeeper(job.lease(folder, run), run.run_id, job.terms, wait=wait)
    with keeper.keeping(lambda rival: job.emit(LeaseAwaited(rival))):
        yield keeper.check


def leave_to_others(
    folder: Folder,
    due: Sequence[PlannedSnapshot],
    job: Job,
    record: RunRecord,
    error: SnaploomError,
) -> None:
    """Give up what is due, except for what another run has published meanwhile."""
    left = due
    if isinstance(error, LeaseNotObtained) and job.options.selection.restated is None:
        state = folder.log.read()
        left = [planned for planned in due if planned.time not in state.live]
        for planned in due:
            if planned.time in state.live:
                message = f"already published by run {state.live[planned.time].run_id}"
                record.leave_out(planned, SnapshotReason.ALREADY_PUBLISHED, message)
    if left:
        record.give_up(left, error)


# The run of one output: visit the steps of the plan, publish each snapshot, return the Report.

_ENDS = (Interrupted, SparkStopped, RunRevoked, LeaseNotObtained)
"""Errors that end a run, also one that goes on after others."""


def weave_output(
    spark: SparkSession, bundle: Bundle, job: Job, files: SourceFiles | None = None
) -> Report:
    """Weave and publish every snapshot of one output that is due.

    Whatever goes wrong is in the Report; only faults of Snaploom itself are raised.
    """
    output = bundle.output
    run = Run(new_run_id(job.clock()), VERSION, job.clock, job.reached)
    facts = SessionFacts(
        spark.version,
        result_settings(spark),
        used_by(spark),
        Fallbacks(spark, output.identity).look,
    )
    record = RunRecord(bundle, run.run_id, job.emit, job.clock, facts)
    try:
        job.interruption.check()
        job.group.enter(spark, f"{run.run_id}-plan", f"{output.identity}: listing sources")
        request = PlanRequest(bundle, job.now, job.options)
        with prepare(spark, request, record.observations, job.clock, files) as prepared:
            due = begin(prepared, record, job.options, job.clock, job.emit)
            clock = never_before(job.clock, newest_moment(prepared.state))
            this = OutputRun(spark, prepared, replace(run, clock=clock), job, record)
            if due:
                _weave(this, due)
            elif prepared.state.timeline:
                _keep_listings(this)
                _register(this, open_folder(folder_store(output)))
    except SnaploomError as error:
        record.stop(_reason_behind(job, error))
    return record.kept_report(lambda: folder_store(output))


def _weave(run: OutputRun, due: Sequence[PlannedSnapshot]) -> None:
    job, record, output = run.job, run.record, run.output
    try:
        folder = prepare_folder(
            folder_store(output, create=True),
            folder_settings(output),
            folder_identity(output),
            run.writer,
            open_names=left_open(output),
            accept_root_change=output.spec.run.accept_root_change,
            adopt_folder=output.spec.run.adopt_folder,
            reader_grace=output.spec.output_folder.reader_grace,
            library=table_library(run.spark, output),
        )
    except SnaploomError as error:
        record.give_up(due, _reason_behind(job, error))
        return
    with ExitStack() as held:
        try:
            check = held.enter_context(holding_lease(folder, run.writer, job))
        except SnaploomError as error:
            leave_to_others(folder, due, job, record, _reason_behind(job, error))
        else:
            _weave_each(run, due, folder, check)
    _see_newest(folder, record)
    _sample(run, folder)


def _sample(run: OutputRun, folder: Folder) -> None:
    """Take some rows of the newest snapshot, if this run published it, for pages."""
    state = run.record.observations.state
    newest = None if state is None else next(iter(state.timeline[-1:]), None)
    if state is None or newest is None or not datafindings.shows_samples(run.output):
        return
    record = state.records.live(newest)
    if record.run_id != run.writer.run_id or not record.files:
        return
    try:
        text = read_schema(folder.store, record.schema_hash)
        uri = f"{folder.store.uri}{record.files[0].path}"
        data_format = run.output.spec.output_folder.data_format
        with translated():
            frame = read_files(run.spark, [uri], data_format, struct_from(text))
            found = [
                row.asDict(recursive=True)
                for row in frame.limit(datafindings.SAMPLE_ROWS).collect()
            ]
    except SnaploomError as error:
        _log.info("no rows are sampled: %s", error)
        return
    run.record.sample = datafindings.sample_texts(parse_schema(text, ""), found)


def _weave_each(
    run: OutputRun, due: Sequence[PlannedSnapshot], folder: Folder, check: Callable[[], None]
) -> None:
    job, record = run.job, run.record
    _keep_listings(run)
    run_id = run.writer.run_id
    sharing = Sharing(run.spark, run.prepared, due, run_id, record.warn)
    weaver = SnapshotWeaver(run, folder, sharing, due)
    most = job.options.parallel_snapshots
    with translated():
        pool = run.spark.sparkContext.getLocalProperty(POOL)

    def work(index: int, turn: Turn) -> WovenSnapshot:
        with job.group.of_thread() if most > 1 else nullcontext():
            if pool is not None:
                with translated():
                    run.spark.sparkContext.setLocalProperty(POOL, pool)
            return weaver.weave(due[index], f"{run_id}-{index}", turn)

    def may_begin(index: int, others: AbstractSet[int]) -> bool:
        return not job.interruption.is_requested and sharing.is_ready(
            due[index].time, [due[other].time for other in others]
        )

    works = OrderedWork(work, len(due), most, may_begin, job.group.cancel)
    try:
        _publish_each(run, due, folder, check, works, sharing)
    finally:
        works.close()
        weaver.close()
        sharing.forget()
    sharing.close()


def _publish_each(
    run: OutputRun,
    due: Sequence[PlannedSnapshot],
    folder: Folder,
    check: Callable[[], None],
    works: OrderedWork[WovenSnapshot],
    sharing: Sharing,
) -> None:
    job, record = run.job, run.record
    for index, planned in enumerate(due):
        job.emit(SnapshotStarted(index + 1, len(due), planned.time))
        stopped: SnaploomError | None = None
        reason: SnapshotReason | None = None
        try:
            job.interruption.check()
            check()
            woven = works.outcome(index)
            coming = [later.time for later in due[index + 1 :]]
            missing = _record_outcome(run, folder, planned, woven, coming)
            if missing is not None:
                stopped, reason = missing.error(), SnapshotReason(missing.reason.value)
        except SnaploomError as error:
            stopped = _reason_behind(job, error)
        sharing.done(planned.time)
        if stopped is not None:
            goes_on = job.options.keep_going and not isinstance(stopped, _ENDS)
            record.give_up(due[index : index + 1] if goes_on else due[index:], stopped, reason)
            if not goes_on:
                break
        _register(run, folder)
    else:
        # A run that ends early leaves this to the next.
        if run.prepared.plan.collecting is not None:
            _collect(run, folder, check)


def _keep_listings(run: OutputRun) -> None:
    """Keep the listings of files for the next run, which lists again where that fails."""
    try:
        run.prepared.listings.keep()
    except SnaploomError as error:
        run.record.warn(f"the listing cache is not written: {error.message}")


def _record_outcome(
    run: OutputRun,
    folder: Folder,
    planned: PlannedSnapshot,
    woven: WovenSnapshot,
    coming: Sequence[EpochNanos],
) -> MissingField | None:
    record, outcome = run.record, woven.outcome
    if isinstance(outcome, MissingField):
        is_restated = run.job.options.selection.restated is not None
        if is_restated or not outcome.mode.skips:
            return outcome
        reason = SnapshotReason(outcome.reason.value)
        record.leave_out(planned, reason, outcome.message, warn=outcome.mode.warns)
    elif isinstance(outcome, AlreadyPublished):
        message = f"already published by run {outcome.record.run_id}"
        record.leave_out(planned, SnapshotReason.ALREADY_PUBLISHED, message)
    else:
        result = outcome.result
        record.publish(
            outcome.record, woven.seconds, woven.warnings, result.columns, result.unmatched
        )
        bundle, tree = run.prepared.bundle, run.prepared.plan.tree
        record.find(datafindings.snapshot_findings(bundle, tree, outcome.record, result.unmatched))
        record.find(datafindings.newest_columns(folder, tree, outcome.record.time))
        _delete_old(run, folder, coming)
        _see_newest(folder, record)
        record.show_published()
    return None


def _delete_old(run: OutputRun, folder: Folder, coming: Sequence[EpochNanos]) -> None:
    try:
        gone = delete_old_snapshots(folder, run.writer, run.output, run.job.now, coming)
    except SnaploomError as error:
        run.record.warn(
            f"old snapshots were not deleted, which the next publication tries again: "
            f"{error.message}"
        )
        return
    for instant in gone:
        run.record.warn(f"deleted snapshot {format_instant(instant)} (snapshotAutoDelete)")


def _collect(run: OutputRun, folder: Folder, check: Callable[[], None]) -> None:
    """Remove files of ended snapshots whose grace has passed; the run has done its work anyway."""
    try:
        run.job.interruption.check()
        check()
    except SnaploomError:
        return  # another run, or the next one, does it
    try:
        present = store_present(folder.store, folder.log.read(), run.writer.clock())
        run.record.collect(sweep(folder, run.writer, present))
    except SnaploomError as error:
        run.record.warn(
            "files of deleted and replaced snapshots were not all removed, which the next run and "
            f"'snaploom gc' try again: {error}"
        )


def _register(run: OutputRun, folder: Folder) -> None:
    """Bring the catalog table up to date; publications stand if it fails."""
    record = run.record
    if run.output.spec.output_folder.register_table is None:
        return
    registration = TableRegistration(run.spark, run.output, folder)
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
    return job.interruption.cause or job.group.stopped() or job.group.explained(error)
