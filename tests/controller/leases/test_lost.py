"""Passes of an operator whose Lease another one has taken."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.declared.declarations import files
from support.operator.fakecluster import FakeCluster
from support.operator.faultycluster import Fault, FaultyCluster, Gate
from support.operator.operatorharness import DEADLINE, NAMESPACE, RealHarness, real_settings

from snaploom_operator.cluster import lease
from snaploom_operator.cluster.client import open_cluster
from snaploom_operator.cluster.port import LEASES, OURS, Cluster
from snaploom_operator.objects import JsonObject
from snaploom_operator.process import operator as composed
from snaploom_operator.process.operator import LEADERSHIP_LOST, RunOptions, running_operator
from snaploom_operator.process.process import Process

SOURCES = OURS["DataSource"]
STOLEN: JsonObject = {"spec": {"holderIdentity": "another"}}


async def with_status(cluster: Cluster) -> list[str]:
    found: Any = (await cluster.list(SOURCES)).items
    return [stored["metadata"]["name"] for stored in found if stored.get("status")]


async def test_the_pass_under_way_is_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeCluster()
    gate = Gate()
    slow = FaultyCluster(fake, lambda call: Fault(gate=gate) if call.subresource else None)

    @asynccontextmanager
    async def opened(*_: object) -> AsyncIterator[Cluster]:
        yield slow

    monkeypatch.setattr(composed, "open_cluster", opened)
    monkeypatch.setattr(lease, "RETRY_PERIOD", 0.01)
    for name in ("a", "b", "c"):
        await fake.create(SOURCES, NAMESPACE, files(name))
    settings = real_settings(NAMESPACE, workers=1)
    process = Process(partial(running_operator, settings=settings, options=RunOptions()))
    await process.begin()
    async with asyncio.timeout(DEADLINE):
        await gate.reached.wait()
        await fake.patch(LEASES, NAMESPACE, settings.lease, STOLEN)
        await process.ending.wait()
        gate.opened.set()
        # As kopf does that ends its watches first, nothing has closed the operator yet.
        while any(task.get_name().startswith("worker ") for task in asyncio.all_tasks()):
            await asyncio.sleep(0)
    assert process.failure is LEADERSHIP_LOST
    assert len(await with_status(fake)) == 1
    await process.end()


async def test_what_comes_after_it_is_left_to_the_next_leader(control_plane, namespace):
    async with open_cluster(control_plane.kubeconfig) as cluster:
        harness = RealHarness(cluster, Path(control_plane.kubeconfig), namespace)
        await harness.start()
        name = real_settings(namespace).lease
        await cluster.patch(LEASES, namespace, name, STOLEN)
        async with asyncio.timeout(DEADLINE):
            await harness.thread.do(harness.thread.process.ending.wait())
        await harness.apply(files("a"))
        await harness.stop()
        assert harness.failure is LEADERSHIP_LOST
        assert not (await harness.get("DataSource/a")).get("status")
