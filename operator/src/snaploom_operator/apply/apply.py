"""Performs actions: with the status writer the only part of a pass that changes the cluster.

Every action is idempotent, so that it can be repeated after a lost answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from snaploom.models.resource import Resource
from snaploom_operator.actions import Action, AddFinalizer, Create, Delete, Ensure, RemoveFinalizer
from snaploom_operator.cluster.apiresources import CONFIG_MAPS, OURS
from snaploom_operator.cluster.mergepatch import difference
from snaploom_operator.cluster.port import ApiResource, Cluster
from snaploom_operator.errors import NameTaken, ObjectExists, ObjectMissing
from snaploom_operator.objectmetadata import Metadata, mapping_in
from snaploom_operator.objects import FINALIZER, LABEL_OWNER, LABEL_RUN, JsonObject, Ref
from snaploom_operator.observed import Unparsable

RUN_LABELS = (LABEL_OWNER, LABEL_RUN)
"""Labels that identify the run of an object."""


async def apply(
    action: Action, owner: Resource | Unparsable, cluster: Cluster
) -> JsonObject | None:
    """Perform one action.

    Finalizers change the `resourceVersion` of the owner: a status that is written afterwards needs
    the returned one.

    Returns:
        The object as it is stored now; None if it is gone, or a finalizer needed no change.

    Raises:
        NameTaken: an object of that name belongs to another run or owner.
        ClusterError: the request failed.
    """
    ref = owner.ref if isinstance(owner, Unparsable) else Ref.to(owner)
    match action:
        case Create(resource, manifest):
            return await _create(resource, ref.namespace, manifest, cluster)
        case Ensure(manifest):
            return await _ensure(ref.namespace, manifest, cluster)
        case Delete(resource, namespace, name, uid):
            await cluster.delete(resource, namespace, name, uid=uid)
            return None
        case AddFinalizer():
            held = await _held(owner, cluster)
            return await _set_finalizers(ref, held, {*held.finalizers, FINALIZER}, cluster)
        case RemoveFinalizer():
            try:
                held = await _held(owner, cluster)
                return await _set_finalizers(ref, held, {*held.finalizers} - {FINALIZER}, cluster)
            except ObjectMissing:
                return None  # already removed by a request whose answer was lost


async def _held(owner: Resource | Unparsable, cluster: Cluster) -> Metadata:
    """The current metadata; an unparsable resource is read again from the API server."""
    if isinstance(owner, Unparsable):
        ref = owner.ref
        found = Metadata.of(await cluster.get(OURS[ref.kind], ref.namespace, ref.name))
        if found.uid != owner.uid:
            raise ObjectMissing(
                f"{ref} was recreated", hint="nothing: the new object is reconciled by itself"
            )
        return found
    return Metadata.of({"metadata": owner.metadata.dump()})


async def _create(
    resource: ApiResource, namespace: str, manifest: JsonObject, cluster: Cluster
) -> JsonObject:
    try:
        return await cluster.create(resource, namespace, manifest)
    except ObjectExists as error:
        wanted = Metadata.of(manifest)
        found = await cluster.get(resource, namespace, wanted.name)
        held = Metadata.of(found)
        _require_owner(resource, wanted, held)
        if held.is_deleting:
            # An object that is being deleted must not be adopted. The retry finds the name free.
            raise ObjectExists(
                f"{resource.kind}/{held.name} is being deleted",
                hint="nothing: it is tried again until the name is free",
            ) from error
        return found


async def _ensure(namespace: str, manifest: JsonObject, cluster: Cluster) -> JsonObject:
    wanted = Metadata.of(manifest)
    try:
        found = await cluster.get(CONFIG_MAPS, namespace, wanted.name)
    except ObjectMissing:
        return await cluster.create(CONFIG_MAPS, namespace, manifest)
    held = Metadata.of(found)
    _require_owner(CONFIG_MAPS, wanted, held)
    data = difference(mapping_in(found, "data"), mapping_in(manifest, "data"))
    if not data:
        return found
    version = {"resourceVersion": held.resource_version, "uid": held.uid}
    patch: JsonObject = {"metadata": dict(version), "data": data}
    return await cluster.patch(CONFIG_MAPS, namespace, wanted.name, patch)


async def _set_finalizers(
    ref: Ref, held: Metadata, wanted: AbstractSet[str], cluster: Cluster
) -> JsonObject | None:
    """Set the finalizers; the version guards those of others, since patches replace lists."""
    if wanted == set(held.finalizers):
        return None
    ordered = [name for name in held.finalizers if name in wanted]
    ordered += sorted(wanted - set(held.finalizers))
    patch: JsonObject = {
        "metadata": {
            "resourceVersion": held.resource_version,
            "uid": held.uid,
            "finalizers": [*ordered] or None,
        }
    }
    return await cluster.patch(OURS[ref.kind], ref.namespace, ref.name, patch)


def _require_owner(resource: ApiResource, wanted: Metadata, found: Metadata) -> None:
    if all(found.labels.get(label) == wanted.labels.get(label) for label in RUN_LABELS):
        return
    raise NameTaken(
        "an object of this name has another owner",
        resource=f"{resource.kind}/{wanted.name}",
        found=_shown(found.labels),
        expected=_shown(wanted.labels),
        hint=f"delete or rename the {resource.kind}, or rename the resource",
    )


def _shown(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{label}={labels.get(label, '')}" for label in RUN_LABELS)
