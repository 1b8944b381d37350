"""Performs actions: the only part of a pass that changes the cluster, besides the status.

Every action may be performed again after an answer was lost: what is there already is recognised.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

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
from snaploom_operator.cluster.port import ApiResource, Cluster
from snaploom_operator.cluster.resources import CONFIG_MAPS, OURS
from snaploom_operator.errors import NameTaken, ObjectExists, ObjectMissing
from snaploom_operator.metadata import Metadata, mapping_in
from snaploom_operator.objects import FINALIZER, LABEL_OWNER, LABEL_RUN, JsonObject, Ref
from snaploom_operator.observed import Unparsable

RUN_LABELS = (LABEL_OWNER, LABEL_RUN)
"""Labels by which an object is known to be of a run."""


async def apply(
    action: Action, owner: Resource | Unparsable, cluster: Cluster
) -> JsonObject | None:
    """Perform one action.

    Args:
        action: what to do.
        owner: the resource that it is done for, as it is stored. Finalizers change its
            `resourceVersion`: a status that is written afterwards needs the one returned.
        cluster: where.

    Returns:
        The object as it is stored now; None where there is none any more, and where a finalizer
        was as it should be.

    Raises:
        NameTaken: an object of that name belongs to another run, or to somebody else.
        ClusterError: the cluster refuses it, or does not answer.
    """
    ref = _ref_of(owner)
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
                return None  # it let go already, and the answer was lost


def _ref_of(owner: Resource | Unparsable) -> Ref:
    if isinstance(owner, Unparsable):
        return owner.ref
    return Ref(owner.kind, owner.metadata.namespace or "", owner.name)


async def _held(owner: Resource | Unparsable, cluster: Cluster) -> Metadata:
    """The metadata that finalizers are changed in; of what we cannot parse they are read anew."""
    if isinstance(owner, Unparsable):
        ref = owner.ref
        found = Metadata.of(await cluster.get(OURS[ref.kind], ref.namespace, ref.name))
        if found.uid != owner.uid:
            raise ObjectMissing(f"{ref} is another one by now")
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
        _refuse_stranger(resource, wanted, held)
        if held.is_deleting:
            # What goes must not be taken for what was made. The next try finds the name free.
            raise ObjectExists(f"{resource.kind}/{held.name} is being deleted") from error
        return found


async def _ensure(namespace: str, manifest: JsonObject, cluster: Cluster) -> JsonObject:
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
    ref: Ref, held: Metadata, wanted: AbstractSet[str], cluster: Cluster
) -> JsonObject | None:
    """Finalizers are one list to a merge patch; the version keeps those of others safe."""
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


def _refuse_stranger(resource: ApiResource, wanted: Metadata, found: Metadata) -> None:
    if all(found.labels.get(label) == wanted.labels.get(label) for label in RUN_LABELS):
        return
    raise NameTaken(
        "an object of this name belongs to somebody else",
        resource=f"{resource.kind}/{wanted.name}",
        found=_shown(found.labels),
        expected=_shown(wanted.labels),
        hint=f"delete or rename the {resource.kind}, or rename the resource",
    )


def _shown(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{label}={labels.get(label, '')}" for label in RUN_LABELS)
