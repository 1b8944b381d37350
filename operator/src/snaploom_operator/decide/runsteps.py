"""The steps of a resource's runs, deletion included: which one is followed or begun, and how."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from snaploom.errors import SnaploomError
from snaploom.models.common import EpochNanos, format_instant
from snaploom.models.report import RunPhase
from snaploom.models.run import (
    ConcurrencyPolicy,
    CurrentPhase,
    CurrentRun,
    DeletionPolicy,
    LastPhase,
    RunAction,
    Trigger,
)
from snaploom_operator.cluster.port import CONFIG_MAPS
from snaploom_operator.conditions import Reason
from snaploom_operator.decide.runview import (
    SETTLE_SECONDS,
    Due,
    Fault,
    RunView,
    Step,
)
from snaploom_operator.decide.statuses import end_run
from snaploom_operator.decision import (
    Action,
    AddFinalizer,
    Create,
    Delete,
    EventType,
    Note,
    RemoveFinalizer,
)
from snaploom_operator.objects import (
    Application,
    ApplicationState,
    known_instant,
    later,
)
from snaploom_operator.submit.applications import FORMS
from snaploom_operator.submit.manifests import objects_of_run

_MOST_AT_ONCE = 40
"""Objects deleted in one pass; the next pass continues."""
_OF_RUNS = ("bundle", "report")
"""Roles of ConfigMaps that are deleted with their run."""
LOOK_SECONDS = 5.0
"""Interval of checking for its end, in case no event arrives."""
QUEUE_SECONDS = 30.0
"""Interval of checking a queued run, in case no event arrives."""
STOP_SECONDS = 30.0
"""Interval of deleting an application that remains."""


@dataclass(frozen=True)
class Course:
    """The next thing to do about the runs of a resource: follow one, or start one."""

    current: CurrentRun | None
    """The run to follow."""
    wanted: Due | None
    """The run to start if there is none to follow, or that would be started."""
    action: RunAction = RunAction.RUN
    """The action of a started run."""
    wakes: tuple[EpochNanos, ...] = ()
    """Times to reconcile again, whatever the run does."""


def advance_runs(view: RunView) -> Step:
    """The step of a resource's runs in this pass."""
    current = view.followed
    is_held = view.settings.suspend or view.is_paused or view.fault is not None
    impossible = view.bundle is None or view.runs.is_namespace_terminating
    wanted = None if is_held or impossible or view.is_deleting else view.due
    course = _deletion(view) if view.is_deleting else Course(current, wanted)
    step = course if isinstance(course, Step) else _advanced(view, course)
    if view.is_deleting:
        if step.fault is None or current is not None:
            return step
        note = _data_left(f"no job can delete it: {step.fault.message}")
        return Step(None, actions=(RemoveFinalizer(),), notes=(note,))
    if view.is_paused:
        return replace(step, actions=())
    kept = [run.name for run in (step.current, current) if run is not None]
    kept.extend(last.id for last in (view.last, step.ended) if last is not None)
    # Created objects are not deleted in the same pass: they are observed first.
    cleared: tuple[Action, ...] = () if step.actions else _outdated(view, kept)
    again = _repeated(view, current)
    return replace(step, actions=(*_finalizer(view), *step.actions, *again, *cleared))


def _deletion(view: RunView) -> Course | Step:
    """The course of a resource that is being deleted."""
    current = view.followed
    if not view.has_finalizer or view.is_paused:
        return Step(current)
    note = _removal_note(view, current)
    if note is not None and view.may_still_publish:
        wakes = (later(view.now, LOOK_SECONDS),)
        if current is not None and view.application is None:
            # Deleted by someone else, such as the namespace controller: do not wait for a Report.
            current = current.model_copy(update={"stopping": Reason.DELETING})
        return Course(current, None, wakes=wakes)
    if note is not None:
        return Step(current, actions=(RemoveFinalizer(),), notes=(note,))
    if current is not None and current.action is RunAction.RUN:
        is_waiting = current.phase is CurrentPhase.QUEUED
        return Step(None) if is_waiting else Course(current, None)
    wanted, again = view.due_deletion, view.retry_at
    if current is not None or wanted is not None:
        return Course(current, wanted, RunAction.DELETE)
    return Step(None, wakes=(again,) if again is not None else ())


def _removal_note(view: RunView, current: CurrentRun | None) -> Note | None:
    """The event with which the finalizer is removed now; None if it is not."""
    last, status = view.last, view.owner.status
    if view.settings.deletion_policy is DeletionPolicy.RETAIN:
        return _data_left("deletionPolicy is Retain", EventType.NORMAL)
    if last is not None and last.action is RunAction.DELETE and last.phase is LastPhase.SUCCEEDED:
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


def _data_left(why: str, type_: EventType = EventType.WARNING) -> Note:
    return Note(type_, Reason.DATA_LEFT, f"what was published stays: {why}")


def _finalizer(view: RunView) -> tuple[Action, ...]:
    wants = view.settings.deletion_policy is DeletionPolicy.DELETE
    if wants and not view.has_finalizer:
        return (AddFinalizer(),)
    if view.has_finalizer and not wants:
        return (RemoveFinalizer(),)
    return ()


def _advanced(view: RunView, course: Course) -> Step:
    """Follow a run, or begin one."""
    current, wanted = course.current, course.wanted
    if current is None:
        step = Step(None) if wanted is None else _begun(view, wanted, course.action)
    elif current.phase is CurrentPhase.QUEUED:
        step = _queued(view, current, wanted)
    elif current.phase is CurrentPhase.SUBMITTING:
        step = _submitting(view, current, wanted)
    else:
        step = _submitted(view, current, wanted)
    return replace(step, wakes=(*step.wakes, *course.wakes))


def _begun(view: RunView, wanted: Due, action: RunAction) -> Step:
    """Record a new run: submitted next if there is a slot for it, else queued."""
    run = _named(view, wanted, action)
    if isinstance(run, Fault):
        return Step(None, fault=run)
    attempt = f", attempt {run.attempt + 1}" if run.attempt else ""
    text = f"run {run.name}{attempt}: {wanted.why}"
    note = Note(EventType.NORMAL, Reason.RUN_STARTED, text)
    return replace(_in_line(view, run), notes=(note,))


def _named(view: RunView, wanted: Due, action: RunAction) -> CurrentRun | Fault:
    """A run that is due, as queued; a fault if its objects cannot be made."""
    now = format_instant(view.now)
    last = view.last
    name = run_name(
        view.owner.kind,
        view.owner.name,
        view.uid,
        wanted.trigger,
        wanted.attempt,
        action,
        last.id if last is not None else "",
        view.taken,
    )
    run = CurrentRun(
        name=name,
        id=name,
        action=action,
        phase=CurrentPhase.QUEUED,
        since=now,
        started_at=now,
        attempt=wanted.attempt,
        trigger=wanted.trigger,
    )
    made = _creations(view, run)
    return made if isinstance(made, Fault) else run


def _queued(view: RunView, current: CurrentRun, wanted: Due | None) -> Step:
    if view.is_paused:
        return Step(current)
    if wanted is None:
        return Step(None)
    # Its trigger may have changed while it was queued, and with it its name; its position stays.
    fresh = _named(view, wanted, current.action)
    if isinstance(fresh, Fault):
        return Step(None, fault=fresh)
    kept = {"since": current.since, "started_at": current.started_at}
    return _in_line(view, fresh.model_copy(update=kept))


def _in_line(view: RunView, run: CurrentRun) -> Step:
    """A run that has its turn, or waits for it; one that is not in the queue yet is its last."""
    queue = view.runs.queue
    if queue.has_slot:
        return Step(_moved(run, CurrentPhase.SUBMITTING, view.now))
    place = queue.position or queue.waiting + 1
    text = (
        f"its turn: place {place} of {max(place, queue.waiting)} in the queue; "
        f"{queue.limit} runs may be in flight at once"
    )
    return Step(_waiting(run, text), wakes=(later(view.now, QUEUE_SECONDS),))


def _submitting(view: RunView, current: CurrentRun, wanted: Due | None) -> Step:
    if view.application is not None:
        known = {"uid": view.application.uid, "trigger": view.answered}
        run = _moved(current, CurrentPhase.SUBMITTED, view.now).model_copy(update=known)
        return _submitted(view, run, wanted)
    if view.final_report is not None:
        return end_run(view, current, None, "")
    if view.is_paused:
        return Step(current)
    if not _may_create(view, current):
        # It may have been created without being observed yet: then it is adopted later.
        if view.is_settled:
            return Step(None)
        return Step(current, wakes=_after(view.since, SETTLE_SECONDS))
    if current.action is RunAction.RUN and current.trigger.declarations != view.declarations:
        return _renewed(view, current)
    made = _creations(view, current)
    if isinstance(made, Fault):
        return Step(None, fault=made)
    refused = view.refusal.message if view.refusal is not None else ""
    text = f"the API server to take it: {refused}" if refused else ""
    return Step(_waiting(current, text), actions=made, wakes=(later(view.now, QUEUE_SECONDS),))


def _may_create(view: RunView, current: CurrentRun) -> bool:
    if view.runs.is_namespace_terminating:
        return False
    if current.action is RunAction.DELETE:
        return view.submitter in view.runs.available and view.job_bundle is not None
    return view.fault is None and view.bundle is not None and not view.is_deleting


def _renewed(view: RunView, current: CurrentRun) -> Step:
    """Update a run whose declarations changed before its application was created."""
    outdated = tuple(
        Delete(CONFIG_MAPS, view.namespace, each.name, each.uid)
        for each in view.runs.config_maps
        if each.run == current.name and each.role == "bundle"
    )
    return Step(current.model_copy(update={"trigger": view.trigger}), actions=outdated)


def _submitted(view: RunView, current: CurrentRun, wanted: Due | None) -> Step:
    application = view.application
    if application is None:  # deleted by us, by a user, or by its TTL
        return _finished(view, current, None, "")
    notes: tuple[Note, ...] = ()
    if current.uid not in (None, application.uid):
        text = f"the application of run {current.name} was recreated; the new one is followed"
        notes = (Note(EventType.WARNING, Reason.RUN_RECREATED, text),)
    current = current.model_copy(update={"uid": application.uid})
    step = _seen(view, current, application, wanted)
    return replace(step, notes=(*notes, *step.notes))


def _seen(view: RunView, current: CurrentRun, application: Application, wanted: Due | None) -> Step:
    pod, seen, report = view.pod, view.observation, view.report
    assert seen is not None  # there is an application
    if seen.has_ended:
        message = application.message or (pod.trouble if pod is not None else "")
        return _finished(view, current, seen.has_succeeded, message)
    if current.stopping is not None:
        actions = () if application.is_deleting else (_application_deletion(view, application),)
        wakes = (later(view.now, STOP_SECONDS),)
        return Step(current, report=report, actions=actions, wakes=wakes)
    why = _why_stop(view, current, seen.phase, wanted)
    if why is not None:
        ending = _moved(current, CurrentPhase.ENDING, view.now)
        stopping = _waiting(ending, seen.waiting_for).model_copy(update={"stopping": why})
        return Step(stopping, report=report)
    run = _waiting(_moved(current, seen.phase or current.phase, view.now), seen.waiting_for)
    progress = report.progress.message if report is not None and report.progress else None
    run = run.model_copy(update={"progress": progress or None})
    limit = view.time_limit(run.phase)
    since = view.now if run.since != current.since else view.since
    return Step(run, report=report, wakes=() if limit is None else _after(since, limit))


def _why_stop(
    view: RunView, current: CurrentRun, seen: CurrentPhase | None, wanted: Due | None
) -> Reason | None:
    if view.is_paused or seen is CurrentPhase.ENDING:
        return None
    if view.is_deleting and current.action is RunAction.RUN:
        return Reason.DELETING
    is_replaced = (
        current.action is RunAction.RUN
        and wanted is not None
        and view.settings.concurrency_policy is ConcurrencyPolicy.REPLACE
        and view.is_overtaken
    )
    if is_replaced:
        return Reason.RUN_STOPPED
    if current.phase is CurrentPhase.RUNNING and seen is CurrentPhase.QUOTA_PENDING:
        # Started again it would be the same run a second time, while its first driver may live.
        return Reason.QUOTA_LOST
    if not view.has_outlasted:
        return None
    if current.phase is CurrentPhase.RUNNING:
        return Reason.DEADLINE_EXCEEDED
    return Reason.START_TIMEOUT if seen is CurrentPhase.SUBMITTED else None


def _finished(view: RunView, current: CurrentRun, has_succeeded: bool | None, message: str) -> Step:
    """The step of a run whose application ended, or is gone; its report may arrive later."""
    is_ending = current.phase is CurrentPhase.ENDING
    if (
        view.final_report is None
        and current.stopping is None
        and not (is_ending and view.is_settled)
    ):
        run = _waiting(_moved(current, CurrentPhase.ENDING, view.now), "the report of its job")
        since = view.since if is_ending else view.now
        return Step(run, report=view.report, wakes=_after(since, SETTLE_SECONDS))
    return end_run(view, current, has_succeeded, message, current.stopping)


def _moved(run: CurrentRun, phase: CurrentPhase, now: EpochNanos) -> CurrentRun:
    if run.phase is phase:
        return run
    return run.model_copy(
        update={"phase": phase, "since": format_instant(now), "waiting_for": None}
    )


def _waiting(run: CurrentRun, text: str) -> CurrentRun:
    return run.model_copy(update={"waiting_for": text or None})


def _after(since: EpochNanos | None, seconds: float) -> tuple[EpochNanos, ...]:
    return (later(since, seconds),) if since is not None else ()


def _application_deletion(view: RunView, application: Application) -> Delete:
    """The action that deletes an application."""
    resource = FORMS[application.submitter].resource
    return Delete(resource, view.namespace, application.name, application.uid)


LONGEST_RUN = 50
"""Characters: Spark derives names of pods and Services from it, which may have 63."""
PREFIXES = {"OutputDataset": "ods", "SkippingIndex": "skix"}
_HASH = 8
_NOT_ALLOWED = re.compile(r"[^a-z0-9]+")


def run_name(
    kind: str,
    name: str,
    uid: str,
    trigger: Trigger,
    attempt: int,
    action: RunAction,
    before: str = "",
    taken: Container[str] = (),
) -> str:
    """Name of a run and its application: a DNS label (RFC 1035) of at most 50 characters.

    The UID is part of it, since names come again after a deletion and UIDs do not, and so is the
    name of the run before; names that are taken are left out.
    """
    prefix = PREFIXES[kind]
    kept = LONGEST_RUN - len(prefix) - _HASH - 2
    middle = _NOT_ALLOWED.sub("-", name.lower()).strip("-")[:kept].strip("-")
    salt = 0
    while True:
        identity = [uid, trigger.dump_json(), attempt, action, before, salt]
        digest = hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:_HASH]
        found = "-".join(part for part in (prefix, middle, digest) if part)
        if found not in taken:
            return found
        salt += 1


def _creations(view: RunView, current: CurrentRun) -> tuple[Create, Create] | Fault:
    """Create the Bundle's ConfigMap, then the application; a fault if that is impossible."""
    bundle = view.bundle if current.action is RunAction.RUN else view.job_bundle
    if bundle is None:
        return Fault(Reason.INTERNAL_ERROR, "the declarations of the run are unknown")
    form, operator = FORMS[view.submitter], view.defaults.operator
    try:
        bundled, application = objects_of_run(
            form.manifest, view.owner, current, bundle, operator, view.now
        )
    except SnaploomError as error:
        is_known = error.reason in {reason.value for reason in Reason}
        return Fault(Reason(error.reason) if is_known else Reason.INVALID, str(error))
    return Create(CONFIG_MAPS, bundled), Create(form.resource, application)


class _Finished(NamedTuple):
    started_at: EpochNanos
    name: str
    has_succeeded: bool


def _outdated(view: RunView, kept: Iterable[str]) -> tuple[Delete, ...]:
    """Deletions of runs beyond `run.historyLimit`, except those to be kept by name."""
    limits = view.settings.history_limit
    protected = set(kept) | {a.name for a in view.runs.applications if not a.state.is_terminal}
    finished = _history(view)
    for succeeded, limit in ((True, limits.successful), (False, limits.failed)):
        of_kind = [run for run in finished if run.has_succeeded is succeeded]
        spared = sum(run.name in protected for run in of_kind)
        others = [run.name for run in of_kind if run.name not in protected]
        protected.update(others[: max(limit - spared, 0)])
    applications = (
        _application_deletion(view, application)
        for application in view.runs.applications
        if application.name not in protected and not application.is_deleting
    )
    config_maps = (
        Delete(CONFIG_MAPS, view.namespace, config_map.name, config_map.uid)
        for config_map in view.runs.config_maps
        if config_map.role in _OF_RUNS and config_map.run not in protected
    )
    return (*applications, *config_maps)[:_MOST_AT_ONCE]


def _repeated(view: RunView, current: CurrentRun | None) -> tuple[Delete, ...]:
    """Deletions of applications that were created again after their run ended.

    A create request of a paused process that lost its Lease can arrive after another process
    followed the run to its end.
    """
    last = view.last
    if last is None or last.uid is None or (current is not None and current.name == last.id):
        return ()
    return tuple(
        _application_deletion(view, application)
        for application in view.runs.applications
        if application.name == last.id
        and application.uid != last.uid
        and not application.state.is_terminal
        and not application.is_deleting
    )


def _history(view: RunView) -> list[_Finished]:
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
