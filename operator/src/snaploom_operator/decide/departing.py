"""A resource that is being deleted, and holds the finalizer: what it published goes first.

Only `deletionPolicy: Delete` puts the finalizer there (ruling D15). A job deletes the data; where
none can be started the resource is let go with a warning, and where one fails it stays, since
letting go would leave data that nobody knows of. Setting the policy to `Retain` lets it go.
"""

from __future__ import annotations

from snaploom.models.run import (
    CurrentPhase,
    CurrentRun,
    DeletionPolicy,
    LastPhase,
    LastRun,
    RunAction,
)
from snaploom_operator.actions import RemoveFinalizer
from snaploom_operator.conditions import Reason
from snaploom_operator.decide.due import ASKED_FOR, DECLARATIONS_CHANGED, Due, changed, retry_at
from snaploom_operator.decide.following import Step, begin, follow_run
from snaploom_operator.decide.settings import DecideSettings
from snaploom_operator.decide.view import RunView
from snaploom_operator.decision import EventType, Note


def depart(view: RunView, current: CurrentRun | None, settings: DecideSettings) -> Step:
    """The next step of a resource that is being deleted."""
    if not view.has_finalizer or view.is_paused:
        return Step(current)
    released = _released(view, current)
    if released is not None:
        return Step(current, actions=(RemoveFinalizer(),), notes=(released,))
    if current is not None and current.action is RunAction.RUN:
        is_waiting = current.phase is CurrentPhase.QUEUED
        return Step(None) if is_waiting else follow_run(view, current, None, settings)
    wanted = _wanted(view)
    if current is not None:
        return follow_run(view, current, wanted, settings)
    if wanted is not None:
        return _begun(begin(view, wanted, RunAction.DELETE, settings))
    last = view.last
    again = retry_at(view, last) if last is not None else None
    return Step(None, wakes=(again,) if again is not None else ())


def is_stuck(view: RunView, current: CurrentRun | None, last: LastRun) -> bool:
    """Whether the data of a resource that is being deleted could not be deleted, for good."""
    if current is not None or not view.has_finalizer or last.action is not RunAction.DELETE:
        return False
    return not _went_well(last) and _wanted(view) is None and retry_at(view, last) is None


def _released(view: RunView, current: CurrentRun | None) -> Note | None:
    """Why the resource may go now, if it may."""
    last, status = view.last, view.owner.status
    if view.settings.deletion_policy is DeletionPolicy.RETAIN:
        return _left("deletionPolicy is Retain", EventType.NORMAL)
    if last is not None and last.action is RunAction.DELETE and _went_well(last):
        return Note(EventType.NORMAL, Reason.DATA_DELETED, "what was published is deleted")
    if view.runs.is_namespace_terminating:
        return _left("its namespace is going, so that no job can delete it", EventType.WARNING)
    if view.submitter not in view.runs.available:
        text = f"the submitter {view.submitter} is not available to delete it"
        return _left(text, EventType.WARNING)
    if view.job_bundle is None:
        return _left("what is indexed is not declared any more", EventType.WARNING)
    if current is None and last is None and (status is None or status.realised is None):
        return Note(EventType.NORMAL, Reason.DATA_LEFT, "nothing was published")
    return None


def _wanted(view: RunView) -> Due | None:
    why = "the resource is being deleted"
    last = view.last
    if last is None or last.action is RunAction.RUN:
        return Due(view.trigger, 0, why)
    if _went_well(last):
        return None
    if {DECLARATIONS_CHANGED, ASKED_FOR} & set(changed(view, last.trigger, last.started_at)):
        return Due(view.trigger, 0, why)
    at = retry_at(view, last)
    return Due(view.trigger, last.attempt + 1, why) if at is not None and at <= view.now else None


def _begun(step: Step) -> Step:
    """A job that cannot be written down will never be; nothing holds the resource then."""
    if step.fault is None:
        return step
    text = f"no job can delete it: {step.fault.message}"
    return Step(None, actions=(RemoveFinalizer(),), notes=(_left(text, EventType.WARNING),))


def _went_well(last: LastRun) -> bool:
    return last.phase is LastPhase.SUCCEEDED


def _left(why: str, type_: EventType) -> Note:
    return Note(type_, Reason.DATA_LEFT, f"what was published stays: {why}")
