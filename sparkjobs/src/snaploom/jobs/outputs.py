"""Several outputs in one session, one after the other: `snaploom run`, and a cluster's job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from snaploom.jobs.estimating import Estimate
from snaploom.jobs.events import TasksDone, Tell, Warned
from snaploom.jobs.indexing import follow_publication
from snaploom.jobs.indexrequests import IndexedPlace
from snaploom.jobs.interruption import Interruption, hearing_signals, run_interruptibly
from snaploom.jobs.job import Job
from snaploom.jobs.logs import told_as_events
from snaploom.jobs.preparation import Prepared, estimate, prepare
from snaploom.jobs.runoptions import AS_DECLARED, RunOptions
from snaploom.jobs.session import build_session, configured
from snaploom.jobs.weaving import weave_output
from snaploom.models.report import Report
from snaploom.models.times import EpochNanos, now
from snaploom.planning.bundle import Bundle
from snaploom.planning.plan import RunPlan
from snaploom.planning.selection import EVERYTHING, Selection

NO_INDEXES: Mapping[str, Sequence[IndexedPlace]] = {}


def weave_outputs(
    bundles: Sequence[Bundle],
    moment: EpochNanos,
    limit: int | None,
    tell: Tell,
    on_tick: Callable[[], None],
    interruption: Interruption,
    indexes: Mapping[str, Sequence[IndexedPlace]] = NO_INDEXES,
    options: RunOptions = AS_DECLARED,
) -> tuple[Report, ...]:
    """Weave outputs one after the other; an interruption ends the current one cleanly.

    A failed output does not keep the others from their turn; an interruption does.

    Args:
        bundles: the outputs.
        moment: the instant of planning.
        limit: snapshots to publish at most, of each output.
        tell: takes events, from any thread.
        on_tick: called several times a second from this thread.
        interruption: from `hearing_signals`.
        indexes: by name of output, indexes that follow its publications (`trigger: ON_PUBLISH`).
        options: what is asked beyond the declarations.

    Raises:
        SparkNotStarted: there is no Spark to work with.
        Interrupted: before the first output was begun, or by somebody who insisted.
    """
    job = Job(
        now=moment,
        clock=now,
        tell=tell,
        interruption=interruption,
        limit=limit,
        options=options,
    )

    def work() -> tuple[Report, ...]:
        interruption.check()
        spark = build_session("snaploom", bundles[0].output.spec.run)
        for bundle in bundles[1:]:
            _warn_of_other_settings(bundles[0], bundle, tell)
        reports: list[Report] = []
        for bundle in bundles:
            reports.append(weave_output(spark, bundle, job))
            if reports[-1].snapshots:
                places = indexes.get(bundle.output.name, ())
                follow_publication(spark, reports[-1].run_id, places, job)
            if interruption.is_requested:
                break
        return tuple(reports)

    watch = _Watch(job, on_tick)
    with told_as_events(tell):
        return run_interruptibly(work, interruption, watch.cancel, watch.tick)


class _Watch:
    """What the main thread does while the work goes on."""

    def __init__(self, job: Job, on_tick: Callable[[], None]) -> None:
        self._job = job
        self._on_tick = on_tick
        self._is_cancelled = False

    def cancel(self) -> None:
        if not self._is_cancelled:
            self._is_cancelled = True
            self._job.tell(
                Warned("interrupted: stopping and cleaning up; interrupt again to leave at once")
            )
        self._job.group.cancel()

    def tick(self) -> None:
        progress = self._job.group.progress()
        if progress.total:
            self._job.tell(TasksDone(progress.done, progress.total))
        self._on_tick()


def preview(bundle: Bundle, moment: EpochNanos, limit: int | None) -> RunPlan:
    """The plan that a run would visit now, after preflight; writes nothing.

    Raises:
        SnaploomError: what preflight finds, as `prepare` raises it.
        Interrupted: somebody pressed Ctrl-C.
    """
    return _looked_ahead(bundle, moment, limit, EVERYTHING).plan


def estimated(
    bundle: Bundle, moment: EpochNanos, limit: int | None, selection: Selection
) -> Estimate:
    """About what it would take to publish what is selected; writes nothing.

    Raises:
        SnaploomError: what preflight finds, as `prepare` raises it.
        Interrupted: somebody pressed Ctrl-C.
    """
    return estimate(_looked_ahead(bundle, moment, limit, selection))


def _looked_ahead(
    bundle: Bundle, moment: EpochNanos, limit: int | None, selection: Selection
) -> Prepared:
    def work() -> Prepared:
        interruption.check()
        spark = build_session("snaploom plan", bundle.output.spec.run)
        job.group.enter(spark, "plan", f"{bundle.output.identity}: listing sources")
        return prepare(spark, bundle, moment, limit, selection=selection)

    with hearing_signals() as interruption:
        job = Job(now=moment, clock=now, tell=lambda event: None, interruption=interruption)
        try:
            return run_interruptibly(work, interruption, job.group.cancel, lambda: None)
        finally:
            interruption.check()


def _warn_of_other_settings(first: Bundle, other: Bundle, tell: Tell) -> None:
    if configured(first.output.spec.run) != configured(other.output.spec.run):
        tell(
            Warned(
                f"{other.output.name} is woven with the Spark settings of {first.output.name}, "
                "since one session serves all; run it by itself to use its own"
            )
        )
