"""The adapter of the port `Cluster` for a real API server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path

from snaploom.models.common import API_VERSION
from snaploom_operator.cluster.apiresources import OPENAPI
from snaploom_operator.cluster.connection import USER_AGENT, connect
from snaploom_operator.cluster.port import ApiResource, Listing, Page
from snaploom_operator.cluster.requests import Observer, Request, Requests
from snaploom_operator.errors import (
    ObjectChanged,
    ObjectMissing,
    WatchExpired,
)
from snaploom_operator.objectmetadata import Metadata, managers_of, mapping_in, text_in
from snaploom_operator.objects import JsonObject

PAGE = 500
"""Objects per page, as in kubectl and client-go."""
PAGED_TRIES = 3
"""Expired paged lists before an unpaged one is requested."""
_log = logging.getLogger(__name__)


class KubernetesCluster:
    """`Cluster` over a real API server; created by `open_cluster`."""

    def __init__(
        self,
        requests: Requests,
        page: int = PAGE,
    ) -> None:
        self._requests = requests
        self._page = page

    async def list(
        self, resource: ApiResource, *, namespace: str | None = None, selector: str = ""
    ) -> Listing:
        """See `Cluster.list`."""
        items: list[JsonObject] = []
        version = ""
        async for page in self.pages(resource, namespace=namespace, selector=selector):
            if page.is_first:
                items.clear()
            items += page.items
            version = page.resource_version
        return Listing(tuple(items), version)

    async def pages(
        self, resource: ApiResource, *, namespace: str | None = None, selector: str = ""
    ) -> AsyncGenerator[Page, None]:
        """See `Cluster.pages`."""
        request = Request("list", resource, namespace, query=_selected(selector))
        for _ in range(PAGED_TRIES):
            try:
                async with aclosing(self._paged(request)) as pages:
                    async for page in pages:
                        yield page
            except WatchExpired:
                _log.debug("the list of %s expired between its pages", resource.plural)
            else:
                return
        yield _page(resource, await self._requests.send(request), is_first=True)

    async def _paged(self, request: Request) -> AsyncGenerator[Page, None]:
        """The pages of a list; the API server makes one while the one before it is taken in."""
        limit = ("limit", str(self._page))
        is_first = True
        coming = self._begun(replace(request, query=(*request.query, limit)))
        try:
            while True:
                answer = await coming
                following = text_in(mapping_in(answer, "metadata"), "continue")
                if following:
                    where = ("continue", following)
                    coming = self._begun(replace(request, query=(*request.query, limit, where)))
                yield _page(request.resource, answer, is_first=is_first)
                is_first = False
                if not following:
                    return
        finally:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)

    def _begun(self, request: Request) -> asyncio.Task[JsonObject]:
        return asyncio.create_task(self._requests.send(request))

    async def get(self, resource: ApiResource, namespace: str, name: str) -> JsonObject:
        """See `Cluster.get`."""
        return _read(resource, await self._requests.send(Request("get", resource, namespace, name)))

    async def schemas(self) -> dict[str, JsonObject]:
        """See `Cluster.schemas`."""
        path = f"/openapi/v3/apis/{API_VERSION}"
        answer = await self._requests.send(Request("get", OPENAPI, None, own_path=path))
        schemas = mapping_in(mapping_in(answer, "components"), "schemas")
        return {
            name.rpartition(".")[2]: schema
            for name, schema in schemas.items()
            if isinstance(schema, dict) and "x-kubernetes-group-version-kind" in schema
        }

    async def managers(
        self, resource: ApiResource, namespace: str, name: str, path: tuple[str, ...]
    ) -> tuple[str, ...]:
        """Names of the field managers of a field.

        Args: resource: kind of the object. namespace: its namespace. name: its name. path: path of
            the field.

        Raises:
            ObjectMissing: there is no such object.
        """
        stored = await self._requests.send(Request("get", resource, namespace, name))
        return managers_of(stored, path)

    async def create(
        self, resource: ApiResource, namespace: str, manifest: JsonObject
    ) -> JsonObject:
        """See `Cluster.create`."""
        request = Request("create", resource, namespace, body=manifest)
        return _read(resource, await self._requests.send(request))

    async def replace(
        self, resource: ApiResource, namespace: str, manifest: JsonObject
    ) -> JsonObject:
        """See `Cluster.replace`."""
        name = Metadata.of(manifest).name
        request = Request("replace", resource, namespace, name, body=manifest)
        return _read(resource, await self._requests.send(request))

    async def patch(
        self,
        resource: ApiResource,
        namespace: str,
        name: str,
        patch: JsonObject,
        *,
        subresource: str = "",
    ) -> JsonObject:
        """See `Cluster.patch`."""
        request = Request("patch", resource, namespace, name, subresource, body=patch)
        return _read(resource, await self._requests.send(request))

    async def delete(self, resource: ApiResource, namespace: str, name: str, *, uid: str) -> None:
        """See `Cluster.delete`."""
        options: JsonObject = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": {"uid": uid},
        }
        try:
            await self._requests.send(Request("delete", resource, namespace, name, body=options))
        except (ObjectMissing, ObjectChanged):
            return  # it is gone, or was recreated


@asynccontextmanager
async def open_cluster(
    kubeconfig: Path | None = None,
    observer: Observer = lambda exchange: None,
    context: str | None = None,
    user_agent: str = USER_AGENT,
) -> AsyncIterator[KubernetesCluster]:
    """Connect to a cluster; connections are closed at the end of the context.

    Args: kubeconfig: see `connection.connect`. observer: called after every request, for metrics.
        context: context of the kubeconfig; None for its current one. user_agent: the tool that
        connects.

    Raises: SettingsInvalid: no cluster is configured.
    """
    client = await connect(kubeconfig, context, user_agent)
    try:
        yield KubernetesCluster(Requests(client, observer))
    finally:
        await client.close()


def _selected(selector: str) -> tuple[tuple[str, str], ...]:
    return (("labelSelector", selector),) if selector else ()


def _page(resource: ApiResource, answer: JsonObject, *, is_first: bool) -> Page:
    items = answer.get("items")
    found = items if isinstance(items, list) else []
    return Page(
        tuple(_read(resource, item) for item in found if isinstance(item, dict)),
        text_in(mapping_in(answer, "metadata"), "resourceVersion"),
        is_first,
    )


def _read(resource: ApiResource, stored: JsonObject) -> JsonObject:
    """Add the kind, which lists omit, and remove `managedFields`, which are never read.

    Replacing an object without `managedFields` keeps the stored ones.
    """
    metadata = stored.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)
    return {"apiVersion": resource.api_version, "kind": resource.kind} | dict(stored)
