"""The join tree of an output as its status shows it, and the ConfigMap with the whole of it."""

from __future__ import annotations

from snaploom.models.outputdataset import PlannedJoin, PlanStatus
from snaploom_operator.actions import Action, Ensure
from snaploom_operator.decide.runactions import config_map_deletion
from snaploom_operator.manifests.configmaps import plan_config_map
from snaploom_operator.objects import is_pause
from snaploom_operator.observed import ObservedOutput
from snaploom_operator.statuslimits import fit_items

MOST_JOINS = 50
"""Joins in a status (rule R13)."""
_JOINS_BYTES = 7_000


def plan_status(observed: ObservedOutput, before: PlanStatus | None) -> PlanStatus | None:
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
    return PlanStatus(hash=plan.hash, max_depth=deepest, joins=fit_items(joins, _JOINS_BYTES))


def plan_actions(observed: ObservedOutput, shown: PlanStatus | None) -> tuple[Action, ...]:
    """Write the plan's ConfigMap if the status has only part of it; delete it if not needed.

    The hash in the observed status shows whether that plan was written, since actions come first.
    """
    resource, plan = observed.resource, observed.plan
    is_paused = is_pause(resource.metadata.annotations)
    if plan is None or is_paused or resource.metadata.deletion_timestamp is not None:
        return ()
    found = [each for each in observed.runs.config_maps if each.role == "plan"]
    if shown is None or len(shown.joins) == len(plan.tree.joins):
        namespace = resource.metadata.namespace or ""
        return tuple(config_map_deletion(each, namespace) for each in found)
    written = resource.status.plan if resource.status is not None else None
    if found and written is not None and written.hash == plan.hash:
        return ()
    return (Ensure(plan_config_map(resource, plan)),)
