"""OutputDataset: its join tree, its runs, and what they have published."""

from __future__ import annotations

from snaploom.models.outputdataset import OutputDatasetStatus
from snaploom.models.run import LastPhase, LastRun, RunAction
from snaploom_operator.conditions import ConditionType, ConditionValue, Reason
from snaploom_operator.decide.conclusion import KindState, conclude
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


def decide_output(observed: ObservedOutput, settings: DecideSettings) -> Decision:
    """Decide about an OutputDataset."""
    resource = observed.resource
    broken = fault_of(observed)
    view = run_view(
        observed,
        broken,
        settings,
        upstream=observed.upstream,
        schedule=resource.spec.run.schedule,
    )
    step = advance_runs(view, settings)
    status = _status(observed, resource.status or OutputDatasetStatus(), step)
    state = KindState(
        _data_state(view, status), _others(observed, broken, status), _published_at(status)
    )
    # The plan comes last: a ConfigMap that cannot be written must not block a run.
    return conclude(view, step, status, state, plan_actions(observed, status.plan))


def _status(
    observed: ObservedOutput, before: OutputDatasetStatus, step: Step
) -> OutputDatasetStatus:
    status = before.model_copy(
        update={
            "observed_generation": observed.resource.metadata.generation,
            "plan": plan_status(observed, before.plan),
            "current_run": step.current,
            "last_run": step.ended or before.last_run,
        }
    )
    if step.report is not None:
        status = with_published(status, step.report, is_over=step.ended is not None)
    return status.model_copy(update={"realised": realised(before.realised, step.ended)})


def realised(before: str | None, ended: LastRun | None) -> str | None:
    """Hash of the declarations of the last successful run."""
    if ended is None or ended.phase is not LastPhase.SUCCEEDED:
        return before
    return ended.trigger.declarations if ended.action is RunAction.RUN else None


def _published_at(status: OutputDatasetStatus) -> str | None:
    return status.latest_snapshot.published_at if status.latest_snapshot is not None else None


def _data_state(view: RunView, status: OutputDatasetStatus) -> DataState:
    what = "the newest snapshot was published"
    overdue = overdue_text(what, view.settings, _published_at(status), view.now)
    latest = status.latest_snapshot
    if latest is None:
        text = "the last run succeeded, and there is no snapshot to publish yet"
        return DataState(Reason.NOTHING_DUE, text, overdue)
    text = f"snapshot {latest.time} is published: {latest.rows:,} rows in {latest.files:,} files"
    return DataState(Reason.PUBLISHED, text, overdue)


def _others(
    observed: ObservedOutput, broken: Fault | None, status: OutputDatasetStatus
) -> tuple[ConditionValue, ...]:
    return (
        validated(observed, broken),
        *_planned(observed, broken),
        _fresh(observed, status),
    )


def _planned(observed: ObservedOutput, broken: Fault | None) -> tuple[ConditionValue, ...]:
    """The condition Planned; none while the declarations are invalid."""
    if broken is not None and broken.is_about_tree:
        return (ConditionValue(ConditionType.PLANNED, False, broken.reason, broken.message),)
    if broken is not None or observed.plan is None:
        return ()
    joins = len(observed.plan.tree.joins)
    text = f"{joins} join{'' if joins == 1 else 's'}"
    return (ConditionValue(ConditionType.PLANNED, True, Reason.PLANNED, text),)


def _fresh(observed: ObservedOutput, status: OutputDatasetStatus) -> ConditionValue:
    published_at = _published_at(status)
    if published_at is None:
        text = "there is no snapshot yet"
        return ConditionValue(ConditionType.SNAPSHOT_FRESH, False, Reason.NEVER_PUBLISHED, text)
    what = "the newest snapshot was published"
    overdue = overdue_text(what, observed.resource.spec.run, published_at, observed.now)
    if overdue:
        return ConditionValue(ConditionType.SNAPSHOT_FRESH, False, Reason.STALE, overdue)
    text = f"{what} at {published_at}"
    return ConditionValue(ConditionType.SNAPSHOT_FRESH, True, Reason.FRESH, text)
