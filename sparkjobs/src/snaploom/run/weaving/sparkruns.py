"""Outputs that have something to weave, or sources that only Spark lists: in one session."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from snaploom import ondemand
from snaploom.models.common import now
from snaploom.models.report import Report
from snaploom.plan.bundle import Bundle
from snaploom.run import runevents
from snaploom.run.job import POOL, Job, JobGroup, run_in_group
from snaploom.run.joblog import warnings_as_events
from snaploom.run.runevents import Begin, run_listeners
from snaploom.run.session.providers import OpenedSession
from snaploom.run.session.spark import configured, translated
from snaploom.run.weaving.outputrun import weave_output
from snaploom.run.weaving.parallel import in_parallel
from snaploom.run.weaving.preflight import PlannedRun, PlanRequest
from snaploom.run.weaving.preparation import foreseen, prepare
from snaploom.run.weaving.requests import RunRequest
from snaploom.sources.sourcefiles import SourceFiles
from snaploom.validate.outputs import read_first

if TYPE_CHECKING:
    from snaploom.run.indexes.indexrequests import IndexedPlace


_OTHER_SETTINGS = (
    "{} is woven with the Spark settings of {}, since one session serves all; run it by itself to "
    "use its own"
)


def weave_in_session(
    request: RunRequest,
    indexes: Mapping[str, Sequence[IndexedPlace]],
    files: Mapping[str, SourceFiles],
    opened: OpenedSession,
) -> tuple[Report, ...]:
    """Weave outputs, as `snaploom.run.weaving.runs.weave_outputs` describes it."""
    bundles, options, emit = request.bundles, request.options, request.emit
    interruption = request.interruption
    job = Job(
        now=request.moment,
        clock=now,
        emit=emit,
        interruption=interruption,
        options=options,
        lease=request.lease,
    )
    by_name = {bundle.output.name: bundle for bundle in bundles}
    watch = _Watch(emit, request.on_tick)

    def work() -> tuple[Report, ...]:
        interruption.check()
        spark = opened()
        for bundle in bundles[1:]:
            if configured(bundles[0].output.spec.run) != configured(bundle.output.spec.run):
                names = bundle.output.name, bundles[0].output.name
                emit(runevents.Warned(_OTHER_SETTINGS.format(*names)))
        reports = in_parallel(
            tuple(by_name),
            read_first(bundles),
            options.parallel,
            lambda name: _weave_one(spark, by_name[name], job, watch, begin, files.get(name)),
            lambda: not interruption.is_requested,
        )
        if not reports:
            interruption.check()
        for name, report in reports.items():
            places = indexes.get(name)
            if report.snapshots and places:
                # Indexes change settings of the session, so that nothing else may run meanwhile.
                with watch.watching(job):
                    ondemand.follow_publication(spark, report.run_id, places, job)
        return tuple(reports.values())

    with (
        warnings_as_events(emit),
        run_listeners(os.environ, emit, lambda: interruption.is_requested) as begin,
    ):
        return runevents.run_interruptibly(work, interruption, watch.cancel, watch.tick)


def _weave_one(
    spark: SparkSession,
    bundle: Bundle,
    job: Job,
    watch: _Watch,
    begin: Begin,
    files: SourceFiles | None,
) -> Report:
    name, follower = bundle.output.name, begin(bundle)
    own = replace(job, group=JobGroup())
    if job.options.parallel > 1:
        own = replace(own, emit=lambda event: job.emit(runevents.OfOutput(name, event)))

    def emit(event: runevents.Event) -> None:
        own.emit(event)
        follower.take(event)

    try:
        with translated():
            spark.sparkContext.setLocalProperty(POOL, name)
        with watch.watching(own):
            report = weave_output(spark, bundle, replace(own, emit=emit), files)
    except BaseException:
        follower.broke_off()
        raise
    follower.ended(report)
    return report


class _Watch:
    def __init__(self, emit: runevents.EmitEvent, on_tick: Callable[[], None]) -> None:
        self._emit = emit
        self._on_tick = on_tick
        self._is_cancelled = False
        self._jobs: tuple[Job, ...] = ()
        self._lock = Lock()

    @contextmanager
    def watching(self, job: Job) -> Iterator[None]:
        """The Spark jobs of a run are cancelled and counted, as long as the block lasts."""
        with self._lock:
            self._jobs = (*self._jobs, job)
        try:
            yield
        finally:
            with self._lock:
                self._jobs = tuple(other for other in self._jobs if other is not job)

    def cancel(self) -> None:
        if not self._is_cancelled:
            self._is_cancelled = True
            self._emit(
                runevents.Warned(
                    "interrupted: stopping and cleaning up; interrupt again to leave at once"
                )
            )
        for job in self._jobs:
            job.group.cancel()

    def tick(self) -> None:
        for job in self._jobs:
            progress = job.group.progress()
            if progress.total:
                job.emit(runevents.TasksDone(progress.done, progress.total))
        self._on_tick()


def plan_in_session(
    request: PlanRequest, files: SourceFiles, opened: OpenedSession, *, foresee: bool
) -> PlannedRun:
    """Plan the run of one output; nothing is written.

    With `foresee` the plan has the schemas of its candidates.
    """
    with runevents.signal_handlers() as interruption:
        job = Job(now=request.moment, clock=now, emit=lambda event: None, interruption=interruption)

        def work() -> PlannedRun:
            interruption.check()
            spark = opened()
            job.group.enter(spark, "plan", f"{request.bundle.output.identity}: listing sources")
            with prepare(spark, request, files=files) as prepared:
                if not foresee:
                    return prepared
                return replace(prepared, plan=foreseen(prepared, interruption.check))

        return run_in_group(work, job.group, interruption)
