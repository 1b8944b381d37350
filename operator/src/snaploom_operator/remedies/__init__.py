"""Remedies: cause and fix of every condition reason and of cluster errors.

Reasons of jobs have theirs in `snaploom.models.remedies`.
"""

from __future__ import annotations

from collections.abc import Mapping

from snaploom.models.remedies import REMEDY_BY_REASON
from snaploom.models.remedies.remedy import Remedy
from snaploom_operator.conditions import Reason
from snaploom_operator.remedies.conditionremedies import CONDITIONS
from snaploom_operator.remedies.errorremedies import CLUSTER
from snaploom_operator.remedies.eventremedies import EVENTS

REMEDIES: Mapping[Reason, Remedy] = {**CONDITIONS, **EVENTS}
"""Remedy of every `Reason`."""

EVERY_REMEDY: Mapping[str, Remedy] = {
    **REMEDY_BY_REASON,
    **CLUSTER,
    **{reason.value: remedy for reason, remedy in REMEDIES.items()},
}
"""Remedy of every reason of conditions, events, runs and log lines."""
