"""What the webhook knows of a cluster, while it changes and while it cannot be asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import pytest
from support.declared.declarations import Raw, files, model
from support.operator.clusters import until
from support.operator.fakecluster import FakeCluster
from support.operator.faultycluster import Call, Fault, FaultyCluster

from snaploom_operator.cluster.apiresources import OURS
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.errors import ApiUnavailable
from snaploom_operator.objects import Ref
from snaploom_operator.store.store import Store
from snaploom_operator.watch.informer import Informer
from snaploom_operator.watch.watchedkinds import DECLARATIONS

NAMESPACES = ("one", "two")


class Time:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster(namespaces=NAMESPACES)


@pytest.fixture
def clock() -> Time:
    return Time()


async def create(cluster: FakeCluster, raws: Iterable[Raw], namespace: str = "one") -> None:
    for raw in raws:
        await cluster.create(OURS[raw["kind"]], namespace, raw)


@asynccontextmanager
async def following(
    cluster: Cluster, clock: Time, namespaces: Iterable[str] = ()
) -> AsyncIterator[tuple[Informer, Store]]:
    """A view that runs."""
    store = Store()
    view = Informer(
        store,
        cluster,
        DECLARATIONS,
        namespaces,
        clock,
        pause=lambda seconds: asyncio.sleep(0.001),
    )
    task = asyncio.create_task(view.run(interval=600))
    try:
        yield view, store
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until_known(store: Store, *refs: Ref) -> None:
    async def is_known() -> bool:
        return set(store.refs()) == set(refs)

    await until(is_known)


def refs(raws: Iterable[Raw], namespace: str = "one") -> list[Ref]:
    return [Ref(raw["kind"], namespace, raw["metadata"]["name"]) for raw in raws]


async def test_everything_is_listed_before_it_is_ready(cluster: FakeCluster, clock: Time) -> None:
    await create(cluster, model())
    async with following(cluster, clock) as (view, store):
        assert not view.is_synced
        await until_known(store, *refs(model()))
        await until_synced(view)
        assert view.size == 4


async def until_synced(view: Informer) -> None:
    async def is_synced() -> bool:
        return view.is_synced

    await until(is_synced)


async def test_changes_are_received(cluster: FakeCluster, clock: Time) -> None:
    async with following(cluster, clock) as (view, store):
        await until_synced(view)
        await create(cluster, model())
        await until_known(store, *refs(model()))
        await delete(cluster, "OutputDataset", "wide")
        await until_known(store, *refs(model()[:-1]))


async def test_only_the_requested_namespaces_are_watched(cluster: FakeCluster, clock: Time) -> None:
    await create(cluster, model(), "one")
    await create(cluster, [files("elsewhere")], "two")
    async with following(cluster, clock, ["two"]) as (view, store):
        await until_synced(view)
        await until_known(store, *refs([files("elsewhere")], "two"))


async def test_what_happens_while_the_cluster_does_not_answer_is_caught_up_with(
    cluster: FakeCluster, clock: Time
) -> None:
    """Every watch breaks at its first change, and then nothing answers for a while."""
    is_away = False

    def plan(call: Call) -> Fault | None:
        if not is_away and call.verb != "watch":
            return None
        return Fault(ApiUnavailable("away"), is_after=not is_away)

    await create(cluster, model())
    faulty = FaultyCluster(cluster, plan)
    async with following(faulty, clock) as (view, store):
        await until_synced(view)
        is_away = True
        await create(cluster, [files("unheard")])
        await delete(cluster, "OutputDataset", "wide")
        tries = len(faulty.calls)
        await until_more(faulty, tries + 5)
        assert view.is_synced
        assert Ref("DataSource", "one", "customer") in store.refs()
        is_away = False
        await until_known(store, *refs([*model()[:-1], files("unheard")]))


async def until_more(cluster: FaultyCluster, calls: int) -> None:
    async def has_more() -> bool:
        return len(cluster.calls) > calls

    await until(has_more)


async def delete(cluster: FakeCluster, kind: str, name: str) -> None:
    gone: Raw = dict(await cluster.get(OURS[kind], "one", name))
    await cluster.delete(OURS[kind], "one", name, uid=gone["metadata"]["uid"])


async def test_its_age_counts_from_what_was_heard_longest_ago(
    cluster: FakeCluster, clock: Time
) -> None:
    async with following(cluster, clock) as (view, store):
        await until_synced(view)
        clock.now += 100
        await create(cluster, [files("a")])
        await until_known(store, *refs([files("a")]))
        assert view.age == 100  # of the other kinds nothing was heard


async def test_a_kind_that_does_not_exist_yet_holds_up_nothing(clock: Time) -> None:
    lacking = FakeCluster(namespaces=NAMESPACES)
    lacking.remove_kind(OURS["SkippingIndex"])
    async with following(lacking, clock) as (view, _):
        await until_synced(view)
