"""Builds the decision of a resource with runs, for outputs and indexes."""

from __future__ import annotations

from dataclasses import replace

from snaploom.models.outputdataset import OutputDatasetStatus
from snaploom.models.skippingindex import SkippingIndexStatus
from snaploom.models.times import format_instant
from snaploom_operator.actions import Action
from snaploom_operator.conditions import ConditionValue, next_conditions
from snaploom_operator.decide.conditionevents import condition_notes
from snaploom_operator.decide.faults import stalls_at
from snaploom_operator.decide.freshness import expires_at
from snaploom_operator.decide.readiness import DataState, readiness
from snaploom_operator.decide.runlifecycle import next_run_at
from snaploom_operator.decide.runsteps import Step
from snaploom_operator.decide.runview import RunView
from snaploom_operator.decision import Decision
from snaploom_operator.instants import seconds_until


def conclude(
    view: RunView,
    step: Step,
    status: OutputDatasetStatus | SkippingIndexStatus,
    data: DataState,
    conditions: tuple[ConditionValue, ...],
    actions: tuple[Action, ...] = (),
) -> Decision:
    """Combine the step of a run and the state of its resource into a decision.

    The new status comes without conditions and next run; further actions follow those of the run.
    """
    before = view.conditions
    after = replace(view, owner=view.owner.model_copy(update={"status": status}))
    fault = view.fault or step.fault
    values = (*readiness(after, data, fault), *conditions)
    decided = next_conditions(before, values, view.owner.metadata.generation, view.now)
    upcoming = next_run_at(after)
    wakes = (
        *step.wakes,
        upcoming,
        expires_at(view.settings, data.since),
        stalls_at(fault, before, view.now),
    )
    next_run = format_instant(upcoming) if upcoming is not None else None
    return Decision(
        status=status.model_copy(update={"conditions": decided, "next_run_time": next_run}),
        actions=(*step.actions, *actions),
        notes=(*step.notes, *condition_notes(before, decided, step.ended)),
        requeue_after=seconds_until(wakes, view.now),
    )
