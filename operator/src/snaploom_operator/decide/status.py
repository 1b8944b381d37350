"""Conditions of a resource that runs jobs, and the decision that they conclude."""

from __future__ import annotations

from dataclasses import dataclass, replace

from snaploom.models.outputdataset import OutputDatasetStatus
from snaploom.models.run import CurrentPhase, CurrentRun, LastPhase, LastRun, RunSettings
from snaploom.models.skippingindex import SkippingIndexStatus
from snaploom.models.times import EpochNanos, format_instant
from snaploom.planning.calendar import OutOfCalendar, plus
from snaploom_operator.conditions import ConditionType, ConditionValue, Reason, next_conditions
from snaploom_operator.decide.lifecycle import is_stuck, next_run_at
from snaploom_operator.decide.runsteps import Step
from snaploom_operator.decide.runview import (
    Fault,
    RunView,
    condition_notes,
    may_run_on_schedule,
    reconciling,
    retry_at,
    stalled,
    stalls_at,
    unusable,
)
from snaploom_operator.decision import Action, Decision
from snaploom_operator.objects import ANNOTATION_PAUSED, known_instant, seconds_until

# Freshness of snapshots and indexes: `run.freshness`.


def expires_at(settings: RunSettings, since: str | None) -> EpochNanos | None:
    """The instant from which it is stale; None if it never is, or its age is unknown."""
    start = known_instant(since)
    if settings.freshness is None or start is None:
        return None
    zone = settings.schedule.time_zone if settings.schedule is not None else "UTC"
    try:
        return plus(start, settings.freshness.max_age, zone)
    except (OutOfCalendar, ValueError, KeyError):
        return None


def overdue_text(what: str, settings: RunSettings, since: str | None, now: EpochNanos) -> str:
    """The message that it is stale; empty if it is fresh.

    It begins with a subject and verb, such as `the newest snapshot was published`.
    """
    if settings.freshness is None:
        return ""
    if since is None:
        return "run.freshness is set, and nothing has been published yet"
    expires = expires_at(settings, since)
    if expires is None or now < expires:
        return ""
    return f"{what} at {since}; run.freshness.maxAge ended at {format_instant(expires)}"


# Ready, Reconciling, Stalled and Suspended of a resource that runs jobs.


@dataclass(frozen=True)
class DataState:
    """The state of what was published or built."""

    reason: Reason
    """Reason of Ready without a problem."""
    message: str
    overdue: str
    """Message that it is stale; empty if it is fresh."""
    since: str | None
    """Time of the last publication or build; None for never."""


def readiness(view: RunView, data: DataState, fault: Fault | None) -> tuple[ConditionValue, ...]:
    """The conditions that runs decide.

    The view has the new status, with the conditions as observed.
    """
    return (*_ready(view, data, fault), *_suspended(view))


def _ready(view: RunView, data: DataState, fault: Fault | None) -> tuple[ConditionValue, ...]:
    if view.is_deleting:
        return _deleting(view)
    if fault is None and view.refusal is not None and view.refusal.reason == Reason.NAME_TAKEN:
        fault = Fault(Reason.NAME_TAKEN, view.refusal.message)
    if fault is not None:
        return unusable(fault, view.conditions, view.now)
    return _realised(view, data) if view.is_realised else _unrealised(view)


def _realised(view: RunView, data: DataState) -> tuple[ConditionValue, ...]:
    last = view.last
    trouble = _failure(last) if last is not None and _has_failed(last) else ""
    reason, outlook = _outlook(view, last) if last is not None and trouble else (data.reason, "")
    if data.overdue:
        message = "; ".join(text for text in (data.overdue, trouble, outlook) if text)
        goes_on = view.current is not None or next_run_at(view) is not None
        make = reconciling if goes_on and not view.is_paused else stalled
        return make(Reason.STALE, message)
    message = f"{trouble}; {outlook}" if trouble else data.message
    return (ConditionValue(ConditionType.READY, True, reason, message),)


def _unrealised(view: RunView) -> tuple[ConditionValue, ...]:
    last, current = view.last, view.current
    if current is not None:
        return reconciling(_phase_reason(current.phase), _text(current))
    if held := _hold(view):
        reason = Reason.PAUSED if view.is_paused else Reason.SUSPENDED
        return (ConditionValue(ConditionType.READY, False, reason, held),)
    is_about_today = last is not None and last.trigger.declarations == view.declarations
    if last is not None and is_about_today and last.phase is not LastPhase.SUCCEEDED:
        return _failed(view, last)
    if view.unpublished:
        names = ", ".join(f"OutputDataset/{name}" for name in view.unpublished[:5])
        return reconciling(Reason.WAITING, f"waits for the first snapshot of {names}")
    return reconciling(Reason.WAITING, "a run is about to start")


def _failed(view: RunView, last: LastRun) -> tuple[ConditionValue, ...]:
    reason, outlook = _outlook(view, last)
    message = f"{_failure(last)}; {outlook}"
    if reason is not Reason.LAST_RUN_FAILED:
        return stalled(reason, message)
    is_retried = not _is_replaced(last)
    return reconciling(Reason.RUN_WILL_BE_RETRIED if is_retried else Reason.WAITING, message)


def _outlook(view: RunView, last: LastRun) -> tuple[Reason, str]:
    """The prospect after a failed run; the reason is `LastRunFailed` if it is retried."""
    if view.current is not None:
        return Reason.LAST_RUN_FAILED, _text(view.current)
    held, again = _hold(view), retry_at(view, last)
    is_replaced = _is_replaced(last)
    if held and (again is not None or is_replaced):
        return Reason.LAST_RUN_FAILED, f"no retry while {held}"
    if again is not None:
        attempts = f"attempt {last.attempt + 2} of {view.settings.retry.limit + 1}"
        return Reason.LAST_RUN_FAILED, f"{attempts} follows at {format_instant(again)}"
    if is_replaced:
        return Reason.LAST_RUN_FAILED, "a run is about to start"
    chance = _next_chance(view, last, held)
    if not last.retryable:
        return Reason.RUN_REFUSED, f"a retry would fail again, so there is none{chance}"
    count = last.attempt + 1
    which = f"the last of {count} attempts" if count > 1 else "the only attempt"
    return Reason.RETRIES_EXHAUSTED, f"it was {which}, and none follows{chance}"


def _hold(view: RunView) -> str:
    """The setting that keeps every run from starting; empty for none."""
    if view.is_paused:
        return f"the annotation {ANNOTATION_PAUSED} is set"
    return "run.suspend is set" if view.settings.suspend else ""


def _next_chance(view: RunView, last: LastRun, held: str) -> str:
    if held:
        return f"; no run starts while {held}"
    tick = view.ticks.next
    if tick is not None and may_run_on_schedule(last):
        return f" before the scheduled run at {format_instant(tick)}"
    short = view.owner.name if view.owner.kind == "OutputDataset" else str(view.owner.identity)
    command = f"snaploom trigger {short} -n {view.owner.metadata.namespace}"
    return f" until the declarations change or a run is requested: `{command}`"


def _deleting(view: RunView) -> tuple[ConditionValue, ...]:
    last, current = view.last, view.current
    if last is not None and is_stuck(view, current, last):
        reason = Reason.RETRIES_EXHAUSTED if last.retryable else Reason.RUN_REFUSED
        way_out = "set run.deletionPolicy to Retain to delete the resource and keep the data"
        return stalled(reason, f"{_failure(last)}; {way_out}")
    run = "" if current is None else f"; {_text(current)}"
    return reconciling(Reason.DELETING, f"the resource is being deleted{run}")


def _suspended(view: RunView) -> tuple[ConditionValue, ...]:
    held = _hold(view)
    if not held:
        return ()
    reason, effect = Reason.SUSPENDED, "no run is started"
    if view.is_paused:
        reason, effect = Reason.PAUSED, "only the status is updated"
    return (ConditionValue(ConditionType.SUSPENDED, True, reason, f"{held}: {effect}"),)


def _phase_reason(phase: CurrentPhase) -> Reason:
    if phase is CurrentPhase.QUEUED:
        return Reason.RUN_QUEUED
    is_submitted = phase in (CurrentPhase.SUBMITTING, CurrentPhase.SUBMITTED)
    return Reason.RUN_SUBMITTED if is_submitted else Reason.RUN_RUNNING


def _text(current: CurrentRun) -> str:
    doing = {
        CurrentPhase.QUEUED: "is queued",
        CurrentPhase.SUBMITTING: "is being submitted",
        CurrentPhase.SUBMITTED: "has not started",
        CurrentPhase.RUNNING: "is running",
        CurrentPhase.ENDING: "is ending",
    }[current.phase]
    if current.stopping is not None:
        doing = f"is being stopped ({current.stopping})"
    waits = f"; it waits for {current.waiting_for}" if current.waiting_for else ""
    return f"run {current.name} {doing}{waits}"


def _has_failed(last: LastRun) -> bool:
    return last.phase is not LastPhase.SUCCEEDED and not _is_replaced(last)


def _is_replaced(last: LastRun) -> bool:
    return last.phase is LastPhase.STOPPED and not last.retryable


def _failure(last: LastRun) -> str:
    reason = f" ({last.reason})" if last.reason else ""
    message = f": {last.message}" if last.message else ""
    return f"run {last.id} ended as {last.phase}{reason}{message}"


# Builds the decision of a resource with runs, for outputs and indexes.


def conclude(
    view: RunView,
    step: Step,
    status: OutputDatasetStatus | SkippingIndexStatus,
    data: DataState,
    conditions: tuple[ConditionValue, ...],
    actions: tuple[Action, ...] = (),
) -> Decision:
    """Combine the step of a run and the state of its resource into a decision.

    The new status comes without conditions and next run; further actions follow those of the run.
    """
    before = view.conditions
    after = replace(view, owner=view.owner.model_copy(update={"status": status}))
    fault = view.fault or step.fault
    values = (*readiness(after, data, fault), *conditions)
    decided = next_conditions(before, values, view.owner.metadata.generation, view.now)
    upcoming = next_run_at(after)
    wakes = (
        *step.wakes,
        upcoming,
        expires_at(view.settings, data.since),
        stalls_at(fault, before, view.now),
    )
    next_run = format_instant(upcoming) if upcoming is not None else None
    return Decision(
        status=status.model_copy(update={"conditions": decided, "next_run_time": next_run}),
        actions=(*step.actions, *actions),
        notes=(*step.notes, *condition_notes(before, decided, step.ended)),
        requeue_after=seconds_until(wakes, view.now),
    )
