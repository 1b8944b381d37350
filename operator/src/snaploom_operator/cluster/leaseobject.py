"""A Kubernetes Lease, to be read, and compared and swapped by `snaploom.storage.leases`."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import JsonValue

from snaploom.models.times import EpochNanos
from snaploom.storage.leases import FREE, LeaseState, Swap
from snaploom_operator.cluster.apiresources import LEASES
from snaploom_operator.cluster.microtime import format_micro_time
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.errors import ObjectChanged, ObjectExists, ObjectMissing
from snaploom_operator.objectmetadata import Metadata, mapping_in, text_in
from snaploom_operator.objects import JsonObject

LONGEST_PROMISE = 3_600
"""Seconds; a Lease with more was written by nobody who leads, and would be waited for for years."""
_MOST_TRANSITIONS = 2**31 - 1
"""Upper bound of the API server."""


class LeaseObject:
    """One Lease. All writes name the version that they are based on.

    `seconds` are the promise of a holder that wrote none, `owner` is the owner reference of a
    created Lease, and the clock's time is written for information only.
    """

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        name: str,
        seconds: int,
        owner: JsonObject | None,
        clock: Callable[[], EpochNanos],
    ) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._name = name
        self._seconds = seconds
        self._owner = owner
        self._clock = clock
        self._uid = ""
        self._transitions = 0

    async def read(self) -> LeaseState:
        """The Lease as it is now.

        Raises:
            ClusterError: a request failed.
        """
        try:
            stored = await self._cluster.get(LEASES, self._namespace, self._name)
        except ObjectMissing:
            return FREE
        return self._state_of(stored)

    async def swap(self, swap: Swap) -> LeaseState | None:
        """Create the Lease, or change the expected one; None if it changed.

        Raises:
            ClusterError: a request failed.
        """
        try:
            if not swap.expected.version:
                return self._state_of(await self._create(self._taken(swap)))
            return self._state_of(await self._patch(swap.expected.version, self._changes(swap)))
        except (ObjectChanged, ObjectExists, ObjectMissing):
            return None

    def _changes(self, swap: Swap) -> JsonObject:
        if not swap.holder:
            return {"holderIdentity": None}
        if swap.holder == swap.expected.holder:
            return {"renewTime": format_micro_time(self._clock())}
        return {**self._taken(swap), "leaseTransitions": self._transitions + 1}

    def _taken(self, swap: Swap) -> JsonObject:
        now = format_micro_time(self._clock())
        return {
            "holderIdentity": swap.holder,
            "leaseDurationSeconds": swap.seconds,
            "acquireTime": now,
            "renewTime": now,
        }

    async def _create(self, spec: JsonObject) -> JsonObject:
        metadata: dict[str, JsonValue] = {"name": self._name, "namespace": self._namespace}
        if self._owner is not None:
            metadata["ownerReferences"] = [dict(self._owner)]
        manifest: JsonObject = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": metadata,
            "spec": dict(spec),
        }
        return await self._cluster.create(LEASES, self._namespace, manifest)

    async def _patch(self, version: str, spec: JsonObject) -> JsonObject:
        patch: JsonObject = {
            "metadata": {"resourceVersion": version, "uid": self._uid},
            "spec": dict(spec),
        }
        return await self._cluster.patch(LEASES, self._namespace, self._name, patch)

    def _state_of(self, stored: JsonObject) -> LeaseState:
        metadata, spec = Metadata.of(stored), mapping_in(stored, "spec")
        seconds, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
        self._uid = metadata.uid
        is_counted = isinstance(transitions, int) and 0 <= transitions < _MOST_TRANSITIONS
        self._transitions = transitions if isinstance(transitions, int) and is_counted else 0
        is_promise = isinstance(seconds, int) and 0 < seconds <= LONGEST_PROMISE
        return LeaseState(
            holder=text_in(spec, "holderIdentity"),
            seconds=seconds if isinstance(seconds, int) and is_promise else self._seconds,
            version=metadata.resource_version,
        )
