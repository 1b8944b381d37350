"""The session with which kopf reads the API server.

kopf ends with an error that it does not expect, so what is harmless must not reach it: an object
that no parser reads, and a list or watch whose version expired.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any, Protocol, cast

from aiohttp import (
    ClientHandlerType,
    ClientPayloadError,
    ClientRequest,
    ClientResponse,
    ClientSession,
    StreamReader,
    TCPConnector,
)

from snaploom_operator.cluster.connection import connect
from snaploom_operator.cluster.requests import authorization, parse_json, readable_json


class Hear(Protocol):
    """Takes note of a line that a watch received."""

    def __call__(self, group: str, plural: str, *, is_new: bool) -> None:
        """Called with the group and plural of the kind; `is_new` when the watch started."""
        ...


async def watching_session(
    kubeconfig: Path | None, context: str | None, user_agent: str, hear: Hear
) -> tuple[str, ClientSession]:
    """Open a session with the credentials of `connect`; the URL of the API server, and the session.

    Tokens are read for every request, since those of service accounts are renewed every hour.

    Args:
        kubeconfig: see `connect`.
        context: see `connect`.
        user_agent: see `connect`.
        hear: called for each watch that starts, and whenever it receives something.

    Raises:
        SettingsInvalid: no cluster is configured.
    """
    client = await connect(kubeconfig, context, user_agent)

    async def exchange(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
        request.headers.update(await authorization(client, str(request.url.path), request.method))
        response = await handler(request)
        if response.status == HTTPStatus.GONE:
            response.close()
            raise ClientPayloadError("the resourceVersion is too old")  # kopf lists again
        if response.ok and "watch" in request.url.query:
            group, plural = _kind_of(request.url.path)
            hear(group, plural, is_new=True)
            lines = _Lines(response.content, lambda: hear(group, plural, is_new=False))
            response.content = cast("StreamReader", lines)
        return response

    session = ClientSession(
        connector=TCPConnector(limit=0, ssl=client.rest_client.ssl_context),
        headers=client.default_headers,
        proxy=client.configuration.proxy,
        middlewares=(exchange,),
        response_class=_Response,
        **client.configuration.client_session_kwargs,
    )
    return client.configuration.host, session


def _kind_of(path: str) -> tuple[str, str]:
    """Group and plural of the kind that a path of the API lists."""
    parts = path.strip("/").split("/")
    return (parts[1] if parts[0] == "apis" else ""), parts[-1]


class _Response(ClientResponse):
    """A response whose objects may be nested deeper than a parser goes."""

    async def json(self, **options: Any) -> Any:  # the signature of aiohttp
        """Parse the body."""
        return parse_json(await self.read()) if self.ok else await super().json(**options)


class _Lines:
    """The content of a watch, of which every line can be parsed.

    Args:
        content: the content as it was received.
        heard: called whenever something was received.
    """

    def __init__(self, content: StreamReader, heard: Callable[[], None]) -> None:
        self._content = content
        self._heard = heard

    def __getattr__(self, name: str) -> object:
        return getattr(self._content, name)

    async def iter_chunked(self, size: int) -> AsyncIterator[bytes]:
        """Yield whole lines, some at a time.

        Args:
            size: bytes that are read at a time.
        """
        begun = b""
        async for chunk in self._content.iter_chunked(size):
            self._heard()
            *lines, begun = (begun + chunk).split(b"\n")
            if lines:
                yield b"".join(readable_json(line) + b"\n" for line in lines)
        if begun:
            yield readable_json(begun)
