"""A cluster with given faults: answers errors, loses answers, is slow, or dies with its user.

Proofs walk over every call of a story: they let it happen once undisturbed, count `calls`, and then
repeat it with a fault at each of them.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from support.storage.faultystore import Killed

from snaploom_operator.cluster.port import OPENAPI, ApiResource, Cluster, Listing, Page
from snaploom_operator.errors import ApiUnavailable
from snaploom_operator.objects import JsonObject

WRITES = frozenset({"create", "replace", "patch", "delete"})


@dataclass(frozen=True)
class Call:
    number: int
    """From 1, in the order of their beginnings."""
    verb: str
    resource: ApiResource
    namespace: str | None
    name: str
    """Empty where the call names no object."""
    subresource: str = ""
    body: JsonObject | None = None

    @property
    def is_write(self) -> bool:
        return self.verb in WRITES

    def __str__(self) -> str:
        what = "/".join(part for part in (self.resource.kind, self.name, self.subresource) if part)
        return f"{self.number}: {self.verb} {what}"


class Gate:
    """Holds calls until it is opened."""

    def __init__(self) -> None:
        self.reached, self.opened = asyncio.Event(), asyncio.Event()

    async def passed(self) -> None:
        self.reached.set()
        await self.opened.wait()


@dataclass(frozen=True)
class Fault:
    """What goes wrong with a call."""

    error: BaseException | None = None
    """What the caller sees; None when it is only slow. `Killed` ends every later call too."""
    is_after: bool = False
    """Whether the call takes effect, and its answer is lost."""
    delay: float = 0.0
    """Seconds until it begins."""
    gate: Gate | None = None
    """What the call waits at before it begins."""


Plan = Callable[[Call], Fault | None]


def nothing(call: Call) -> Fault | None:
    return None


class FaultyCluster:
    """Passes every call on, after asking `plan` what is to go wrong."""

    def __init__(self, inner: Cluster, plan: Plan = nothing) -> None:
        self.inner = inner
        self.plan = plan
        self.calls: list[Call] = []
        self.is_dead = False

    @property
    def writes(self) -> list[Call]:
        return [call for call in self.calls if call.is_write]

    async def list(
        self, resource: ApiResource, *, namespace: str | None = None, selector: str = ""
    ) -> Listing:
        return await self._do(
            self._call("list", resource, namespace),
            lambda: self.inner.list(resource, namespace=namespace, selector=selector),
        )

    async def pages(
        self, resource: ApiResource, *, namespace: str | None = None, selector: str = ""
    ) -> AsyncGenerator[Page, None]:
        """A fault "after" breaks the list when its first page was seen."""
        fault = await self._begin(self._call("list", resource, namespace))
        async for page in self.inner.pages(resource, namespace=namespace, selector=selector):
            yield page
            self._end(fault)

    async def get(self, resource: ApiResource, namespace: str, name: str) -> JsonObject:
        return await self._do(
            self._call("get", resource, namespace, name),
            lambda: self.inner.get(resource, namespace, name),
        )

    async def schemas(self) -> Mapping[str, JsonObject]:
        return await self._do(self._call("get", OPENAPI, None), self.inner.schemas)

    async def create(
        self, resource: ApiResource, namespace: str, manifest: JsonObject
    ) -> JsonObject:
        return await self._do(
            self._call("create", resource, namespace, _name(manifest), body=manifest),
            lambda: self.inner.create(resource, namespace, manifest),
        )

    async def replace(
        self, resource: ApiResource, namespace: str, manifest: JsonObject
    ) -> JsonObject:
        return await self._do(
            self._call("replace", resource, namespace, _name(manifest), body=manifest),
            lambda: self.inner.replace(resource, namespace, manifest),
        )

    async def patch(
        self,
        resource: ApiResource,
        namespace: str,
        name: str,
        patch: JsonObject,
        *,
        subresource: str = "",
    ) -> JsonObject:
        return await self._do(
            self._call("patch", resource, namespace, name, subresource, patch),
            lambda: self.inner.patch(resource, namespace, name, patch, subresource=subresource),
        )

    async def delete(self, resource: ApiResource, namespace: str, name: str, *, uid: str) -> None:
        await self._do(
            self._call("delete", resource, namespace, name),
            lambda: self.inner.delete(resource, namespace, name, uid=uid),
        )

    def _call(
        self,
        verb: str,
        resource: ApiResource,
        namespace: str | None,
        name: str = "",
        subresource: str = "",
        body: JsonObject | None = None,
    ) -> Call:
        if self.is_dead:
            raise Killed
        call = Call(len(self.calls) + 1, verb, resource, namespace, name, subresource, body)
        self.calls.append(call)
        return call

    async def _do(self, call: Call, action: Callable[[], Awaitable[Any]]) -> Any:
        fault = await self._begin(call)
        result = await action()
        self._end(fault)
        return result

    async def _begin(self, call: Call) -> Fault | None:
        fault = self.plan(call)
        if fault is not None:
            await asyncio.sleep(fault.delay)
            if fault.gate is not None:
                await fault.gate.passed()
            if not fault.is_after:
                self._fail(fault)
        return fault

    def _end(self, fault: Fault | None) -> None:
        if fault is not None and fault.is_after:
            self._fail(fault)

    def _fail(self, fault: Fault) -> None:
        self.is_dead = self.is_dead or isinstance(fault.error, Killed)
        if fault.error is not None:
            raise fault.error


NO_ANSWER = ApiUnavailable("no answer")
LOST_REQUEST = Fault(NO_ANSWER)
LOST_ANSWER = Fault(NO_ANSWER, is_after=True)
CRASH_AFTER = Fault(Killed(), is_after=True)


def at(numbers: int | Iterable[int], fault: Fault) -> Plan:
    """A fault at the n-th call, or at several, from 1."""
    chosen = {numbers} if isinstance(numbers, int) else set(numbers)
    return lambda call: fault if call.number in chosen else None


def at_write(number: int, fault: Fault) -> Plan:
    """A fault at the n-th call that changes something, from 1."""
    return _counted(number, number, lambda call: call.is_write, fault)


def nth(number: int, fault: Fault, *, verb: str, kind: str) -> Plan:
    """A fault at the n-th call of a verb on a kind, from 1."""
    return _counted(number, number, _calls(verb, kind), fault)


def first(count: int, fault: Fault, *, verb: str = "", kind: str = "") -> Plan:
    """The same fault for the first calls of a verb on a kind; empty means any."""
    return _counted(1, count, _calls(verb, kind), fault)


def _calls(verb: str, kind: str) -> Callable[[Call], bool]:
    return lambda call: verb in ("", call.verb) and kind in ("", call.resource.kind)


def _counted(start: int, end: int, is_meant: Callable[[Call], bool], fault: Fault) -> Plan:
    seen = 0

    def plan(call: Call) -> Fault | None:
        nonlocal seen
        if not is_meant(call):
            return None
        seen += 1
        return fault if start <= seen <= end else None

    return plan


def _name(manifest: JsonObject) -> str:
    metadata: Any = manifest.get("metadata")
    return str(metadata["name"])
