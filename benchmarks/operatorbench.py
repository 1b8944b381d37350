"""Environment of the operator's benchmarks: an audited API server, and the operator's process."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml
from support.cluster.auditlog import AuditedControlPlane
from support.cluster.sparkcrds import install_spark_crds
from support.operator.operatorprocess import WORKS, OperatorProcess

from snaploom_operator.cluster.client import KubernetesCluster, open_cluster
from snaploom_operator.cluster.port import OURS
from snaploom_operator.serve.health import METRICS_SECONDS

Raw = dict[str, Any]

HOME = "snaploom-system"
ACCOUNT = "snaploom-operator"
USER = f"system:serviceaccount:{HOME}:{ACCOUNT}"
"""The operator as its pod is known: by a token. A certificate is checked anew at each request."""
LEASES = "leases"
WRITES = ("create", "update", "patch", "delete")
TIMEOUT = 1800.0
"""Seconds to wait for a condition."""
POLL_SECONDS = 1.0
"""Seconds between two reads of the operator's metrics, each of which costs it some work."""
AT_ONCE = 16
"""Concurrent requests of the client that applies objects."""


@dataclass(frozen=True)
class Request:
    """One that the operator made, as the API server wrote it down when it was answered."""

    at: float
    """Seconds since 1970."""
    verb: str
    resource: str
    name: str
    """Namespace and name."""

    @property
    def is_write(self) -> bool:
        return self.verb in WRITES and self.resource != LEASES


class Bench:
    """An API server, and a client that applies objects there."""

    def __init__(self, plane: AuditedControlPlane, cluster: KubernetesCluster) -> None:
        self.plane = plane
        self.cluster = cluster
        self.kubeconfig = plane.kubeconfig_of(HOME, ACCOUNT)
        """The operator's own."""

    async def namespaces(self, count: int) -> list[str]:
        names = [f"team-{number}" for number in range(count)]
        await asyncio.to_thread(
            self.plane.kubectl.apply,
            *(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
                for name in names
            ),
        )
        return names

    async def apply(self, objects: Iterable[tuple[str, Raw]]) -> None:
        """Create objects in their namespaces, several at once."""
        left = iter(objects)

        async def work() -> None:
            for namespace, raw in left:
                await self.cluster.create(OURS[raw["kind"]], namespace, raw)

        await asyncio.gather(*(work() for _ in range(AT_ONCE)))

    async def unsettled(self) -> list[str]:
        """Resources whose status is not about their spec."""
        found = []
        for resource in OURS.values():
            for stored in (await self.cluster.list(resource)).items:
                metadata: Any = stored["metadata"]
                status: Any = stored.get("status", {})
                if status.get("observedGeneration") != metadata["generation"]:
                    found.append(f"{resource.kind}/{metadata['name']}")
        return found

    def requests(self, since: float = 0.0) -> list[Request]:
        """What the operator asked for after a time."""
        found = (_request(event) for event in self.plane.events_of(USER))
        return [request for request in found if request.at >= since]

    @asynccontextmanager
    async def operator(
        self, kubeconfig: Path | None = None, python: str | None = None, **changes: object
    ) -> AsyncIterator[OperatorUnderTest]:
        """The operator, over all namespaces.

        Args:
            kubeconfig: how it reaches the API server; None for its own.
            python: the interpreter of an earlier version; None for this one.
            changes: settings besides those of the benchmark.
        """
        settings = {
            "namespace": HOME,
            "healthPort": 0,
            "metricsPort": 0,
            "admission": {"isCertificateRotated": False},
            **({} if python else {"readinessPort": 0}),  # which earlier ones do not know
        }
        folder = self.plane.folder / f"operator-{time.time_ns()}"
        folder.mkdir()
        file = folder / "settings.yaml"
        file.write_text(yaml.safe_dump(settings | changes))
        started = OperatorProcess(
            folder,
            ["--settings", str(file), "--kubeconfig", str(kubeconfig or self.kubeconfig)],
            python=python,
        )
        try:
            yield OperatorUnderTest(started)
            started.process.terminate()
            # In a thread: a proxy in this loop passes its last requests on.
            assert await asyncio.to_thread(started.ended) == 0, started.output
        finally:
            started.process.kill()
            started.process.wait()


class OperatorUnderTest:
    """The operator's process."""

    def __init__(self, process: OperatorProcess) -> None:
        self.process = process
        self.began = time.time()

    @property
    def cpu(self) -> float:
        """Seconds of processors that it has used."""
        fields = self._proc("stat").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def peak(self) -> float:
        """The most memory that it ever held, in MB."""
        found = re.search(r"VmHWM:\s+(\d+) kB", self._proc("status"))
        assert found is not None
        return int(found[1]) * 1024 / 1e6

    def _proc(self, file: str) -> str:
        return Path(f"/proc/{self.process.process.pid}/{file}").read_text()

    async def settled(self, passes: int = 0) -> None:
        """Wait until it made that many passes, and nothing waits; seen up to two seconds later."""
        await asyncio.to_thread(self.process.await_output, WORKS)
        await asyncio.sleep(0 if passes else METRICS_SECONDS)  # or it may be as of before

        def is_settled() -> bool:
            try:
                metrics = self.process.get("metrics", "/metrics")
            except OSError as error:  # it ended: where the API server is too slow, for its Lease
                raise RuntimeError(self.process.output[-2000:]) from error
            made = sum(_values(metrics, "snaploom_reconcile_seconds_count"))
            return made >= passes and sum(_values(metrics, "snaploom_queue_depth")) == 0

        await until(is_settled)

    async def late_under_flood(self, clients: int, seconds: float) -> float:
        """The longest answer to a probe, in seconds, while so many ask for metrics in a loop."""
        ended = time.monotonic() + seconds

        def ask() -> None:
            while time.monotonic() < ended:
                with suppress(OSError):  # also of HTTP: too many at a time
                    self.process.get("metrics", "/metrics")

        def probe() -> float:
            longest = 0.0
            while time.monotonic() < ended:
                begun = time.monotonic()
                self.process.get("health", "/healthz")
                longest = max(longest, time.monotonic() - begun)
                time.sleep(0.05)
            return longest

        with ThreadPoolExecutor(clients + 1) as threads:
            loop = asyncio.get_running_loop()
            asking = [loop.run_in_executor(threads, ask) for _ in range(clients)]
            longest = await loop.run_in_executor(threads, probe)
            await asyncio.gather(*asking)
        return longest


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not await asyncio.to_thread(condition):
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(POLL_SECONDS)


@asynccontextmanager
async def running_bench(folder: Path) -> AsyncIterator[Bench]:
    """A new cluster, with our kinds and Spark's."""
    plane = AuditedControlPlane(folder, {"users": [USER]})
    try:
        await asyncio.to_thread(plane.start)
        await asyncio.to_thread(plane.install_crds)
        await asyncio.to_thread(install_spark_crds, plane.kubectl)
        await asyncio.to_thread(_admit, plane)
        async with open_cluster(plane.kubeconfig) as cluster:
            yield Bench(plane, cluster)
    finally:
        plane.close()


def _admit(plane: AuditedControlPlane) -> None:
    """Make the operator's account, which may do everything: its rights are not what is measured."""
    plane.kubectl("create", "namespace", HOME)
    plane.kubectl("create", "serviceaccount", ACCOUNT, "--namespace", HOME)
    subject = f"--serviceaccount={HOME}:{ACCOUNT}"
    plane.kubectl("create", "clusterrolebinding", ACCOUNT, "--clusterrole=cluster-admin", subject)


def _request(event: Raw) -> Request:
    about = event["objectRef"]
    parts = (about["resource"], about.get("subresource", ""))
    return Request(
        at=datetime.fromisoformat(event["stageTimestamp"]).timestamp(),
        verb=event["verb"],
        resource="/".join(part for part in parts if part),
        name=f"{about.get('namespace', '')}/{about.get('name', '')}",
    )


def _values(metrics: str, name: str) -> list[float]:
    return [float(value) for value in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", metrics, re.M)]
