"""The lifecycle of the runs of a resource, deletion included, and the conditions about them."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from snaploom.models.common import Condition, EpochNanos, format_instant
from snaploom.models.report import RunPhase
from snaploom.models.run import (
    CurrentPhase,
    CurrentRun,
    DeletionPolicy,
    LastPhase,
    LastRun,
    RunAction,
)
from snaploom.models.skippingindex import RefreshTrigger, SkippingIndex
from snaploom_operator.conditions import (
    ConditionType,
    ConditionValue,
    Reason,
)
from snaploom_operator.decide.runsteps import (
    Step,
    adopted,
    begin,
    config_map_deletion,
    deletion,
    follow_run,
)
from snaploom_operator.decide.runview import (
    ASKED_FOR,
    DECLARATIONS_CHANGED,
    UNSUBMITTED,
    DecideSettings,
    Due,
    Fault,
    RunView,
    changed,
    due,
    is_alive,
    may_run_on_schedule,
    retry_at,
    stalls_at,
)
from snaploom_operator.decision import (
    Action,
    AddFinalizer,
    Delete,
    EventType,
    Note,
    ObservedRunnable,
    RemoveFinalizer,
)
from snaploom_operator.objects import (
    ANNOTATION_PAUSED,
    ApplicationState,
    is_past,
    known_instant,
    later,
)
from snaploom_operator.submit.quota import why_no_queue

_MOST_AT_ONCE = 40
"""Objects deleted in one pass; the next pass continues."""
_OF_RUNS = ("bundle", "report")
"""Roles of ConfigMaps that are deleted with their run."""


class _Finished(NamedTuple):
    started_at: EpochNanos
    name: str
    has_succeeded: bool


def outdated(view: RunView, kept: Iterable[str]) -> tuple[Delete, ...]:
    """Deletions of runs beyond `run.historyLimit`, except those to be kept by name."""
    limits = view.settings.history_limit
    protected = set(kept) | {a.name for a in view.runs.applications if not a.state.is_terminal}
    finished = _finished(view)
    for succeeded, limit in ((True, limits.successful), (False, limits.failed)):
        of_kind = [run for run in finished if run.has_succeeded is succeeded]
        spared = sum(run.name in protected for run in of_kind)
        others = [run.name for run in of_kind if run.name not in protected]
        protected.update(others[: max(limit - spared, 0)])
    applications = (
        deletion(view, application)
        for application in view.runs.applications
        if application.name not in protected and not application.is_deleting
    )
    config_maps = (
        config_map_deletion(config_map, view.namespace)
        for config_map in view.runs.config_maps
        if config_map.role in _OF_RUNS and config_map.run not in protected
    )
    return (*applications, *config_maps)[:_MOST_AT_ONCE]


def repeated(view: RunView, current: CurrentRun | None) -> tuple[Delete, ...]:
    """Deletions of applications that were created again after their run ended.

    A create request of a paused process that lost its Lease can arrive after another process
    followed the run to its end.
    """
    last = view.last
    if last is None or last.uid is None or (current is not None and current.name == last.id):
        return ()
    return tuple(
        deletion(view, application)
        for application in view.runs.applications
        if application.name == last.id
        and application.uid != last.uid
        and not application.state.is_terminal
        and not application.is_deleting
    )


def _finished(view: RunView) -> list[_Finished]:
    """Runs that ended, newest first; a report outlives its application."""
    reports = {run: found.report for run, found in view.runs.reports.items()}
    found = {}
    for each in view.runs.applications:
        report = reports.get(each.name)
        agrees = report is None or report.phase is RunPhase.SUCCEEDED
        ended_well = each.state is ApplicationState.COMPLETED and agrees
        found[each.name] = _Finished(each.started_at, each.name, ended_well)
    for run, report in reports.items():
        if run not in found and report is not None:
            started = known_instant(report.started_at) or EpochNanos(0)
            found[run] = _Finished(started, run, report.phase is RunPhase.SUCCEEDED)
    return sorted(found.values(), reverse=True)


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


def advance_runs(view: RunView) -> Step:
    """The step of a resource's runs in this pass."""
    current = adopted(view)
    if view.is_deleting:
        return advance_deletion(view, current)
    is_held = view.settings.suspend or view.is_paused or view.fault is not None
    impossible = view.bundle is None or view.runs.is_namespace_terminating
    wanted = None if is_held or impossible else due(view)
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
    if broken is not None:
        return view
    return replace(view, fault=_submitter_fault(view) or _queue_fault(view))


def _queue_fault(view: RunView) -> Fault | None:
    scheduler = view.defaults.operator.queue_scheduler
    why = why_no_queue(scheduler, view.settings.queue, view.submitter)
    return Fault(Reason.QUEUE_NOT_AVAILABLE, why) if why else None


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


def _finalizer(view: RunView) -> tuple[Action, ...]:
    wants = view.settings.deletion_policy is DeletionPolicy.DELETE
    if wants and not view.has_finalizer:
        return (AddFinalizer(),)
    if view.has_finalizer and not wants:
        return (RemoveFinalizer(),)
    return ()


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
    held = _suspended(view)
    return (*_ready(view, data, fault), *held)


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
    is_over = last is None or last.phase is LastPhase.SUCCEEDED or _is_replaced(last)
    trouble = "" if last is None or is_over else _failure(last)
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


def unusable(
    fault: Fault, before: Iterable[Condition], now: EpochNanos
) -> tuple[ConditionValue, ...]:
    """The conditions of a resource with a fault: Stalled, or Reconciling in its grace period."""
    make = stalled if stalls_at(fault, before, now) is None else reconciling
    return make(fault.reason, fault.message)


def stalled(reason: Reason, message: str) -> tuple[ConditionValue, ...]:
    """The conditions of a resource that is not Ready and Stalled."""
    return (
        ConditionValue(ConditionType.READY, False, reason, message),
        ConditionValue(ConditionType.STALLED, True, reason, message),
    )


def reconciling(reason: Reason, message: str) -> tuple[ConditionValue, ...]:
    """The conditions of a resource that is not Ready and Reconciling."""
    return (
        ConditionValue(ConditionType.READY, False, reason, message),
        ConditionValue(ConditionType.RECONCILING, True, reason, message),
    )
