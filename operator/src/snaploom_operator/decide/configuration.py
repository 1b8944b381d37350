"""Decisions of the four kinds without runs: validity, and the resources that use them."""

from __future__ import annotations

from snaploom.models.common import ResourceStatus
from snaploom.models.datarelationship import DataRelationship, DataRelationshipStatus
from snaploom.models.datasource import DataSource, DataSourceStatus
from snaploom.models.fieldtransformer import FieldTransformer, FieldTransformerStatus
from snaploom.models.metadataapplicator import MetadataApplicator, MetadataApplicatorStatus
from snaploom_operator.conditions import ConditionType, ConditionValue, Reason, next_conditions
from snaploom_operator.decide.conditionevents import stalled_notes
from snaploom_operator.decide.faults import Fault, fault_of, stalls_at, validated
from snaploom_operator.decision import Decision
from snaploom_operator.instants import seconds_until
from snaploom_operator.observed import ObservedResource

Configuration = DataSource | DataRelationship | MetadataApplicator | FieldTransformer


def decide_configuration(observed: ObservedResource, resource: Configuration) -> Decision:
    """Decide the status of a DataSource or another kind without runs."""
    fault = fault_of(observed)
    before = resource.status.conditions if resource.status is not None else ()
    stalls = stalls_at(fault, before, observed.now)
    values = (*_readiness(fault, is_stalled=stalls is None), validated(observed, fault))
    conditions = next_conditions(before, values, resource.metadata.generation, observed.now)
    common = ResourceStatus(observed_generation=resource.metadata.generation, conditions=conditions)
    return Decision(
        status=_status(observed, resource, common),
        notes=stalled_notes(before, conditions),
        requeue_after=seconds_until((stalls,), observed.now),
    )


def _readiness(fault: Fault | None, *, is_stalled: bool) -> tuple[ConditionValue, ...]:
    if fault is None:
        return (
            ConditionValue(ConditionType.READY, True, Reason.VALID, "the declarations are valid"),
        )
    return (
        ConditionValue(ConditionType.READY, False, fault.reason, fault.message),
        ConditionValue(
            ConditionType.STALLED if is_stalled else ConditionType.RECONCILING,
            True,
            fault.reason,
            fault.message,
        ),
    )


def _status(
    observed: ObservedResource, resource: Configuration, common: ResourceStatus
) -> ResourceStatus:
    generation, conditions = common.observed_generation, common.conditions
    used_by = observed.used_by
    match resource:
        case DataSource():
            before = resource.status.last_seen if resource.status is not None else None
            return DataSourceStatus(
                observed_generation=generation,
                conditions=conditions,
                used_by=used_by,
                last_seen=observed.last_seen or before,
            )
        case DataRelationship():
            return DataRelationshipStatus(
                observed_generation=generation, conditions=conditions, used_by=used_by
            )
        case MetadataApplicator():
            return MetadataApplicatorStatus(
                observed_generation=generation, conditions=conditions, used_by=used_by
            )
        case FieldTransformer():
            return FieldTransformerStatus(
                observed_generation=generation, conditions=conditions, used_by=used_by
            )
