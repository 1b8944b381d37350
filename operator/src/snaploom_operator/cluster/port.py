"""The port to the Kubernetes API: the few verbs that the operator uses, and what may go wrong.

Watches are kopf's; the port lists, reads and writes. Every method raises `ClusterError` or one of
its kinds, never the client library's errors, so that `decide` and `apply` know none of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from snaploom_operator.objects import JsonObject


@dataclass(frozen=True)
class ApiResource:
    """A kind of objects, as paths of the API name it."""

    group: str
    """Empty for the core group."""
    version: str
    plural: str
    kind: str

    @property
    def api_version(self) -> str:
        """As objects write it."""
        return f"{self.group}/{self.version}" if self.group else self.version


@dataclass(frozen=True)
class Listing:
    """Every object of a kind, as of one moment."""

    items: tuple[JsonObject, ...]
    resource_version: str


class Cluster(Protocol):
    """What the operator asks of a cluster."""

    async def list(
        self, resource: ApiResource, *, namespace: str | None = None, selector: str = ""
    ) -> Listing:
        """Every object of a kind, in pages; None for all namespaces.

        Raises:
            ResourceUnknown: the cluster has no such kind.
        """
        ...

    async def get(self, resource: ApiResource, namespace: str, name: str) -> JsonObject:
        """One object.

        Raises:
            ObjectMissing: there is none.
        """
        ...

    async def create(
        self, resource: ApiResource, namespace: str, manifest: JsonObject
    ) -> JsonObject:
        """Create an object; what the API server made of it.

        Raises:
            ObjectExists: there is one of this name.
            ObjectRefused: the API server, or an admission webhook, refused it; or a quota did.
            NamespaceTerminating: nothing can be created there any more.
        """
        ...

    async def replace(
        self, resource: ApiResource, namespace: str, manifest: JsonObject
    ) -> JsonObject:
        """Replace an object; its `metadata.resourceVersion` must be the current one.

        Raises:
            ObjectChanged: somebody changed it meanwhile.
            ObjectMissing: there is none.
        """
        ...

    async def patch(
        self,
        resource: ApiResource,
        namespace: str,
        name: str,
        patch: JsonObject,
        *,
        subresource: str = "",
    ) -> JsonObject:
        """Apply a JSON merge patch; `metadata.resourceVersion` and `metadata.uid` in it must match.

        Raises:
            ObjectChanged: somebody changed it meanwhile, or it is another object by now.
            ObjectMissing: there is none.
        """
        ...

    async def delete(self, resource: ApiResource, namespace: str, name: str, *, uid: str) -> None:
        """Delete an object in the background, if it still has this UID; nothing when it is gone."""
        ...
