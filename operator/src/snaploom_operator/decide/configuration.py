"""Decisions of the four kinds without runs: validity, and the resources that use them."""

from __future__ import annotations

from collections.abc import Mapping

from snaploom.models.common import ResourceStatus
from snaploom.models.datarelationship import DataRelationship, DataRelationshipStatus
from snaploom.models.datasource import DataSource, DataSourceStatus
from snaploom.models.fieldtransformer import FieldTransformer, FieldTransformerStatus
from snaploom.models.metadataapplicator import MetadataApplicator, MetadataApplicatorStatus
from snaploom_operator.conditions import ConditionType, ConditionValue, Reason, next_conditions
from snaploom_operator.decide.conditionevents import condition_notes
from snaploom_operator.decide.faults import fault_of, stalls_at, unusable, validated
from snaploom_operator.decision import Decision
from snaploom_operator.instants import seconds_until
from snaploom_operator.observed import ObservedResource

Configuration = DataSource | DataRelationship | MetadataApplicator | FieldTransformer

_STATUSES: Mapping[type[Configuration], type[ResourceStatus]] = {
    DataSource: DataSourceStatus,
    DataRelationship: DataRelationshipStatus,
    MetadataApplicator: MetadataApplicatorStatus,
    FieldTransformer: FieldTransformerStatus,
}


def decide_configuration(observed: ObservedResource, resource: Configuration) -> Decision:
    """Decide the status of a DataSource or another kind without runs."""
    fault = fault_of(observed)
    status = resource.status or _STATUSES[type(resource)]()
    ready = ConditionValue(ConditionType.READY, True, Reason.VALID, "the declarations are valid")
    values = unusable(fault, status.conditions, observed.now) if fault is not None else (ready,)
    generation = resource.metadata.generation
    conditions = next_conditions(
        status.conditions, (*values, validated(observed, fault)), generation, observed.now
    )
    changes: dict[str, object] = {
        "observed_generation": generation,
        "conditions": conditions,
        "used_by": observed.used_by,
    }
    if observed.last_seen is not None:
        changes["last_seen"] = observed.last_seen
    return Decision(
        status=status.model_copy(update=changes),
        notes=condition_notes(status.conditions, conditions),
        requeue_after=seconds_until(
            (stalls_at(fault, status.conditions, observed.now),), observed.now
        ),
    )
