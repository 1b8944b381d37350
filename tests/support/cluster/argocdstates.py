"""Every state of every kind, and how Argo CD should show it: `tests/cluster/charts/argocd`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from snaploom.models.common import parse_instant
from snaploom_operator.conditions import ConditionType, ConditionValue, Reason, next_conditions

Raw = dict[str, Any]
FIXTURES = Path(__file__).parents[2] / "cluster" / "charts" / "argocd"
NOW = parse_instant("2026-11-21T20:00:00Z")


@dataclass(frozen=True)
class State:
    """A resource as the API server shows it, and how Argo CD should."""

    kind: str
    name: str
    resource: Raw
    conditions: Raw
    health: Raw

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def states() -> list[State]:
    """Every state of every kind."""
    return [
        state_of(kind, each)
        for path in sorted(FIXTURES.glob("*.yaml"))
        for content in [yaml.safe_load(path.read_text("utf-8"))]
        for kind in content["kinds"]
        for each in content["states"]
    ]


def state_of(kind: str, given: Raw) -> State:
    metadata = {"name": "flights", "generation": 2} | given.get("metadata", {})
    resource: Raw = {
        "apiVersion": "snaploom.io/v1alpha1",
        "kind": kind,
        "metadata": metadata,
        "spec": given.get("spec", {}),
    }
    conditions = given.get("conditions")
    if conditions is not None:
        values = (
            ConditionValue(ConditionType(type_), is_true, Reason(reason), message)
            for type_, (is_true, reason, message) in conditions.items()
        )
        found = [each.dump() for each in next_conditions((), values, 2, NOW)]
        resource["status"] = {"observedGeneration": 2, "conditions": found}
    health = {"status": given["health"], "message": given["message"]}
    return State(kind, given["name"], resource, conditions or {}, health)
