"""Lists and watches together: nothing is missed, and unchanged objects queue no work."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from support.declared.declarations import files, model
from support.operator.clusters import until
from support.operator.fakecluster import BUILT_IN, CUSTOM, Change, ChangeType, FakeCluster
from support.operator.faultycluster import Fault, FaultyCluster
from support.operator.operatorharness import (
    Clock,
    FakeHarness,
    deliver,
    drained,
    has_reason,
    is_ready,
    started,
)

from snaploom.models.run import Submitter
from snaploom_operator.cluster.port import OURS, PODS, SPARK_APPLICATIONS, Cluster
from snaploom_operator.errors import ApiUnavailable, ClusterError, ResourceUnknown
from snaploom_operator.objects import Ref
from snaploom_operator.settings import OperatorSettings
from snaploom_operator.store.feed import DECLARATIONS, Feed
from snaploom_operator.store.store import Store

WIDE = "OutputDataset/wide"
CUSTOMER = Ref("DataSource", "default", "customer")


def without(*missing: Any) -> FakeCluster:
    return FakeCluster(resources=[each for each in (*BUILT_IN, *CUSTOM) if each not in missing])


async def test_the_first_list_has_everything_looked_at() -> None:
    harness = FakeHarness()
    await harness.apply(*model())
    await harness.operator.feed.list_all()
    assert set(await drained(harness.operator.queue)) == set(harness.operator.store.refs())


async def test_nothing_is_reconciled_before_everything_was_listed() -> None:
    harness = FakeHarness()
    await harness.apply(files("customer"))
    (stored,) = harness.fake.all(OURS["DataSource"])
    deliver(harness.operator, Change(ChangeType.ADDED, stored))
    assert harness.operator.queue.depth == 0
    assert harness.operator.store.get(CUSTOMER) is not None


async def test_a_later_list_queues_only_what_changed() -> None:
    harness = await started(*model())
    await harness.wait_for(WIDE, is_ready)
    await harness.settle()
    harness.kill()
    await harness.apply(files("customer", format="orc"))
    await harness.operator.feed.list_all()
    woken = {str(ref) for ref in await drained(harness.operator.queue)}
    assert woken == {
        "DataSource/default/customer",
        "DataRelationship/default/customer-id",
        "OutputDataset/default/wide",
    }


async def test_an_object_deleted_without_an_event_is_dropped_by_the_next_list() -> None:
    harness = await started(*model())
    await harness.wait_for(WIDE, is_ready)
    harness.kill()
    await harness.delete("DataSource/customer")
    await harness.operator.feed.list_all()
    assert harness.operator.store.get(CUSTOMER) is None
    await harness.wait_for(WIDE, has_reason("ReferenceMissing"))


async def test_what_is_newer_than_the_list_is_not_taken_for_vanished() -> None:
    harness = await started(files("customer"))
    store, pages = harness.operator.store, harness.fake.pages
    before = {kind: [page async for page in pages(kind)] for kind in (*BUILT_IN, *CUSTOM)}
    await harness.apply(files("address"))
    await harness.settle()
    harness.fake.pages = lambda kind, **_: _pages_of(before[kind])  # type: ignore[method-assign]
    await harness.operator.feed.list_all()
    assert harness.operator.queue.depth == 0
    assert store.get(Ref("DataSource", "default", "address")) is not None


async def _pages_of(pages: list[Any]) -> AsyncGenerator[Any, None]:
    for page in pages:
        yield page


async def test_a_cluster_without_a_spark_operator_stalls_runs_until_there_is_one() -> None:
    cluster = without(SPARK_APPLICATIONS)
    harness = await started(*model(), cluster=cluster)
    await harness.wait_for(WIDE, has_reason("SubmitterNotAvailable"))
    cluster.add_kind(SPARK_APPLICATIONS)
    await harness.operator.feed.list_all()
    await harness.wait_for(WIDE, is_ready)


async def test_a_spark_operator_that_is_removed_is_noticed() -> None:
    harness = await started(*model())
    await harness.wait_for(WIDE, is_ready)
    harness.fake.remove_kind(SPARK_APPLICATIONS)
    await harness.operator.feed.list_all()
    await harness.wait_for(WIDE, has_reason("SubmitterNotAvailable"))


async def test_a_cluster_without_our_kinds_is_an_error() -> None:
    harness = FakeHarness(cluster=without(OURS["DataSource"]))
    with pytest.raises(ResourceUnknown):
        await harness.operator.feed.list_all()


@pytest.mark.parametrize("is_local", [True, False])
async def test_the_operator_runs_jobs_itself_only_where_it_was_started_for_that(is_local):
    settings = OperatorSettings(submitters=(Submitter.SPARK_OPERATOR, Submitter.LOCAL))
    harness = await started(settings=settings, is_local=is_local)
    assert (Submitter.LOCAL in harness.operator.store.available) is is_local


async def test_only_the_namespaces_that_are_asked_for_are_listed() -> None:
    cluster = FakeCluster(namespaces=("default", "other"))
    settings = OperatorSettings(watch_namespaces=("other",))
    harness = await started(*model(), cluster=cluster, settings=settings)
    await harness.operator.feed.list_all()
    assert harness.operator.store.refs() == ()


async def test_the_kinds_of_a_namespaced_operator_are_all_namespaced() -> None:
    settings = OperatorSettings(watch_namespaces=("default",))
    harness = await started(settings=settings)
    kinds = {each.resource.kind for each in harness.operator.feed.kinds}
    assert "Namespace" not in kinds
    assert PODS.kind in kinds


async def test_changes_that_no_watch_delivered_are_counted() -> None:
    harness = await started()
    harness.kill()
    harness.clock.elapsed += 60
    await harness.apply(files("customer"))
    await harness.operator.feed.list_all()
    registry = harness.operator.metrics.registry
    labels = {"kind": "DataSource"}
    assert registry.get_sample_value("snaploom_watch_missed_total", labels) == 1.0
    assert harness.operator.feed.ages()["DataSource"] == 60.0


@pytest.mark.parametrize("comes_late", [True, False])
async def test_a_watch_that_reports_nothing_of_what_a_list_found_is_dead(comes_late, monkeypatch):
    monkeypatch.setattr("snaploom_operator.store.feed.WATCH_LAG_SECONDS", 0.1)
    harness = await started()
    harness.kill()
    await harness.apply(files("customer"))
    resync = asyncio.create_task(harness.operator.feed.resync(interval=0.0))

    async def is_found() -> bool:
        harness.clock.elapsed += 0 if comes_late else 60
        return resync.done() or harness.operator.store.get(CUSTOMER) is not None

    await until(is_found)
    if comes_late:
        stored = harness.fake.all(OURS["DataSource"])[0]
        deliver(harness.operator, Change(ChangeType.ADDED, stored))
        harness.clock.elapsed += 60
        resync.cancel()
        await asyncio.gather(resync, return_exceptions=True)
        assert resync.cancelled()
    else:
        with pytest.raises(ClusterError, match="the watch of DataSource reports no changes"):
            await resync


@asynccontextmanager
async def following(
    cluster: Cluster, clock: Clock, namespaces: Iterable[str] = ()
) -> AsyncIterator[Feed]:
    """A feed as of the webhook: it begins whether the cluster answers or not."""
    feed = Feed(Store(), cluster, DECLARATIONS, namespaces, clock.seconds)
    task = asyncio.create_task(feed.follow(interval=600))
    try:
        yield feed
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until_synced(feed: Feed) -> None:
    async def is_synced() -> bool:
        return feed.is_synced

    await until(is_synced)


async def test_a_feed_that_waits_for_nothing_goes_on_when_the_cluster_answers(monkeypatch):
    monkeypatch.setattr("snaploom_operator.store.feed.FIRST_RETRY_SECONDS", 0.01)
    refusals = iter([Fault(ApiUnavailable("away"))] * 3)
    cluster = FaultyCluster(FakeCluster(), lambda call: next(refusals, None))
    async with following(cluster, Clock()) as feed:
        await until_synced(feed)
        assert next(refusals, None) is None


async def test_its_age_counts_from_what_was_heard_longest_ago() -> None:
    clock = Clock()
    async with following(FakeCluster(), clock) as feed:
        await until_synced(feed)
        clock.elapsed += 100
        feed.hear("snaploom.io", "datasources", None, is_new=False)
        assert feed.ages()["DataSource"] == 0
        assert feed.age == 100  # of the other kinds nothing was heard


async def test_a_silent_watch_of_one_namespace_is_not_hidden_by_another() -> None:
    clock = Clock()
    cluster = FakeCluster(namespaces=("one", "two"))
    async with following(cluster, clock, ["one", "two"]) as feed:
        await until_synced(feed)
        clock.elapsed += 100
        feed.hear("snaploom.io", "datasources", "one", is_new=False)
        assert feed.ages()["DataSource"] == 100


async def test_a_first_watch_starts_from_the_first_list_and_later_ones_do_not() -> None:
    cluster = FakeCluster(namespaces=("one", "two"))
    async with following(cluster, Clock(), ["one", "two"]) as feed:
        await until_synced(feed)
        newest = (await cluster.list(OURS["DataSource"])).resource_version
        taken = [feed.take_version("snaploom.io", "datasources", place) for place in ("one", "two")]
        assert taken == [newest, newest]
        await feed.list_all()
        assert feed.take_version("snaploom.io", "datasources", "one") == ""


async def test_a_watch_that_is_ahead_of_the_first_list_does_not_go_back_to_it() -> None:
    feed = Feed(Store(), FakeCluster(), DECLARATIONS, (), Clock().seconds)
    assert feed.take_version("snaploom.io", "datasources", None) == ""
    await feed.list_all()
    assert feed.take_version("snaploom.io", "datasources", None) == ""
    assert feed.take_version("snaploom.io", "outputdatasets", None) != ""


async def test_a_kind_that_does_not_exist_yet_holds_up_nothing() -> None:
    async with following(without(OURS["SkippingIndex"]), Clock()) as feed:
        await until_synced(feed)
        assert "SkippingIndex" not in feed.ages()
        assert feed.take_version("snaploom.io", "skippingindexes", None) == ""
