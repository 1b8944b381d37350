"""An API server with scripted answers, one answer a request, which remembers requests."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

Raw = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """What the server does with one request."""

    code: int = 200
    body: Any = field(default_factory=dict)
    """JSON, or bytes as they are."""
    headers: Raw = field(default_factory=dict)
    lines: tuple[Any, ...] = ()
    """Of a watch: JSON, or bytes as they are; sent instead of the body."""
    is_broken: bool = False
    """Whether the connection breaks, instead of an answer or behind the lines."""
    is_silent: bool = False
    """Whether nothing more comes, and the connection stays."""


@dataclass(frozen=True)
class Asked:
    """A request that came."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


class ScriptedApi:
    """Answers in the order of the script; the last one again and again."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.script: list[Answer] = []
        self.asked: list[Asked] = []
        self.is_over = asyncio.Event()

    def answers(self, *script: Answer) -> None:
        self.script = list(script)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        data = await request.read()
        body = json.loads(data) if data else None
        headers = dict(request.headers)
        self.asked.append(
            Asked(request.method, request.rel_url.raw_path, dict(request.query), headers, body)
        )
        answer = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if answer.lines:
            return await self._stream(request, answer)
        await self._end(request, answer)
        content = (
            answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        )
        return web.Response(status=answer.code, body=content, headers=answer.headers)

    async def _stream(self, request: web.Request, answer: Answer) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.code)
        response.enable_chunked_encoding()
        await response.prepare(request)
        for line in answer.lines:
            await response.write(
                line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
            )
        await self._end(request, answer)
        return response

    async def _end(self, request: web.Request, answer: Answer) -> None:
        if answer.is_silent:
            await self.is_over.wait()
        if answer.is_broken and request.transport is not None:
            request.transport.abort()
            raise ConnectionResetError


@asynccontextmanager
async def running_scripted_api() -> AsyncIterator[ScriptedApi]:
    """The server, on a port of its own."""
    server = web.Server(lambda request: api.handle(request))  # type: ignore[arg-type]
    runner = web.ServerRunner(server, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    api = ScriptedApi(f"http://{host}:{port}")
    try:
        yield api
    finally:
        api.is_over.set()
        await runner.cleanup()


def write_plain_kubeconfig(path: Path, url: str, token: str = "") -> Path:
    """A kubeconfig for a server without TLS."""
    user = {"token": token} if token else {}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }
    path.write_text(json.dumps(config))
    return path


def a_status(code: int, reason: str, message: str = "", **details: Any) -> Raw:
    """The API server's status of a failure."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": message or f"the server reports {reason}",
        "reason": reason,
        "details": details,
        "code": code,
    }


def failing(code: int, reason: str, message: str = "", **details: Any) -> Answer:
    return Answer(code, a_status(code, reason, message, **details))


def a_page(items: Iterable[Raw], version: str = "1", following: str = "") -> Answer:
    return Answer(
        body={
            "kind": "List",
            "metadata": {"resourceVersion": version, "continue": following},
            "items": list(items),
        }
    )
