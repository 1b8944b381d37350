"""What a decision does to the cluster, as data; `apply` performs it, tests compare it."""

from __future__ import annotations

from dataclasses import dataclass, field

from snaploom_operator.cluster.port import ApiResource
from snaploom_operator.objects import JsonObject


@dataclass(frozen=True)
class Create:
    """Create a child object.

    One of the same name that carries the same owner UID and run label is adopted: an earlier
    process created it and did not live to say so. Any other one is an error.
    """

    resource: ApiResource
    manifest: JsonObject = field(hash=False)


@dataclass(frozen=True)
class Ensure:
    """Create a ConfigMap of ours, or replace its data where they differ."""

    manifest: JsonObject = field(hash=False)


@dataclass(frozen=True)
class Delete:
    """Delete an object of ours; one that is gone, or has another UID, is left alone."""

    resource: ApiResource
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True)
class AddFinalizer:
    """Keep the resource until what it published is deleted."""


@dataclass(frozen=True)
class RemoveFinalizer:
    """Let the resource go."""


Action = Create | Ensure | Delete | AddFinalizer | RemoveFinalizer
