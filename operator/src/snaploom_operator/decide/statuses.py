"""Statuses within bounds: plan, runs with their outcomes, and publications."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from snaploom.models.base import ApiModel
from snaploom.models.common import EpochNanos, format_instant
from snaploom.models.findings import errors_of
from snaploom.models.outputdataset import OutputDatasetStatus, PlannedJoin, PlanStatus
from snaploom.models.report import (
    DataFinding,
    LatestSnapshot,
    ManifestPointer,
    Removed,
    Report,
    RunPhase,
    Unpublished,
)
from snaploom.models.run import CurrentRun, LastPhase, LastRun, RunAction
from snaploom.models.skippingindex import SkippingIndexStatus
from snaploom_operator.conditions import Reason, joined
from snaploom_operator.decide.runview import RunView, Step
from snaploom_operator.decision import EventType, Note, ObservedOutput
from snaploom_operator.objects import known_instant

_MORE = "…"

_Item = TypeVar("_Item")
_Model = TypeVar("_Model", bound=ApiModel)


def fit_text(text: str, most: int) -> str:
    """A text, truncated to some bytes of JSON; truncated texts end in an ellipsis."""
    if len(text) * 6 <= most or _bytes(text) <= most:  # "\\u0000" is the longest form
        return text
    low, high = 0, min(len(text), most)
    while low < high:
        middle = (low + high + 1) // 2
        if _bytes(text[:middle] + _MORE) <= most:
            low = middle
        else:
            high = middle - 1
    return text[:low] + _MORE


def fit_items(items: Iterable[_Model], most: int) -> tuple[_Model, ...]:
    """The first models that fit into some bytes of JSON."""
    return _fitting(items, most, lambda item: len(item.dump_json().encode()))


def fit_texts(texts: Iterable[str], most: int, most_each: int) -> tuple[str, ...]:
    """The first texts, each truncated, that fit into some bytes of JSON."""
    return _fitting((fit_text(text, most_each) for text in texts), most, _bytes)


def _fitting(items: Iterable[_Item], most: int, size: Callable[[_Item], int]) -> tuple[_Item, ...]:
    kept: list[_Item] = []
    for item in items:
        most -= size(item) + 1
        if most < 0:
            break
        kept.append(item)
    return tuple(kept)


def _bytes(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass"))


MOST_JOINS = 50
"""Joins in a status (rule R13)."""
_PLANNED_JOINS_BYTES = 7_000


def output_changes(
    observed: ObservedOutput, before: OutputDatasetStatus, step: Step
) -> dict[str, object]:
    """The changed fields of an output's status."""
    changes = {**run_changes(before, step), "plan": _plan_status(observed, before.plan)}
    if step.report is None:
        return changes
    return {**changes, **_published(before, step.report, is_over=step.ended is not None)}


def run_changes(before: OutputDatasetStatus | SkippingIndexStatus, step: Step) -> dict[str, object]:
    """The changed fields about the runs of a resource."""
    current, known = step.current, before.current_run
    if current is not None:
        waiting = _run_text(current.waiting_for, known.waiting_for if known is not None else None)
        progress = _run_text(current.progress, known.progress if known is not None else None)
        current = current.model_copy(update={"waiting_for": waiting, "progress": progress})
    return {
        "current_run": current,
        "last_run": step.ended or before.last_run,
        "realised": _realised(before.realised, step.ended),
    }


def _run_text(text: str | None, known: str | None) -> str | None:
    return text if text is None or text == known else fit_text(text, _RUN_TEXT_BYTES)


def _realised(before: str | None, ended: LastRun | None) -> str | None:
    """Hash of the declarations of the last successful run."""
    if ended is None or ended.phase is not LastPhase.SUCCEEDED:
        return before
    return ended.trigger.declarations if ended.action is RunAction.RUN else None


def _plan_status(observed: ObservedOutput, before: PlanStatus | None) -> PlanStatus | None:
    """The plan in the status: kept while declarations are missing, None if it is ambiguous."""
    plan = observed.plan
    if plan is None:
        return before
    if not plan.is_valid:
        return None
    joins = [
        PlannedJoin(
            number=node.number,
            field_name=node.field_name,
            source=node.source,
            parent=node.parent,
            relationship=node.relationship,
            depth=node.depth,
            group_by=node.group_by,
        )
        for node in plan.tree.joins[:MOST_JOINS]
    ]
    deepest = max((node.depth for node in plan.tree.joins), default=0)
    return PlanStatus(
        hash=plan.hash, max_depth=deepest, joins=fit_items(joins, _PLANNED_JOINS_BYTES)
    )


_SOURCES_BYTES = 3_000
_JOINS_BYTES = 2_000
_EXCLUDED_BYTES = 1_000
_WARNINGS_BYTES = 1_000
_SNAPSHOTS_BYTES = 3_200
_MESSAGE_BYTES = 100
_TEXT_BYTES = 300
_DATA_FINDINGS_BYTES = 3_000
_MOST_DATA_FINDINGS = 20
_MOST = 50
"""Entries of a list in a status (rule R13)."""
_RUN_TEXT_BYTES = 600


def _published(status: OutputDatasetStatus, report: Report, *, is_over: bool) -> dict[str, object]:
    """The changed fields by the snapshots of a report; none if the report is older.

    Until the run is over the pointer to the manifest stays: outputs that read this one run when it
    is done, and not after each of its snapshots.
    """
    if report.removed is not None and report.phase is RunPhase.SUCCEEDED:
        gone = ("latest_snapshot", "snapshot_count", "manifest")
        none = {"snapshots": (), "data_findings": ()}
        return {**dict.fromkeys(gone), **none}
    pointer, kept = report.manifest, status.manifest
    if pointer is None:
        return {}
    if kept is not None and pointer.uri == kept.uri and pointer.sequence < kept.sequence:
        return {}
    known = report.snapshot_count is not None
    latest = _bounded(report.newest) if report.newest is not None else None
    return {
        "latest_snapshot": latest if known or latest else status.latest_snapshot,
        "snapshots": fit_items(report.published[:_MOST], _SNAPSHOTS_BYTES)
        if known
        else status.snapshots,
        "snapshot_count": report.snapshot_count if known else status.snapshot_count,
        "manifest": _pointer(pointer) if is_over else kept,
        "data_findings": _data_findings(status, report) if is_over else status.data_findings,
    }


def _data_findings(status: OutputDatasetStatus, report: Report) -> tuple[DataFinding, ...]:
    """Those of a run; what snapshots showed stays until a run publishes again."""
    known = () if report.snapshots else status.data_findings
    found = (*(one for one in known if not one.is_of_listing), *report.data_findings)
    bounded = (
        one.without_values.model_copy(update={"fix": fit_text(one.fix, _TEXT_BYTES)})
        for one in found[:_MOST_DATA_FINDINGS]
    )
    return fit_items(bounded, _DATA_FINDINGS_BYTES)


def _bounded(newest: LatestSnapshot) -> LatestSnapshot:
    excluded = (
        each.model_copy(update={"message": fit_text(each.message, _MESSAGE_BYTES)})
        for each in newest.excluded[:_MOST]
    )
    return newest.model_copy(
        update={
            "partition": fit_text(newest.partition, _TEXT_BYTES),
            "sources": fit_items(newest.sources[:_MOST], _SOURCES_BYTES),
            "excluded": fit_items(excluded, _EXCLUDED_BYTES),
            "joins": fit_items(newest.joins[:_MOST], _JOINS_BYTES),
            "warnings": fit_texts(newest.warnings[:_MOST], _WARNINGS_BYTES, _TEXT_BYTES),
        }
    )


def _pointer(manifest: ManifestPointer) -> ManifestPointer:
    fixed = {key: text for key, text in manifest.fixed.items() if len(key) + len(text) <= 100}
    kept = dict(list(fixed.items())[:10])
    return manifest.model_copy(update={"fixed": kept})


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
    message: str = ""


def end_run(
    view: RunView,
    current: CurrentRun,
    has_succeeded: bool | None,
    failure: str,
    stopping: str | None = None,
) -> Step:
    """The step of a run that is over.

    Args:
        view: the facts about the runs.
        current: the run.
        has_succeeded: the outcome of its application; None if it is gone.
        failure: the message of the application, or of its driver's pod.
        stopping: reason for which the operator stopped it; None if it did not.
    """
    report = view.final_report
    found = _verdict(has_succeeded, failure, report, view.report_trouble)
    if stopping is not None and not has_succeeded:
        found = _stopped(stopping, current.waiting_for or "")
    report = report or view.report
    last = _last_run(current, found, report, view.now)
    return Step(None, ended=last, report=report, notes=(_ending_note(last, report),))


def _verdict(
    has_succeeded: bool | None, failure: str, report: Report | None, trouble: str
) -> Verdict:
    """The outcome of a run; `trouble` is the cause if an existing report is ignored."""
    if report is not None and report.phase is not RunPhase.SUCCEEDED:
        return _reported_failure(report)
    if has_succeeded is False:
        text = "the job reported success, and its application failed" if report else ""
        message = joined(text, failure or "its application failed", trouble)
        return Verdict(LastPhase.FAILED, Reason.RUN_FAILED, True, message)
    if report is not None:
        message = _removed_text(report.removed) if report.removed is not None else ""
        return Verdict(LastPhase.SUCCEEDED, message=message)
    if has_succeeded:
        message = trouble or "the job wrote no report; what it published is unknown"
        return Verdict(LastPhase.SUCCEEDED, message=message)
    gone = "its application was deleted before its end was observed"
    return Verdict(LastPhase.LOST, Reason.RUN_LOST, True, joined(gone, trouble))


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


def _last_run(
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
        message=fit_text(found.message, _OUTCOME_BYTES),
    )


def _ending_note(last: LastRun, report: Report | None) -> Note:
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
