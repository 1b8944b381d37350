"""Ready, Reconciling, Stalled and Suspended of a resource that runs jobs.

Ready means that the published state matches the current declarations and is fresh. So `kubectl
apply` and `kubectl wait --for=condition=Ready` wait for the right run, and a failed run beside a
fresh snapshot does not change it.
"""

from __future__ import annotations

from dataclasses import dataclass

from snaploom.models.run import CurrentPhase, CurrentRun, LastPhase, LastRun
from snaploom.models.times import format_instant
from snaploom_operator.conditions import ConditionType, ConditionValue, Reason
from snaploom_operator.decide.deletion import is_stuck
from snaploom_operator.decide.due import may_run_on_schedule, retry_at
from snaploom_operator.decide.faults import Fault, stalls_at
from snaploom_operator.decide.runlifecycle import next_run_at
from snaploom_operator.decide.runview import RunView
from snaploom_operator.objects import ANNOTATION_PAUSED


@dataclass(frozen=True)
class DataState:
    """The state of what was published or built."""

    reason: Reason
    """Reason of Ready without a problem."""
    message: str
    overdue: str = ""
    """Why it is stale; empty if it is fresh."""


def readiness(view: RunView, data: DataState, fault: Fault | None) -> tuple[ConditionValue, ...]:
    """The conditions that runs decide.

    Args:
        view: the resource with the new status; its conditions are the observed ones.
        data: the state of what was published or built.
        fault: why no run can be started.
    """
    return (*_ready(view, data, fault), *_suspended(view))


def _ready(view: RunView, data: DataState, fault: Fault | None) -> tuple[ConditionValue, ...]:
    if view.is_deleting:
        return _deleting(view)
    fault = fault or _name_taken(view)
    if fault is not None:
        before = view.owner.status.conditions if view.owner.status is not None else ()
        make = _stalls if stalls_at(fault, before, view.now) is None else _reconciles
        return make(fault.reason, fault.message)
    if view.is_realised:
        return _realised(view, data)
    return _unrealised(view)


def _realised(view: RunView, data: DataState) -> tuple[ConditionValue, ...]:
    last, current = view.last, view.current
    trouble = _failure(last) if last is not None and _has_failed(last) else ""
    if data.overdue:
        outlook = _outlook(view, last)[1] if last is not None and trouble else ""
        message = "; ".join(text for text in (data.overdue, trouble, outlook) if text)
        goes_on = current is not None or next_run_at(view, current) is not None
        make = _reconciles if goes_on and not view.is_paused else _stalls
        return make(Reason.STALE, message)
    if last is not None and trouble:
        reason, outlook = _outlook(view, last)
        return (ConditionValue(ConditionType.READY, True, reason, f"{trouble}; {outlook}"),)
    return (ConditionValue(ConditionType.READY, True, data.reason, data.message),)


def _unrealised(view: RunView) -> tuple[ConditionValue, ...]:
    last, current = view.last, view.current
    if current is not None:
        return _reconciles(*_in_flight(view, current))
    if view.is_paused:
        return _not_ready(Reason.PAUSED, "the annotation snaploom.io/paused is set")
    if view.settings.suspend:
        return _not_ready(Reason.SUSPENDED, "run.suspend is set")
    is_about_today = last is not None and last.trigger.declarations == view.declarations
    if last is not None and is_about_today and last.phase is not LastPhase.SUCCEEDED:
        return _failed(view, last)
    if view.unpublished:
        names = ", ".join(f"OutputDataset/{name}" for name in view.unpublished[:5])
        return _reconciles(Reason.WAITING, f"waits for the first snapshot of {names}")
    return _reconciles(Reason.WAITING, "a run is about to start")


def _failed(view: RunView, last: LastRun) -> tuple[ConditionValue, ...]:
    reason, outlook = _outlook(view, last)
    if reason is Reason.LAST_RUN_FAILED:
        is_stopped = last.phase is LastPhase.STOPPED and not last.retryable
        reason = Reason.WAITING if is_stopped else Reason.RUN_WILL_BE_RETRIED
        return _reconciles(reason, f"{_failure(last)}; {outlook}")
    return _stalls(reason, f"{_failure(last)}; {outlook}")


def _outlook(view: RunView, last: LastRun) -> tuple[Reason, str]:
    """What follows a failed run; the reason is `LastRunFailed` if it is retried."""
    if view.current is not None:
        return Reason.LAST_RUN_FAILED, _text(view.current)
    held = _hold(view)
    again = retry_at(view, last)
    limit = view.settings.retry.limit
    is_replaced = last.phase is LastPhase.STOPPED and not last.retryable
    if held and (again is not None or is_replaced):
        return Reason.LAST_RUN_FAILED, f"no retry while {held}"
    if again is not None:
        attempt = f"attempt {last.attempt + 2} of {limit + 1} follows at {format_instant(again)}"
        return Reason.LAST_RUN_FAILED, attempt
    if is_replaced:
        return Reason.LAST_RUN_FAILED, "a run is about to start"
    if not last.retryable:
        return (
            Reason.RUN_REFUSED,
            f"a retry would fail again, so there is none{_next_chance(view, last)}",
        )
    count = last.attempt + 1
    which = f"the last of {count} attempts" if count > 1 else "the only attempt"
    return Reason.RETRIES_EXHAUSTED, f"it was {which}, and none follows{_next_chance(view, last)}"


def _hold(view: RunView) -> str:
    """What keeps every run from starting; empty for nothing."""
    if view.is_paused:
        return f"the annotation {ANNOTATION_PAUSED} is set"
    return "run.suspend is set" if view.settings.suspend else ""


def _next_chance(view: RunView, last: LastRun) -> str:
    """The next scheduled run, or how to start one."""
    held = _hold(view)
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
        return _stalls(reason, f"{_failure(last)}; {way_out}")
    if current is None:
        return _reconciles(Reason.DELETING, "the resource is being deleted")
    return _reconciles(Reason.DELETING, f"the resource is being deleted; {_text(current)}")


def _suspended(view: RunView) -> tuple[ConditionValue, ...]:
    if view.is_paused:
        text = "the annotation snaploom.io/paused is set: only the status is updated"
        return (ConditionValue(ConditionType.SUSPENDED, True, Reason.PAUSED, text),)
    if view.settings.suspend:
        text = "run.suspend is set: no run is started"
        return (ConditionValue(ConditionType.SUSPENDED, True, Reason.SUSPENDED, text),)
    return ()


def _in_flight(view: RunView, current: CurrentRun) -> tuple[Reason, str]:
    text = _text(current)
    if current.phase is CurrentPhase.QUEUED:
        return Reason.RUN_QUEUED, text
    if current.phase in (CurrentPhase.SUBMITTING, CurrentPhase.SUBMITTED):
        return Reason.RUN_SUBMITTED, text
    return Reason.RUN_RUNNING, text


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
    """Whether a run failed; a replaced run did not."""
    is_replaced = last.phase is LastPhase.STOPPED and not last.retryable
    return last.phase is not LastPhase.SUCCEEDED and not is_replaced


def _failure(last: LastRun) -> str:
    reason = f" ({last.reason})" if last.reason else ""
    message = f": {last.message}" if last.message else ""
    return f"run {last.id} ended as {last.phase}{reason}{message}"


def _name_taken(view: RunView) -> Fault | None:
    refusal = view.refusal
    if refusal is None or refusal.reason != Reason.NAME_TAKEN:
        return None
    return Fault(Reason.NAME_TAKEN, refusal.message)


def _reconciles(reason: Reason, message: str) -> tuple[ConditionValue, ...]:
    return (
        ConditionValue(ConditionType.READY, False, reason, message),
        ConditionValue(ConditionType.RECONCILING, True, reason, message),
    )


def _stalls(reason: Reason, message: str) -> tuple[ConditionValue, ...]:
    return (
        ConditionValue(ConditionType.READY, False, reason, message),
        ConditionValue(ConditionType.STALLED, True, reason, message),
    )


def _not_ready(reason: Reason, message: str) -> tuple[ConditionValue, ...]:
    return (ConditionValue(ConditionType.READY, False, reason, message),)
