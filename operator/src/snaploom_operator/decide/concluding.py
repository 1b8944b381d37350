"""What a pass over a resource with runs comes to, the same for outputs and indexes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from snaploom.models.outputdataset import OutputDatasetStatus
from snaploom.models.skippingindex import SkippingIndexStatus
from snaploom.models.times import format_instant
from snaploom_operator.actions import Action
from snaploom_operator.conditions import Told, follow
from snaploom_operator.decide.ageing import expires_at
from snaploom_operator.decide.faults import stalls_at
from snaploom_operator.decide.following import Step
from snaploom_operator.decide.noting import stale_notes, stalled_notes
from snaploom_operator.decide.readiness import Standing, readiness
from snaploom_operator.decide.running import next_run_at
from snaploom_operator.decide.view import RunView
from snaploom_operator.decision import Decision
from snaploom_operator.instants import seconds_until

RunStatus = OutputDatasetStatus | SkippingIndexStatus


@dataclass(frozen=True)
class Standings:
    """What a kind says of itself besides its runs."""

    standing: Standing
    """Of what was published or built."""
    told: tuple[Told, ...]
    """Conditions besides those that runs decide."""
    since: str | None
    """When that was published or built; None before the first time."""


def conclude(
    view: RunView,
    step: Step,
    status: RunStatus,
    said: Standings,
    actions: tuple[Action, ...] = (),
) -> Decision:
    """What is to be done and said.

    Args:
        view: the resource, with the status observed.
        step: what becomes of its runs.
        status: the status that is about to be written, but for its conditions and the next run.
        said: what it says of itself.
        actions: what is done after what its runs need.
    """
    before = view.owner.status.conditions if view.owner.status is not None else ()
    after = replace(view, owner=view.owner.model_copy(update={"status": status}))
    fault = view.fault or step.fault
    told = (*readiness(after, said.standing, fault), *said.told)
    conditions = follow(before, told, view.owner.metadata.generation, view.now)
    upcoming = next_run_at(after, status.current_run)
    wakes = (
        *step.wakes,
        upcoming,
        expires_at(view.settings, said.since),
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
        ),
        requeue_after=seconds_until(wakes, view.now),
    )
