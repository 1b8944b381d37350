"""Builds the decision of a resource with runs, for outputs and indexes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from snaploom.models.outputdataset import OutputDatasetStatus
from snaploom.models.skippingindex import SkippingIndexStatus
from snaploom.models.times import format_instant
from snaploom_operator.actions import Action
from snaploom_operator.conditions import ConditionValue, next_conditions
from snaploom_operator.decide.conditionevents import final_notes, stale_notes, stalled_notes
from snaploom_operator.decide.faults import stalls_at
from snaploom_operator.decide.freshness import expires_at
from snaploom_operator.decide.readiness import DataState, readiness
from snaploom_operator.decide.runlifecycle import next_run_at
from snaploom_operator.decide.runsteps import Step
from snaploom_operator.decide.runview import RunView
from snaploom_operator.decision import Decision
from snaploom_operator.instants import seconds_until

RunStatus = OutputDatasetStatus | SkippingIndexStatus


@dataclass(frozen=True)
class KindState:
    """The state of a resource that its kind decides, besides its runs."""

    data: DataState
    """State of what was published or built."""
    conditions: tuple[ConditionValue, ...]
    """Conditions besides those that runs decide."""
    since: str | None
    """When it was last published or built; None for never."""


def conclude(
    view: RunView,
    step: Step,
    status: RunStatus,
    state: KindState,
    actions: tuple[Action, ...] = (),
) -> Decision:
    """Combine the step of a run and the state of its resource into a decision.

    Args: view: the resource with the observed status. step: the step of its runs. status: the new
        status, without conditions and next run. state: the state of the resource. actions: further
        actions, after those of the run.
    """
    before = view.owner.status.conditions if view.owner.status is not None else ()
    after = replace(view, owner=view.owner.model_copy(update={"status": status}))
    fault = view.fault or step.fault
    conditions_now = (*readiness(after, state.data, fault), *state.conditions)
    conditions = next_conditions(before, conditions_now, view.owner.metadata.generation, view.now)
    upcoming = next_run_at(after, status.current_run)
    wakes = (
        *step.wakes,
        upcoming,
        expires_at(view.settings, state.since),
        stalls_at(fault, before, view.now),
    )
    return Decision(
        status=status.model_copy(
            update={
                "conditions": conditions,
                "next_run_time": format_instant(upcoming) if upcoming is not None else None,
            }
        ),
        actions=(*step.actions, *actions),
        notes=(
            *step.notes,
            *stalled_notes(before, conditions),
            *stale_notes(before, conditions),
            *final_notes(step.ended, conditions),
        ),
        requeue_after=seconds_until(wakes, view.now),
    )
