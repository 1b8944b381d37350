"""The outcome of a run, from its report and its application.

The report decides what was published. The run failed if either of the two failed: a job that
reported success may have crashed afterwards for a relevant reason.
"""

from __future__ import annotations

from dataclasses import dataclass

from snaploom.models.finding import errors_of
from snaploom.models.report import Report, RunPhase, Unpublished
from snaploom.models.run import CurrentRun, LastPhase, LastRun, RunAction
from snaploom.models.runfacts import Removed
from snaploom.models.times import EpochNanos, format_instant
from snaploom_operator.conditions import Reason
from snaploom_operator.decision import EventType, Note
from snaploom_operator.instants import known_instant
from snaploom_operator.statuslimits import fit_text, fit_texts, joined

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
