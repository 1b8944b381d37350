"""Ready, Reconciling, Stalled and Suspended of a resource that runs jobs.

Ready asks one thing: is what there is what today's declarations ask for, and young enough? So
`kubectl apply` and `kubectl wait --for=condition=Ready` wait for the right run, and a failed run
beside a fresh snapshot takes nothing away.
"""

from __future__ import annotations

from dataclasses import dataclass

from snaploom.models.run import CurrentPhase, CurrentRun, LastPhase, LastRun
from snaploom.models.times import format_instant
from snaploom_operator.conditions import ConditionType, Reason, Told
from snaploom_operator.decide.departing import is_stuck
from snaploom_operator.decide.due import is_worth_a_tick, retry_at
from snaploom_operator.decide.faults import Fault, stalls_at
from snaploom_operator.decide.running import next_run_at
from snaploom_operator.decide.view import RunView


@dataclass(frozen=True)
class Standing:
    """How what was published, or built, stands."""

    reason: Reason
    """Why the resource is Ready when nothing else is to be said."""
    message: str
    overdue: str = ""
    """Why it is too old; empty while it is not."""


def readiness(view: RunView, standing: Standing, fault: Fault | None) -> tuple[Told, ...]:
    """The conditions that runs decide.

    Args:
        view: the resource with the status that is about to be written; its conditions are those
            observed.
        standing: of what was published or built.
        fault: why no run can be started.
    """
    return (*_ready(view, standing, fault), *_suspended(view))


def _ready(view: RunView, standing: Standing, fault: Fault | None) -> tuple[Told, ...]:
    if view.is_deleting:
        return _departing(view)
    fault = fault or _name_taken(view)
    if fault is not None:
        before = view.owner.status.conditions if view.owner.status is not None else ()
        tell = _stalls if stalls_at(fault, before, view.now) is None else _reconciles
        return tell(fault.reason, fault.message)
    if view.is_realised:
        return _realised(view, standing)
    return _unrealised(view)


def _realised(view: RunView, standing: Standing) -> tuple[Told, ...]:
    last, current = view.last, view.current
    trouble = _failure(last) if last is not None and _has_failed(last) else ""
    if standing.overdue:
        message = "; ".join(text for text in (standing.overdue, trouble) if text)
        goes_on = current is not None or next_run_at(view, current) is not None
        tell = _reconciles if goes_on and not view.is_paused else _stalls
        return tell(Reason.STALE, message)
    if trouble:
        return (Told(ConditionType.READY, True, Reason.LAST_RUN_FAILED, trouble),)
    return (Told(ConditionType.READY, True, standing.reason, standing.message),)


def _unrealised(view: RunView) -> tuple[Told, ...]:
    last, current = view.last, view.current
    if current is not None:
        return _reconciles(*_in_flight(view, current))
    if view.is_paused:
        return _rests(Reason.PAUSED, "the annotation snaploom.io/paused is set")
    if view.settings.suspend:
        return _rests(Reason.SUSPENDED, "run.suspend is set")
    is_about_today = last is not None and last.trigger.declarations == view.declarations
    if last is not None and is_about_today and last.phase is not LastPhase.SUCCEEDED:
        return _failed(view, last)
    if view.unpublished:
        names = ", ".join(f"OutputDataset/{name}" for name in view.unpublished[:5])
        return _reconciles(Reason.WAITING, f"waits for the first snapshot of {names}")
    return _reconciles(Reason.WAITING, "a run is about to be decided")


def _failed(view: RunView, last: LastRun) -> tuple[Told, ...]:
    again = retry_at(view, last)
    if again is not None:
        attempt = f"attempt {last.attempt + 2} of {view.settings.retry.limit + 1}"
        text = f"{_failure(last)}; {attempt} follows at {format_instant(again)}"
        return _reconciles(Reason.RUN_WILL_BE_RETRIED, text)
    if last.retryable:
        text = (
            f"{_failure(last)}; it was the last of {last.attempt + 1} attempts{_hope(view, last)}"
        )
        return _stalls(Reason.RETRIES_EXHAUSTED, text)
    if last.phase is LastPhase.STOPPED:
        return _reconciles(Reason.WAITING, _failure(last))
    return _stalls(Reason.RUN_REFUSED, f"{_failure(last)}{_hope(view, last)}")


def _hope(view: RunView, last: LastRun) -> str:
    """What will try again although nobody changes anything."""
    tick = view.ticks.next
    if tick is None or not is_worth_a_tick(last):
        return ""
    return f"; the schedule tries again at {format_instant(tick)}"


def _departing(view: RunView) -> tuple[Told, ...]:
    last, current = view.last, view.current
    if last is not None and is_stuck(view, current, last):
        reason = Reason.RETRIES_EXHAUSTED if last.retryable else Reason.RUN_REFUSED
        way_out = "set run.deletionPolicy to Retain to keep the data and let the resource go"
        return _stalls(reason, f"{_failure(last)}; {way_out}")
    if current is None:
        return _reconciles(Reason.DELETING, "the resource is being deleted")
    return _reconciles(Reason.DELETING, f"the resource is being deleted; {_text(current)}")


def _suspended(view: RunView) -> tuple[Told, ...]:
    if view.is_paused:
        text = "the annotation snaploom.io/paused is set: nothing is done"
        return (Told(ConditionType.SUSPENDED, True, Reason.PAUSED, text),)
    if view.settings.suspend:
        text = "run.suspend is set: no run is started"
        return (Told(ConditionType.SUSPENDED, True, Reason.SUSPENDED, text),)
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
        CurrentPhase.RUNNING: "is at work",
        CurrentPhase.ENDING: "is ending",
    }[current.phase]
    if current.stopping is not None:
        doing = f"is being stopped ({current.stopping})"
    waits = f"; it waits for {current.waiting_for}" if current.waiting_for else ""
    return f"run {current.name} {doing}{waits}"


def _has_failed(last: LastRun) -> bool:
    """Whether a run failed; one that made room for another did not."""
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


def _reconciles(reason: Reason, message: str) -> tuple[Told, ...]:
    return (
        Told(ConditionType.READY, False, reason, message),
        Told(ConditionType.RECONCILING, True, reason, message),
    )


def _stalls(reason: Reason, message: str) -> tuple[Told, ...]:
    return (
        Told(ConditionType.READY, False, reason, message),
        Told(ConditionType.STALLED, True, reason, message),
    )


def _rests(reason: Reason, message: str) -> tuple[Told, ...]:
    return (Told(ConditionType.READY, False, reason, message),)
