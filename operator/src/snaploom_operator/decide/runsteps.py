"""The next step of a run in flight, and its outcome, from its phase and its observation."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Container
from dataclasses import dataclass, replace

from snaploom.errors import SnaploomError
from snaploom.models.common import EpochNanos, format_instant
from snaploom.models.findings import errors_of
from snaploom.models.report import Removed, Report, RunPhase, Unpublished
from snaploom.models.run import (
    ConcurrencyPolicy,
    CurrentPhase,
    CurrentRun,
    LastPhase,
    LastRun,
    RunAction,
    Trigger,
)
from snaploom.plan.bundles import secret_keys
from snaploom_operator.cluster.port import CONFIG_MAPS
from snaploom_operator.conditions import Reason, fit_text, fit_texts, joined
from snaploom_operator.decide.runview import (
    UNSUBMITTED,
    Due,
    Fault,
    RunObservation,
    RunView,
    any_report,
    changed,
    final_report,
    observe_run,
    report_trouble,
)
from snaploom_operator.decision import Action, Create, Delete, EventType, Note, OwnedConfigMap
from snaploom_operator.objects import (
    Application,
    has_lasted,
    is_past,
    known_instant,
    later,
    metadata_of,
    text_in,
)
from snaploom_operator.submit.applications import FORMS
from snaploom_operator.submit.manifests import RunRequest, bundle_config_map, run_settings

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


def creations(view: RunView, current: CurrentRun) -> tuple[Create, Create] | Fault:
    """Create the Bundle's ConfigMap, then the application; a fault if that is impossible."""
    bundle = view.bundle if current.action is RunAction.RUN else view.job_bundle
    if bundle is None:
        return Fault(Reason.INTERNAL_ERROR, "the declarations of the run are unknown")
    form, operator = FORMS[view.submitter], view.defaults.operator
    try:
        bundled = bundle_config_map(view.owner, current.name, bundle)
        request = RunRequest(
            owner=view.owner,
            run=current,
            started_at=known_instant(current.started_at) or view.now,
            spark=run_settings(view.settings.spark, operator),
            bundle=text_in(metadata_of(bundled), "name"),
            settings=operator,
            secrets=secret_keys(bundle, current.action),
        )
        application = form.manifest(request)
    except SnaploomError as error:
        is_known = error.reason in {reason.value for reason in Reason}
        return Fault(Reason(error.reason) if is_known else Reason.INVALID, str(error))
    return Create(CONFIG_MAPS, bundled), Create(form.resource, application)


def deletion(view: RunView, application: Application) -> Delete:
    """The action that deletes an application."""
    resource = FORMS[application.submitter].resource
    return Delete(resource, view.namespace, application.name, application.uid)


def config_map_deletion(config_map: OwnedConfigMap, namespace: str) -> Delete:
    """The action that deletes a ConfigMap of ours."""
    return Delete(CONFIG_MAPS, namespace, config_map.name, config_map.uid)


QUEUE_SECONDS = 30.0
"""Interval of checking a queued run, in case no event arrives."""
SETTLE_SECONDS = 60.0
"""Longest delay of a report after the end of its run, and of an application after the write that
created it: watches are at worst seconds late."""
STOP_SECONDS = 30.0
"""Interval of deleting an application that remains."""
_TEXT_BYTES = 600


@dataclass(frozen=True)
class Step:
    """The result of one step of a run."""

    current: CurrentRun | None
    """The run in flight afterwards."""
    ended: LastRun | None = None
    """The run, if it has ended."""
    report: Report | None = None
    """The latest report of its job."""
    actions: tuple[Action, ...] = ()
    notes: tuple[Note, ...] = ()
    wakes: tuple[EpochNanos, ...] = ()
    """Times to reconcile again."""
    fault: Fault | None = None
    """The cause if starting the run failed."""


def begin(view: RunView, wanted: Due, action: RunAction) -> Step:
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
    made = creations(view, run)
    return made if isinstance(made, Fault) else run


def follow_run(view: RunView, current: CurrentRun, wanted: Due | None) -> Step:
    """The next step of a run; `wanted` is the one that would start if none were in flight."""
    if current.phase is CurrentPhase.QUEUED:
        return _queued(view, current, wanted)
    if current.phase is CurrentPhase.SUBMITTING:
        return _submitting(view, current, wanted)
    return _submitted(view, current, wanted)


def adopted(view: RunView) -> CurrentRun | None:
    """The run in flight: the recorded one, or an unrecorded one that is in the cluster.

    A status can be lost, or restored from a backup. A running application is adopted then, and the
    last ended one is evaluated again, so that its work is not repeated.
    """
    current = view.current
    if current is not None and current.phase not in UNSUBMITTED:
        return current
    known = {current.name} if current is not None else set()
    last = view.last
    since = known_instant(last.started_at) if last is not None else None
    if last is not None:
        known.add(last.id)
    unrecorded = [
        application
        for application in view.runs.applications
        if application.name not in known
        and (since is None or application.started_at > since)
        and (current is None or not application.state.is_terminal)
    ]
    if not unrecorded or (current is not None and view.application(current.name) is not None):
        return current
    # Running before ended, then the latest.
    newest = max(unrecorded, key=lambda a: (not a.state.is_terminal, a.started_at, a.name))
    return CurrentRun(
        name=newest.name,
        id=newest.name,
        action=newest.action,
        phase=CurrentPhase.SUBMITTED,
        since=format_instant(view.now),
        started_at=format_instant(newest.started_at),
        attempt=newest.attempt,
        trigger=newest.trigger,
        uid=newest.uid,
    )


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
    application = view.application(current.name)
    if application is not None:
        # The trigger of the application counts; without its annotation it still is this run.
        trigger = application.trigger if application.trigger.declarations else current.trigger
        known = {"uid": application.uid, "trigger": trigger}
        run = _moved(current, CurrentPhase.SUBMITTED, view.now).model_copy(update=known)
        return _submitted(view, run, wanted)
    report = final_report(view, current.name)
    if report is not None:
        return _ended(view, current, verdict(None, "", report, ""), report)
    if view.is_paused:
        return Step(current)
    if not _may_create(view, current):
        # It may have been created without being observed yet: then it is adopted later.
        if is_past(current.since, SETTLE_SECONDS, view.now):
            return Step(None)
        return Step(current, wakes=_after(current.since, SETTLE_SECONDS))
    if current.action is RunAction.RUN and current.trigger.declarations != view.declarations:
        return _renewed(view, current)
    made = creations(view, current)
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
        config_map_deletion(each, view.namespace)
        for each in view.runs.config_maps
        if each.run == current.name and each.role == "bundle"
    )
    return Step(current.model_copy(update={"trigger": view.trigger}), actions=outdated)


def _submitted(view: RunView, current: CurrentRun, wanted: Due | None) -> Step:
    application = view.application(current.name)
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
    pod = view.runs.driver_pods.get(current.name)
    seen = observe_run(application, pod, view.awaited_quota(application))
    report = any_report(view, current.name)
    if seen.has_ended:
        message = application.message or (pod.trouble if pod is not None else "")
        return _finished(view, current, seen.has_succeeded, message)
    if current.stopping is not None:
        actions = () if application.is_deleting else (deletion(view, application),)
        wakes = (later(view.now, STOP_SECONDS),)
        return Step(current, report=report, actions=actions, wakes=wakes)
    why = _why_stop(view, current, seen, wanted)
    if why is not None:
        ending = _moved(current, CurrentPhase.ENDING, view.now)
        stopping = _waiting(ending, seen.waiting_for).model_copy(update={"stopping": why})
        return Step(stopping, report=report)
    run = _waiting(_moved(current, seen.phase or current.phase, view.now), seen.waiting_for)
    progress = report.progress.message if report is not None and report.progress else None
    shown = fit_text(progress, _TEXT_BYTES) if progress else None
    run = run.model_copy(update={"progress": shown})
    limit = _time_limit(view, run)
    return Step(run, report=report, wakes=() if limit is None else _after(run.since, limit))


def _why_stop(
    view: RunView, current: CurrentRun, seen: RunObservation, wanted: Due | None
) -> Reason | None:
    if view.is_paused or seen.phase is CurrentPhase.ENDING:
        return None
    if view.is_deleting and current.action is RunAction.RUN:
        return Reason.DELETING
    is_replaced = (
        current.action is RunAction.RUN
        and wanted is not None
        and view.settings.concurrency_policy is ConcurrencyPolicy.REPLACE
        and bool(changed(view, current.trigger, current.started_at))
    )
    if is_replaced:
        return Reason.RUN_STOPPED
    if current.phase is CurrentPhase.RUNNING and seen.phase is CurrentPhase.QUOTA_PENDING:
        # Started again it would be the same run a second time, while its first driver may live.
        return Reason.QUOTA_LOST
    limit = _time_limit(view, current)
    if limit is None or not has_lasted(current.since, limit, view.now):
        return None
    if current.phase is CurrentPhase.RUNNING:
        return Reason.DEADLINE_EXCEEDED
    return Reason.START_TIMEOUT if seen.phase is CurrentPhase.SUBMITTED else None


def _time_limit(view: RunView, run: CurrentRun) -> float | None:
    """Seconds that the phase of a run may last; None without a limit."""
    if run.phase is CurrentPhase.SUBMITTED:
        return view.settings.start_timeout_seconds
    is_running = run.phase is CurrentPhase.RUNNING
    return view.settings.active_deadline_seconds if is_running else None


def _finished(view: RunView, current: CurrentRun, has_succeeded: bool | None, message: str) -> Step:
    """The step of a run whose application ended, or is gone; its report may arrive later."""
    report = final_report(view, current.name)
    if report is None and current.stopping is None:
        waits = _waits_for_report(view, current)
        if waits is not None:
            return waits
    found = verdict(has_succeeded, message, report, report_trouble(view, current.name))
    if current.stopping is not None and not has_succeeded:
        found = stopped(current.stopping, current.waiting_for or "")
    return _ended(view, current, found, report or any_report(view, current.name))


def _waits_for_report(view: RunView, current: CurrentRun) -> Step | None:
    if current.phase is CurrentPhase.ENDING and is_past(current.since, SETTLE_SECONDS, view.now):
        return None
    run = _waiting(_moved(current, CurrentPhase.ENDING, view.now), "the report of its job")
    return Step(run, report=any_report(view, run.name), wakes=_after(run.since, SETTLE_SECONDS))


def _ended(view: RunView, current: CurrentRun, found: Verdict, report: Report | None) -> Step:
    last = last_run(current, found, report, view.now)
    return Step(None, ended=last, report=report, notes=(ending_note(last, report),))


def _moved(run: CurrentRun, phase: CurrentPhase, now: EpochNanos) -> CurrentRun:
    if run.phase is phase:
        return run
    return run.model_copy(
        update={"phase": phase, "since": format_instant(now), "waiting_for": None}
    )


def _waiting(run: CurrentRun, text: str) -> CurrentRun:
    return run.model_copy(update={"waiting_for": fit_text(text, _TEXT_BYTES) or None})


def _after(start: str, seconds: float) -> tuple[EpochNanos, ...]:
    since = known_instant(start)
    return (later(since, seconds),) if since is not None else ()


_MESSAGE_BYTES = 1_000
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
    message: str = ""


def verdict(
    has_succeeded: bool | None, failure: str, report: Report | None, trouble: str
) -> Verdict:
    """The outcome of a run.

    Args:
        has_succeeded: the outcome of its application; None if it is gone.
        failure: the message of the application, or of its driver's pod.
        report: the report, if there is one.
        trouble: the cause if an existing report is ignored.
    """
    if report is not None and report.phase is not RunPhase.SUCCEEDED:
        return _reported_failure(report)
    if has_succeeded is False:
        text = "the job reported success, and its application failed" if report else ""
        message = joined(text, failure or "its application failed", trouble)
        return Verdict(LastPhase.FAILED, Reason.RUN_FAILED, True, message)
    if report is not None:
        message = removed_text(report.removed) if report.removed is not None else ""
        return Verdict(LastPhase.SUCCEEDED, message=message)
    if has_succeeded:
        message = trouble or "the job wrote no report; what it published is unknown"
        return Verdict(LastPhase.SUCCEEDED, message=message)
    gone = "its application was deleted before its end was observed"
    return Verdict(LastPhase.LOST, Reason.RUN_LOST, True, joined(gone, trouble))


def removed_text(removed: Removed) -> str:
    """The summary of what a deletion removed and left, with the names in its Report."""
    files = f"{removed.files:,} file{'' if removed.files == 1 else 's'}"
    text = f"{files} of {removed.bytes:,} bytes removed"
    if not removed.left:
        return f"{text}, and nothing else was there"
    one = removed.left == 1
    stay = f"{removed.left:,} file{'' if one else 's'} that Snaploom did not write stay{'s' * one}"
    names = ", ".join(fit_texts(removed.left_names, _LIST_BYTES, _ITEM_BYTES))
    return f"{text}; {stay}{': ' * bool(names)}{names}"


def stopped(reason: str, trouble: str) -> Verdict:
    """The outcome of a run that the operator stopped, and what it was waiting for then."""
    known = reason if reason in _STOPPED else Reason.RUN_STOPPED.value  # others write statuses too
    phase, message, retryable = _STOPPED[known]
    return Verdict(phase, known, retryable, joined(message, trouble))


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


def last_run(
    current: CurrentRun, found: Verdict, report: Report | None, now: EpochNanos
) -> LastRun:
    """An ended run as in a status, with bounded texts and lists."""
    finished_at = known_instant(report.finished_at) if report is not None else None
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
        finished_at=format_instant(now if finished_at is None else finished_at),
        published=len(snapshots),
        rows=sum(snapshot.rows for snapshot in snapshots),
        bytes=sum(snapshot.bytes for snapshot in snapshots),
        collected_files=collected.files if collected is not None else 0,
        skipped=_listed(report.skipped) if report is not None else (),
        failed=_listed(report.failed) if report is not None else (),
        message=fit_text(found.message, _MESSAGE_BYTES),
    )


def ending_note(last: LastRun, report: Report | None) -> Note:
    """The event about the outcome of a run."""
    run = f"run {last.id}"
    if last.phase is LastPhase.SUCCEEDED:
        text = joined(f"{run} succeeded", last.message or _result_text(last, report))
        return Note(EventType.NORMAL, Reason.RUN_SUCCEEDED, text)
    if last.phase is LastPhase.FAILED and last.reason != Reason.START_TIMEOUT:
        text = joined(f"{run} failed", last.reason, last.message)
        return Note(EventType.WARNING, Reason.RUN_FAILED, text)
    kind = EventType.NORMAL if last.reason in _ASKED_FOR else EventType.WARNING
    return Note(kind, last.reason, f"{run}: {last.message}")


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
    errors = errors_of(report.findings)
    retryable = report.retryable if report.retryable is not None else not errors
    if report.phase is RunPhase.INTERRUPTED:
        message = report.message or "the job was interrupted, for example by an eviction of its pod"
        return Verdict(LastPhase.FAILED, report.reason or "Interrupted", True, message)
    failure = report.message or "; ".join(finding.message for finding in errors[:5])
    failed = report.failed[0].message if report.failed and not failure else failure
    reason = report.reason or Reason.RUN_FAILED
    return Verdict(LastPhase.FAILED, reason, retryable, failed or "the job reported a failure")


def _listed(entries: tuple[Unpublished, ...]) -> tuple[str, ...]:
    lines = (f"{entry.time} {entry.reason}" for entry in entries[:_LISTED])
    return fit_texts(lines, _LIST_BYTES, _ITEM_BYTES)
