"""A proxy between an operator and a real API server, which spoils the given calls.

A call is known by what it asks for and how often that was asked before, which is the same whenever
a story is run again; names of children are not.
"""

import asyncio
import json
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from aiohttp import ClientResponse, ClientSession, ClientTimeout, TCPConnector, web
from support.operator.scriptedapi import a_status
from yarl import URL

from snaploom_operator.cluster.client import connect

Raw = dict[str, Any]
SLOW = 1.0
LATE = 2.0
"""Seconds that a watch is behind."""
LONGEST_LINE = 1 << 22
WRITES = frozenset({"create", "replace", "patch", "delete"})
_VERBS = {"POST": "create", "PUT": "replace", "PATCH": "patch", "DELETE": "delete"}
_PASSED_ON = ("Accept", "Content-Type")


class Fault(StrEnum):
    """What goes wrong with a call."""

    CONFLICT = "409"
    """Somebody else was quicker; of a create, an earlier try of it was."""
    EXPIRED = "410"
    """What is asked for is not remembered any more."""
    EXPIRED_INSIDE = "410 inside"
    """As above, from a watch that had begun well."""
    PATIENCE = "429"
    """Too many requests, and when to come again."""
    BROKEN = "500"
    SILENT = "no answer"
    """The call is not carried out, and gets no answer."""
    SLOW = "slow"
    LOST_REQUEST = "request lost"
    """The connection is cut before anything is done."""
    LOST_ANSWER = "answer lost"
    """It is carried out, and the connection cut."""
    STALE = "stale"
    """A read answers what was there before the last thing that people did."""
    DROPPED = "dropped"
    """A watch is cut in the middle of the first line."""
    STALLED = "stalled"
    """A watch stays open and sends nothing."""
    LATE = "late"
    """A watch sends everything a while later."""


_ANY = (Fault.PATIENCE, Fault.BROKEN, Fault.SILENT, Fault.SLOW, Fault.LOST_REQUEST)
_OF_WRITES = (*_ANY, Fault.CONFLICT, Fault.LOST_ANSWER)
FAULTS_OF: dict[str, tuple[Fault, ...]] = {
    "discover": _ANY,
    "get": (*_ANY, Fault.STALE),
    "list": (*_ANY, Fault.EXPIRED, Fault.STALE),
    "watch": (
        *_ANY, Fault.EXPIRED, Fault.EXPIRED_INSIDE, Fault.DROPPED, Fault.STALLED, Fault.LATE,
    ),
    **dict.fromkeys(WRITES, _OF_WRITES),
}  # fmt: skip
"""The faults that a call of each verb can meet."""


@dataclass(frozen=True)
class Call:
    verb: str
    what: str
    """Plural, and the subresource."""
    occurrence: int
    """How often this was asked, from 1."""

    @property
    def is_write(self) -> bool:
        return self.verb in WRITES

    def __str__(self) -> str:
        return f"{self.verb} {self.what} #{self.occurrence}"


Plan = Callable[[Call], Fault | None]


def no_fault(call: Call) -> Fault | None:
    return None


class FaultyProxy:
    """Passes calls on.

    Args:
        session: how the real API server is reached.
        url: where it is.
        plan: what goes wrong with which call.
        dies_behind: the number of the write behind which the operator is cut off; 0 for none.
    """

    def __init__(self, session: ClientSession, url: str, plan: Plan, dies_behind: int) -> None:
        self._session = session
        self._target = url
        self._plan = plan
        self._dies_behind = dies_behind
        self._counts: Counter[tuple[str, str]] = Counter()
        self._open: dict[int, web.BaseRequest] = {}
        self._is_over = asyncio.Event()
        self.url = ""
        self.calls: list[Call] = []
        self.spoilt: list[Call] = []
        """The calls that met a fault."""
        self.created: list[str] = []
        """Names of the applications that were created."""
        self.writes = 0
        """Writes that were carried out."""
        self.is_dead = False
        """Whether the operator is cut off; its replacement may set it to False."""
        self.has_died = False
        """Whether that has ever been so."""
        self.past = ""
        """Version of the cluster as stale reads show it."""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if self.is_dead:
            raise self._cut(request)
        self._open[id(request)] = request
        try:
            return await self._answer(request)
        finally:
            del self._open[id(request)]

    def end(self) -> None:
        self._is_over.set()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        call = self._called(request)
        fault = self._plan(call)
        if fault is not None:
            self.spoilt.append(call)
        match fault:
            case Fault.PATIENCE:
                return _failure(429, "TooManyRequests", {"Retry-After": "1"})
            case Fault.BROKEN:
                return _failure(500, "InternalError")
            case Fault.EXPIRED:
                return _failure(410, "Expired")
            case Fault.CONFLICT if call.verb != "create":
                return _failure(409, "Conflict")
            case Fault.SILENT:
                await self._is_over.wait()
                raise self._cut(request)
            case Fault.LOST_REQUEST:
                raise self._cut(request)
            case Fault.SLOW:
                await asyncio.sleep(SLOW)
            case Fault.STALE:
                return await self._answer_of_past(request, call)
        return await self._passed_on(request, call, fault)

    async def _passed_on(
        self, request: web.BaseRequest, call: Call, fault: Fault | None
    ) -> web.StreamResponse:
        if call.is_write:
            # To its end even if the client hangs up, as the API server does: so all are counted.
            answer, body = await asyncio.shield(self._carried_out(request, call))
        else:
            async with self._asked(request) as answer:
                if call.verb == "watch" and answer.status == 200:
                    return await self._watched(request, answer, fault)
                body = await answer.read()
        if fault is Fault.LOST_ANSWER or self.is_dead:
            raise self._cut(request)
        if fault is Fault.CONFLICT:
            return _failure(409, "AlreadyExists")
        headers = {k: v for k, v in answer.headers.items() if k in ("Content-Type", "Retry-After")}
        return web.Response(status=answer.status, body=body, headers=headers)

    async def _carried_out(
        self, request: web.BaseRequest, call: Call
    ) -> tuple[ClientResponse, bytes]:
        """Count a write; the operator dies behind the requested one."""
        async with self._asked(request) as answer:
            body = await answer.read()
        if answer.status < 300:
            self.writes += 1
            if (call.verb, call.what) == ("create", "sparkapplications"):
                self.created.append(json.loads(body)["metadata"]["name"])
            if self.writes == self._dies_behind:
                self._die()
        return answer, body

    def _die(self) -> None:
        """Cut every connection of the operator, so that no later call of it arrives."""
        self.is_dead = self.has_died = True
        for request in self._open.values():
            self._cut(request)

    @asynccontextmanager
    async def _asked(self, request: web.BaseRequest) -> AsyncIterator[ClientResponse]:
        headers = {key: request.headers[key] for key in _PASSED_ON if key in request.headers}
        url = URL(self._target + request.raw_path, encoded=True)
        data = await request.read()
        async with self._session.request(
            request.method, url, headers=headers, data=data or None, read_bufsize=LONGEST_LINE
        ) as answer:
            yield answer

    async def _watched(
        self, request: web.BaseRequest, answer: ClientResponse, fault: Fault | None
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        if fault is Fault.STALLED:
            await self._is_over.wait()
            raise self._cut(request)
        if fault is Fault.EXPIRED_INSIDE:
            event = {"type": "ERROR", "object": a_status(410, "Expired")}
            await response.write(json.dumps(event).encode() + b"\n")
            return response
        loop = asyncio.get_running_loop()
        async for line in answer.content:
            if fault is Fault.DROPPED:
                await response.write(line[: len(line) // 2])
                raise self._cut(request)
            if fault is Fault.LATE:
                loop.call_later(LATE, _write_later, response, line)
                continue
            await response.write(line)
        return response

    async def _answer_of_past(self, request: web.BaseRequest, call: Call) -> web.StreamResponse:
        """A list of before, from the API server's own history; of one object, the one in it."""
        url = URL(self._target + request.raw_path, encoded=True)
        name = ""
        if call.verb == "get":
            name = url.name
            url = url.parent.with_query(fieldSelector=f"metadata.name={name}")
        exact = {"resourceVersion": self.past, "resourceVersionMatch": "Exact"}
        headers = {"Accept": "application/json"}
        async with self._session.get(url.update_query(exact), headers=headers) as answer:
            found: Raw = await answer.json()
        if not name or answer.status != 200:
            return web.json_response(found, status=answer.status)
        if not found["items"]:
            return _failure(404, "NotFound")
        kind = {"apiVersion": found["apiVersion"], "kind": found["kind"].removesuffix("List")}
        return web.json_response(kind | found["items"][0])

    def _called(self, request: web.BaseRequest) -> Call:
        verb, what = _meant(request)
        self._counts[verb, what] += 1
        call = Call(verb, what, self._counts[verb, what])
        self.calls.append(call)
        return call

    def _cut(self, request: web.BaseRequest) -> ConnectionResetError:
        if request.transport is not None:
            request.transport.abort()
        return ConnectionResetError("cut")


def _write_later(response: web.StreamResponse, line: bytes) -> None:
    task = asyncio.ensure_future(response.write(line))
    task.add_done_callback(lambda done: done.cancelled() or done.exception())


def _meant(request: web.BaseRequest) -> tuple[str, str]:
    """Verb and plural, from the path."""
    parts = [part for part in request.path.split("/") if part]
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    if not rest:
        return "discover", request.path
    if len(rest) > 2 and rest[0] == "namespaces":
        rest = rest[2:]
    what = "/".join((rest[0], *rest[2:]))
    if request.method != "GET":
        return _VERBS[request.method], what
    if request.query.get("watch") == "true":
        return "watch", what
    return ("get" if len(rest) > 1 else "list"), what


def _failure(code: int, reason: str, headers: Raw | None = None) -> web.Response:
    return web.json_response(a_status(code, reason), status=code, headers=headers)


@asynccontextmanager
async def running_proxy(
    kubeconfig: Path, plan: Plan = no_fault, dies_behind: int = 0
) -> AsyncIterator[FaultyProxy]:
    """A proxy on a port of its own.

    Args:
        kubeconfig: how the API server is reached; the proxy's clients need no credentials.
        plan: what goes wrong with which call.
        dies_behind: the number of the write behind which the operator is cut off; 0 for none.
    """
    client = await connect(kubeconfig)
    known = client.configuration
    context = ssl.create_default_context(cafile=known.ssl_ca_cert)
    if known.cert_file:
        context.load_cert_chain(known.cert_file, known.key_file)
    await client.close()
    connector = TCPConnector(ssl=context, limit=0)
    timeout = ClientTimeout(total=None)
    async with ClientSession(connector=connector, timeout=timeout) as session:
        proxy = FaultyProxy(session, known.host, plan, dies_behind)
        server = web.Server(proxy.handle, handler_cancellation=True)  # type: ignore[arg-type]
        runner = web.ServerRunner(server, shutdown_timeout=0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        proxy.url = f"http://{host}:{port}"
        try:
            yield proxy
        finally:
            proxy.end()
            await runner.cleanup()
