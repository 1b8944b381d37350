"""What an operator is told of every reason of a condition, and of errors of the cluster."""

from __future__ import annotations

from collections.abc import Mapping

from snaploom.models.remedies import REMEDY_BY_REASON
from snaploom.models.remedies.remedy import Remedy
from snaploom_operator.conditions import Reason
from snaploom_operator.remedies.cluster import CLUSTER
from snaploom_operator.remedies.conditions import CONDITIONS
from snaploom_operator.remedies.events import EVENTS

REMEDIES: Mapping[Reason, Remedy] = {**CONDITIONS, **EVENTS}
"""Of every `Reason`."""

EVERY_REMEDY: Mapping[str, Remedy] = {
    **REMEDY_BY_REASON,
    **CLUSTER,
    **{reason.value: remedy for reason, remedy in REMEDIES.items()},
}
"""Of every word that a condition, an event, a run in a status, or a line of the log may name."""
