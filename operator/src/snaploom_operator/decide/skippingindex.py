"""SkippingIndex: its runs, the state of the index, and how much of its target it covers."""

from __future__ import annotations

from snaploom.models.run import CurrentPhase, LastPhase, LastRun, RunAction
from snaploom.models.skippingindex import IndexState, SkippingIndexStatus
from snaploom_operator.conditions import ConditionType, ConditionValue, Reason
from snaploom_operator.decide.conclusion import conclude
from snaploom_operator.decide.decisionsettings import DecideSettings
from snaploom_operator.decide.faults import fault_of, validated
from snaploom_operator.decide.freshness import overdue_text
from snaploom_operator.decide.outputdataset import realised
from snaploom_operator.decide.readiness import DataState
from snaploom_operator.decide.runlifecycle import advance_runs, run_view
from snaploom_operator.decide.runsteps import Step
from snaploom_operator.decide.runview import UNSUBMITTED, RunView
from snaploom_operator.decision import Decision
from snaploom_operator.observed import ObservedIndex

_RESTING = (IndexState.EMPTY, IndexState.ACTIVE, IndexState.FAILED, IndexState.DELETED)


def decide_index(observed: ObservedIndex, settings: DecideSettings) -> Decision:
    """Decide about a SkippingIndex."""
    broken = fault_of(observed)
    view = run_view(observed, broken, settings)
    step = advance_runs(view)
    status = _status(view, observed.resource.status or SkippingIndexStatus(), step)
    data = _data_state(observed, status)
    conditions = (validated(observed, broken), _fresh(observed, status, data))
    return conclude(view, step, status, data, conditions)


def _status(view: RunView, before: SkippingIndexStatus, step: Step) -> SkippingIndexStatus:
    facts = step.report.index if step.report is not None else None
    reported = facts.state if facts is not None else None
    changes: dict[str, object] = {
        "observed_generation": view.owner.metadata.generation,
        "current_run": step.current,
        "last_run": step.ended or before.last_run,
        "realised": realised(before.realised, step.ended),
        "state": _state(view, before, step, reported),
    }
    if facts is not None:
        changes["files"] = facts.files
        changes["bytes"] = facts.bytes
        changes["last_refreshed"] = facts.last_refreshed or before.last_refreshed
    return before.model_copy(update=changes)


def _state(
    view: RunView, before: SkippingIndexStatus, step: Step, reported: IndexState | None
) -> IndexState:
    if step.ended is not None:
        return _after(step.ended, reported)
    known = before.state or IndexState.EMPTY
    current = step.current
    if current is None or current.phase in UNSUBMITTED:
        return known
    if reported is not None:
        return reported
    if current.action is RunAction.DELETE:
        return IndexState.DELETING
    if current.phase is CurrentPhase.ENDING and known not in _RESTING:
        return known
    if before.last_refreshed is None:
        return IndexState.CREATING
    last = view.last
    if last is not None and last.phase is not LastPhase.SUCCEEDED:
        return IndexState.RECOVERING
    changes = current.trigger.declarations != view.realised
    return IndexState.UPDATING if changes else IndexState.REFRESHING


def _after(ended: LastRun, reported: IndexState | None) -> IndexState:
    if ended.phase is not LastPhase.SUCCEEDED:
        return IndexState.FAILED
    if reported is not None:
        return reported
    return IndexState.DELETED if ended.action is RunAction.DELETE else IndexState.ACTIVE


def _data_state(observed: ObservedIndex, status: SkippingIndexStatus) -> DataState:
    spec, since = observed.resource.spec, status.last_refreshed
    overdue = overdue_text("the index was last refreshed", spec.run, since, observed.now)
    covered = f"{status.files.indexed:,} files are indexed" if status.files else "it is built"
    if spec.enabled:
        return DataState(Reason.INDEX_ACTIVE, covered, overdue, since)
    text = f"{covered}; enabled is false: queries do not use it"
    return DataState(Reason.DISABLED, text, overdue, since)


def _fresh(observed: ObservedIndex, status: SkippingIndexStatus, data: DataState) -> ConditionValue:
    files, reason, text = status.files, Reason.STALE, data.overdue
    if files is None or data.since is None:
        reason, text = Reason.NEVER_BUILT, "there is no index yet"
    elif files.stale or files.missing:
        text = f"{files.stale:,} files changed and {files.missing:,} files were added since"
    elif observed.is_overdue:
        text = "the output that is indexed has published since the last refresh"
    elif not data.overdue:
        reason, text = Reason.FRESH, f"{files.indexed:,} files are indexed"
    return ConditionValue(ConditionType.INDEX_FRESH, reason is Reason.FRESH, reason, text)
