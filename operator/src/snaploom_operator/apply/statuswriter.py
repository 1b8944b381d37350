"""Writes the status of a resource if it changed."""

from __future__ import annotations

from snaploom.models.common import ResourceStatus
from snaploom.models.kinds import AnyResource
from snaploom.models.resource import Resource
from snaploom_operator.apply.statustruncation import cut_to_size
from snaploom_operator.cluster.apiresources import OURS
from snaploom_operator.cluster.mergepatch import difference
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.errors import ObjectChanged
from snaploom_operator.objectmetadata import Metadata, mapping_in
from snaploom_operator.objects import JsonObject, Ref
from snaploom_operator.observed import ObservedResource, Unparsable


async def write_status(
    held: Resource | ObservedResource | Unparsable, status: ResourceStatus, cluster: Cluster
) -> JsonObject | None:
    """Write the status of a resource if it changed, truncated if it is too large.

    Returns:
        The resource as it is stored now; None if nothing was written.

    Raises:
        ObjectChanged: the resource was changed or recreated since.
        ObjectMissing: it is gone.
    """
    wanted = cut_to_size(status.dump())
    if isinstance(held, Unparsable):
        return await _write_over_unparsable(held, wanted, cluster)
    resource = held.resource if isinstance(held, ObservedResource) else held
    assert isinstance(resource, AnyResource)  # there are no other kinds
    before = resource.status.dump() if resource.status is not None else {}
    stored: JsonObject = {"metadata": resource.metadata.dump(), "status": before}
    ref = Ref.to(resource)
    written = await _write(ref, stored, wanted, cluster)
    if resource.status is None:
        # A status that our models refuse was read as missing; remove its other fields.
        written = await _write(ref, written, wanted, cluster)
    return _if_changed(stored, written)


async def _write_over_unparsable(
    held: Unparsable, wanted: JsonObject, cluster: Cluster
) -> JsonObject | None:
    if held.status is not None and not difference(held.status.dump(), wanted):
        return None
    ref = held.ref
    stored = await cluster.get(OURS[ref.kind], ref.namespace, ref.name)
    if Metadata.of(stored).uid != held.uid:
        raise ObjectChanged(
            f"{ref} was recreated", hint="nothing: the new object is reconciled by itself"
        )
    return _if_changed(stored, await _write(ref, stored, wanted, cluster))


async def _write(ref: Ref, stored: JsonObject, wanted: JsonObject, cluster: Cluster) -> JsonObject:
    patch = difference(mapping_in(stored, "status"), wanted)
    if not patch:
        return stored
    held = Metadata.of(stored)
    metadata: JsonObject = {"resourceVersion": held.resource_version, "uid": held.uid}
    body: JsonObject = {"metadata": dict(metadata), "status": patch}
    return await cluster.patch(OURS[ref.kind], ref.namespace, ref.name, body, subresource="status")


def _if_changed(before: JsonObject, after: JsonObject) -> JsonObject | None:
    """The written object; None if pruning by the schema left it unchanged."""
    is_same = Metadata.of(before).resource_version == Metadata.of(after).resource_version
    return None if is_same else after
