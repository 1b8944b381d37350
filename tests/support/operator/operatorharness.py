"""The operator as tests use it: over a cluster in memory, pass by pass, or over a real one.

```python
harness = await started(*model())
await harness.wait_for("OutputDataset/wide", is_ready)
await harness.advance(3600)
```
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import yaml
from prometheus_client import CollectorRegistry
from support.operator.fakecluster import Change, ChangeType, FakeCluster
from support.operator.jobdouble import JobDouble
from support.operator.reviews import VerdictsAtOnce

from snaploom.models.common import NANOS_PER_SECOND, EpochNanos, parse_instant
from snaploom_operator.cluster.client import USER_AGENT
from snaploom_operator.cluster.port import OURS, ApiResource, Cluster
from snaploom_operator.decision import Note
from snaploom_operator.errors import ObjectChanged, ObjectExists, ObjectMissing
from snaploom_operator.handlers.process import Connection, serve
from snaploom_operator.objects import Ref, ref_of
from snaploom_operator.process.operator import (
    Clocks,
    Operator,
    Running,
    RunOptions,
    operator_kinds,
    running_operator,
)
from snaploom_operator.process.process import Process
from snaploom_operator.queues import Key, WorkQueue
from snaploom_operator.serve.metrics import Metrics
from snaploom_operator.settings import OperatorSettings

Raw = dict[str, Any]
Predicate = Callable[[Raw], bool]

NAMESPACE = "default"
START = parse_instant("2026-01-01T00:00:00Z")
MOST_PASSES = 20_000
"""Passes after which a resource that is still looked at again at once never settles."""
MOST_ROUNDS = 1_000
DEADLINE = 60.0


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.elapsed = 0.0

    def now(self) -> EpochNanos:
        return EpochNanos(START + int(self.elapsed * NANOS_PER_SECOND))

    def seconds(self) -> float:
        return self.elapsed


class Notes:
    """Events that were recorded."""

    def __init__(self) -> None:
        self.found: list[tuple[Ref, Note]] = []

    async def record(self, resource: Ref, uid: str, note: Note) -> None:
        self.found.append((resource, note))

    def reasons(self, identity: str) -> list[str]:
        """Reasons of the events about a resource, in order."""
        return [str(n.reason) for ref, n in self.found if f"{ref.kind}/{ref.name}" == identity]


class OperatorHarness(ABC):
    """What both have in common.

    Args:
        cluster: where resources are.
        namespace: where they are made.
        double: plays jobs.
    """

    def __init__(self, cluster: Cluster, namespace: str, double: JobDouble) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.double = double
        self.notes = Notes()

    async def apply(self, *declarations: Raw | Path) -> None:
        """Create resources, or change what they declare; files and folders of them too."""
        for raw in _documents(declarations):
            while not await self._put(raw):
                pass

    async def _put(self, raw: Raw) -> bool:
        resource = OURS[raw["kind"]]
        metadata = {"namespace": self.namespace, **raw["metadata"]}
        try:
            await self.cluster.create(resource, self.namespace, {**raw, "metadata": metadata})
            return True
        except ObjectExists:
            found: Any = await self.cluster.get(resource, self.namespace, metadata["name"])
        kept = {key: found["metadata"][key] for key in ("resourceVersion", "uid")}
        held = {"finalizers": found["metadata"].get("finalizers", [])}
        changed = {**found, **raw, "metadata": {**held, **metadata, **kept}}
        try:
            await self.cluster.replace(resource, self.namespace, changed)
        except ObjectChanged:
            return False
        return True

    async def annotate(self, identity: str, **annotations: str | None) -> None:
        """Set annotations below `snaploom.io/`; None removes one."""
        prefixed = {f"snaploom.io/{key}": value for key, value in annotations.items()}
        kind, _, name = identity.partition("/")
        patch = {"metadata": {"annotations": prefixed}}
        await self.cluster.patch(OURS[kind], self.namespace, name, patch)

    async def delete(self, identity: str) -> None:
        kind, _, name = identity.partition("/")
        found = await self.get(identity)
        uid = found["metadata"]["uid"]
        await self.cluster.delete(OURS[kind], self.namespace, name, uid=uid)

    async def get(self, identity: str) -> Raw:
        """A resource as it is stored; empty when there is none."""
        kind, _, name = identity.partition("/")
        try:
            return dict(await self.cluster.get(OURS[kind], self.namespace, name))
        except ObjectMissing:
            return {}

    async def all(self, resource: ApiResource) -> list[Raw]:
        """Every object of a kind in the namespace."""
        listing = await self.cluster.list(resource, namespace=self.namespace)
        return [dict(stored) for stored in listing.items]

    @abstractmethod
    async def wait_for(self, identity: str, predicate: Predicate) -> Raw:
        """Let operator and jobs go on until a resource satisfies a condition; returns it."""


class FakeHarness(OperatorHarness):
    """Over a cluster in memory: passes are made one after the other, by the test.

    Args:
        settings: the operator's.
        cluster: the objects, which outlive operators.
        through: what the operator sees of it; omitted, the same.
        is_local: whether the operator runs jobs itself.
        double: plays jobs; omitted, all of them complete.
    """

    def __init__(
        self,
        settings: OperatorSettings | None = None,
        *,
        cluster: FakeCluster | None = None,
        through: Callable[[FakeCluster], Cluster] = lambda cluster: cluster,
        is_local: bool = False,
        double: Callable[[Cluster], JobDouble] = JobDouble,
    ) -> None:
        self.clock = Clock()
        self.fake = cluster or FakeCluster(clock=self.clock.now)
        super().__init__(self.fake, NAMESPACE, double(self.fake))
        self._settings = settings or OperatorSettings()
        self._through = through
        self._is_local = is_local
        self._unsubscribe: Callable[[], None] = lambda: None
        self.operator = self._operator()

    def _operator(self) -> Operator:
        return Operator(
            self._through(self.fake),
            self._settings,
            self.notes,
            Metrics(CollectorRegistry()),
            VerdictsAtOnce(),
            is_local=self._is_local,
            clocks=Clocks(self.clock.now, self.clock.seconds),
            chance=lambda: 0.0,
        )

    async def start(self) -> None:
        await self.operator.feed.list_all()
        self._unsubscribe = self.fake.subscribe(self._observe)
        await self.settle()

    def _observe(self, resource: ApiResource, change: Change) -> None:
        deliver(self.operator, change)

    def kill(self) -> None:
        """End the operator without any cleanup."""
        self._unsubscribe()

    async def restart(self) -> None:
        """Start a new operator without state over the same cluster."""
        self.kill()
        self.operator = self._operator()
        await self.start()

    async def settle(self) -> int:
        """Make passes until there is nothing to do now; how many there were."""
        queue = self.operator.queue
        for passes in range(MOST_PASSES):
            if not queue.depth:
                return passes
            key = await queue.take()
            try:
                await self.operator.controller.reconcile(key)
            finally:
                queue.done(key)
        raise AssertionError(f"it never settles: {await drained(queue)}")

    async def advance(self, seconds: float) -> None:
        """Let time pass, with everything that is due on the way."""
        end = self.clock.elapsed + seconds
        while (due := self.operator.queue.next_due) is not None:
            if self.clock.elapsed + due > end:
                break
            self.clock.elapsed += due
            await self.settle()
        self.clock.elapsed = end
        await self.settle()

    async def wait_for(self, identity: str, predicate: Predicate) -> Raw:
        for _ in range(MOST_ROUNDS):
            await self.settle()
            found = await self.get(identity)
            if predicate(found):
                return found
            if not await self.double.step():
                break
        raise AssertionError(f"{identity} is not as it should be: {yaml.safe_dump(found)}")


async def started(*declarations: Raw | Path, **options: Any) -> FakeHarness:
    """A harness that has started, and what was declared to it since."""
    harness = FakeHarness(**options)
    await harness.start()
    await harness.apply(*declarations)
    return harness


class OperatorThread:
    """The operator as kopf runs it, in a thread of its own: kopf ends with every task of its loop.

    Args:
        settings: the operator's.
        options: where it runs.
        clocks: the clocks; None for those of this machine.
    """

    def __init__(
        self, settings: OperatorSettings, options: RunOptions, clocks: Clocks | None = None
    ) -> None:
        opened = partial(running_operator, settings=settings, options=options, clocks=clocks)
        self.process: Process[Running] = Process(self._looped(opened))
        self.failure: Exception | None = None
        connection = Connection(options.kubeconfig, options.context, USER_AGENT)
        kinds = operator_kinds(settings, is_local=options.is_local)
        self._serve = partial(serve, self.process, connection, settings, kinds)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: Running | None = None
        self._thread = Thread(target=self._run, name="operator")

    def _looped(self, opened: Any) -> Any:
        @asynccontextmanager
        async def within(process: Process[Running]) -> AsyncIterator[Running]:
            self._loop = asyncio.get_running_loop()
            async with opened(process) as running:
                self._running = running
                yield running

        return within

    def _run(self) -> None:
        try:
            self._serve()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.failure = error

    @property
    def running(self) -> Running:
        assert self._running is not None
        return self._running

    @property
    def is_running(self) -> bool:
        """Whether it began and has not ended."""
        is_ending = self.process.ending.is_set() or not self._thread.is_alive()
        return self._running is not None and not is_ending

    async def begin(self) -> None:
        """Start it, and wait until it works.

        Raises:
            Exception: it ended instead.
        """
        self._thread.start()
        while self._running is None and self._thread.is_alive():
            await asyncio.sleep(0.02)
        if self._running is None and self.failure is not None:
            raise self.failure

    async def end(self) -> None:
        if self._loop is not None and self._thread.is_alive():
            with suppress(RuntimeError):  # its loop is closed already
                self._loop.call_soon_threadsafe(self.process.ending.set)
        await asyncio.to_thread(self._thread.join)

    async def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        assert self._loop is not None
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))


class RealHarness(OperatorHarness):
    """Over a real API server, with watches of it.

    Args:
        cluster: the cluster, for the test.
        kubeconfig: how the operator reaches it.
        namespace: where everything is, the operator's own Lease included.
        changes: settings that differ from what tests usually have.
    """

    def __init__(self, cluster: Cluster, kubeconfig: Path, namespace: str, **changes: Any) -> None:
        super().__init__(cluster, namespace, JobDouble(cluster, namespace=namespace))
        self._place = RunOptions(kubeconfig)
        self.thread: OperatorThread | None = None
        self.configure(**changes)

    def configure(self, **changes: Any) -> None:
        """Give the next operator other settings than tests usually have."""
        self._settings = real_settings(self.namespace, **changes)

    @property
    def operator(self) -> Operator:
        return self.thread.running.operator

    @property
    def failure(self) -> Exception | None:
        """Why the operator ended or is about to, if it failed."""
        return self.thread.failure or self.thread.process.failure

    async def start(self) -> None:
        self.thread = OperatorThread(self._settings, self._place)
        await self.thread.begin()

    async def stop(self) -> None:
        """Finish what is in hand, and end."""
        if self.thread is not None:
            await self.thread.end()

    async def restart(self) -> None:
        """End, and begin again, knowing nothing."""
        await self.stop()
        await self.start()

    async def list_all(self) -> None:
        """Let the operator list everything, as in a resync."""
        await self.thread.do(self.operator.feed.list_all())

    async def deliver(self, change: Change) -> None:
        """Let the operator receive an event."""

        async def received() -> None:
            deliver(self.operator, change)

        await self.thread.do(received())

    async def wait_for(self, identity: str, predicate: Predicate) -> Raw:
        deadline = time.monotonic() + DEADLINE
        while True:
            found = await self.get(identity)
            if predicate(found):
                return found
            assert self.failure is None, self.failure
            assert time.monotonic() < deadline, (
                f"{identity} is not as it should be: {yaml.safe_dump(found)}"
            )
            await self.double.step()
            await asyncio.sleep(0.05)


def deliver(operator: Operator, change: Change) -> None:
    """Let the operator receive an event, as from the watch of its kind and namespace."""
    ref, feed = ref_of(change.object), operator.feed
    is_seen = not feed.namespaces or ref.namespace in feed.namespaces
    if is_seen and any(watched.key == ref.kind for watched in feed.kinds):
        operator.feed.take(change.object, is_deleted=change.type is ChangeType.DELETED)


def real_settings(namespace: str, **changes: Any) -> OperatorSettings:
    """Settings of an operator that watches one namespace, and runs there."""
    usual = {
        "namespace": namespace,
        "watchNamespaces": [namespace],
        "healthPort": 0,
        "readinessPort": 0,
        "metricsPort": 0,
        "resyncSeconds": 600,
        "admission": {"isCertificateRotated": False},
    }
    return OperatorSettings.parse(usual | changes)


async def drained(queue: WorkQueue[Key]) -> list[Key]:
    """The due keys, in order, taken from the queue."""
    found = []
    while queue.depth:
        found.append(await queue.take())
        queue.done(found[-1])
    return found


def condition(raw: Raw, type_: str) -> Raw:
    """A condition of a resource; empty when it has none of that type."""
    conditions = raw.get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == type_), {})


def is_ready(raw: Raw) -> bool:
    """Whether a resource is Ready, as of its current generation."""
    ready = condition(raw, "Ready")
    is_current = ready.get("observedGeneration") == raw.get("metadata", {}).get("generation")
    return is_current and ready.get("status") == "True"


def has_reason(reason: str) -> Predicate:
    """Whether the reason of Ready is a given one."""
    return lambda raw: condition(raw, "Ready").get("reason") == reason


def _documents(declarations: Iterable[Raw | Path]) -> Iterator[Raw]:
    for each in declarations:
        if isinstance(each, Path):
            files = sorted(each.glob("*.yaml")) if each.is_dir() else [each]
            for file in files:
                yield from filter(None, yaml.safe_load_all(file.read_text()))
        else:
            yield each
