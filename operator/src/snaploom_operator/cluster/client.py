"""The client of a real API server: connection, adapter of the port, watches, and pod logs."""

import asyncio
import base64
import json
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path
from typing import Any, Protocol, cast
from urllib.request import getproxies_environment

import aiohttp
import yaml
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import (
    ConfigException,
    list_kube_config_contexts,
    load_incluster_config,
    load_kube_config,
)
from pydantic import JsonValue

from snaploom.models.common import API_VERSION, EpochNanos
from snaploom_operator import objects
from snaploom_operator.cluster.port import OPENAPI, PODS, ApiResource, Listing, Page
from snaploom_operator.cluster.requests import (
    Observer,
    Request,
    Requests,
    authorization,
    parse_json,
    readable_json,
)
from snaploom_operator.errors import ObjectChanged, ObjectMissing, SettingsInvalid, WatchExpired

_log = logging.getLogger(__name__)


KUBECONFIG = "KUBECONFIG"
SERVICE_HOST = "KUBERNETES_SERVICE_HOST"
"""Kubernetes sets it in every pod."""
USER_AGENT = "snaploom-operator"
"""User agent of the operator in audit logs, and the name of its field manager."""
COMMAND_LINE = "snaploom-cli"
"""User agent of the command line, so that its writes have another field manager."""
WEBHOOK = "snaploom-webhook"
"""User agent of the webhook, which writes nothing."""
PAGES = "snaploom-pages"
"""User agent of the server of pages, which writes nothing."""

_UNREADABLE = (
    ConfigException, OSError, ValueError, yaml.YAMLError,
    AttributeError, LookupError, TypeError,  # raised for a malformed kubeconfig
)  # fmt: skip
DEFAULT_FILE = str(Path.home() / ".kube" / "config")
_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
"""Kubernetes puts it into every pod that has a service account."""


async def connect(
    kubeconfig: Path | None = None, context: str | None = None, user_agent: str = USER_AGENT
) -> ApiClient:
    """Create a client, which the caller closes.

    Args:
        kubeconfig: the kubeconfig, which is never written. None: the file that `KUBECONFIG` names;
            else, in a pod, its service account; else `~/.kube/config`.
        context: context of the kubeconfig; None for its current one.
        user_agent: the tool that connects.

    Raises:
        SettingsInvalid: there is none of them, or it cannot be read.
    """
    configuration = Configuration()
    file = _file(kubeconfig)
    try:
        if is_in_pod(kubeconfig):
            load_incluster_config(client_configuration=configuration)
        else:
            await load_kube_config(
                config_file=_existing(file),
                context=context,
                client_configuration=configuration,
                persist_config=False,
            )
        # Reading a proxy's password from ~/.netrc costs a thread and a tenth of the time of each
        # request; aiohttp does it even without a proxy.
        configuration.client_session_kwargs = {"trust_env": bool(getproxies_environment())}
        # Each watch of a kind in a namespace keeps a connection; the library's limit is 100.
        configuration.connection_pool_maxsize = 0
        client = ApiClient(configuration)
    except _UNREADABLE as error:
        raise _no_cluster(str(error)) from error
    client.user_agent = user_agent
    return client


def is_in_pod(kubeconfig: Path | None = None) -> bool:
    """Return whether `connect` uses the service account of a pod."""
    return _file(kubeconfig) is None and SERVICE_HOST in os.environ


def _file(kubeconfig: Path | None) -> str | None:
    return str(kubeconfig) if kubeconfig is not None else os.environ.get(KUBECONFIG)


def default_namespace(kubeconfig: Path | None = None, context: str | None = None) -> str:
    """The namespace that kubectl would use: that of the context, or of the pod, or `default`.

    Raises:
        SettingsInvalid: the kubeconfig cannot be read, or has no such context.
    """
    if is_in_pod(kubeconfig):
        return _NAMESPACE_FILE.read_text().strip() if _NAMESPACE_FILE.is_file() else "default"
    try:
        contexts, current = list_kube_config_contexts(_existing(_file(kubeconfig)))
    except _UNREADABLE as error:
        raise _no_cluster(str(error)) from error
    chosen = (
        current if context is None else next((c for c in contexts if c["name"] == context), None)
    )
    if chosen is None:
        raise _no_cluster(
            f"no context {context!r}; there are: {', '.join(c['name'] for c in contexts)}"
        )
    return str(chosen["context"].get("namespace") or "default")


def _existing(file: str | None) -> str:
    """The path list of kubeconfigs; checked because the client library prints if none exists."""
    chosen = file or DEFAULT_FILE
    if not any(Path(part).is_file() for part in chosen.split(os.pathsep)):
        raise FileNotFoundError(f"there is no file {chosen}")
    return chosen


def _no_cluster(found: str) -> SettingsInvalid:
    return SettingsInvalid(
        "no Kubernetes cluster is configured",
        found=found,
        expected="a kubeconfig, or a pod with a service account",
        hint="set KUBECONFIG to a kubeconfig that works with kubectl; on a laptop `snaploom "
        "snapshots` has what is published, and `snaploom plan` what is due",
    )


PAGE = 100
"""Objects per page, of which two are in memory at once."""
PAGED_TRIES = 3
"""Expired paged lists before an unpaged one is requested."""


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
        items: list[objects.JsonObject] = []
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
        query = (("labelSelector", selector),) if selector else ()
        request = Request("list", resource, namespace, query=query)
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
                following = objects.text_in(objects.mapping_in(answer, "metadata"), "continue")
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

    def _begun(self, request: Request) -> asyncio.Task[objects.JsonObject]:
        return asyncio.create_task(self._requests.send(request))

    async def get(self, resource: ApiResource, namespace: str, name: str) -> objects.JsonObject:
        return _read(resource, await self._requests.send(Request("get", resource, namespace, name)))

    async def schemas(self) -> dict[str, objects.JsonObject]:
        path = f"/openapi/v3/apis/{API_VERSION}"
        answer = await self._requests.send(Request("get", OPENAPI, None, own_path=path))
        schemas = objects.mapping_in(objects.mapping_in(answer, "components"), "schemas")
        return {
            name.rpartition(".")[2]: schema
            for name, schema in schemas.items()
            if isinstance(schema, dict) and "x-kubernetes-group-version-kind" in schema
        }

    async def managers(
        self, resource: ApiResource, namespace: str, name: str, path: tuple[str, ...]
    ) -> tuple[str, ...]:
        """Names of the field managers of a field.

        Raises:
            ObjectMissing: there is no such object.
        """
        stored = await self._requests.send(Request("get", resource, namespace, name))
        return objects.managers_of(stored, path)

    async def create(
        self, resource: ApiResource, namespace: str, manifest: objects.JsonObject
    ) -> objects.JsonObject:
        request = Request("create", resource, namespace, body=manifest)
        return _read(resource, await self._requests.send(request))

    async def replace(
        self, resource: ApiResource, namespace: str, manifest: objects.JsonObject
    ) -> objects.JsonObject:
        name = objects.Metadata.of(manifest).name
        request = Request("replace", resource, namespace, name, body=manifest)
        return _read(resource, await self._requests.send(request))

    async def patch(
        self,
        resource: ApiResource,
        namespace: str,
        name: str,
        patch: objects.JsonObject,
        *,
        subresource: str = "",
    ) -> objects.JsonObject:
        request = Request("patch", resource, namespace, name, subresource, body=patch)
        return _read(resource, await self._requests.send(request))

    async def delete(self, resource: ApiResource, namespace: str, name: str, *, uid: str) -> None:
        options: objects.JsonObject = {
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
    observer: Observer = lambda *_: None,
    context: str | None = None,
    user_agent: str = USER_AGENT,
) -> AsyncIterator[KubernetesCluster]:
    """Connect as `connect` does, until the end of the context; every request is observed.

    Raises:
        SettingsInvalid: no cluster is configured.
    """
    client = await connect(kubeconfig, context, user_agent)
    try:
        yield KubernetesCluster(Requests(client, observer))
    finally:
        await client.close()


def _page(resource: ApiResource, answer: objects.JsonObject, *, is_first: bool) -> Page:
    items = answer.get("items")
    found = items if isinstance(items, list) else []
    return Page(
        tuple(_read(resource, item) for item in found if isinstance(item, dict)),
        objects.text_in(objects.mapping_in(answer, "metadata"), "resourceVersion"),
        is_first,
    )


def _read(resource: ApiResource, stored: objects.JsonObject) -> objects.JsonObject:
    """Add the kind, which lists omit, and remove `managedFields`, which are never read.

    Replacing an object without `managedFields` keeps the stored ones.
    """
    metadata = stored.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)
    return {"apiVersion": resource.api_version, "kind": resource.kind} | dict(stored)


ABSENT_SECONDS = 3.0
"""Seconds between two requests for a kind that is not installed."""


class Follower(Protocol):
    """Follows the watches of kinds, in a namespace or all, which it has listed itself."""

    def hear(self, group: str, plural: str, namespace: str | None, *, is_new: bool) -> None:
        """Take note of a line that a watch received, or, with `is_new`, that it started."""

    def take_version(self, group: str, plural: str, namespace: str | None) -> str:
        """The version of its list, from which a watch is to start, once; empty from then on."""


async def watching_session(
    kubeconfig: Path | None, context: str | None, user_agent: str, follower: Follower
) -> tuple[str, aiohttp.ClientSession]:
    """Open a session as `connect` does, whose watches are followed; the server's URL, and it.

    The first list of what the follower has listed is empty, and as of that list's version: what
    changed since, deletions included, is then watched, and nothing is listed twice. Should that
    version be too old to be watched, the next list is a real one, as all later ones are.

    Tokens are read for every request, since those of service accounts are renewed every hour.

    Raises:
        SettingsInvalid: no cluster is configured.
    """
    client = await connect(kubeconfig, context, user_agent)

    async def exchange(
        request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        request.headers.update(await authorization(client, str(request.url.path), request.method))
        if client.configuration.tls_server_name:
            request.server_hostname = client.configuration.tls_server_name
        query = request.url.query
        is_watch, is_list = "watch" in query, "limit" in query and "continue" not in query
        version = follower.take_version(*_kind_of(request.url.path)) if is_list else ""
        if version:
            request.url = request.url.update_query(limit="1")  # of which nothing is parsed
        response = await handler(request)
        is_absent = response.status == HTTPStatus.NOT_FOUND and bool(query)
        if is_absent:  # a kind that is not installed; kopf would end
            await asyncio.sleep(ABSENT_SECONDS)
        if is_absent or response.status == HTTPStatus.GONE:  # both let kopf list again
            response.close()
            if not is_watch:
                raise aiohttp.ClientPayloadError("no such kind, or an expired list")
            response.status, response.content = (
                HTTPStatus.OK,
                cast("aiohttp.StreamReader", _Expired()),
            )
        elif response.ok and version:
            listed: objects.JsonObject = {"metadata": {"resourceVersion": version}, "items": []}
            cast("_Response", response).replacement = listed
        elif response.ok and is_watch:
            kind = _kind_of(request.url.path)
            follower.hear(*kind, is_new=True)
            lines = _Lines(response.content, lambda: follower.hear(*kind, is_new=False))
            response.content = cast("aiohttp.StreamReader", lines)
        return response

    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=client.rest_client.ssl_context),
        headers=client.default_headers,
        proxy=client.configuration.proxy,
        middlewares=(exchange,),
        response_class=_Response,
        **client.configuration.client_session_kwargs,
    )
    return client.configuration.host, session


def _kind_of(path: str) -> tuple[str, str, str | None]:
    """Group and plural of the kind that a path of the API lists, and the namespace."""
    parts = path.strip("/").split("/")
    namespace = parts[-2] if parts[-3:-2] == ["namespaces"] else None
    return (parts[1] if parts[0] == "apis" else ""), parts[-1], namespace


class _Response(aiohttp.ClientResponse):
    """A response whose objects may be nested deeper than a parser goes."""

    replacement: objects.JsonObject | None = None
    """Taken for the body."""

    async def json(self, **options: Any) -> Any:  # the signature of aiohttp
        body = await self.read()
        if self.replacement is not None:
            return self.replacement
        return parse_json(body) if self.ok else await super().json(**options)


class _Expired:
    """The content of a watch whose resourceVersion is too old."""

    async def iter_chunked(self, _: int) -> AsyncIterator[bytes]:
        yield b'{"type": "ERROR", "object": {"code": 410}}\n'


class _Lines:
    """The content of a watch, of which every line can be parsed; `heard` is called for each."""

    def __init__(self, content: aiohttp.StreamReader, heard: Callable[[], None]) -> None:
        self._content = content
        self._heard = heard

    def __getattr__(self, name: str) -> object:
        return getattr(self._content, name)

    async def iter_chunked(self, size: int) -> AsyncIterator[bytes]:
        """Yield whole lines, of so many bytes at a time."""
        begun = b""
        async for chunk in self._content.iter_chunked(size):
            self._heard()
            *lines, begun = (begun + chunk).split(b"\n")
            if lines:
                yield b"".join(readable_json(line) + b"\n" for line in lines)
        if begun:
            yield readable_json(begun)


TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
"""Kubernetes puts it into every pod that has a service account."""
_CLAIMS = "kubernetes.io"


def account_reference(namespace: str, token: Path = TOKEN) -> dict[str, JsonValue] | None:
    """An owner reference to the account of this pod, for an object of a namespace.

    None outside a pod, and in a pod of another namespace: owner and owned object must be in the
    same namespace.
    """
    claims = objects.mapping_in(_payload(token), _CLAIMS)
    account = objects.mapping_in(claims, "serviceaccount")
    name, uid = objects.text_in(account, "name"), objects.text_in(account, "uid")
    if objects.text_in(claims, "namespace") != namespace or not (name and uid):
        return None
    return {"apiVersion": "v1", "kind": "ServiceAccount", "name": name, "uid": uid}


def _payload(token: Path) -> objects.JsonObject:
    try:
        _, payload, _ = token.read_text("utf-8").split(".")
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (OSError, ValueError):
        return {}
    return claims if isinstance(claims, dict) else {}


_READ_SECONDS = 24 * 3600.0
"""Read timeout of a followed log."""


@dataclass(frozen=True)
class LogLine:
    """A line of a log."""

    time: EpochNanos
    """Time at which the node received it."""
    text: str


async def pod_log(
    namespace: str,
    pod: str,
    *,
    is_followed: bool,
    since: str | None = None,
    kubeconfig: Path | None = None,
    context: str | None = None,
) -> AsyncIterator[LogLine]:
    """Stream the log of a pod's first container since a time in ISO 8601; None for all lines.

    Raises:
        ClusterError: there is no such pod, its container has not started, or it may not be read.
    """
    client = await connect(kubeconfig, context, COMMAND_LINE)
    try:
        asked = {"follow": "true" if is_followed else None, "sinceTime": since}
        given = ((name, value) for name, value in asked.items() if value is not None)
        query = (("timestamps", "true"), *given)
        request = Request("get", PODS, namespace, pod, "log", query=query)
        async with Requests(client, lambda *_: None).lines(request, _READ_SECONDS) as lines:
            async for line in lines:
                yield _timed(line.decode(errors="replace"))
    finally:
        await client.close()


def _timed(line: str) -> LogLine:
    """Parse the timestamp that the API server puts in front of a line; 0 if it is missing."""
    time, _, text = line.partition(" ")
    instant = objects.known_instant(time)
    return LogLine(EpochNanos(0), line) if instant is None else LogLine(instant, text)
