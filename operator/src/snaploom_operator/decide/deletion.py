"""Deletion of a resource with the finalizer: its published data is deleted first.

Only `deletionPolicy: Delete` adds the finalizer (rule R12). A job deletes the data. If no job can
be started, the finalizer is removed with a warning; if the job fails, the resource stays, since
removing it would leave unknown data behind. Setting the policy to `Retain` removes the finalizer.
"""

from __future__ import annotations

from dataclasses import replace

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
from snaploom_operator.decide.runobservation import is_alive
from snaploom_operator.decide.runsteps import Step, begin, follow_run
from snaploom_operator.decide.runview import UNSUBMITTED, RunView
from snaploom_operator.decision import EventType, Note
from snaploom_operator.instants import is_past, later

STOP_LIMIT_SECONDS = 120.0
"""Longest wait of the deletion for the current run to end: a pod has thirty seconds by default, and
watches and the submitter need some more."""
LOOK_SECONDS = 5.0
"""Interval of checking for its end, in case no event arrives."""


def advance_deletion(view: RunView, current: CurrentRun | None) -> Step:
    """The next step of a resource that is being deleted."""
    if not view.has_finalizer or view.is_paused:
        return Step(current)
    note = _removal_note(view, current)
    if note is not None and _may_still_publish(view, current):
        return _stopping(view, current)
    if note is not None:
        return Step(current, actions=(RemoveFinalizer(),), notes=(note,))
    if current is not None and current.action is RunAction.RUN:
        is_waiting = current.phase is CurrentPhase.QUEUED
        return Step(None) if is_waiting else follow_run(view, current, None)
    wanted = _wanted(view)
    if current is not None:
        return follow_run(view, current, wanted)
    if wanted is not None:
        step = begin(view, wanted, RunAction.DELETE)
        if step.fault is None:
            return step
        text = f"no job can delete it: {step.fault.message}"
        note = _data_left(text)
        return Step(None, actions=(RemoveFinalizer(),), notes=(note,))
    last = view.last
    again = retry_at(view, last) if last is not None else None
    return Step(None, wakes=(again,) if again is not None else ())


def _may_still_publish(view: RunView, current: CurrentRun | None) -> bool:
    """Return whether a run may still publish.

    Its application is deleted first, and its driver's pod has its grace period. After
    `STOP_LIMIT_SECONDS` the deletion continues without it.
    """
    last = view.last
    if current is not None:
        is_seen = current.phase not in UNSUBMITTED
        if current.action is not RunAction.RUN or not (is_seen or view.application(current.name)):
            return False
        is_late = current.phase is CurrentPhase.ENDING and is_past(
            current.since, STOP_LIMIT_SECONDS, view.now
        )
        return not is_late
    if last is None or last.action is not RunAction.RUN or last.finished_at is None:
        return False
    is_over = is_past(last.finished_at, STOP_LIMIT_SECONDS, view.now)
    return not is_over and is_alive(view.runs.driver_pods.get(last.id))


def _stopping(view: RunView, current: CurrentRun | None) -> Step:
    wakes = (later(view.now, LOOK_SECONDS),)
    if current is None:
        return Step(None, wakes=wakes)
    if view.application(current.name) is None:
        # Deleted by someone else, such as the namespace controller: do not wait for a Report.
        current = current.model_copy(update={"stopping": Reason.DELETING})
    step = follow_run(view, current, None)
    return replace(step, wakes=(*step.wakes, *wakes))


def is_stuck(view: RunView, current: CurrentRun | None, last: LastRun) -> bool:
    """Return whether deleting the data of a deleted resource failed finally."""
    if current is not None or not view.has_finalizer or last.action is not RunAction.DELETE:
        return False
    return not _has_succeeded(last) and _wanted(view) is None and retry_at(view, last) is None


def _removal_note(view: RunView, current: CurrentRun | None) -> Note | None:
    """The event with which the finalizer is removed now; None if it is not."""
    last, status = view.last, view.owner.status
    if view.settings.deletion_policy is DeletionPolicy.RETAIN:
        return _data_left("deletionPolicy is Retain", EventType.NORMAL)
    if last is not None and last.action is RunAction.DELETE and _has_succeeded(last):
        what = f": {last.message}" if last.message else ""
        return Note(EventType.NORMAL, Reason.DATA_DELETED, f"what was published is deleted{what}")
    if view.runs.is_namespace_terminating:
        return _data_left("its namespace is being deleted, so that no job can delete the data")
    if view.submitter not in view.runs.available:
        return _data_left(f"the submitter {view.submitter} is not available to delete it")
    if view.job_bundle is None:
        return _data_left("the target of the index is not declared any more")
    if current is None and last is None and (status is None or status.realised is None):
        return Note(EventType.NORMAL, Reason.DATA_LEFT, "nothing was published")
    return None


def _wanted(view: RunView) -> Due | None:
    why = "the resource is being deleted"
    last = view.last
    if last is None or last.action is RunAction.RUN:
        return Due(view.trigger, 0, why)
    if _has_succeeded(last):
        return None
    if {DECLARATIONS_CHANGED, ASKED_FOR} & set(changed(view, last.trigger, last.started_at)):
        return Due(view.trigger, 0, why)
    at = retry_at(view, last)
    return Due(view.trigger, last.attempt + 1, why) if at is not None and at <= view.now else None


def _has_succeeded(last: LastRun) -> bool:
    return last.phase is LastPhase.SUCCEEDED


def _data_left(why: str, type_: EventType = EventType.WARNING) -> Note:
    return Note(type_, Reason.DATA_LEFT, f"what was published stays: {why}")
