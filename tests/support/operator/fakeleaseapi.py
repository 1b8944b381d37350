"""The Leases of a cluster in memory, as a job's client library asks for them."""

from __future__ import annotations

import json
from collections.abc import Coroutine
from http import HTTPStatus
from typing import Any, TypeVar

from kubernetes.client import ApiClient, ApiException, V1Lease
from support.operator.fakecluster import FakeCluster

from snaploom_operator.cluster.port import LEASES
from snaploom_operator.errors import ObjectChanged, ObjectExists, ObjectMissing
from snaploom_operator.objects import JsonObject

Result = TypeVar("Result")


def at_once(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """The result of a coroutine that never waits, as those of a cluster in memory."""
    try:
        coroutine.send(None)
    except StopIteration as ended:
        result: Result = ended.value
        return result
    raise AssertionError("it waits")


class FakeLeaseApi:
    """The part of `CoordinationV1Api` that `ClusterLease` uses."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster
        self._client = ApiClient()

    def read_namespaced_lease(self, name: str, namespace: str, **_: object) -> V1Lease:
        return self._answer(self._cluster.get(LEASES, namespace, name))

    def create_namespaced_lease(self, namespace: str, body: V1Lease, **_: object) -> V1Lease:
        return self._answer(self._cluster.create(LEASES, namespace, self._raw(body)))

    def replace_namespaced_lease(
        self, name: str, namespace: str, body: V1Lease, **_: object
    ) -> V1Lease:
        return self._answer(self._cluster.replace(LEASES, namespace, self._raw(body)))

    def _raw(self, body: V1Lease) -> JsonObject:
        raw: JsonObject = self._client.sanitize_for_serialization(body)
        return {"apiVersion": LEASES.api_version, "kind": LEASES.kind, **raw}

    def _answer(self, asked: Coroutine[Any, Any, JsonObject]) -> V1Lease:
        try:
            stored = at_once(asked)
        except ObjectMissing as error:
            raise ApiException(HTTPStatus.NOT_FOUND, str(error)) from error
        except (ObjectChanged, ObjectExists) as error:
            raise ApiException(HTTPStatus.CONFLICT, str(error)) from error
        return self._client.deserialize(json.dumps(stored), "V1Lease", "application/json")
