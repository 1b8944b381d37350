"""Requests to the API server: JSON in and out, time-outs, and repetition of what may be repeated.

Models of the client library are not used: parsing ten thousand objects into them takes minutes and
gigabytes. Reads are repeated, and deletions, which name a UID. A create or a patch whose answer was
lost is not: whoever asked looks again at what there is. It is repeated only where it certainly did
nothing: no connection was made, or the server asked for patience.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import quote, urlencode

from aiohttp import ClientConnectorError, ClientError, ClientTimeout, ConnectionTimeoutError
from kubernetes.aio.client import ApiClient
from kubernetes.aio.client.rest import RESTResponse
from kubernetes.aio.config import ConfigException
from pydantic import JsonValue
from pydantic_core import from_json

from snaploom_operator.cluster.failures import Asked, failure_of
from snaploom_operator.cluster.port import ApiResource
from snaploom_operator.errors import ApiUnavailable, TooManyRequests
from snaploom_operator.objects import JsonObject

REQUEST_SECONDS = 30.0
"""Of one request; the API server itself gives up after 60."""
CONNECT_SECONDS = 10.0
ATTEMPTS = 4
"""Tries of what may be repeated; the waits between add up to 3 seconds, and the caller's own
backoff goes on from there."""
FIRST_WAIT = 0.25
LONGEST_WAIT = 30.0
"""Seconds for which a 429 may ask; longer waits are the caller's."""

_Result = TypeVar("_Result")

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"


@dataclass(frozen=True)
class Request:
    """One request."""

    verb: str
    """`list`, `get`, `create`, `replace`, `patch`, `delete` or `watch`."""
    resource: ApiResource
    namespace: str | None
    """None for all namespaces, empty for kinds that have none."""
    name: str = ""
    subresource: str = ""
    query: tuple[tuple[str, str], ...] = ()
    body: JsonObject | None = None

    @property
    def asked(self) -> Asked:
        """What it is about, for errors."""
        return Asked(self.verb, self.resource.plural, self.name)

    @property
    def is_repeatable(self) -> bool:
        """Whether doing it twice is as good as doing it once."""
        return self.verb in ("list", "get", "watch", "delete")

    @property
    def method(self) -> str:
        """Method of HTTP."""
        methods = {"create": "POST", "replace": "PUT", "patch": "PATCH", "delete": "DELETE"}
        return methods.get(self.verb, "GET")

    @property
    def content_type(self) -> str:
        """Media type of the body."""
        return MERGE_PATCH if self.verb == "patch" else JSON

    @property
    def path(self) -> str:
        """Path and query."""
        group = self.resource.group
        parts = ["apis", group] if group else ["api"]
        parts.append(self.resource.version)
        if self.namespace:
            parts += ["namespaces", self.namespace]
        parts += [self.resource.plural, self.name, self.subresource]
        path = "/" + "/".join(quote(part, safe="") for part in parts if part)
        return f"{path}?{urlencode(self.query, quote_via=quote)}" if self.query else path


@dataclass(frozen=True)
class Exchange:
    """One request and how it was answered; for metrics."""

    verb: str
    resource: str
    """Plural of the kind."""
    code: int
    """HTTP status; 0 when no answer came."""
    seconds: float
    """Until the head of the answer."""


Observer = Callable[[Exchange], None]


class _NotConnected(ApiUnavailable):
    """Nothing was sent."""


class Requests:
    """Sends requests.

    Args:
        client: how to reach the API server.
        observer: told of every request.
        pause: waits for seconds; tests do not.
    """

    def __init__(
        self,
        client: ApiClient,
        observer: Observer,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._observer = observer
        self._pause = pause

    async def send(self, request: Request) -> JsonObject:
        """The answer.

        Raises:
            ClusterError: the API server refuses it, or does not answer.
        """
        return await self._repeated(request, lambda: self._exchange(request))

    @asynccontextmanager
    async def lines(
        self, request: Request, silence: float
    ) -> AsyncGenerator[AsyncGenerator[bytes, None], None]:
        """The lines of an answer that goes on.

        Args:
            request: the request.
            silence: seconds without anything after which the connection counts as dead.

        Raises:
            ClusterError: the API server refuses it, does not answer, or falls silent.
        """
        timeout = ClientTimeout(sock_connect=CONNECT_SECONDS, sock_read=silence)
        response = await self._repeated(request, lambda: self._open(request, timeout))
        lines = _lines(request, response)
        try:
            yield lines
        finally:
            await lines.aclose()
            response.response.close()

    async def _repeated(
        self, request: Request, attempt: Callable[[], Awaitable[_Result]]
    ) -> _Result:
        for number in range(1, ATTEMPTS):
            wait = FIRST_WAIT * 2 ** (number - 1) * random.uniform(0.5, 1.5)
            try:
                return await attempt()
            except TooManyRequests as error:
                if error.after > LONGEST_WAIT:
                    raise
                wait += error.after
            except ApiUnavailable as error:
                if not (request.is_repeatable or isinstance(error, _NotConnected)):
                    raise
            await self._pause(wait)
        return await attempt()

    async def _exchange(self, request: Request) -> JsonObject:
        response = await self._open(request, ClientTimeout(REQUEST_SECONDS))
        with _translating(request):
            return _parsed(request, await response.read())

    async def _open(self, request: Request, timeout: ClientTimeout) -> RESTResponse:
        """The answer once its head is there; failures are raised."""
        started = time.monotonic()
        code = 0
        try:
            with _translating(request):
                response = await self._request(request, timeout)
                code = response.status
                if code >= 400:
                    wait = response.headers.get("Retry-After")
                    raise failure_of(request.asked, code, await response.read(), wait)
                return response
        finally:
            seconds = time.monotonic() - started
            self._observer(Exchange(request.verb, request.resource.plural, code, seconds))

    async def _request(self, request: Request, timeout: ClientTimeout) -> RESTResponse:
        client = self._client
        headers = {**client.default_headers, "Accept": JSON, "Content-Type": request.content_type}
        # Looked up for every request: tokens of service accounts are renewed every hour.
        await client.update_params_for_auth(
            headers, [], ["BearerToken"], request.path, request.method, None
        )
        response: RESTResponse = await client.rest_client.request(
            request.method,
            client.configuration.host + request.path,
            headers=headers,
            body=None if request.body is None else dict(request.body),
            _request_timeout=timeout,
        )
        return response


async def _lines(request: Request, response: RESTResponse) -> AsyncGenerator[bytes, None]:
    """Lines of any length: those of aiohttp end at 4 MiB, and an object in JSON can be larger."""
    begun = bytearray()
    with _translating(request):
        async for chunk in response.response.content.iter_any():
            *ended, rest = chunk.split(b"\n")
            for line in ended:
                yield bytes(begun + line)
                begun.clear()
            begun += rest


@contextmanager
def _translating(request: Request) -> Iterator[None]:
    """Failures of the connection, in our words."""
    try:
        yield
    except (ClientConnectorError, ConnectionTimeoutError) as error:
        raise _NotConnected(f"{request.asked}: {error}") from error
    except (ClientError, ConfigException, OSError, TimeoutError) as error:
        told = str(error) or type(error).__name__
        raise ApiUnavailable(f"{request.asked}: {told}") from error


def _parsed(request: Request, body: bytes) -> JsonObject:
    try:
        result: JsonValue = from_json(body)  # in half of json's time; lists are most of a start
    except ValueError as error:
        raise ApiUnavailable(f"{request.asked}: the answer is no JSON") from error
    if not isinstance(result, dict):
        raise ApiUnavailable(f"{request.asked}: the answer is no object")
    return result
