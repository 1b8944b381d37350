"""SkippingIndex: its runs, the state of the index, and how much of its target it covers."""

from __future__ import annotations

from snaploom.models.run import CurrentPhase, LastPhase, LastRun, RunAction, Schedule
from snaploom.models.skippingindex import (
    IndexState,
    RefreshTrigger,
    SkippingIndex,
    SkippingIndexStatus,
)
from snaploom_operator.conditions import ConditionType, Reason, Told
from snaploom_operator.decide.ageing import overdue_text
from snaploom_operator.decide.concluding import Standings, conclude
from snaploom_operator.decide.faults import fault_of, validated
from snaploom_operator.decide.following import Step
from snaploom_operator.decide.outputdataset import realised
from snaploom_operator.decide.readiness import Standing
from snaploom_operator.decide.running import is_at_work, live, view_of
from snaploom_operator.decide.settings import DecideSettings
from snaploom_operator.decide.view import RunView
from snaploom_operator.decision import Decision
from snaploom_operator.observed import ObservedIndex

_REFRESHED = "the index was last refreshed"


def decide_index(observed: ObservedIndex, settings: DecideSettings) -> Decision:
    """What is to be done and said about a SkippingIndex."""
    resource = observed.resource
    broken = fault_of(observed)
    view = view_of(
        observed,
        broken,
        settings,
        upstream=_upstream(observed),
        schedule=_schedule(resource),
    )
    step = live(view, settings)
    status = _status(view, resource.status or SkippingIndexStatus(), step)
    told = (validated(observed, broken), _fresh(observed, status))
    said = Standings(_standing(view, resource, status), told, status.last_refreshed)
    return conclude(view, step, status, said)


def _schedule(resource: SkippingIndex) -> Schedule | None:
    """Its schedule, where it is what refreshes: the trigger decides, not that there is one."""
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
    told = facts.state if facts is not None else None
    return status.model_copy(update={"state": _state(view, before, step, told)})


def _state(
    view: RunView, before: SkippingIndexStatus, step: Step, told: IndexState | None
) -> IndexState:
    """The state of the index: what its job says, else what the run that is at work does."""
    if step.ended is not None:
        return _after(step.ended, told)
    known = before.state or IndexState.EMPTY
    current = step.current
    if current is None or not is_at_work(current):
        return known
    if told is not None:
        return told
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


def _after(ended: LastRun, told: IndexState | None) -> IndexState:
    """The state that a run leaves."""
    if ended.phase is not LastPhase.SUCCEEDED:
        return IndexState.FAILED
    if ended.action is RunAction.DELETE:
        return told or IndexState.DELETED
    return told or IndexState.ACTIVE


def _standing(view: RunView, resource: SkippingIndex, status: SkippingIndexStatus) -> Standing:
    overdue = overdue_text(_REFRESHED, view.settings, status.last_refreshed, view.now)
    covered = f"{status.files.indexed:,} files are indexed" if status.files else "it is built"
    if not resource.spec.enabled:
        return Standing(
            Reason.DISABLED, f"{covered}; enabled is false: queries pass it by", overdue
        )
    return Standing(Reason.INDEX_ACTIVE, covered, overdue)


def _fresh(observed: ObservedIndex, status: SkippingIndexStatus) -> Told:
    """Whether the index covers its target as it was last seen."""
    files = status.files
    if files is None or status.last_refreshed is None:
        return Told(ConditionType.INDEX_FRESH, False, Reason.NEVER_BUILT, "there is no index yet")
    if files.stale or files.missing:
        text = f"{files.stale:,} files changed and {files.missing:,} files came since"
        return Told(ConditionType.INDEX_FRESH, False, Reason.STALE, text)
    if observed.is_overdue:
        text = "the output that is indexed has published since the last refresh"
        return Told(ConditionType.INDEX_FRESH, False, Reason.STALE, text)
    overdue = overdue_text(
        _REFRESHED, observed.resource.spec.run, status.last_refreshed, observed.now
    )
    if overdue:
        return Told(ConditionType.INDEX_FRESH, False, Reason.STALE, overdue)
    text = f"{files.indexed:,} files are indexed"
    return Told(ConditionType.INDEX_FRESH, True, Reason.FRESH, text)
