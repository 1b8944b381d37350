"""The observed state of a run, and its outcome, from its application, pod and report."""

from __future__ import annotations

from dataclasses import dataclass

from snaploom.models.finding import errors_of
from snaploom.models.report import Report, RunPhase, Unpublished
from snaploom.models.run import CurrentPhase, CurrentRun, LastPhase, LastRun, RunAction, Submitter
from snaploom.models.runfacts import Removed
from snaploom.models.times import EpochNanos, format_instant
from snaploom_operator.conditions import Reason, fit_text, fit_texts, joined
from snaploom_operator.decide.runview import RunView
from snaploom_operator.decision import EventType, Note
from snaploom_operator.objects import Application, ApplicationState, DriverPod, known_instant

# The observed state of a run, from its application, its driver's pod and its report.

_ALREADY_THERE = ("already exists", "alreadyexists")
_ALIVE = ("Pending", "Running")
_ENDING = (ApplicationState.SUCCEEDING, ApplicationState.FAILING)
_UNCLEAR = (
    ApplicationState.UNKNOWN,
    ApplicationState.SUSPENDING,
    ApplicationState.SUSPENDED,
    ApplicationState.RESUMING,
)
"""States without information about the job's progress."""
_UNSEEN = "a Spark operator that watches this namespace to pick up its application"
_UNSEEN_HERE = "a free worker for local jobs"


@dataclass(frozen=True)
class RunObservation:
    """The observed state of a run."""

    phase: CurrentPhase | None
    """Its phase; None if it is unknown."""
    waiting_for: str
    """The object of its wait; empty while it is running."""
    has_ended: bool = False
    """True if its application has ended."""
    has_succeeded: bool = False
    """True if its application succeeded."""


def observe_run(application: Application, pod: DriverPod | None) -> RunObservation:
    """The state of a run by its application and driver pod."""
    state, message = application.state, application.message
    trouble = pod.trouble if pod is not None else ""
    if application.is_deleting and not state.is_terminal:
        return RunObservation(CurrentPhase.ENDING, "its application to be deleted")
    is_there = any(text in message.lower() for text in _ALREADY_THERE)
    if state is ApplicationState.FAILED and is_there:
        return _behind_failure(message, pod)
    if state.is_terminal:
        return RunObservation(None, "", True, state is ApplicationState.COMPLETED)
    if state in _UNCLEAR:
        return RunObservation(None, joined(f"its application, which is {state}", message, trouble))
    if state in _ENDING:
        return RunObservation(CurrentPhase.ENDING, "its application to end")
    if state is ApplicationState.RUNNING:
        return RunObservation(CurrentPhase.RUNNING, "")
    unseen = _UNSEEN_HERE if application.submitter is Submitter.LOCAL else _UNSEEN
    begun = f"its application, which is {state}" if state else unseen
    return RunObservation(CurrentPhase.SUBMITTED, joined(begun, message, trouble))


def final_report(view: RunView, run: str) -> Report | None:
    """The final report of a run; reports of other resources or runs are ignored."""
    report = any_report(view, run)
    return report if report is not None and report.phase is not RunPhase.RUNNING else None


def any_report(view: RunView, run: str) -> Report | None:
    """The report of a run, whether or not it has ended."""
    found = view.runs.reports.get(run)
    if found is None or found.report is None:
        return None
    report = found.report
    return report if report.uid == view.uid and report.run_id == run else None


def report_trouble(view: RunView, run: str) -> str:
    """The cause if the report of a run is ignored; empty if it is valid or missing."""
    found = view.runs.reports.get(run)
    if found is None:
        return ""
    if found.report is None:
        return f"its report cannot be read: {found.trouble}"
    if any_report(view, run) is None:
        return "its report belongs to another run"
    return ""


def _behind_failure(message: str, pod: DriverPod | None) -> RunObservation:
    """The state of a submission that failed because of an earlier one."""
    if pod is None:
        return RunObservation(None, "", True, False)
    if is_alive(pod):
        phase = CurrentPhase.RUNNING if pod.phase == "Running" else CurrentPhase.SUBMITTED
        why = f"the driver of an earlier submission, pod {pod.name}, is {pod.phase}"
        return RunObservation(phase, joined(why, pod.trouble))
    return RunObservation(None, "", True, pod.phase == "Succeeded")


def is_alive(pod: DriverPod | None) -> bool:
    """Return whether a driver may still be running."""
    return pod is not None and pod.phase in _ALIVE


# The outcome of a run, from its report and its application.

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
    phase, message, retryable = _STOPPED.get(reason, _STOPPED[Reason.RUN_STOPPED])
    return Verdict(phase, reason, retryable, joined(message, trouble))


_STOPPED = {
    Reason.START_TIMEOUT.value: (
        LastPhase.FAILED, "it did not start within startTimeoutSeconds", True
    ),
    Reason.DEADLINE_EXCEEDED.value: (
        LastPhase.STOPPED, "it took longer than activeDeadlineSeconds", True
    ),
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
