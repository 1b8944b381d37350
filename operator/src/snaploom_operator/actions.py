"""The effects of a decision on the cluster, as data; `apply` performs it, tests compare it."""

from __future__ import annotations

from dataclasses import dataclass, field

from snaploom_operator.cluster.port import ApiResource
from snaploom_operator.objects import JsonObject


@dataclass(frozen=True)
class Create:
    """Create a child object.

    An object of the same name with the same owner UID and run label is adopted: an earlier process
    created it and crashed before it recorded that. Any other object of that name is an error.
    """

    resource: ApiResource
    manifest: JsonObject = field(hash=False)


@dataclass(frozen=True)
class Ensure:
    """Create a ConfigMap of ours, or replace its data where they differ."""

    manifest: JsonObject = field(hash=False)


@dataclass(frozen=True)
class Delete:
    """Delete an object of ours; a missing object, or one with another UID, is ignored."""

    resource: ApiResource
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True)
class AddFinalizer:
    """Keep the resource until what it published is deleted."""


@dataclass(frozen=True)
class RemoveFinalizer:
    """Remove our finalizer, so that Kubernetes deletes the resource."""


Action = Create | Ensure | Delete | AddFinalizer | RemoveFinalizer
