"""The life of runs of one resource, the same for outputs and indexes.

A run is due, waits for its turn, is written down, submitted, followed, and evaluated; then the next
one can be due. At most one is in flight. `docs/concepts/operator.md` tells it for users.
"""

from __future__ import annotations

from dataclasses import replace

from snaploom.models.run import CurrentPhase, CurrentRun, DeletionPolicy, RunAction, Schedule
from snaploom.models.times import EpochNanos
from snaploom_operator.actions import Action, AddFinalizer, RemoveFinalizer
from snaploom_operator.conditions import Reason
from snaploom_operator.decide.departing import depart
from snaploom_operator.decide.due import Due, due, retry_at
from snaploom_operator.decide.faults import Fault
from snaploom_operator.decide.following import Step, adopted, begin, follow_run
from snaploom_operator.decide.history import outdated, repeated
from snaploom_operator.decide.settings import DecideSettings
from snaploom_operator.decide.view import RunView
from snaploom_operator.observed import ObservedRunnable


def live(view: RunView, settings: DecideSettings) -> Step:
    """What becomes of the runs of a resource in this pass."""
    current = adopted(view, view.current)
    if view.is_deleting:
        return depart(view, current, settings)
    step = _worked(view, current, settings)
    if view.is_paused:
        return replace(step, actions=())
    kept = [run.name for run in (step.current, current) if run is not None]
    kept.extend(last.id for last in (view.last, step.ended) if last is not None)
    # What is created is not deleted in the same pass: names are observed before they are judged.
    cleared: tuple[Action, ...] = () if step.actions else outdated(view, kept, settings)
    again = repeated(view, current, settings)
    return replace(step, actions=(*_finalizer(view), *step.actions, *again, *cleared))


def next_run_at(view: RunView, current: CurrentRun | None) -> EpochNanos | None:
    """When the next run is due by itself: as a retry, or at a tick."""
    if view.is_deleting or view.settings.suspend or view.fault is not None:
        return None
    last = view.last
    again = None
    if current is None and last is not None and last.action is RunAction.RUN:
        again = retry_at(view, last)
    times = [time for time in (again, view.ticks.next) if time is not None]
    return min(times) if times else None


def view_of(
    observed: ObservedRunnable,
    broken: Fault | None,
    settings: DecideSettings,
    *,
    upstream: str,
    schedule: Schedule | None,
) -> RunView:
    """What the life of runs is decided from.

    Args:
        observed: the resource.
        broken: what is wrong with its declarations.
        settings: of the operator.
        upstream: hash of what has been published that starts its runs.
        schedule: the ticks that start its runs.
    """
    view = RunView(
        now=observed.now,
        owner=observed.resource,
        runs=observed.runs,
        bundle=observed.bundle,
        declarations=observed.declarations,
        upstream=upstream,
        submitter=observed.resource.spec.run.submitter or settings.submitter,
        schedule=schedule,
        unpublished=observed.unpublished,
        fault=broken,
        refusal=observed.refusal,
    )
    return view if broken is not None else replace(view, fault=_submitter_fault(view))


def _submitter_fault(view: RunView) -> Fault | None:
    """Whether whoever is to start the job is missing."""
    submitter, available = view.submitter, view.runs.available
    if submitter in available:
        return None
    names = ", ".join(sorted(available)) or "none"
    return Fault(
        Reason.SUBMITTER_NOT_AVAILABLE,
        f"the submitter {submitter} is not available here (available: {names}); "
        "change run.submitter, or have it allowed by the operator's settings and installed",
    )


def _worked(view: RunView, current: CurrentRun | None, settings: DecideSettings) -> Step:
    wanted = _startable(view)
    if current is not None:
        return follow_run(view, current, wanted, settings)
    if wanted is None:
        return Step(None)
    return begin(view, wanted, RunAction.RUN, settings)


def _startable(view: RunView) -> Due | None:
    """The run that is due, where one may be started."""
    is_held = view.settings.suspend or view.is_paused or view.fault is not None
    impossible = view.bundle is None or view.runs.is_namespace_terminating
    return None if is_held or impossible else due(view)


def _finalizer(view: RunView) -> tuple[Action, ...]:
    wants = view.settings.deletion_policy is DeletionPolicy.DELETE
    if wants and not view.has_finalizer:
        return (AddFinalizer(),)
    if view.has_finalizer and not wants:
        return (RemoveFinalizer(),)
    return ()


def is_at_work(run: CurrentRun | None) -> bool:
    """Whether an application of the run has been seen."""
    return run is not None and run.phase in (
        CurrentPhase.SUBMITTED,
        CurrentPhase.RUNNING,
        CurrentPhase.ENDING,
    )
