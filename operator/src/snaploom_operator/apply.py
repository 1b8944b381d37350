"""Performs actions and writes statuses: the only part of a pass that changes the cluster.

Everything may be done again after an answer was lost: what is there already is recognised.
"""

from __future__ import annotations

from collections.abc import Mapping

from snaploom.models.common import ResourceStatus
from snaploom.models.resource import Resource
from snaploom_operator.actions import (
    Action,
    AddFinalizer,
    Create,
    Delete,
    Ensure,
    RemoveFinalizer,
)
from snaploom_operator.cluster.mergepatch import difference
from snaploom_operator.cluster.metadata import Metadata, mapping_in
from snaploom_operator.cluster.port import ApiResource, Cluster
from snaploom_operator.cluster.resources import CONFIG_MAPS, OURS
from snaploom_operator.errors import NameTaken, ObjectExists, ObjectMissing
from snaploom_operator.objects import FINALIZER, LABEL_OWNER, LABEL_RUN, JsonObject, Ref
from snaploom_operator.statuscut import cut_to_size

SHOWN_LABELS = (LABEL_OWNER, LABEL_RUN)
"""Labels by which an object is known to be of a run."""


async def apply(action: Action, owner: Resource, cluster: Cluster) -> JsonObject | None:
    """Perform one action.

    Args:
        action: what to do.
        owner: the resource that it is done for, as it is stored. Finalizers change its
            `resourceVersion`: a status that is written afterwards needs the one returned.
        cluster: where.

    Returns:
        The object as it is stored now; None where there is none any more.

    Raises:
        NameTaken: an object of that name belongs to another run, or to somebody else.
        ClusterError: the cluster refuses it, or does not answer.
    """
    match action:
        case Create(resource, manifest):
            return await _create(resource, manifest, owner, cluster)
        case Ensure(manifest):
            return await _ensure(manifest, owner, cluster)
        case Delete(resource, where, name, uid):
            await cluster.delete(resource, where, name, uid=uid)
            return None
        case AddFinalizer():
            held = owner.metadata.finalizers
            wanted = held if FINALIZER in held else (*held, FINALIZER)
            return await _set_finalizers(owner, wanted, cluster)
        case RemoveFinalizer():
            wanted = tuple(name for name in owner.metadata.finalizers if name != FINALIZER)
            try:
                return await _set_finalizers(owner, wanted, cluster)
            except ObjectMissing:
                return None  # it let go already, and the answer was lost


async def write_status(
    cluster: Cluster,
    ref: Ref,
    *,
    uid: str,
    version: str,
    before: ResourceStatus | None,
    after: ResourceStatus,
) -> JsonObject | None:
    """Write the status of a resource, where it differs from the one that is stored.

    Args:
        cluster: where.
        ref: the resource.
        uid: its UID.
        version: its `resourceVersion` when it was read, or as `apply` returned it since.
        before: its status as it was read.
        after: its status from now on; what does not fit is cut (`statuscut`).

    Returns:
        The resource as it is stored now; None when there was nothing to write.

    Raises:
        ObjectChanged: somebody changed the resource since, or it is another one by now.
        ObjectMissing: it is gone.
    """
    patch = difference(before.dump() if before else {}, cut_to_size(after.dump()))
    if not patch:
        return None
    metadata: JsonObject = {"resourceVersion": version, "uid": uid}
    return await cluster.patch(
        OURS[ref.kind],
        ref.namespace,
        ref.name,
        {"metadata": dict(metadata), "status": patch},
        subresource="status",
    )


async def _create(
    resource: ApiResource, manifest: JsonObject, owner: Resource, cluster: Cluster
) -> JsonObject:
    namespace = owner.metadata.namespace or ""
    try:
        return await cluster.create(resource, namespace, manifest)
    except ObjectExists as error:
        wanted = Metadata.of(manifest)
        found = await cluster.get(resource, namespace, wanted.name)
        held = Metadata.of(found)
        _refuse_stranger(resource, wanted, held)
        if held.is_deleting:
            # What goes must not be taken for what was made. The next try finds the name free.
            raise ObjectExists(f"{resource.kind}/{held.name} is being deleted") from error
        return found


async def _ensure(manifest: JsonObject, owner: Resource, cluster: Cluster) -> JsonObject:
    namespace = owner.metadata.namespace or ""
    wanted = Metadata.of(manifest)
    try:
        found = await cluster.get(CONFIG_MAPS, namespace, wanted.name)
    except ObjectMissing:
        return await cluster.create(CONFIG_MAPS, namespace, manifest)
    held = Metadata.of(found)
    _refuse_stranger(CONFIG_MAPS, wanted, held)
    data = difference(mapping_in(found, "data"), mapping_in(manifest, "data"))
    if not data:
        return found
    version = {"resourceVersion": held.resource_version, "uid": held.uid}
    patch: JsonObject = {"metadata": dict(version), "data": data}
    return await cluster.patch(CONFIG_MAPS, namespace, wanted.name, patch)


async def _set_finalizers(
    owner: Resource, wanted: tuple[str, ...], cluster: Cluster
) -> JsonObject | None:
    """Finalizers are one list to a merge patch; the version keeps those of others safe."""
    if wanted == owner.metadata.finalizers:
        return None
    metadata: JsonObject = {
        "resourceVersion": owner.metadata.resource_version,
        "uid": owner.metadata.uid,
        "finalizers": list(wanted) or None,
    }
    return await cluster.patch(
        OURS[owner.kind],
        owner.metadata.namespace or "",
        owner.metadata.name,
        {"metadata": dict(metadata)},
    )


def _refuse_stranger(resource: ApiResource, wanted: Metadata, found: Metadata) -> None:
    if all(found.labels.get(label) == wanted.labels.get(label) for label in SHOWN_LABELS):
        return
    raise NameTaken(
        "an object of this name belongs to somebody else",
        resource=f"{resource.kind}/{wanted.name}",
        found=_shown(found.labels),
        expected=_shown(wanted.labels),
        hint=f"delete or rename the {resource.kind}, or rename the resource",
    )


def _shown(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{label}={labels.get(label, '')}" for label in SHOWN_LABELS)
