"""SkippingIndex: its runs, the state of the index, and how much of its target it covers."""

from __future__ import annotations

from snaploom.models.run import CurrentPhase, LastPhase, LastRun, RunAction, Schedule
from snaploom.models.skippingindex import (
    IndexState,
    RefreshTrigger,
    SkippingIndex,
    SkippingIndexStatus,
)
from snaploom_operator.conditions import ConditionType, ConditionValue, Reason
from snaploom_operator.decide.conclusion import KindState, conclude
from snaploom_operator.decide.decisionsettings import DecideSettings
from snaploom_operator.decide.faults import fault_of, validated
from snaploom_operator.decide.freshness import overdue_text
from snaploom_operator.decide.outputdataset import realised
from snaploom_operator.decide.readiness import DataState
from snaploom_operator.decide.runlifecycle import advance_runs, has_application, run_view
from snaploom_operator.decide.runsteps import Step
from snaploom_operator.decide.runview import RunView
from snaploom_operator.decision import Decision
from snaploom_operator.observed import ObservedIndex

_REFRESHED = "the index was last refreshed"


def decide_index(observed: ObservedIndex, settings: DecideSettings) -> Decision:
    """Decide about a SkippingIndex."""
    resource = observed.resource
    broken = fault_of(observed)
    view = run_view(
        observed,
        broken,
        settings,
        upstream=_upstream(observed),
        schedule=_schedule(resource),
    )
    step = advance_runs(view, settings)
    status = _status(view, resource.status or SkippingIndexStatus(), step)
    reported = (validated(observed, broken), _fresh(observed, status))
    state = KindState(_data_state(view, resource, status), reported, status.last_refreshed)
    return conclude(view, step, status, state)


def _schedule(resource: SkippingIndex) -> Schedule | None:
    """Its schedule, if the refresh trigger is `SCHEDULE`."""
    is_scheduled = resource.spec.refresh.trigger is RefreshTrigger.SCHEDULE
    return resource.spec.run.schedule if is_scheduled else None


def _upstream(observed: ObservedIndex) -> str:
    follows = observed.resource.spec.refresh.trigger is RefreshTrigger.ON_PUBLISH
    return observed.upstream if follows else ""


def _status(view: RunView, before: SkippingIndexStatus, step: Step) -> SkippingIndexStatus:
    status = before.model_copy(
        update={
            "observed_generation": view.owner.metadata.generation,
            "current_run": step.current,
            "last_run": step.ended or before.last_run,
            "realised": realised(before.realised, step.ended),
        }
    )
    facts = step.report.index if step.report is not None else None
    if facts is not None:
        status = status.model_copy(
            update={
                "files": facts.files,
                "bytes": facts.bytes,
                "last_refreshed": facts.last_refreshed or status.last_refreshed,
            }
        )
    reported = facts.state if facts is not None else None
    return status.model_copy(update={"state": _state(view, before, step, reported)})


def _state(
    view: RunView, before: SkippingIndexStatus, step: Step, reported: IndexState | None
) -> IndexState:
    """The state of the index: as its job reported, else by its current run."""
    if step.ended is not None:
        return _after(step.ended, reported)
    known = before.state or IndexState.EMPTY
    current = step.current
    if current is None or not has_application(current):
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


_RESTING = (IndexState.EMPTY, IndexState.ACTIVE, IndexState.FAILED, IndexState.DELETED)


def _after(ended: LastRun, reported: IndexState | None) -> IndexState:
    """The state after a run."""
    if ended.phase is not LastPhase.SUCCEEDED:
        return IndexState.FAILED
    if ended.action is RunAction.DELETE:
        return reported or IndexState.DELETED
    return reported or IndexState.ACTIVE


def _data_state(view: RunView, resource: SkippingIndex, status: SkippingIndexStatus) -> DataState:
    overdue = overdue_text(_REFRESHED, view.settings, status.last_refreshed, view.now)
    covered = f"{status.files.indexed:,} files are indexed" if status.files else "it is built"
    if not resource.spec.enabled:
        return DataState(
            Reason.DISABLED, f"{covered}; enabled is false: queries do not use it", overdue
        )
    return DataState(Reason.INDEX_ACTIVE, covered, overdue)


def _fresh(observed: ObservedIndex, status: SkippingIndexStatus) -> ConditionValue:
    """The condition IndexFresh: whether the index covers its target as last observed."""
    files = status.files
    if files is None or status.last_refreshed is None:
        return ConditionValue(
            ConditionType.INDEX_FRESH, False, Reason.NEVER_BUILT, "there is no index yet"
        )
    if files.stale or files.missing:
        text = f"{files.stale:,} files changed and {files.missing:,} files were added since"
        return ConditionValue(ConditionType.INDEX_FRESH, False, Reason.STALE, text)
    if observed.is_overdue:
        text = "the output that is indexed has published since the last refresh"
        return ConditionValue(ConditionType.INDEX_FRESH, False, Reason.STALE, text)
    overdue = overdue_text(
        _REFRESHED, observed.resource.spec.run, status.last_refreshed, observed.now
    )
    if overdue:
        return ConditionValue(ConditionType.INDEX_FRESH, False, Reason.STALE, overdue)
    text = f"{files.indexed:,} files are indexed"
    return ConditionValue(ConditionType.INDEX_FRESH, True, Reason.FRESH, text)
