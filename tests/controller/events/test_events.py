"""Events are posted once, counted when repeated, and never stand in the way."""

import uuid

import pytest
from prometheus_client import CollectorRegistry
from support.operator.clusters import TRANSFORMERS, a_transformer, an_object
from support.operator.faultycluster import Fault, FaultyCluster, first

from snaploom.models.common import now
from snaploom_operator.apply import events
from snaploom_operator.apply.events import (
    BURST,
    NAMESPACE_BURST,
    NAMESPACE_REFILL_SECONDS,
    REFILL_SECONDS,
    EventRecorder,
    Posting,
    queued_events,
)
from snaploom_operator.cluster.port import EVENTS, NAMESPACES
from snaploom_operator.conditions import Reason
from snaploom_operator.decision import EventType, Note
from snaploom_operator.errors import ApiUnavailable, NamespaceTerminating, TooManyRequests
from snaploom_operator.objects import Metadata, Ref
from snaploom_operator.serve.metrics import Metrics

STARTED = Note(EventType.NORMAL, Reason.RUN_STARTED, "run ods-wide-1 is decided: the spec changed")


class Desk:
    """A recorder with what became of its events, and a clock of its own."""

    def __init__(self, cluster, instance="operator-1"):
        self.cluster = cluster
        self.postings = []
        self.seconds = 0.0
        self.recorder = EventRecorder(
            cluster, instance, self.postings.append, monotonic=lambda: self.seconds
        )

    async def record(self, resource, note=STARTED):
        stored = Metadata.of(resource)
        ref = Ref(resource["kind"], stored.namespace, stored.name)
        await self.recorder.post(ref, stored.uid, note, now())


@pytest.fixture
async def resource(cluster, own_namespace):
    return await cluster.create(TRANSFORMERS, own_namespace, a_transformer())


async def posted(cluster, own_namespace):
    return (await cluster.list(EVENTS, namespace=own_namespace)).items


async def test_posted_event_names_what_it_is_about(cluster, own_namespace, resource):
    desk = Desk(cluster)
    await desk.record(resource)
    (event,) = await posted(cluster, own_namespace)
    assert desk.postings == [Posting.NEW]
    assert event["regarding"]["uid"] == Metadata.of(resource).uid
    assert (event["type"], event["reason"]) == ("Normal", "RunStarted")
    assert event["note"] == STARTED.message
    assert event["reportingInstance"] == "operator-1"
    assert event.get("series") is None


async def test_events_that_cannot_be_written_are_counted(cluster, own_namespace, resource):
    metrics = Metrics(CollectorRegistry())
    away = FaultyCluster(cluster, first(9, Fault(ApiUnavailable("away")), kind="Event"))
    stored = Metadata.of(resource)
    ref = Ref(resource["kind"], stored.namespace, stored.name)
    await EventRecorder(away, "operator-1", metrics.posted).post(ref, stored.uid, STARTED, now())
    labels = {"outcome": "failed"}
    assert metrics.registry.get_sample_value("snaploom_events_total", labels) == 1.0


async def test_repeated_event_is_counted_in_one_object(cluster, own_namespace, resource):
    desk = Desk(cluster)
    for _ in range(3):
        await desk.record(resource)
    (event,) = await posted(cluster, own_namespace)
    assert desk.postings == [Posting.NEW, Posting.COUNTED, Posting.COUNTED]
    assert event["series"]["count"] == 3
    assert event["series"]["lastObservedTime"] > event["eventTime"]


async def test_event_of_an_earlier_process_is_counted_up(cluster, own_namespace, resource):
    for instance in ("operator-1", "operator-2", "operator-3"):
        await Desk(cluster, instance).record(resource)
    (event,) = await posted(cluster, own_namespace)
    assert event["series"]["count"] == 3
    assert event["reportingInstance"] == "operator-1"


@pytest.mark.parametrize(
    "other",
    [
        Note(EventType.WARNING, STARTED.reason, STARTED.message),
        Note(STARTED.type, Reason.RUN_FAILED, STARTED.message),
        Note(STARTED.type, STARTED.reason, "another"),
    ],
)
async def test_other_event_is_another_object(cluster, own_namespace, resource, other):
    desk = Desk(cluster)
    await desk.record(resource)
    await desk.record(resource, other)
    assert len(await posted(cluster, own_namespace)) == 2


async def test_event_that_the_cluster_forgot_is_posted_anew(cluster, own_namespace, resource):
    desk = Desk(cluster)
    await desk.record(resource)
    (event,) = map(Metadata.of, await posted(cluster, own_namespace))
    await cluster.delete(EVENTS, own_namespace, event.name, uid=event.uid)
    await desk.record(resource)
    assert desk.postings == [Posting.NEW, Posting.NEW]
    assert len(await posted(cluster, own_namespace)) == 1


@pytest.mark.parametrize("message", ["x" * 2000, "ä" * 600, "日" * 400, "a" + "𝄞" * 300, ""])
async def test_any_message_is_posted_as_far_as_there_is_room(
    cluster, own_namespace, resource, message
):
    desk = Desk(cluster, "i" * 300)
    await desk.record(resource, Note(EventType.WARNING, Reason.RUN_FAILED, message))
    (event,) = await posted(cluster, own_namespace)
    note = event.get("note", "")
    assert len(note.encode()) <= 1024
    assert note.removesuffix("…") == message[: len(note.removesuffix("…"))]


async def test_event_of_a_resource_with_the_longest_name_is_posted(cluster, own_namespace):
    name = "a" * 199 + "." + "b" * 53
    resource = await cluster.create(TRANSFORMERS, own_namespace, a_transformer(name))
    await Desk(cluster).record(resource)
    assert len(await posted(cluster, own_namespace)) == 1


async def test_resource_with_too_many_events_is_limited(cluster, own_namespace, resource):
    desk = Desk(cluster)
    for number in range(BURST + 2):
        await desk.record(resource, Note(EventType.NORMAL, Reason.RUN_STARTED, str(number)))
    assert desk.postings == [Posting.NEW] * BURST + [Posting.LEFT_OUT] * 2
    desk.seconds += REFILL_SECONDS
    await desk.record(resource)
    await desk.record(resource)
    assert desk.postings[-2:] == [Posting.NEW, Posting.LEFT_OUT]


async def test_excess_of_one_resource_does_not_limit_others(cluster, own_namespace, resource):
    desk = Desk(cluster)
    for _ in range(BURST + 1):
        await desk.record(resource)
    await desk.record(await cluster.create(TRANSFORMERS, own_namespace, a_transformer("other")))
    assert desk.postings[-2:] == [Posting.LEFT_OUT, Posting.NEW]


@pytest.mark.parametrize("error", [ApiUnavailable("no answer"), TooManyRequests("no", after=9)])
async def test_event_that_cannot_be_posted_is_counted_as_failed(fake, error):
    resource = await fake.create(TRANSFORMERS, "default", a_transformer())
    desk = Desk(FaultyCluster(fake, first(1, Fault(error))))
    await desk.record(resource)
    await desk.record(resource)
    assert desk.postings == [Posting.FAILED, Posting.NEW]


async def test_event_whose_answer_was_lost_is_not_posted_twice(fake):
    resource = await fake.create(TRANSFORMERS, "default", a_transformer())
    lost = Fault(ApiUnavailable("no answer"), is_after=True)
    desk = Desk(FaultyCluster(fake, first(1, lost)))
    await desk.record(resource)
    await desk.record(resource)
    assert desk.postings == [Posting.FAILED, Posting.COUNTED]
    assert len(fake.all(EVENTS)) == 1


async def test_cluster_that_is_slow_is_not_waited_for(fake, monkeypatch):
    monkeypatch.setattr(events, "POST_SECONDS", 0.01)
    resource = await fake.create(TRANSFORMERS, "default", a_transformer())
    desk = Desk(FaultyCluster(fake, first(1, Fault(delay=3600))))
    await desk.record(resource)
    assert desk.postings == [Posting.FAILED]


async def test_event_of_a_namespace_that_is_gone_is_about_the_namespace(fake):
    resource = a_transformer(namespace="nowhere", uid="1")
    desk = Desk(fake)
    await desk.record(resource)
    assert desk.postings == [Posting.NEW]
    (event,) = fake.all(EVENTS)
    assert event["regarding"] == {"apiVersion": "v1", "kind": "Namespace", "name": "nowhere"}


async def test_event_that_the_namespace_default_does_not_take_either_has_failed(fake):
    resource = a_transformer(namespace="nowhere", uid="1")
    refused = FaultyCluster(fake, first(1, Fault(NamespaceTerminating("it ends"))))
    desk = Desk(FaultyCluster(refused, first(2, Fault(ApiUnavailable("no answer")))))
    await desk.record(resource)
    assert desk.postings == [Posting.FAILED]


async def test_event_in_a_namespace_that_ends_is_the_namespaces_own(cluster):
    own_namespace = f"ending-{uuid.uuid4().hex[:12]}"
    created = Metadata.of(
        await cluster.create(NAMESPACES, "", an_object(NAMESPACES, own_namespace))
    )
    held = a_transformer("wide")
    held["metadata"]["finalizers"] = ["snaploom.io/finalizer"]
    resource = await cluster.create(TRANSFORMERS, own_namespace, held)
    await cluster.delete(NAMESPACES, "", own_namespace, uid=created.uid)
    desk = Desk(cluster)
    await desk.record(resource)
    await cluster.patch(TRANSFORMERS, own_namespace, "wide", {"metadata": {"finalizers": None}})
    assert desk.postings == [Posting.NEW]
    listed = (await cluster.list(EVENTS, namespace="default")).items
    (event,) = [each for each in listed if each["regarding"].get("name") == own_namespace]
    assert event["regarding"]["kind"] == "Namespace"
    assert event["note"].startswith("FieldTransformer/wide: ")


async def test_a_namespace_with_too_many_events_is_limited_and_another_is_not(
    cluster, own_namespace
):
    desk = Desk(cluster)
    for number in range(NAMESPACE_BURST + 5):
        ref = Ref("FieldTransformer", own_namespace, f"t-{number}")
        await desk.recorder.post(ref, f"uid-{number}", STARTED, now())
    assert desk.postings.count(Posting.LEFT_OUT) == 5
    desk.seconds += NAMESPACE_REFILL_SECONDS
    late, other = (Ref("FieldTransformer", each, "late") for each in (own_namespace, "default"))
    await desk.recorder.post(late, "uid-late", STARTED, now())
    await desk.recorder.post(other, "uid-x", STARTED, now())
    assert desk.postings[-2:] == [Posting.NEW, Posting.NEW]


async def test_queued_events_are_posted_in_order_before_the_end(fake):
    ref = Ref("FieldTransformer", "default", "wide")
    desk = Desk(fake)
    async with queued_events(desk.recorder) as queue:
        for number in range(3):
            note = Note(EventType.NORMAL, Reason.RUN_STARTED, f"run {number}")
            await queue.record(ref, "uid", note)
        assert desk.postings == []
    found = sorted(await posted(fake, "default"), key=lambda event: event["eventTime"])
    assert [event["note"] for event in found] == ["run 0", "run 1", "run 2"]


async def test_event_that_crashes_its_poster_leaves_the_others(fake):
    ref = Ref("FieldTransformer", "default", "wide")
    broken = FaultyCluster(fake, first(1, Fault(ValueError("a bug")), kind="Event"))
    async with queued_events(Desk(broken).recorder) as queue:
        await queue.record(ref, "uid", STARTED)
        await queue.record(ref, "uid", Note(EventType.NORMAL, Reason.RUN_SUCCEEDED, "done"))
    assert [event["note"] for event in await posted(fake, "default")] == ["done"]
