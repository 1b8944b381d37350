"""The port to the Kubernetes API: the verbs that the operator uses, and their errors.

Every method raises subclasses of `ClusterError`, never errors of the client library. Any of them
may raise `NotAllowed`, `TooManyRequests` and `ApiUnavailable`. Objects have `apiVersion` and
`kind`, in lists too, and no `metadata.managedFields`, which are half of their size and are never
read. Cluster-scoped objects have an empty namespace.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Protocol

from snaploom_operator.objects import JsonObject


@dataclass(frozen=True)
class ApiResource:
    """A kind of objects, as in API paths."""

    group: str
    """Empty for the core group."""
    version: str
    plural: str
    kind: str

    @property
    def api_version(self) -> str:
        """Its `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version


@dataclass(frozen=True)
class Listing:
    """All objects of a kind at one resourceVersion."""

    items: tuple[JsonObject, ...]
    resource_version: str


@dataclass(frozen=True)
class Page(Listing):
    """A page of a list, of the same resourceVersion as its other pages."""

    is_first: bool
    """Whether it is the first page of a list; a list that expired starts again."""


class Cluster(Protocol):
    """The Kubernetes API as the operator uses it."""

    async def list(
        self, resource: ApiResource, *, namespace: str | None = None, selector: str = ""
    ) -> Listing:
        """List all objects of a kind; namespace None for all namespaces.

        Raises:
            ResourceUnknown: the cluster has no such kind.
        """
        ...

    def pages(
        self, resource: ApiResource, *, namespace: str | None = None, selector: str = ""
    ) -> AsyncGenerator[Page, None]:
        """List page by page, so that not all objects of a kind are in memory at once.

        Raises:
            ResourceUnknown: the cluster has no such kind.
        """
        ...

    async def get(self, resource: ApiResource, namespace: str, name: str) -> JsonObject:
        """Read one object.

        Raises: ObjectMissing: it does not exist.
        """
        ...

    async def schemas(self) -> Mapping[str, JsonObject]:
        """Read the OpenAPI schemas by which our kinds are served, by kind.

        Raises: ResourceUnknown: none of them is served.
        """
        ...

    async def create(
        self, resource: ApiResource, namespace: str, manifest: JsonObject
    ) -> JsonObject:
        """Create an object; the stored object.

        Raises: ObjectExists: an object of this name exists. ObjectRefused: schema, admission
            webhook or quota refused it. NamespaceTerminating: the namespace is being deleted, or
            deleted.
        """
        ...

    async def replace(
        self, resource: ApiResource, namespace: str, manifest: JsonObject
    ) -> JsonObject:
        """Replace an object; its `metadata.resourceVersion` must be the current one.

        Raises:
            ObjectChanged: it was changed since it was read.
            ObjectMissing: it does not exist.
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

        Of a status the API server checks the version only, which no two objects of a kind share.

        Raises: ObjectChanged: it was changed or recreated since it was read. ObjectMissing: it does
            not exist.
        """
        ...

    async def delete(self, resource: ApiResource, namespace: str, name: str, *, uid: str) -> None:
        """Delete an object in the background if it has this UID; a missing object is ignored."""
        ...
