"""The join tree of an output as its status shows it, and the ConfigMap with the whole of it."""

from __future__ import annotations

from snaploom.models.outputdataset import PlannedJoin, PlanStatus
from snaploom.planning.plan import RunPlan
from snaploom.planning.tree import JoinNode
from snaploom_operator.actions import Action, Ensure
from snaploom_operator.decide.writing import config_map_deletion
from snaploom_operator.manifests.configmaps import plan_config_map
from snaploom_operator.objects import ANNOTATION_PAUSED
from snaploom_operator.observed import ObservedOutput
from snaploom_operator.sizes import fit_items

MOST_JOINS = 50
"""Joins in a status (ruling D18)."""
_JOINS_BYTES = 7_000


def plan_status(observed: ObservedOutput, before: PlanStatus | None) -> PlanStatus | None:
    """The tree in short; the one before while declarations are missing, none while it is tied."""
    plan = observed.plan
    if plan is None:
        return before
    if not plan.is_valid:
        return None
    joins = [_join(node) for node in plan.tree.joins[:MOST_JOINS]]
    deepest = max((node.depth for node in plan.tree.joins), default=0)
    return PlanStatus(hash=plan.hash, max_depth=deepest, joins=fit_items(joins, _JOINS_BYTES))


def plan_actions(observed: ObservedOutput, shown: PlanStatus | None) -> tuple[Action, ...]:
    """Write the whole plan where the status has only its beginning; remove what is not needed.

    The hash in the status observed tells whether that plan was written: actions come first.
    """
    resource, plan = observed.resource, observed.plan
    is_paused = resource.metadata.annotations.get(ANNOTATION_PAUSED) == "true"
    if plan is None or is_paused or resource.metadata.deletion_timestamp is not None:
        return ()
    found = [each for each in observed.runs.config_maps if each.role == "plan"]
    if shown is None or len(shown.joins) == len(plan.tree.joins):
        namespace = resource.metadata.namespace or ""
        return tuple(config_map_deletion(each, namespace) for each in found)
    return (
        () if found and _is_written(observed, plan) else (Ensure(plan_config_map(resource, plan)),)
    )


def _is_written(observed: ObservedOutput, plan: RunPlan) -> bool:
    status = observed.resource.status
    return status is not None and status.plan is not None and status.plan.hash == plan.hash


def _join(node: JoinNode) -> PlannedJoin:
    return PlannedJoin(
        number=node.number,
        field_name=node.field_name,
        source=node.source,
        parent=node.parent,
        relationship=node.relationship,
        depth=node.depth,
        group_by=node.group_by,
    )
