"""OutputDataset: its join tree, its runs, and what they have published."""

from __future__ import annotations

from snaploom.models.outputdataset import OutputDatasetStatus
from snaploom.models.run import LastPhase, LastRun, RunAction
from snaploom_operator.conditions import ConditionType, ConditionValue, Reason
from snaploom_operator.decide.conclusion import conclude
from snaploom_operator.decide.decisionsettings import DecideSettings
from snaploom_operator.decide.faults import Fault, fault_of, validated
from snaploom_operator.decide.freshness import overdue_text
from snaploom_operator.decide.planstatus import plan_actions, plan_status
from snaploom_operator.decide.publishedstatus import with_published
from snaploom_operator.decide.readiness import DataState
from snaploom_operator.decide.runlifecycle import advance_runs, run_view
from snaploom_operator.decide.runsteps import Step
from snaploom_operator.decide.runview import RunView
from snaploom_operator.decision import Decision
from snaploom_operator.observed import ObservedOutput

_PUBLISHED = "the newest snapshot was published"


def decide_output(observed: ObservedOutput, settings: DecideSettings) -> Decision:
    """Decide about an OutputDataset."""
    broken = fault_of(observed)
    view = run_view(observed, broken, settings)
    step = advance_runs(view)
    status = _status(observed, step)
    data = _data_state(view, status)
    conditions = (validated(observed, broken), *_planned(observed, broken), _fresh(data))
    # The plan comes last: a ConfigMap that cannot be written must not block a run.
    return conclude(view, step, status, data, conditions, plan_actions(observed, status.plan))


def _status(observed: ObservedOutput, step: Step) -> OutputDatasetStatus:
    before = observed.resource.status or OutputDatasetStatus()
    status = before.model_copy(
        update={
            "observed_generation": observed.resource.metadata.generation,
            "plan": plan_status(observed, before.plan),
            "current_run": step.current,
            "last_run": step.ended or before.last_run,
            "realised": realised(before.realised, step.ended),
        }
    )
    if step.report is None:
        return status
    return with_published(status, step.report, is_over=step.ended is not None)


def realised(before: str | None, ended: LastRun | None) -> str | None:
    """Hash of the declarations of the last successful run."""
    if ended is None or ended.phase is not LastPhase.SUCCEEDED:
        return before
    return ended.trigger.declarations if ended.action is RunAction.RUN else None


def _data_state(view: RunView, status: OutputDatasetStatus) -> DataState:
    latest = status.latest_snapshot
    since = latest.published_at if latest is not None else None
    overdue = overdue_text(_PUBLISHED, view.settings, since, view.now)
    if latest is None:
        text = "the last run succeeded, and there is no snapshot to publish yet"
        return DataState(Reason.NOTHING_DUE, text, overdue, since)
    text = f"snapshot {latest.time} is published: {latest.rows:,} rows in {latest.files:,} files"
    return DataState(Reason.PUBLISHED, text, overdue, since)


def _planned(observed: ObservedOutput, broken: Fault | None) -> tuple[ConditionValue, ...]:
    if broken is not None and broken.is_about_tree:
        return (ConditionValue(ConditionType.PLANNED, False, broken.reason, broken.message),)
    if broken is not None or observed.plan is None:
        return ()
    joins = len(observed.plan.tree.joins)
    text = f"{joins} join{'' if joins == 1 else 's'}"
    return (ConditionValue(ConditionType.PLANNED, True, Reason.PLANNED, text),)


def _fresh(data: DataState) -> ConditionValue:
    reason, text = Reason.FRESH, f"{_PUBLISHED} at {data.since}"
    if data.since is None:
        reason, text = Reason.NEVER_PUBLISHED, "there is no snapshot yet"
    elif data.overdue:
        reason, text = Reason.STALE, data.overdue
    return ConditionValue(ConditionType.SNAPSHOT_FRESH, reason is Reason.FRESH, reason, text)
