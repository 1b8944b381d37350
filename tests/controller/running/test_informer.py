"""Lists and watches together: nothing is missed, and unchanged objects queue no work."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from support.declared.declarations import files, model
from support.operator.clusters import until
from support.operator.fakecluster import BUILT_IN, CUSTOM, FakeCluster
from support.operator.faultycluster import Fault, FaultyCluster
from support.operator.operatorharness import FakeHarness, deliver, has_reason, is_ready

from snaploom.models.run import Submitter
from snaploom_operator.cluster.apiresources import OURS, PODS, SPARK_APPLICATIONS
from snaploom_operator.cluster.port import ApiResource, Change, ChangeType, Page
from snaploom_operator.errors import ResourceUnknown
from snaploom_operator.objects import Ref
from snaploom_operator.operatorsettings import OperatorSettings

WIDE = "OutputDataset/wide"
CUSTOMER = Ref("DataSource", "default", "customer")


def without(*missing: Any) -> FakeCluster:
    return FakeCluster(resources=[each for each in (*BUILT_IN, *CUSTOM) if each not in missing])


async def started(**options: Any) -> FakeHarness:
    harness = FakeHarness(**options)
    await harness.start()
    return harness


async def test_the_first_list_has_everything_looked_at() -> None:
    harness = FakeHarness()
    await harness.apply(*model())
    await harness.operator.informer.list_all()
    assert set(harness.operator.queue.ready) == set(harness.operator.store.refs())


async def test_nothing_is_reconciled_before_everything_was_listed() -> None:
    harness = FakeHarness()
    await harness.apply(files("customer"))
    (stored,) = harness.fake.all(OURS["DataSource"])
    deliver(harness.operator, Change(ChangeType.ADDED, stored))
    assert harness.operator.queue.depth == 0
    assert harness.operator.store.get(CUSTOMER) is not None


async def test_a_later_list_queues_only_what_changed() -> None:
    harness = await started()
    await harness.apply(*model())
    await harness.wait_for(WIDE, is_ready)
    await harness.settle()
    harness.kill()
    await harness.apply(files("customer", format="orc"))
    await harness.operator.informer.list_all()
    woken = {str(ref) for ref in harness.operator.queue.ready}
    assert woken == {
        "DataSource/default/customer",
        "DataRelationship/default/customer-id",
        "OutputDataset/default/wide",
    }


async def test_an_object_deleted_without_an_event_is_dropped_by_the_next_list() -> None:
    harness = await started()
    await harness.apply(*model())
    await harness.wait_for(WIDE, is_ready)
    harness.kill()
    await harness.delete("DataSource/customer")
    await harness.operator.informer.list_all()
    assert harness.operator.store.get(CUSTOMER) is None
    await harness.wait_for(WIDE, has_reason("ReferenceMissing"))


async def test_what_is_newer_than_the_list_is_not_taken_for_vanished() -> None:
    harness = await started()
    await harness.apply(files("customer"))
    store, pages = harness.operator.store, harness.fake.pages
    before = [page async for page in pages(OURS["DataSource"])]
    await harness.apply(files("address"))
    harness.fake.pages = lambda *_, **__: _pages_of(before)  # type: ignore[method-assign]
    (reflector,) = (
        each for each in harness.operator.informer.reflectors if each.watched.key == "DataSource"
    )
    assert [woken async for woken in reflector.list() if woken] == []
    assert store.get(Ref("DataSource", "default", "address")) is not None


async def _pages_of(pages: list[Any]) -> AsyncGenerator[Any, None]:
    for page in pages:
        yield page


async def test_a_cluster_without_a_spark_operator_stalls_runs_until_there_is_one() -> None:
    cluster = without(SPARK_APPLICATIONS)
    harness = await started(cluster=cluster)
    await harness.apply(*model())
    await harness.wait_for(WIDE, has_reason("SubmitterNotAvailable"))
    cluster.add_kind(SPARK_APPLICATIONS)
    await harness.operator.informer.list_all()
    await harness.wait_for(WIDE, is_ready)


async def test_a_spark_operator_that_is_removed_is_noticed() -> None:
    harness = await started()
    await harness.apply(*model())
    await harness.wait_for(WIDE, is_ready)
    harness.fake.remove_kind(SPARK_APPLICATIONS)
    await harness.operator.informer.list_all()
    await harness.wait_for(WIDE, has_reason("SubmitterNotAvailable"))


async def test_a_cluster_without_our_kinds_is_an_error() -> None:
    harness = FakeHarness(cluster=without(OURS["DataSource"]))
    with pytest.raises(ResourceUnknown):
        await harness.operator.informer.list_all()


@pytest.mark.parametrize("is_local", [True, False])
async def test_the_operator_runs_jobs_itself_only_where_it_was_started_for_that(
    is_local: bool,
) -> None:
    settings = OperatorSettings(submitters=(Submitter.SPARK_OPERATOR, Submitter.LOCAL))
    harness = await started(settings=settings, is_local=is_local)
    assert (Submitter.LOCAL in harness.operator.store.available) is is_local


async def test_only_the_namespaces_that_are_asked_for_are_listed() -> None:
    cluster = FakeCluster(namespaces=("default", "other"))
    settings = OperatorSettings(watch_namespaces=("other",))
    harness = await started(cluster=cluster, settings=settings)
    await harness.apply(*model())
    await harness.operator.informer.list_all()
    assert harness.operator.store.refs() == ()


async def test_the_kinds_of_a_namespaced_operator_are_all_namespaced() -> None:
    settings = OperatorSettings(watch_namespaces=("default",))
    harness = await started(settings=settings)
    kinds = {each.watched.resource.kind for each in harness.operator.informer.reflectors}
    assert "Namespace" not in kinds
    assert PODS.kind in kinds


async def test_a_watch_that_begins_anew_has_its_kind_listed() -> None:
    harness = await started()
    await harness.apply(*model())
    await harness.wait_for(WIDE, is_ready)
    harness.kill()
    await harness.delete("DataSource/customer")
    harness.fake.forget_past()  # so that no watch can go on
    watching = asyncio.create_task(harness.operator.informer.run(interval=600))

    async def is_gone() -> bool:
        return harness.operator.store.get(CUSTOMER) is None

    await until(is_gone)
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


async def test_watches_go_on_from_the_list_without_another() -> None:
    harness = await started()
    lists = []

    def pages(resource: ApiResource, **_: object) -> AsyncGenerator[Page, None]:
        lists.append(resource)
        return _pages_of([])

    harness.kill()
    harness.fake.pages = pages  # type: ignore[method-assign]
    watching = asyncio.create_task(harness.operator.informer.run(interval=600))
    await harness.apply(files("customer"))

    async def is_known() -> bool:
        return harness.operator.store.get(CUSTOMER) is not None

    await until(is_known)
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    assert lists == []


async def test_stop_while_a_list_is_unanswered_logs_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    harness = FakeHarness(through=lambda fake: FaultyCluster(fake, lambda call: Fault(delay=60)))
    watching = asyncio.create_task(harness.operator.informer.run(interval=600))
    await asyncio.sleep(0)
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    assert [each.getMessage() for each in caplog.records] == []


async def test_changes_that_no_watch_delivered_are_counted() -> None:
    harness = await started()
    harness.kill()
    harness.clock.elapsed += 60
    await harness.apply(files("customer"))
    await harness.operator.informer.list_all()
    registry = harness.operator.metrics.registry
    labels = {"kind": "DataSource"}
    assert registry.get_sample_value("snaploom_watch_missed_total", labels) == 1.0
    assert harness.operator.informer.ages()["DataSource"] == 0.0


@pytest.mark.parametrize("comes_late", [True, False])
async def test_a_watch_without_events_for_what_a_list_found_is_dead(
    comes_late: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("snaploom_operator.watch.informer.WATCH_LAG_SECONDS", 0.0)
    harness = await started()
    informer = harness.operator.informer
    assert not await informer.is_a_watch_dead()
    harness.kill()
    harness.clock.elapsed += 60
    await harness.apply(files("customer"))
    await informer.list_all()
    if comes_late:
        stored = harness.fake.all(OURS["DataSource"])[0]
        deliver(harness.operator, Change(ChangeType.ADDED, stored))
    assert await informer.is_a_watch_dead() is not comes_late
    assert ("the watch of DataSource delivers no events" in caplog.text) is not comes_late
