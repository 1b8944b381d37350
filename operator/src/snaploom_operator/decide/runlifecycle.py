"""The lifecycle of the runs of one resource, for outputs and indexes.

A run is due, recorded, queued, submitted, followed, and evaluated; then the next one can be due. At
most one is in flight. `docs/concepts/operator.md` describes it for users.
"""

from __future__ import annotations

from dataclasses import replace

from snaploom.models.run import DeletionPolicy, RunAction
from snaploom.models.skippingindex import RefreshTrigger, SkippingIndex
from snaploom.models.times import EpochNanos
from snaploom_operator.actions import Action, AddFinalizer, RemoveFinalizer
from snaploom_operator.conditions import Reason
from snaploom_operator.decide.decisionsettings import DecideSettings
from snaploom_operator.decide.deletion import advance_deletion
from snaploom_operator.decide.due import Due, due, retry_at
from snaploom_operator.decide.faults import Fault
from snaploom_operator.decide.runhistory import outdated, repeated
from snaploom_operator.decide.runsteps import Step, adopted, begin, follow_run
from snaploom_operator.decide.runview import RunView
from snaploom_operator.observed import ObservedRunnable


def advance_runs(view: RunView) -> Step:
    """The step of a resource's runs in this pass."""
    current = adopted(view)
    if view.is_deleting:
        return advance_deletion(view, current)
    wanted = _startable_run(view)
    if current is not None:
        step = follow_run(view, current, wanted)
    else:
        step = Step(None) if wanted is None else begin(view, wanted, RunAction.RUN)
    if view.is_paused:
        return replace(step, actions=())
    kept = [run.name for run in (step.current, current) if run is not None]
    kept.extend(last.id for last in (view.last, step.ended) if last is not None)
    # Created objects are not deleted in the same pass: they are observed first.
    cleared: tuple[Action, ...] = () if step.actions else outdated(view, kept)
    again = repeated(view, current)
    return replace(step, actions=(*_finalizer(view), *step.actions, *again, *cleared))


def next_run_at(view: RunView) -> EpochNanos | None:
    """The instant of the next automatic run: a retry or a schedule tick."""
    if view.is_deleting or view.settings.suspend or view.fault is not None:
        return None
    last = view.last
    again = None
    if view.current is None and last is not None and last.action is RunAction.RUN:
        again = retry_at(view, last)
    times = [time for time in (again, view.ticks.next) if time is not None]
    return min(times) if times else None


def run_view(observed: ObservedRunnable, broken: Fault | None, settings: DecideSettings) -> RunView:
    """The inputs of a run's decision; `broken` is the fault of the declarations."""
    resource = observed.resource
    is_followed = (
        not isinstance(resource, SkippingIndex)
        or resource.spec.refresh.trigger is RefreshTrigger.ON_PUBLISH
    )
    view = RunView(
        now=observed.now,
        owner=resource,
        runs=observed.runs,
        bundle=observed.bundle,
        declarations=observed.declarations,
        upstream=observed.upstream if is_followed else "",
        unpublished=observed.unpublished,
        refusal=observed.refusal,
        defaults=settings,
        fault=broken,
    )
    return view if broken is not None else replace(view, fault=_submitter_fault(view))


def _submitter_fault(view: RunView) -> Fault | None:
    submitter, available = view.submitter, view.runs.available
    if submitter in available:
        return None
    names = ", ".join(sorted(available)) or "none"
    return Fault(
        Reason.SUBMITTER_NOT_AVAILABLE,
        f"the submitter {submitter} is not available here (available: {names}); "
        "change run.submitter, or install it and allow it in the operator's settings",
    )


def _startable_run(view: RunView) -> Due | None:
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
