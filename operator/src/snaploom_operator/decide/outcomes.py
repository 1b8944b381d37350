"""How a run ended: what its report and its application say, put together.

The report counts for what was published. The run failed if either of the two says so: a job that
reported success and died afterwards may have died of something that matters.
"""

from __future__ import annotations

from dataclasses import dataclass

from snaploom.models.finding import errors_of
from snaploom.models.report import Report, RunPhase, Unpublished
from snaploom.models.run import CurrentRun, LastPhase, LastRun, RunAction
from snaploom.models.times import EpochNanos, format_instant
from snaploom_operator.conditions import Reason
from snaploom_operator.decision import EventType, Note
from snaploom_operator.instants import known_instant
from snaploom_operator.sizes import fit_text, fit_texts

_MESSAGE_BYTES = 1_000
_LIST_BYTES = 500
_ITEM_BYTES = 100
_REASON_BYTES = 100
_LISTED = 20
"""Entries of a list, as the model bounds it."""


@dataclass(frozen=True)
class Verdict:
    """How a run ended, in the words of a status."""

    phase: LastPhase
    reason: str = ""
    retryable: bool = False
    message: str = ""


def verdict(has_succeeded: bool | None, said: str, report: Report | None, trouble: str) -> Verdict:
    """How a run ended.

    Args:
        has_succeeded: what its application says; None when there is none any more.
        said: the message of the application, or of its driver's pod.
        report: the report, if the job came to write one.
        trouble: why a report that is there does not count.
    """
    if report is not None and report.phase is not RunPhase.SUCCEEDED:
        return _reported_failure(report)
    if has_succeeded is False:
        told = "the job reported success, and its application failed" if report else ""
        message = _joined(told, said or "its application failed", trouble)
        return Verdict(LastPhase.FAILED, Reason.RUN_FAILED, True, message)
    if report is not None:
        return Verdict(LastPhase.SUCCEEDED)
    if has_succeeded:
        message = trouble or "the job left no report; what it published is not known"
        return Verdict(LastPhase.SUCCEEDED, message=message)
    gone = "its application went away before it was seen to end"
    return Verdict(LastPhase.LOST, Reason.RUN_LOST, True, _joined(gone, trouble))


def stopped(reason: str, trouble: str) -> Verdict:
    """A run that was stopped by us.

    Args:
        reason: why, as it was written down.
        trouble: what it was waiting for when that was decided.
    """
    phase, message, retryable = _STOPPED.get(reason, _STOPPED[Reason.RUN_STOPPED])
    return Verdict(phase, reason, retryable, _joined(message, trouble))


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
    """What a status keeps of a run that has ended; bounded, whatever the job wrote."""
    told = report.finished_at if report is not None else None
    finished = known_instant(told)
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
        finished_at=format_instant(now if finished is None else finished),
        published=len(snapshots),
        rows=sum(snapshot.rows for snapshot in snapshots),
        bytes=sum(snapshot.bytes for snapshot in snapshots),
        collected_files=collected.files if collected is not None else 0,
        skipped=_listed(report.skipped) if report is not None else (),
        failed=_listed(report.failed) if report is not None else (),
        message=fit_text(found.message, _MESSAGE_BYTES),
    )


def ending_note(last: LastRun, report: Report | None) -> Note:
    """The event that tells how a run ended, and what it came to."""
    run = f"run {last.id}"
    if last.phase is LastPhase.SUCCEEDED:
        text = _joined(f"{run} ended well", last.message or _came_to(last, report))
        return Note(EventType.NORMAL, Reason.RUN_SUCCEEDED, text)
    if last.phase is LastPhase.FAILED and last.reason != Reason.START_TIMEOUT:
        text = _joined(f"{run} failed", last.reason, last.message)
        return Note(EventType.WARNING, Reason.RUN_FAILED, text)
    kind = EventType.NORMAL if last.reason in _ASKED_FOR else EventType.WARNING
    return Note(kind, last.reason, f"{run}: {last.message}")


_ASKED_FOR = (Reason.RUN_STOPPED, Reason.DELETING)


def _came_to(last: LastRun, report: Report | None) -> str:
    if last.action is RunAction.DELETE:
        return ""  # the event of what became of the data tells more
    if report is not None and report.index is not None:
        return ", ".join(report.index.done) or "the index was up to date"
    count = last.published
    told = f"{count} snapshot{'' if count == 1 else 's'} published"
    return f"{told}, {last.rows:,} rows" if count else told


def _reported_failure(report: Report) -> Verdict:
    errors = errors_of(report.findings)
    retryable = report.retryable if report.retryable is not None else not errors
    if report.phase is RunPhase.INTERRUPTED:
        message = report.message or "the job was told to stop, as by an eviction of its pod"
        return Verdict(LastPhase.FAILED, report.reason or "Interrupted", True, message)
    said = report.message or "; ".join(finding.message for finding in errors[:5])
    failed = report.failed[0].message if report.failed and not said else said
    reason = report.reason or Reason.RUN_FAILED
    return Verdict(LastPhase.FAILED, reason, retryable, failed or "the job reported a failure")


def _listed(entries: tuple[Unpublished, ...]) -> tuple[str, ...]:
    lines = (f"{entry.time} {entry.reason}" for entry in entries[:_LISTED])
    return fit_texts(lines, _LIST_BYTES, _ITEM_BYTES)


def _joined(*parts: str) -> str:
    return ": ".join(part for part in parts if part)
