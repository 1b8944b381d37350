"""The steps of a resource's runs, deletion included: which one is followed or begun, and how."""

import hashlib
import json
import re
from collections.abc import Container
from dataclasses import dataclass, replace

from snaploom.errors import SnaploomError
from snaploom.models.common import EpochNanos, format_instant
from snaploom.models.report import Removed, Report, RunPhase, Unpublished
from snaploom.models.run import (
    ConcurrencyPolicy,
    CurrentPhase,
    CurrentRun,
    DeletionPolicy,
    LastPhase,
    LastRun,
    RunAction,
    Trigger,
)
from snaploom_operator import decision
from snaploom_operator.cluster.port import CONFIG_MAPS
from snaploom_operator.conditions import Reason, fit_text, fit_texts, joined
from snaploom_operator.decide.remains import beyond_history, recreated
from snaploom_operator.decide.runview import SETTLE_SECONDS, Due, Fault, RunView, Step, Wake
from snaploom_operator.objects import Application
from snaploom_operator.submit.applications import FORMS
from snaploom_operator.submit.manifests import objects_of_run

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
    wanted: Due | None
    """The run to start if there is none to follow, or that would be started."""
    action: RunAction = RunAction.RUN
    wakes: tuple[Wake, ...] = ()
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
        return Step(None, actions=(decision.RemoveFinalizer(),), notes=(note,))
    if view.is_paused:
        return replace(step, actions=())
    kept = [run.name for run in (step.current, current) if run is not None]
    kept.extend(last.id for last in (view.last, step.ended) if last is not None)
    # Created objects are not deleted in the same pass: they are observed first.
    cleared: tuple[decision.Action, ...] = () if step.actions else beyond_history(view, kept)
    again = recreated(view, current)
    return replace(step, actions=(*_finalizer(view), *step.actions, *again, *cleared))


def _deletion(view: RunView) -> Course | Step:
    current = view.followed
    if not view.has_finalizer or view.is_paused:
        return Step(current)
    note = _removal_note(view, current)
    if note is not None and view.may_still_publish:
        wakes = ((view.now, LOOK_SECONDS),)
        if current is not None and view.application is None:
            # Deleted by someone else, such as the namespace controller: do not wait for a Report.
            current = current.model_copy(update={"stopping": Reason.DELETING})
        return Course(current, None, wakes=wakes)
    if note is not None:
        return Step(current, actions=(decision.RemoveFinalizer(),), notes=(note,))
    if current is not None and current.action is RunAction.RUN:
        is_waiting = current.phase is CurrentPhase.QUEUED
        return Step(None) if is_waiting else Course(current, None)
    wanted, again = view.due_deletion, view.retry_at
    if current is not None or wanted is not None:
        return Course(current, wanted, RunAction.DELETE)
    return Step(None, wakes=((again, 0.0),))


def _removal_note(view: RunView, current: CurrentRun | None) -> decision.Note | None:
    """The event with which the finalizer is removed now; None if it is not."""
    last, status = view.last, view.owner.status
    if view.settings.deletion_policy is DeletionPolicy.RETAIN:
        return _data_left("deletionPolicy is Retain", decision.EventType.NORMAL)
    if last is not None and last.action is RunAction.DELETE and last.phase is LastPhase.SUCCEEDED:
        what = f": {last.message}" if last.message else ""
        return decision.Note(
            decision.EventType.NORMAL, Reason.DATA_DELETED, f"what was published is deleted{what}"
        )
    if view.runs.is_namespace_terminating:
        return _data_left("its namespace is being deleted, so that no job can delete the data")
    if view.submitter not in view.runs.available:
        return _data_left(f"the submitter {view.submitter} is not available to delete it")
    if view.job_bundle is None:
        return _data_left("the target of the index is not declared any more")
    if current is None and last is None and (status is None or status.realised is None):
        return decision.Note(decision.EventType.NORMAL, Reason.DATA_LEFT, "nothing was published")
    return None


def _data_left(why: str, type_: decision.EventType = decision.EventType.WARNING) -> decision.Note:
    return decision.Note(type_, Reason.DATA_LEFT, f"what was published stays: {why}")


def _finalizer(view: RunView) -> tuple[decision.Action, ...]:
    wants = view.settings.deletion_policy is DeletionPolicy.DELETE
    if wants and not view.has_finalizer:
        return (decision.AddFinalizer(),)
    if view.has_finalizer and not wants:
        return (decision.RemoveFinalizer(),)
    return ()


def _advanced(view: RunView, course: Course) -> Step:
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
    note = decision.Note(decision.EventType.NORMAL, Reason.RUN_STARTED, text)
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
    return Step(_waiting(run, text), wakes=((view.now, QUEUE_SECONDS),))


def _submitting(view: RunView, current: CurrentRun, wanted: Due | None) -> Step:
    if view.application is not None:
        known = {"uid": view.application.uid, "trigger": view.answered}
        run = _moved(current, CurrentPhase.SUBMITTED, view.now).model_copy(update=known)
        return _submitted(view, run, wanted)
    if view.final_report is not None:
        return _ended(view, current, None, "")
    if view.is_paused:
        return Step(current)
    if not _may_create(view, current):
        # It may have been created without being observed yet: then it is adopted later.
        if view.is_settled:
            return Step(None)
        return Step(current, wakes=((view.since, SETTLE_SECONDS),))
    if current.action is RunAction.RUN and current.trigger.declarations != view.declarations:
        outdated = tuple(
            decision.Delete(CONFIG_MAPS, view.namespace, each.name, each.uid)
            for each in view.runs.config_maps
            if each.run == current.name and each.role == "bundle"
        )
        return Step(current.model_copy(update={"trigger": view.trigger}), actions=outdated)
    made = _creations(view, current)
    if isinstance(made, Fault):
        return Step(None, fault=made)
    refused = view.refusal.message if view.refusal is not None else ""
    text = f"the API server to take it: {refused}" if refused else ""
    return Step(_waiting(current, text), actions=made, wakes=((view.now, QUEUE_SECONDS),))


def _may_create(view: RunView, current: CurrentRun) -> bool:
    if view.runs.is_namespace_terminating:
        return False
    if current.action is RunAction.DELETE:
        return view.submitter in view.runs.available and view.job_bundle is not None
    return view.fault is None and view.bundle is not None and not view.is_deleting


def _submitted(view: RunView, current: CurrentRun, wanted: Due | None) -> Step:
    application = view.application
    if application is None:  # deleted by us, by a user, or by its TTL
        return _finished(view, current, None, "")
    notes: tuple[decision.Note, ...] = ()
    if current.uid not in (None, application.uid):
        text = f"the application of run {current.name} was recreated; the new one is followed"
        notes = (decision.Note(decision.EventType.WARNING, Reason.RUN_RECREATED, text),)
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
        resource = FORMS[application.submitter].resource
        deleted = decision.Delete(resource, view.namespace, application.name, application.uid)
        actions = () if application.is_deleting else (deleted,)
        wakes = ((view.now, STOP_SECONDS),)
        return Step(current, report=report, actions=actions, wakes=wakes)
    why = _why_stop(view, current, seen.phase, wanted)
    if why is not None:
        ending = _moved(current, CurrentPhase.ENDING, view.now)
        stopping = _waiting(ending, seen.waiting_for).model_copy(update={"stopping": why})
        return Step(stopping, report=report)
    run = _waiting(_moved(current, seen.phase or current.phase, view.now), seen.waiting_for)
    progress = report.progress.message if report is not None and report.progress else None
    run = run.model_copy(update={"progress": progress or None})
    limit = _time_limit(view, run.phase)
    since = view.now if run.since != current.since else view.since
    return Step(run, report=report, wakes=() if limit is None else ((since, limit),))


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
    limit = _time_limit(view, current.phase)
    is_new = view.followed is None or view.followed.since != current.since
    if is_new or limit is None or view.lasted < limit:
        return None
    if current.phase is CurrentPhase.RUNNING:
        return Reason.DEADLINE_EXCEEDED
    return Reason.START_TIMEOUT if seen is CurrentPhase.SUBMITTED else None


def _time_limit(view: RunView, phase: CurrentPhase) -> float | None:
    """Seconds that a phase of a run may last; None without a limit."""
    if phase is CurrentPhase.SUBMITTED:
        return view.settings.start_timeout_seconds
    return view.settings.active_deadline_seconds if phase is CurrentPhase.RUNNING else None


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
        return Step(run, report=view.report, wakes=((since, SETTLE_SECONDS),))
    return _ended(view, current, has_succeeded, message, current.stopping)


def _moved(run: CurrentRun, phase: CurrentPhase, now: EpochNanos) -> CurrentRun:
    if run.phase is phase:
        return run
    return run.model_copy(
        update={"phase": phase, "since": format_instant(now), "waiting_for": None}
    )


def _waiting(run: CurrentRun, text: str) -> CurrentRun:
    return run.model_copy(update={"waiting_for": text or None})


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


def _creations(
    view: RunView, current: CurrentRun
) -> tuple[decision.Create, decision.Create] | Fault:
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
    return decision.Create(CONFIG_MAPS, bundled), decision.Create(form.resource, application)


_OUTCOME_BYTES = 1_000
_LIST_BYTES = 500
_ITEM_BYTES = 100
_REASON_BYTES = 100
_LISTED = 20
"""Entries of a list, as the model bounds it."""


@dataclass(frozen=True)
class Verdict:
    """The outcome of a run, as in a status."""

    phase: LastPhase
    reason: str = ""
    retryable: bool = False
    texts: tuple[str, ...] = ()
    """Parts of its message."""


def _ended(
    view: RunView,
    current: CurrentRun,
    has_succeeded: bool | None,
    failure: str,
    stopping: str | None = None,
) -> Step:
    """The step of a run that is over, by the outcome of its application; None if it is gone.

    `failure` is the message of the application, or of its driver's pod. `stopping` is the reason
    for which the operator stopped it; None if it did not.
    """
    report = view.final_report
    found = _verdict(has_succeeded, failure, report, view.report_trouble)
    if stopping is not None and not has_succeeded:
        found = _stopped(stopping, current.waiting_for or "")
    report = report or view.report
    last = _last_run(view, current, found, report)
    return Step(None, ended=last, report=report, notes=(_ending_note(last, report),))


def _verdict(
    has_succeeded: bool | None, failure: str, report: Report | None, trouble: str
) -> Verdict:
    """The outcome of a run; `trouble` is the cause if an existing report is ignored."""
    if report is not None and report.phase is not RunPhase.SUCCEEDED:
        return _reported_failure(report)
    if has_succeeded is False:
        text = "the job reported success, and its application failed" if report else ""
        message = failure or "its application failed"
        return Verdict(LastPhase.FAILED, Reason.RUN_FAILED, True, (text, message, trouble))
    if report is not None:
        texts = () if report.removed is None else (_removed_text(report.removed),)
        return Verdict(LastPhase.SUCCEEDED, texts=texts)
    if has_succeeded:
        message = trouble or "the job wrote no report; what it published is unknown"
        return Verdict(LastPhase.SUCCEEDED, texts=(message,))
    gone = "its application was deleted before its end was observed"
    return Verdict(LastPhase.LOST, Reason.RUN_LOST, True, (gone, trouble))


def _removed_text(removed: Removed) -> str:
    """The summary of what a deletion removed and left, with the names in its Report."""
    files = f"{removed.files:,} file{'' if removed.files == 1 else 's'}"
    text = f"{files} of {removed.bytes:,} bytes removed"
    if not removed.left:
        return f"{text}, and nothing else was there"
    one = removed.left == 1
    stay = f"{removed.left:,} file{'' if one else 's'} that Snaploom did not write stay{'s' * one}"
    names = ", ".join(fit_texts(removed.left_names, _LIST_BYTES, _ITEM_BYTES))
    return f"{text}; {stay}{': ' * bool(names)}{names}"


def _stopped(reason: str, trouble: str) -> Verdict:
    """The outcome of a run that the operator stopped, and what it was waiting for then."""
    known = reason if reason in _STOPPED else Reason.RUN_STOPPED.value  # others write statuses too
    phase, message, retryable = _STOPPED[known]
    return Verdict(phase, known, retryable, (message, trouble))


_STOPPED = {
    Reason.START_TIMEOUT.value: (
        LastPhase.FAILED, "it did not start within startTimeoutSeconds", True
    ),
    Reason.DEADLINE_EXCEEDED.value: (
        LastPhase.STOPPED, "it took longer than activeDeadlineSeconds", True
    ),
    Reason.QUOTA_LOST.value: (LastPhase.STOPPED, "its queue took its quota back", True),
    Reason.RUN_STOPPED.value: (LastPhase.STOPPED, "a newer run takes its place", False),
    Reason.DELETING.value: (LastPhase.STOPPED, "its resource is being deleted", False),
}  # fmt: skip


def _last_run(view: RunView, current: CurrentRun, found: Verdict, report: Report | None) -> LastRun:
    """An ended run as in a status, with bounded texts and lists."""
    snapshots = report.snapshots if report is not None else ()
    collected = report.collected if report is not None else None
    return LastRun(
        id=current.id,
        uid=current.uid,
        action=current.action,
        phase=found.phase,
        reason=fit_text(found.reason, _REASON_BYTES),
        retryable=found.retryable,
        attempt=current.attempt,
        trigger=current.trigger,
        started_at=current.started_at,
        finished_at=format_instant(view.finished_at),
        published=len(snapshots),
        rows=sum(snapshot.rows for snapshot in snapshots),
        bytes=sum(snapshot.bytes for snapshot in snapshots),
        collected_files=collected.files if collected is not None else 0,
        skipped=_listed(report.skipped) if report is not None else (),
        failed=_listed(report.failed) if report is not None else (),
        message=fit_text(joined(*found.texts), _OUTCOME_BYTES),
    )


def _ending_note(last: LastRun, report: Report | None) -> decision.Note:
    run = f"run {last.id}"
    if last.phase is LastPhase.SUCCEEDED:
        text = joined(f"{run} succeeded", last.message or _result_text(last, report))
        return decision.Note(decision.EventType.NORMAL, Reason.RUN_SUCCEEDED, text)
    if last.phase is LastPhase.FAILED and last.reason != Reason.START_TIMEOUT:
        text = joined(f"{run} failed", last.reason, last.message)
        return decision.Note(decision.EventType.WARNING, Reason.RUN_FAILED, text)
    kind = decision.EventType.NORMAL if last.reason in _ASKED_FOR else decision.EventType.WARNING
    return decision.Note(kind, last.reason, f"{run}: {last.message}")


_ASKED_FOR = (Reason.RUN_STOPPED, Reason.DELETING)


def _result_text(last: LastRun, report: Report | None) -> str:
    if last.action is RunAction.DELETE:
        return ""  # the event about the deleted data has the details
    if report is not None and report.index is not None:
        return ", ".join(report.index.done) or "the index was up to date"
    count = last.published
    text = f"{count} snapshot{'' if count == 1 else 's'} published"
    return f"{text}, {last.rows:,} rows" if count else text


def _reported_failure(report: Report) -> Verdict:
    errors = [finding for finding in report.findings if finding.is_error]
    retryable = report.retryable if report.retryable is not None else not errors
    if report.phase is RunPhase.INTERRUPTED:
        message = report.message or "the job was interrupted, for example by an eviction of its pod"
        return Verdict(LastPhase.FAILED, report.reason or "Interrupted", True, (message,))
    failure = report.message or "; ".join(finding.message for finding in errors[:5])
    failed = report.failed[0].message if report.failed and not failure else failure
    reason = report.reason or Reason.RUN_FAILED
    texts = (failed or "the job reported a failure",)
    return Verdict(LastPhase.FAILED, reason, retryable, texts)


def _listed(entries: tuple[Unpublished, ...]) -> tuple[str, ...]:
    lines = (f"{entry.time} {entry.reason}" for entry in entries[:_LISTED])
    return fit_texts(lines, _LIST_BYTES, _ITEM_BYTES)
