"""The port to the Kubernetes API: the few verbs that the operator uses, and what may go wrong.

The controller's watches are kopf's; the webhook, which has no kopf, lists and then watches here.
Every method raises `ClusterError` or one of its kinds, never the client library's errors, so that
`decide` and `apply` know none of it. Any of them may raise `NotAllowed`, `TooManyRequests` and
`ApiUnavailable`. Objects come with `apiVersion` and `kind`, in lists too, and without
`metadata.managedFields`, which is half of their size and which nobody here reads. The namespace of
what has none is empty.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from enum import StrEnum
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


@dataclass(frozen=True)
class Page(Listing):
    """Some objects of a kind, as of the same moment as the others of its list."""

    is_first: bool
    """Whether the list begins with it, or begins again: what came before is of another moment."""


class ChangeType(StrEnum):
    """What happened to an object, in the words of the API."""

    ADDED = "ADDED"
    """It is new."""
    MODIFIED = "MODIFIED"
    """It is another than it was."""
    DELETED = "DELETED"
    """It is gone."""
    BOOKMARK = "BOOKMARK"
    """Nothing happened: the watch is alive, and has got to the object's `resourceVersion`."""


@dataclass(frozen=True)
class Change:
    """Something that a watch saw."""

    type: ChangeType
    object: JsonObject
    """As it is now, or was last; of a bookmark, its `resourceVersion` only."""


class Cluster(Protocol):
    """What the operator asks of a cluster."""

    async def list(
        self, resource: ApiResource, *, namespace: str | None = None, selector: str = ""
    ) -> Listing:
        """Every object of a kind; None for all namespaces.

        Raises:
            ResourceUnknown: the cluster has no such kind.
        """
        ...

    def pages(
        self, resource: ApiResource, *, namespace: str | None = None, selector: str = ""
    ) -> AsyncGenerator[Page, None]:
        """The same page by page, so that the objects of a large kind are never held at once.

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
            NamespaceTerminating: the namespace is going, or gone.
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

        Of a status the API server checks the version only, which no two objects of a kind share.

        Raises:
            ObjectChanged: somebody changed it meanwhile, or it is another object by now.
            ObjectMissing: there is none.
        """
        ...

    async def delete(self, resource: ApiResource, namespace: str, name: str, *, uid: str) -> None:
        """Delete an object in the background, if it still has this UID; nothing when it is gone."""
        ...

    def watch(
        self, resource: ApiResource, *, namespace: str | None = None, since: str, selector: str = ""
    ) -> AsyncGenerator[Change, None]:
        """Every change after a listing, without end; None for all namespaces.

        A connection that ends, as all do after a time, is made anew from where it stood. After any
        error the caller lists again and watches from there. Close it with `contextlib.aclosing`.

        Args:
            resource: the kind.
            namespace: where; None for everywhere.
            since: `resource_version` of the listing.
            selector: labels that the objects have.

        Raises:
            WatchExpired: the cluster does not remember changes since then.
            ResourceUnknown: the cluster has no such kind.
        """
        ...
