"""Objects as an API server returns them, for tests of the store and of what is built on it."""

from __future__ import annotations

import copy
import itertools
import json
from typing import Any

from support.declared.declarations import Raw

from snaploom_operator.objects import (
    LABEL_KIND,
    LABEL_NAME,
    LABEL_OWNER,
    LABEL_ROLE,
    LABEL_RUN,
    Ref,
)

NAMESPACE = "team"
_VERSIONS = itertools.count(1_000)


def stored(raw: Raw, *, namespace: str = NAMESPACE, generation: int = 1, **status: Any) -> Raw:
    """A declaration as it is stored, newer than everything stored before; status by keyword."""
    result = copy.deepcopy(raw)
    name = result["metadata"]["name"]
    result["metadata"] |= {
        "namespace": namespace,
        "uid": f"uid-of-{result['kind']}-{name}".lower(),
        "generation": generation,
        "resourceVersion": str(next(_VERSIONS)),
        "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}],
    }
    if status:
        result["status"] = {**result.get("status", {}), **status}
    return result


def key(raw: Raw, namespace: str = NAMESPACE) -> Ref:
    """The key of a declaration."""
    return Ref(raw["kind"], namespace, raw["metadata"]["name"])


def newer(raw: Raw, **metadata: Any) -> Raw:
    """The same object after a change of its metadata."""
    result = copy.deepcopy(raw)
    result["metadata"] |= {"resourceVersion": str(next(_VERSIONS)), **metadata}
    return result


def labels_of(owner: Raw, run: str, **others: str) -> dict[str, str]:
    """The labels that everything of a run has."""
    metadata = owner["metadata"]
    return {
        LABEL_KIND: owner["kind"],
        LABEL_NAME: metadata["name"][:63],
        LABEL_OWNER: metadata["uid"],
        LABEL_RUN: run,
        **others,
    }


def config_map(owner: Raw, run: str, role: str, data: dict[str, str] | None = None) -> Raw:
    """A ConfigMap of a run."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": f"{run}-{role}",
            "namespace": owner["metadata"]["namespace"],
            "uid": f"uid-of-{run}-{role}",
            "resourceVersion": str(next(_VERSIONS)),
            "labels": labels_of(owner, run, **{LABEL_ROLE: role}),
        },
        "data": data or {},
    }


def report(owner: Raw, run: str, **fields: Any) -> Raw:
    """The ConfigMap with the report of a run."""
    content = {
        "output": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "runId": run,
        "phase": "SUCCEEDED",
        "startedAt": "2026-01-01T00:00:00Z",
        "finishedAt": "2026-01-01T00:10:00Z",
        **fields,
    }
    return config_map(owner, run, "report", {"report.json": json.dumps(content)})


def driver_pod(owner: Raw, run: str, **status: Any) -> Raw:
    """The pod of a run's driver."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{run}-driver",
            "namespace": owner["metadata"]["namespace"],
            "uid": f"uid-of-{run}-driver",
            "resourceVersion": str(next(_VERSIONS)),
            "labels": labels_of(owner, run, **{"spark-role": "driver"}),
        },
        "status": status,
    }


def current_run(name: str, phase: str, started_at: str = "2026-01-01T00:00:00Z") -> Raw:
    """`status.currentRun`."""
    return {"name": name, "id": name, "phase": phase, "since": started_at, "startedAt": started_at}
