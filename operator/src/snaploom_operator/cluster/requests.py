"""Requests to the API server: JSON, timeouts, retries of what is safe to retry, and errors."""

import asyncio
import random
import re
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

from snaploom_operator import errors
from snaploom_operator.cluster.port import ApiResource
from snaploom_operator.objects import JsonObject, mapping_in, objects_in, text_in

LONGEST_MESSAGE = 1_000
"""Characters of the server's message in an error: schema violations can be endless."""
SHORTEST_WAIT = 1.0
"""Seconds to wait after a 429 without `Retry-After`."""

_DENIALS = ("denied the request", "denied request")
"""Texts in denials of webhooks and of ValidatingAdmissionPolicies, which choose their status
code."""


@dataclass(frozen=True)
class RequestTarget:
    """The verb and object of a request."""

    verb: str
    """`list`, `get`, `create`, `replace`, `patch`, `delete` or `watch`."""
    plural: str
    name: str
    """Empty where no object is named."""

    @property
    def is_write(self) -> bool:
        return self.verb not in ("list", "get", "watch")

    def __str__(self) -> str:
        return f"{self.verb} {self.plural}{f'/{self.name}' if self.name else ''}"


@dataclass(frozen=True)
class _Status:
    message: str
    reason: str
    kind: str
    """Plural of the kind that it is about."""
    name: str
    causes: tuple[JsonObject, ...]
    wait: float | None
    """Seconds."""


def failure_of(
    target: RequestTarget, code: int, body: bytes, retry_after: str | None
) -> errors.ClusterError:
    """The error of a response of status 400 or more, whose body is usually a `Status` object."""
    status = _parsed_status(body)
    message = f"{target}: {status.message or f'HTTP {code}'}"
    if code == 429:
        return errors.TooManyRequests(message, after=_wait(retry_after, status))
    kind = _class_of(target, code, status)
    return kind(message)


def _class_of(target: RequestTarget, code: int, status: _Status) -> type[errors.ClusterError]:
    if code >= 500:
        return errors.ApiUnavailable
    if target.is_write and any(words in status.message for words in _DENIALS):
        return errors.ObjectRefused
    match code:
        case 401:
            return errors.NotAllowed
        case 403:
            return _forbidden(target, status)
        case 404:
            return _not_found(target, status)
        case 409:
            return errors.ObjectExists if status.reason == "AlreadyExists" else errors.ObjectChanged
        case 410:
            return errors.WatchExpired
        case 422 if {text_in(cause, "field") for cause in status.causes} == {"metadata.uid"}:
            return errors.ObjectChanged
        case 400 | 413 | 415 | 422:
            return errors.ObjectRefused
        case _:
            return errors.ClusterError


def _forbidden(target: RequestTarget, status: _Status) -> type[errors.ClusterError]:
    if any(text_in(cause, "reason") == "NamespaceTerminating" for cause in status.causes):
        return errors.NamespaceTerminating
    # Authorisation and admission (quotas, pod security) share this code; only the former names
    # the user: `... is forbidden: User "system:..." cannot create resource "configmaps" ...`.
    is_authorisation = 'User "' in status.message and '" cannot ' in status.message
    return errors.NotAllowed if is_authorisation or not target.is_write else errors.ObjectRefused


def _not_found(target: RequestTarget, status: _Status) -> type[errors.ClusterError]:
    if target.verb == "create" and status.kind == "namespaces":
        return errors.NamespaceTerminating
    return errors.ObjectMissing if status.name else errors.ResourceUnknown


def _wait(retry_after: str | None, status: _Status) -> float:
    if retry_after is not None and retry_after.strip().isdigit():
        return max(float(retry_after), SHORTEST_WAIT)
    return max(status.wait or 0.0, SHORTEST_WAIT)


def _parsed_status(body: bytes) -> _Status:
    try:
        raw: JsonValue = from_json(body)
    except ValueError:
        raw = None
    if not isinstance(raw, dict) or raw.get("kind") != "Status":
        return _Status(_truncated(body.decode(errors="replace").strip()), "", "", "", (), None)
    details = mapping_in(raw, "details")
    wait = details.get("retryAfterSeconds")
    return _Status(
        message=_truncated(text_in(raw, "message")),
        reason=text_in(raw, "reason"),
        kind=text_in(details, "kind"),
        name=text_in(details, "name"),
        causes=tuple(objects_in(details, "causes")),
        wait=float(wait) if isinstance(wait, int) else None,
    )


def _truncated(message: str) -> str:
    return message if len(message) <= LONGEST_MESSAGE else message[: LONGEST_MESSAGE - 1] + "…"


REQUEST_SECONDS = 30.0
"""Timeout of one request; the API server's own is 60."""
CONNECT_SECONDS = 10.0
ATTEMPTS = 4
"""Attempts of a retryable request; the waits between add up to 3 seconds, and the caller has a
backoff of its own."""
FIRST_WAIT = 0.25
LONGEST_WAIT = 30.0
"""Longest `Retry-After` in seconds that is waited here; longer waits are left to the caller."""

MOST_LEVELS = 150
"""Levels of nesting that are read of a response. A declaration has at most 64, as from a file; the
API server stores 10,000, and the parsers end at some 200."""
_TOO_DEEP = f'"values nested deeper than {MOST_LEVELS} levels"'.encode()
_STRING_OR_BRACKET = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)

_Result = TypeVar("_Result")

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"


@dataclass(frozen=True)
class Request:
    """One request."""

    verb: str
    """`list`, `get`, `create`, `replace`, `patch` or `delete`."""
    resource: ApiResource
    namespace: str | None
    """None for all namespaces, empty for kinds that have none."""
    name: str = ""
    subresource: str = ""
    query: tuple[tuple[str, str], ...] = ()
    body: JsonObject | None = None
    own_path: str = ""
    """Path of what is no resource."""

    @property
    def target(self) -> RequestTarget:
        return RequestTarget(self.verb, self.resource.plural, self.name)

    @property
    def is_repeatable(self) -> bool:
        """True if it is idempotent."""
        return self.verb in ("list", "get", "delete")

    @property
    def method(self) -> str:
        methods = {"create": "POST", "replace": "PUT", "patch": "PATCH", "delete": "DELETE"}
        return methods.get(self.verb, "GET")

    @property
    def content_type(self) -> str:
        return MERGE_PATCH if self.verb == "patch" else JSON

    @property
    def path(self) -> str:
        if self.own_path:
            return self.own_path
        group = self.resource.group
        parts = ["apis", group] if group else ["api"]
        parts.append(self.resource.version)
        if self.namespace:
            parts += ["namespaces", self.namespace]
        parts += [self.resource.plural, self.name, self.subresource]
        path = "/" + "/".join(quote(part, safe="") for part in parts if part)
        return f"{path}?{urlencode(self.query, quote_via=quote)}" if self.query else path


Observer = Callable[[str, str, int, float], None]
"""Takes verb, plural, HTTP status (0 without an answer), and seconds until the response headers."""


class _NotConnected(errors.ApiUnavailable):
    """Nothing was sent."""


class Requests:
    """Sends requests; `observer` is called after each, and `pause` sleeps."""

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
        """Send a request; the response body.

        Raises:
            ClusterError: an error response, or none.
        """
        return await self._repeated(request, lambda: self._exchange(request))

    @asynccontextmanager
    async def lines(
        self, request: Request, read_timeout: float
    ) -> AsyncGenerator[AsyncGenerator[bytes, None], None]:
        """Stream the lines of a response, with a limit in seconds of waiting for more.

        Raises:
            ClusterError: an error response, none, or no data within the timeout.
        """
        timeout = ClientTimeout(sock_connect=CONNECT_SECONDS, sock_read=read_timeout)
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
            except errors.TooManyRequests as error:
                if error.after > LONGEST_WAIT:
                    raise
                wait += error.after
            except errors.ApiUnavailable as error:
                if not (request.is_repeatable or isinstance(error, _NotConnected)):
                    raise
            await self._pause(wait)
        return await attempt()

    async def _exchange(self, request: Request) -> JsonObject:
        response = await self._open(request, ClientTimeout(REQUEST_SECONDS))
        with _translate_errors(request):
            return _parsed(request, await response.read())

    async def _open(self, request: Request, timeout: ClientTimeout) -> RESTResponse:
        started = time.monotonic()
        code = 0
        try:
            with _translate_errors(request):
                response = await self._request(request, timeout)
                code = response.status
                if code >= 400:
                    wait = response.headers.get("Retry-After")
                    raise failure_of(request.target, code, await response.read(), wait)
                return response
        finally:
            seconds = time.monotonic() - started
            self._observer(request.verb, request.resource.plural, code, seconds)

    async def _request(self, request: Request, timeout: ClientTimeout) -> RESTResponse:
        client = self._client
        headers = {**client.default_headers, "Accept": JSON, "Content-Type": request.content_type}
        headers |= await authorization(client, request.path, request.method)
        response: RESTResponse = await client.rest_client.request(
            request.method,
            client.configuration.host + request.path,
            headers=headers,
            body=None if request.body is None else dict(request.body),
            _request_timeout=timeout,
        )
        return response


async def _lines(request: Request, response: RESTResponse) -> AsyncGenerator[bytes, None]:
    """Split into lines of any length: aiohttp's limit is 4 MiB, and JSON objects can be larger."""
    begun = bytearray()
    with _translate_errors(request):
        async for chunk in response.response.content.iter_any():
            *ended, rest = chunk.split(b"\n")
            for line in ended:
                yield bytes(begun + line)
                begun.clear()
            begun += rest


async def authorization(client: ApiClient, path: str, method: str) -> dict[str, str]:
    """The headers that identify this process, read anew: tokens are renewed every hour."""
    headers: dict[str, str] = {}
    await client.update_params_for_auth(headers, [], ["BearerToken"], path, method, None)
    return headers


@contextmanager
def _translate_errors(request: Request) -> Iterator[None]:
    try:
        yield
    except (ClientConnectorError, ConnectionTimeoutError) as error:
        raise _NotConnected(f"{request.target}: {error}") from error
    except (ClientError, ConfigException, OSError, TimeoutError) as error:
        message = str(error) or type(error).__name__
        raise errors.ApiUnavailable(f"{request.target}: {message}") from error


def _parsed(request: Request, body: bytes) -> JsonObject:
    try:
        result = parse_json(body)
    except ValueError as error:
        raise errors.ApiUnavailable(f"{request.target}: the response is not JSON") from error
    if not isinstance(result, dict):
        raise errors.ApiUnavailable(f"{request.target}: the response is not an object")
    return result


def parse_json(body: bytes) -> JsonValue:
    """Parse JSON of the API server, in which an object may be nested deeper than any parser goes.

    Values deeper than `MOST_LEVELS` become a text that no model takes there, so that the object is
    refused and those beside it are read.

    Raises:
        ValueError: it is no JSON.
    """
    try:
        result: JsonValue = from_json(body)  # twice as fast as json; lists take most of the start
    except ValueError:
        result = from_json(_without_deep_values(body))
    return result


def readable_json(body: bytes) -> bytes:
    """Replace values nested too deeply for a parser, as `parse_json` does; others stay."""
    try:
        from_json(body, cache_strings=False)
    except ValueError:
        return _without_deep_values(body)
    return body


def _without_deep_values(body: bytes) -> bytes:
    kept, depth, after = [], 0, 0
    for token in _STRING_OR_BRACKET.finditer(body):
        if token[0] in b"[{":
            depth += 1
            if depth == MOST_LEVELS + 1:
                kept.append(body[after : token.start()])
        elif token[0] in b"]}":
            if depth == MOST_LEVELS + 1:
                kept.append(_TOO_DEEP)
                after = token.end()
            depth -= 1
    return b"".join((*kept, body[after:]))
