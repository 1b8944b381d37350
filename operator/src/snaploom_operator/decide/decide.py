"""`decide`: the decision about one resource from its observation."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from snaploom.models.common import ResourceStatus
from snaploom.models.datarelationship import DataRelationship, DataRelationshipStatus
from snaploom.models.datasource import DataSource, DataSourceStatus
from snaploom.models.fieldtransformer import FieldTransformer, FieldTransformerStatus
from snaploom.models.metadataapplicator import MetadataApplicator, MetadataApplicatorStatus
from snaploom.models.times import EpochNanos
from snaploom_operator.conditions import ConditionType, ConditionValue, Reason, next_conditions
from snaploom_operator.decide.runnable import decide_index, decide_output
from snaploom_operator.decide.runview import (
    DecideSettings,
    condition_notes,
    fault_of,
    findings_text,
    stalled,
    stalls_at,
    unusable,
    validated,
)
from snaploom_operator.decision import (
    Decision,
    EventType,
    Note,
    ObservedIndex,
    ObservedOutput,
    ObservedResource,
    RemoveFinalizer,
    Unparsable,
)
from snaploom_operator.objects import seconds_until

_LOGGER = logging.getLogger(__name__)


# Decisions of the four kinds without runs: validity, and the resources that use them.

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


# `decide`: the decision about one resource from its observation.

RETRY_AFTER_CRASH = 300.0
"""Seconds until a resource whose decision crashed is reconciled again."""


def decide(observed: ObservedResource | Unparsable, settings: DecideSettings) -> Decision:
    """Decide about one resource; never raises."""
    try:
        return _decided(observed, settings)
    except Exception as error:
        _LOGGER.exception("decision failed")
        return _crashed(observed, error)


def _decided(observed: ObservedResource | Unparsable, settings: DecideSettings) -> Decision:
    if isinstance(observed, Unparsable):
        return _unparsable(observed)
    if isinstance(observed, ObservedOutput):
        return decide_output(observed, settings)
    if isinstance(observed, ObservedIndex):
        return decide_index(observed, settings)
    resource = observed.resource
    if isinstance(resource, Configuration):
        return decide_configuration(observed, resource)
    raise TypeError(f"nothing is known about the kind {resource.kind}")


def _unparsable(observed: Unparsable) -> Decision:
    message = observed.outdated or findings_text(observed.findings)
    reason = Reason.CRD_OUTDATED if observed.outdated else Reason.INVALID
    invalid = ConditionValue(ConditionType.VALIDATED, False, reason, message)
    values = (*stalled(reason, message), invalid)
    decided = _conditions_only(observed.status, observed.generation, observed.now, values)
    if not (observed.is_deleting and observed.has_finalizer):
        return decided
    # What it published, and where, is unknown: it must not block its deletion (rule R12).
    text = "what was published stays: the declaration cannot be read"
    left = Note(EventType.WARNING, Reason.DATA_LEFT, text)
    return Decision(decided.status, (RemoveFinalizer(),), (*decided.notes, left))


def _crashed(observed: ObservedResource | Unparsable, error: Exception) -> Decision:
    message = f"bug in Snaploom: {type(error).__name__}; see the operator's log"
    if isinstance(observed, Unparsable):
        status, generation = observed.status, observed.generation
    else:
        status = getattr(observed.resource, "status", None)
        generation = observed.resource.metadata.generation or 0
    values = stalled(Reason.INTERNAL_ERROR, message)
    decided = _conditions_only(status, generation, observed.now, values)
    return Decision(decided.status, (), decided.notes, RETRY_AFTER_CRASH)


def _conditions_only(
    before: ResourceStatus | None,
    generation: int,
    now: EpochNanos,
    values: tuple[ConditionValue, ...],
) -> Decision:
    """A decision that changes nothing but the conditions."""
    status = before if before is not None else ResourceStatus()
    conditions = next_conditions(status.conditions, values, generation, now)
    changed = {"observed_generation": generation, "conditions": conditions}
    notes = condition_notes(status.conditions, conditions)
    return Decision(status.model_copy(update=changed), (), notes)
