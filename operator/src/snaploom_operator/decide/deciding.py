"""`decide`: from everything that is known about one resource to what is to be done and said.

It is pure, and it never raises: what nobody thought of becomes the reason `InternalError`, so that
one strange resource stops neither itself nor others.
"""

from __future__ import annotations

import logging

from snaploom.models.common import Condition, ResourceStatus
from snaploom.models.datarelationship import DataRelationship
from snaploom.models.datasource import DataSource
from snaploom.models.fieldtransformer import FieldTransformer
from snaploom.models.metadataapplicator import MetadataApplicator
from snaploom.models.times import EpochNanos
from snaploom_operator.actions import RemoveFinalizer
from snaploom_operator.conditions import ConditionType, Reason, Told, follow
from snaploom_operator.decide.configuration import decide_configuration
from snaploom_operator.decide.faults import findings_text
from snaploom_operator.decide.noting import stalled_notes
from snaploom_operator.decide.outputdataset import decide_output
from snaploom_operator.decide.settings import DecideSettings
from snaploom_operator.decide.skippingindex import decide_index
from snaploom_operator.decision import Decision, EventType, Note
from snaploom_operator.observed import (
    ObservedIndex,
    ObservedOutput,
    ObservedResource,
    Unparsable,
)

_LOGGER = logging.getLogger(__name__)

AGAIN_AFTER_FAULT = 300.0
"""Seconds until a resource that our own code stumbles over is looked at again."""


def decide(observed: ObservedResource | Unparsable, settings: DecideSettings) -> Decision:
    """What is to be done and said about one resource; never raises."""
    try:
        return _decided(observed, settings)
    except Exception as error:
        _LOGGER.exception("decision failed")
        return _stumbled(observed, error)


def _decided(observed: ObservedResource | Unparsable, settings: DecideSettings) -> Decision:
    if isinstance(observed, Unparsable):
        return _unparsable(observed)
    if isinstance(observed, ObservedOutput):
        return decide_output(observed, settings)
    if isinstance(observed, ObservedIndex):
        return decide_index(observed, settings)
    resource = observed.resource
    if isinstance(resource, DataSource | DataRelationship | MetadataApplicator | FieldTransformer):
        return decide_configuration(observed, resource)
    raise TypeError(f"nothing is known about the kind {resource.kind}")


def _unparsable(observed: Unparsable) -> Decision:
    message = findings_text(observed.findings)
    decided = _stalled(
        observed.status, observed.generation, observed.now, Reason.INVALID, message, is_valid=False
    )
    if not (observed.is_deleting and observed.has_finalizer):
        return decided
    # Nobody knows any more what it published, or where: it must not stay for ever (ruling D15).
    text = "what was published stays: the declaration cannot be read"
    left = Note(EventType.WARNING, Reason.DATA_LEFT, text)
    return Decision(decided.status, (RemoveFinalizer(),), (*decided.notes, left))


def _stumbled(observed: ObservedResource | Unparsable, error: Exception) -> Decision:
    message = f"Snaploom's own code failed: {type(error).__name__}"
    if isinstance(observed, Unparsable):
        status, generation = observed.status, observed.generation
    else:
        status = getattr(observed.resource, "status", None)
        generation = observed.resource.metadata.generation or 0
    decided = _stalled(status, generation, observed.now, Reason.INTERNAL_ERROR, message)
    return Decision(decided.status, (), decided.notes, AGAIN_AFTER_FAULT)


def _stalled(
    status: ResourceStatus | None,
    generation: int,
    now: EpochNanos,
    reason: Reason,
    message: str,
    *,
    is_valid: bool = True,
) -> Decision:
    """A resource of which nothing but the conditions changes."""
    before: tuple[Condition, ...] = status.conditions if status is not None else ()
    told = [
        Told(ConditionType.READY, False, reason, message),
        Told(ConditionType.STALLED, True, reason, message),
    ]
    if not is_valid:
        told.append(Told(ConditionType.VALIDATED, False, reason, message))
    conditions = follow(before, told, generation, now)
    changed = {"observed_generation": generation, "conditions": conditions}
    kept = status if status is not None else ResourceStatus()
    return Decision(kept.model_copy(update=changed), (), stalled_notes(before, conditions))
