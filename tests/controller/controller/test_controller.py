"""The loop: each pass is one step, failures are reported and retried, nothing is done twice."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from support.declared.declarations import model, spoilt
from support.operator.fakecluster import Change, ChangeType, FakeCluster
from support.operator.faultycluster import Call, Fault, FaultyCluster, first
from support.operator.jobdouble import JobDouble, through
from support.operator.operatorharness import (
    DEADLINE,
    FakeHarness,
    condition,
    deliver,
    has_reason,
    is_ready,
    started,
)

from snaploom_operator.cluster.port import NAMESPACES, OURS, SPARK_APPLICATIONS, Cluster
from snaploom_operator.errors import ApiUnavailable, NotAllowed, ObjectRefused, TooManyRequests
from snaploom_operator.objects import ApplicationState as State
from snaploom_operator.objects import Ref
from snaploom_operator.process.operator import HEARTBEAT, SENTINEL
from snaploom_operator.queues import LONGEST_BACKOFF
from snaploom_operator.settings import Limits, OperatorSettings

WIDE = "OutputDataset/wide"
KEY = Ref("OutputDataset", "default", "wide")


async def with_faults(plan: Callable[[Call], Fault | None]) -> tuple[FakeHarness, FaultyCluster]:
    """A harness whose operator sees a cluster with the given faults."""
    seen: list[FaultyCluster] = []

    def through(cluster: FakeCluster) -> Cluster:
        seen.append(FaultyCluster(cluster, plan))
        return seen[-1]

    harness = await started(through=through)
    return harness, seen[-1]


def refused_creates(error: Exception) -> Callable[[Call], Fault | None]:
    def plan(call: Call) -> Fault | None:
        is_application = call.verb == "create" and call.resource == SPARK_APPLICATIONS
        return Fault(error) if is_application else None

    return plan


async def test_an_applied_model_is_run_once_and_published() -> None:
    harness = await started(*model())
    await harness.wait_for(WIDE, is_ready)
    await harness.settle()
    assert len(await harness.all(SPARK_APPLICATIONS)) == 1
    assert harness.notes.reasons(WIDE) == ["RunStarted", "RunSucceeded"]


@pytest.mark.parametrize(("policy", "reason"), [("Delete", "DataDeleted"), ("Retain", "DataLeft")])
async def test_the_last_event_of_a_resource_reports_what_became_of_its_data(policy, reason):
    harness = await started()
    *others, declared = model()
    await harness.apply(*others, spoilt(declared, "spec.run", {"deletionPolicy": "Delete"}))
    await harness.wait_for(WIDE, is_ready)
    await harness.settle()
    await harness.apply(spoilt(declared, "spec.run", {"deletionPolicy": policy}))
    await harness.delete(WIDE)
    await harness.wait_for(WIDE, lambda raw: not raw)
    await harness.settle()
    assert harness.notes.reasons(WIDE)[-1] == reason


@pytest.mark.parametrize("places", [(), ("default",)], ids=["watched", "not watched"])
async def test_a_namespace_ends_with_an_output_whose_data_was_to_be_deleted(places):
    harness = await started(settings=OperatorSettings(watch_namespaces=places))
    *others, declared = model()
    await harness.apply(*others, spoilt(declared, "spec.run", {"deletionPolicy": "Delete"}))
    await harness.wait_for(WIDE, is_ready)
    space: Any = await harness.fake.get(NAMESPACES, "", "default")
    await harness.fake.delete(NAMESPACES, "", "default", uid=space["metadata"]["uid"])
    await harness.advance(10)
    assert await harness.get(WIDE) == {}
    assert harness.notes.reasons(WIDE)[-1] == "DataLeft"


async def test_the_order_of_arrival_does_not_matter() -> None:
    harness = await started()
    for raw in reversed(model()):
        await harness.apply(raw)
        await harness.settle()
    await harness.wait_for(WIDE, is_ready)
    assert len(await harness.all(SPARK_APPLICATIONS)) == 1


@pytest.mark.parametrize("seconds", [1.0, 60.0], ids=["while applying", "later"])
async def test_a_misspelt_reference_gets_a_suggestion_whenever_its_target_arrives(seconds):
    harness = await started()
    *others, declared = model()
    await harness.apply(
        spoilt(declared, "spec.dataModel.rootDataSource.dataSource", "custmer"),
    )
    await harness.advance(seconds)
    await harness.apply(*others)
    await harness.advance(20.0)
    ready = condition(await harness.get(WIDE), "Ready")
    assert ready["reason"] == "ReferenceMissing"
    assert "did you mean `customer`?" in ready["message"]


async def test_a_settled_resource_is_not_written_again() -> None:
    harness, cluster = await with_faults(lambda call: None)
    await harness.apply(*model())
    await harness.wait_for(WIDE, is_ready)
    await harness.settle()
    before = len(cluster.writes)
    harness.operator.queue.add_all(harness.operator.store.refs())
    await harness.settle()
    assert len(cluster.writes) == before


async def test_a_restart_with_nothing_to_do_writes_nothing() -> None:
    harness = await started(*model())
    await harness.wait_for(WIDE, is_ready)
    before = await harness.get(WIDE)
    await harness.restart()
    assert await harness.get(WIDE) == before


async def test_a_known_event_queues_nothing() -> None:
    harness = await started(*model())
    await harness.settle()
    for raw in harness.fake.all(OURS["DataSource"]):
        deliver(harness.operator, Change(ChangeType.MODIFIED, raw))
    assert harness.operator.queue.depth == 0


async def test_a_refusal_of_the_cluster_is_reported_at_once_and_retried_later() -> None:
    error = ObjectRefused("exceeded quota: pods")
    harness, cluster = await with_faults(refused_creates(error))
    await harness.apply(*model())
    await harness.settle()
    found = await harness.get(WIDE)
    assert "exceeded quota: pods" in str(found["status"])
    tried = len([c for c in cluster.writes if c.resource == SPARK_APPLICATIONS])
    assert tried == 1
    cluster.plan = lambda call: None
    await harness.advance(LONGEST_BACKOFF)
    assert len(await harness.all(SPARK_APPLICATIONS)) == 1
    await harness.wait_for(WIDE, is_ready)


async def test_a_changed_spec_is_tried_at_once() -> None:
    harness, cluster = await with_faults(refused_creates(ObjectRefused("no")))
    await harness.apply(*model())
    await harness.settle()
    cluster.plan = lambda call: None
    await harness.apply(spoilt(model()[-1], "spec.run", {"startTimeoutSeconds": 60}))
    await harness.settle()
    assert len(await harness.all(SPARK_APPLICATIONS)) == 1


async def test_failures_are_tried_again_later_and_later() -> None:
    harness, cluster = await with_faults(refused_creates(ApiUnavailable("away")))
    await harness.apply(*model())
    await harness.settle()

    def tries() -> int:
        return len([c for c in cluster.writes if c.resource == SPARK_APPLICATIONS])

    assert tries() == 1
    await harness.advance(1.1)
    assert tries() == 2
    await harness.advance(1.1)
    assert tries() == 2
    await harness.advance(1.1)
    assert tries() == 3


async def test_the_api_server_is_given_the_time_that_it_asks_for() -> None:
    error = TooManyRequests("slow down", after=40.0)
    harness, cluster = await with_faults(refused_creates(error))
    await harness.apply(*model())
    await harness.settle()
    await harness.advance(39.0)
    assert len([c for c in cluster.writes if c.resource == SPARK_APPLICATIONS]) == 1
    await harness.advance(2.0)
    assert len([c for c in cluster.writes if c.resource == SPARK_APPLICATIONS]) == 2


async def test_missing_rights_are_reported() -> None:
    harness, _ = await with_faults(refused_creates(NotAllowed("sparkapplications is forbidden")))
    await harness.apply(*model())
    await harness.settle()
    assert "is forbidden" in condition(await harness.get(WIDE), "Ready")["message"]


async def test_a_pass_that_crashes_is_logged_counted_and_tried_again(monkeypatch, caplog):
    harness = await started()
    controller = harness.operator.controller
    decide = controller._decide

    def crash(observed: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(controller, "_decide", crash)
    await harness.apply(*model())
    await harness.settle()
    crashed = [record for record in caplog.records if record.exc_info]
    assert len(crashed) == len(model())
    assert {getattr(record, "resource", "") for record in crashed} >= {str(KEY)}
    monkeypatch.setattr(controller, "_decide", decide)
    await harness.advance(2)
    await harness.wait_for(WIDE, is_ready)


async def test_an_old_state_is_read_afresh_when_a_write_is_refused() -> None:
    harness = await started()
    harness.kill()  # no event arrives from here on
    await harness.apply(*model())
    await harness.operator.feed.list_all()
    await harness.apply(spoilt(model()[-1], "spec.dataModel.dataRelationships", []))
    await harness.settle()
    await harness.advance(2)
    assert condition(await harness.get(WIDE), "Ready")["reason"] == "SourceUnreachable"


async def test_the_sentinel_shows_that_the_loop_is_alive() -> None:
    harness = await started()
    controller = harness.operator.controller
    harness.operator.queue.add(SENTINEL)
    await harness.settle()
    harness.clock.elapsed += HEARTBEAT - 1
    assert controller.seconds_since_heartbeat == HEARTBEAT - 1
    await harness.advance(1)
    assert controller.seconds_since_heartbeat == 0.0


async def test_runs_beyond_the_limit_wait_and_follow() -> None:
    harness = await started(settings=OperatorSettings(limits=Limits(runs=1)))
    customer, address, relationship, output = model()
    second = spoilt(output, "metadata.name", "second")
    second = spoilt(second, "spec.outputFolder.folderUri", "/out/second/")
    await harness.apply(customer, address, relationship, output, second)
    await harness.settle()
    assert len(await harness.all(SPARK_APPLICATIONS)) == 1
    await harness.wait_for("OutputDataset/second", is_ready)
    await harness.wait_for(WIDE, is_ready)
    assert len(await harness.all(SPARK_APPLICATIONS)) == 2


def two_outputs() -> tuple[Any, ...]:
    *others, output = model()
    second = spoilt(output, "metadata.name", "second")
    return (*others, output, spoilt(second, "spec.outputFolder.folderUri", "/out/second/"))


def run_of(found: Any) -> str:
    return str(found.get("status", {}).get("currentRun", {}).get("phase"))


async def test_passes_that_write_at_the_same_time_start_one_run_where_one_may_be_in_flight():
    harness = FakeHarness(
        settings=OperatorSettings(limits=Limits(runs=1)),
        through=lambda cluster: FaultyCluster(
            cluster, lambda call: Fault(delay=0.01) if call.is_write else None
        ),
    )
    await harness.apply(*two_outputs())
    await harness.operator.feed.list_all()
    keys = (KEY, Ref("OutputDataset", "default", "second"))
    await asyncio.gather(*(harness.operator.controller.reconcile(key) for key in keys))
    found = [await harness.get(f"OutputDataset/{key.name}") for key in keys]
    assert sorted(map(run_of, found)) == ["Queued", "Submitting"]


@pytest.mark.parametrize("error", [ObjectRefused("no"), ApiUnavailable("away")])
async def test_run_whose_first_status_is_not_written_leaves_its_slot_to_others_at_the_end(error):
    limits = OperatorSettings(limits=Limits(runs=1))
    plan = first(1, Fault(error), verb="patch", kind="OutputDataset")
    harness = await started(
        *two_outputs(), settings=limits, through=lambda cluster: FaultyCluster(cluster, plan)
    )
    await harness.settle()
    await harness.advance(LONGEST_BACKOFF)
    for identity in (WIDE, "OutputDataset/second"):
        await harness.wait_for(identity, is_ready)
    assert len(await harness.all(SPARK_APPLICATIONS)) == 2


async def test_a_run_with_a_slot_costs_three_writes_of_its_status_until_it_is_at_work() -> None:
    harness, cluster = await with_faults(lambda call: None)
    await harness.apply(*model())
    harness.double = JobDouble(harness.fake, through(State.RUNNING))
    await harness.wait_for(WIDE, lambda found: run_of(found) == "Running")
    assert len([call for call in cluster.writes if call.name == KEY.name]) == 3


async def test_a_jump_of_the_clock_queues_everything() -> None:
    harness = await started(*model())
    await harness.settle()
    operator = harness.operator
    assert operator.handle_clock_jump() == 0.0
    jumped = harness.clock.now() + 3_600 * 10**9
    operator._clocks = type(operator._clocks)(lambda: jumped, harness.clock.seconds)  # type: ignore[arg-type,return-value]
    assert operator.handle_clock_jump() == 3_600.0
    assert operator.queue.depth == len(model())


async def test_a_pass_in_hand_is_finished_before_the_end() -> None:
    harness, cluster = await with_faults(lambda call: Fault(delay=0.05) if call.is_write else None)
    await harness.apply(*model())
    controller = harness.operator.controller
    controller.start(1)
    while not cluster.writes:
        await asyncio.sleep(0)
    await controller.stop(DEADLINE)
    found = [await harness.get(f"{raw['kind']}/{raw['metadata']['name']}") for raw in model()]
    assert len([raw for raw in found if "status" in raw]) == len(cluster.writes) == 1


async def test_an_unparsable_resource_is_reported() -> None:
    harness = await started(*model())
    await harness.settle()
    stored = spoilt(await harness.get("DataSource/customer"), "spec.hdfsLike.formatt", "orc")
    stored["metadata"] |= {"resourceVersion": "999999", "generation": 2}
    deliver(harness.operator, Change(ChangeType.MODIFIED, stored))
    await harness.settle()
    await harness.wait_for("OutputDataset/wide", has_reason("ReferenceNotReady"))
