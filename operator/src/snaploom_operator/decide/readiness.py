"""The conditions of a resource, and the conclusion of its decision."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from snaploom.models.common import (
    Condition,
    ConditionStatus,
    EpochNanos,
    ResourceStatus,
    format_instant,
)
from snaploom.models.outputdataset import OutputDatasetStatus
from snaploom.models.run import CurrentPhase, CurrentRun, LastPhase, LastRun, RunAction, RunSettings
from snaploom.models.skippingindex import SkippingIndex, SkippingIndexStatus
from snaploom.plan.times import OutOfCalendar, plus
from snaploom_operator import decision, objects
from snaploom_operator.conditions import (
    LONGEST_MESSAGE,
    ConditionType,
    ConditionValue,
    Reason,
    fit_text,
)
from snaploom_operator.decide.runview import Fault, RunView, Step

GRACE_SECONDS = 10.0
"""Seconds for which a reference may be missing before the resource stalls: a folder of declarations
is applied one by one, in the order of file names, and takes seconds."""
_ARRIVING = frozenset({Reason.REFERENCE_MISSING, Reason.REFERENCE_NOT_READY})
"""Reasons that a resource which is being applied may fix."""
FINAL = (Reason.RETRIES_EXHAUSTED, Reason.RUN_REFUSED)
"""Reasons of failed runs that are not retried."""
_PUBLISHED = "the newest snapshot was published"


@dataclass(frozen=True)
class Judged:
    """The judgement about declarations."""

    fault: Fault | None
    conditions: tuple[ConditionValue, ...]


def conclude(
    observed: decision.ObservedResource | decision.Unparsable,
    judged: Judged,
    status: ResourceStatus,
    step: Step,
    view: RunView | None,
) -> decision.Decision:
    """Combine all into a decision; `view` is None for what has no runs, or cannot be read."""
    before, now = status.conditions, observed.now
    fault, upcoming, expiry, grace = judged.fault, None, None, None
    changes: dict[str, object] = {}
    values: tuple[ConditionValue, ...]
    if view is not None and isinstance(status, OutputDatasetStatus | SkippingIndexStatus):
        after = replace(view, owner=view.owner.model_copy(update={"status": status}))
        is_behind = isinstance(observed, decision.ObservedIndex) and observed.is_overdue
        data = _data_state(after, status, is_behind=is_behind)
        fault, upcoming, expiry = view.fault or step.fault, _next_run_at(after), data.expires
        refusal = view.refusal
        if fault is None and refusal is not None and refusal.reason == Reason.NAME_TAKEN:
            fault = Fault(Reason.NAME_TAKEN, refusal.message)
        grace = _stalls_at(fault, before, now)
        ready = _ready(after, data, fault, is_arriving=grace is not None)
        values = (*ready, *_suspended(after), data.freshness)
        changes["next_run_time"] = format_instant(upcoming) if upcoming is not None else None
    elif fault is not None:
        grace = _stalls_at(fault, before, now)
        values = _unusable(fault, is_arriving=grace is not None)
    else:
        valid = "the declarations are valid"
        values = (ConditionValue(ConditionType.READY, True, Reason.VALID, valid),)
    values = (*values, *judged.conditions)
    conditions = next_conditions(before, values, status.observed_generation, now)
    looks = (objects.later(start, seconds) for start, seconds in step.wakes if start is not None)
    return decision.Decision(
        status=status.model_copy(update={**changes, "conditions": conditions}),
        actions=step.actions,
        notes=(*step.notes, *_condition_notes(before, conditions, step.ended)),
        requeue_after=objects.seconds_until((*looks, upcoming, expiry, grace), now),
    )


def next_conditions(
    before: Iterable[Condition],
    values: Iterable[ConditionValue],
    generation: int | None,
    now: EpochNanos,
) -> tuple[Condition, ...]:
    """The conditions of a status, in the order of their types.

    Observed conditions without a new value are dropped.
    """
    known = {condition.type: condition for condition in before}
    by_type = {each.type: each for each in values}
    return tuple(
        _condition(known.get(type_), by_type[type_], generation, now)
        for type_ in ConditionType
        if type_ in by_type
    )


def _condition(
    before: Condition | None, value: ConditionValue, generation: int | None, now: EpochNanos
) -> Condition:
    status = ConditionStatus.TRUE if value.is_true else ConditionStatus.FALSE
    same = before is not None and before.status is status
    since = before.last_transition_time if before is not None and same else format_instant(now)
    return Condition(
        type=value.type,
        status=status,
        observed_generation=generation,
        last_transition_time=since,
        reason=value.reason,
        message=fit_text(value.message, LONGEST_MESSAGE),
    )


def _condition_notes(
    before: Iterable[Condition], after: Iterable[Condition], ended: LastRun | None = None
) -> tuple[decision.Note, ...]:
    """Warnings about a resource that stalls or becomes stale, or whose run failed finally."""
    old, new = ({each.type: each for each in conditions} for conditions in (before, after))
    notes = []
    stalled, was_stalled = new.get(ConditionType.STALLED), old.get(ConditionType.STALLED)
    if stalled and not (was_stalled and was_stalled.reason == stalled.reason):
        notes.append(
            decision.Note(
                decision.EventType.WARNING, stalled.reason, stalled.message or stalled.reason
            )
        )
    ready, was_ready = new[ConditionType.READY], old.get(ConditionType.READY)
    became_stale = ready.reason == Reason.STALE and not (
        was_ready and was_ready.reason == Reason.STALE
    )
    has_failed = ended and ready.reason in FINAL and ready.status is ConditionStatus.TRUE
    if (became_stale and not stalled) or has_failed:
        notes.append(decision.Note(decision.EventType.WARNING, ready.reason, ready.message))
    return tuple(notes)


def _stalls_at(
    fault: Fault | None, before: Iterable[Condition], now: EpochNanos
) -> EpochNanos | None:
    """The end of the grace period of a fault; None if it is over, or the fault has none.

    Until then the resource is Reconciling, with the same reason, and no event is posted.
    """
    if fault is None or fault.reason not in _ARRIVING:
        return None
    since = {condition.type: condition.last_transition_time for condition in before}
    if ConditionType.STALLED in since:
        return None
    start = since.get(ConditionType.RECONCILING, format_instant(now))
    if objects.is_past(start, GRACE_SECONDS, now):
        return None
    return objects.later(objects.known_instant(start) or now, GRACE_SECONDS)


@dataclass(frozen=True)
class DataState:
    """The state of what was published or built."""

    reason: Reason
    """Reason of Ready without a problem."""
    message: str
    overdue: str
    """Message that it is stale; empty if it is fresh."""
    expires: EpochNanos | None
    """The instant from which it is stale; None if it never is, or its age is unknown."""
    freshness: ConditionValue


def _data_state(
    view: RunView, status: OutputDatasetStatus | SkippingIndexStatus, *, is_behind: bool
) -> DataState:
    if isinstance(status, OutputDatasetStatus):
        latest = status.latest_snapshot
        since, verb = (None if latest is None else latest.published_at), _PUBLISHED
    else:
        since, verb = status.last_refreshed, "the index was last refreshed"
    expires = _expires_at(view.settings, since)
    overdue = ""
    if view.settings.freshness is not None and since is None:
        overdue = "run.freshness is set, and nothing has been published yet"
    elif expires is not None and view.now >= expires:
        overdue = f"{verb} at {since}; run.freshness.maxAge ended at {format_instant(expires)}"
    if isinstance(status, OutputDatasetStatus):
        return _output_state(status, overdue, expires)
    return _index_state(view, status, overdue, expires, is_behind=is_behind)


def _expires_at(settings: RunSettings, since: str | None) -> EpochNanos | None:
    start = objects.known_instant(since)
    if settings.freshness is None or start is None:
        return None
    zone = settings.schedule.time_zone if settings.schedule is not None else "UTC"
    try:
        return plus(start, settings.freshness.max_age, zone)
    except (OutOfCalendar, ValueError, KeyError):
        return None


def _output_state(
    status: OutputDatasetStatus, overdue: str, expires: EpochNanos | None
) -> DataState:
    latest = status.latest_snapshot
    if latest is None:
        reason, text = Reason.NEVER_PUBLISHED, "there is no snapshot yet"
        freshness = ConditionValue(ConditionType.SNAPSHOT_FRESH, False, reason, text)
        text = "the last run succeeded, and there is no snapshot to publish yet"
        return DataState(Reason.NOTHING_DUE, text, overdue, expires, freshness)
    reason = Reason.STALE if overdue else Reason.FRESH
    text = overdue or f"{_PUBLISHED} at {latest.published_at}"
    freshness = ConditionValue(ConditionType.SNAPSHOT_FRESH, not overdue, reason, text)
    text = f"snapshot {latest.time} is published: {latest.rows:,} rows in {latest.files:,} files"
    return DataState(Reason.PUBLISHED, text, overdue, expires, freshness)


def _index_state(
    view: RunView,
    status: SkippingIndexStatus,
    overdue: str,
    expires: EpochNanos | None,
    *,
    is_behind: bool,
) -> DataState:
    files = status.files
    reason, text = Reason.STALE, overdue
    if files is None or status.last_refreshed is None:
        reason, text = Reason.NEVER_BUILT, "there is no index yet"
    elif files.stale or files.missing:
        text = f"{files.stale:,} files changed and {files.missing:,} files were added since"
    elif is_behind:
        text = "the output that is indexed has published since the last refresh"
    elif not overdue:
        reason, text = Reason.FRESH, f"{files.indexed:,} files are indexed"
    is_fresh = reason is Reason.FRESH
    freshness = ConditionValue(ConditionType.INDEX_FRESH, is_fresh, reason, text)
    covered = f"{files.indexed:,} files are indexed" if files else "it is built"
    if isinstance(view.owner, SkippingIndex) and view.owner.spec.enabled:
        return DataState(Reason.INDEX_ACTIVE, covered, overdue, expires, freshness)
    text = f"{covered}; enabled is false: queries do not use it"
    return DataState(Reason.DISABLED, text, overdue, expires, freshness)


def _next_run_at(view: RunView) -> EpochNanos | None:
    """The instant of the next automatic run: a retry or a schedule tick."""
    if view.is_deleting or view.settings.suspend or view.fault is not None:
        return None
    last = view.last
    again = None
    if view.current is None and last is not None and last.action is RunAction.RUN:
        again = view.retry_at
    times = [time for time in (again, view.ticks.next) if time is not None]
    return min(times) if times else None


def _ready(
    view: RunView, data: DataState, fault: Fault | None, *, is_arriving: bool
) -> tuple[ConditionValue, ...]:
    if view.is_deleting:
        return _deleting(view)
    if fault is not None:
        return _unusable(fault, is_arriving=is_arriving)
    return _realised(view, data) if view.is_realised else _unrealised(view)


def _realised(view: RunView, data: DataState) -> tuple[ConditionValue, ...]:
    last = view.last
    is_over = last is None or last.phase is LastPhase.SUCCEEDED or _is_replaced(last)
    trouble = "" if last is None or is_over else _failure(last)
    reason, outlook = _outlook(view, last) if last is not None and trouble else (data.reason, "")
    if data.overdue:
        message = "; ".join(text for text in (data.overdue, trouble, outlook) if text)
        goes_on = view.current is not None or _next_run_at(view) is not None
        make = _reconciling if goes_on and not view.is_paused else _stalled
        return make(Reason.STALE, message)
    message = f"{trouble}; {outlook}" if trouble else data.message
    return (ConditionValue(ConditionType.READY, True, reason, message),)


def _unrealised(view: RunView) -> tuple[ConditionValue, ...]:
    last, current = view.last, view.current
    if current is not None:
        return _reconciling(_phase_reason(current.phase), _text(current))
    if held := _hold(view):
        reason = Reason.PAUSED if view.is_paused else Reason.SUSPENDED
        return (ConditionValue(ConditionType.READY, False, reason, held),)
    is_about_today = last is not None and last.trigger.declarations == view.declarations
    if last is not None and is_about_today and last.phase is not LastPhase.SUCCEEDED:
        return _failed(view, last)
    if view.unpublished:
        names = ", ".join(f"OutputDataset/{name}" for name in view.unpublished[:5])
        return _reconciling(Reason.WAITING, f"waits for the first snapshot of {names}")
    return _reconciling(Reason.WAITING, "a run is about to start")


def _failed(view: RunView, last: LastRun) -> tuple[ConditionValue, ...]:
    reason, outlook = _outlook(view, last)
    message = f"{_failure(last)}; {outlook}"
    if reason is not Reason.LAST_RUN_FAILED:
        return _stalled(reason, message)
    is_retried = not _is_replaced(last)
    return _reconciling(Reason.RUN_WILL_BE_RETRIED if is_retried else Reason.WAITING, message)


def _outlook(view: RunView, last: LastRun) -> tuple[Reason, str]:
    """The prospect after a failed run; the reason is `LastRunFailed` if it is retried."""
    if view.current is not None:
        return Reason.LAST_RUN_FAILED, _text(view.current)
    held, again = _hold(view), view.retry_at
    is_replaced = _is_replaced(last)
    if held and (again is not None or is_replaced):
        return Reason.LAST_RUN_FAILED, f"no retry while {held}"
    if again is not None:
        attempts = f"attempt {last.attempt + 2} of {view.settings.retry.limit + 1}"
        return Reason.LAST_RUN_FAILED, f"{attempts} follows at {format_instant(again)}"
    if is_replaced:
        return Reason.LAST_RUN_FAILED, "a run is about to start"
    chance = _next_chance(view, held)
    if not last.retryable:
        return Reason.RUN_REFUSED, f"a retry would fail again, so there is none{chance}"
    count = last.attempt + 1
    which = f"the last of {count} attempts" if count > 1 else "the only attempt"
    return Reason.RETRIES_EXHAUSTED, f"it was {which}, and none follows{chance}"


def _hold(view: RunView) -> str:
    """The setting that keeps every run from starting; empty for none."""
    if view.is_paused:
        return f"the annotation {objects.ANNOTATION_PAUSED} is set"
    return "run.suspend is set" if view.settings.suspend else ""


def _next_chance(view: RunView, held: str) -> str:
    if held:
        return f"; no run starts while {held}"
    tick = view.ticks.next
    if tick is not None and view.may_run_on_schedule:
        return f" before the scheduled run at {format_instant(tick)}"
    short = view.owner.name if view.owner.kind == "OutputDataset" else str(view.owner.identity)
    command = f"snaploom trigger {short} -n {view.owner.metadata.namespace}"
    return f" until the declarations change or a run is requested: `{command}`"


def _deleting(view: RunView) -> tuple[ConditionValue, ...]:
    last, current = view.last, view.current
    if last is not None and view.is_stuck:
        reason = Reason.RETRIES_EXHAUSTED if last.retryable else Reason.RUN_REFUSED
        way_out = "set run.deletionPolicy to Retain to delete the resource and keep the data"
        return _stalled(reason, f"{_failure(last)}; {way_out}")
    run = "" if current is None else f"; {_text(current)}"
    return _reconciling(Reason.DELETING, f"the resource is being deleted{run}")


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
    if phase is CurrentPhase.QUOTA_PENDING:
        return Reason.QUOTA_PENDING
    is_submitted = phase in (CurrentPhase.SUBMITTING, CurrentPhase.SUBMITTED)
    return Reason.RUN_SUBMITTED if is_submitted else Reason.RUN_RUNNING


def _text(current: CurrentRun) -> str:
    doing = {
        CurrentPhase.QUEUED: "is queued",
        CurrentPhase.SUBMITTING: "is being submitted",
        CurrentPhase.SUBMITTED: "has not started",
        CurrentPhase.QUOTA_PENDING: "has no quota",
        CurrentPhase.RUNNING: "is running",
        CurrentPhase.ENDING: "is ending",
    }[current.phase]
    if current.stopping is not None:
        doing = f"is being stopped ({current.stopping})"
    waits = f"; it waits for {current.waiting_for}" if current.waiting_for else ""
    return f"run {current.name} {doing}{waits}"


def _is_replaced(last: LastRun) -> bool:
    return last.phase is LastPhase.STOPPED and not last.retryable


def _failure(last: LastRun) -> str:
    reason = f" ({last.reason})" if last.reason else ""
    message = f": {last.message}" if last.message else ""
    return f"run {last.id} ended as {last.phase}{reason}{message}"


def _unusable(fault: Fault, *, is_arriving: bool) -> tuple[ConditionValue, ...]:
    """The conditions of a resource with a fault: Stalled, or Reconciling in its grace period."""
    return (_reconciling if is_arriving else _stalled)(fault.reason, fault.message)


def _stalled(reason: Reason, message: str) -> tuple[ConditionValue, ...]:
    """The conditions of a resource that is not Ready and Stalled."""
    return (
        ConditionValue(ConditionType.READY, False, reason, message),
        ConditionValue(ConditionType.STALLED, True, reason, message),
    )


def _reconciling(reason: Reason, message: str) -> tuple[ConditionValue, ...]:
    """The conditions of a resource that is not Ready and Reconciling."""
    return (
        ConditionValue(ConditionType.READY, False, reason, message),
        ConditionValue(ConditionType.RECONCILING, True, reason, message),
    )


RETRY_AFTER_CRASH = 300.0
"""Seconds until a resource whose decision crashed is reconciled again."""


def crashed(
    observed: decision.ObservedResource | decision.Unparsable, error: Exception
) -> decision.Decision:
    """The decision about a resource on which Snaploom's own code failed."""
    message = f"bug in Snaploom: {type(error).__name__}; see the operator's log"
    if isinstance(observed, decision.Unparsable):
        before, generation = observed.status, observed.generation
    else:
        before = getattr(observed.resource, "status", None)
        generation = observed.resource.metadata.generation or 0
    status = (before or ResourceStatus()).model_copy(update={"observed_generation": generation})
    judged = Judged(Fault(Reason.INTERNAL_ERROR, message), ())
    decided = conclude(observed, judged, status, Step(None), None)
    return replace(decided, requeue_after=RETRY_AFTER_CRASH)
