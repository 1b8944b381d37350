"""Objects that nobody can read: each is kept as such, and ends nothing but itself."""

import asyncio
import copy
import itertools
import json
import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from typing import Any

import pytest
from prometheus_client import generate_latest
from support.declared.declarations import document, files, model
from support.operator.clusters import an_object
from support.operator.fakecluster import Change, ChangeType, FakeCluster
from support.operator.operatorharness import NAMESPACE, FakeHarness, deliver, is_ready, started
from support.operator.reviews import driver_pod, report

from snaploom.models.common import now
from snaploom.models.run import Submitter
from snaploom.output.leases import Swap
from snaploom_operator.cluster.certificates import CertificateRotator
from snaploom_operator.cluster.lease import LONGEST_PROMISE, LeaseObject
from snaploom_operator.cluster.port import (
    APACHE_SPARK_APPLICATIONS,
    CONFIG_MAPS,
    LEASES,
    NAMESPACES,
    OURS,
    PODS,
    SECRETS,
    SPARK_APPLICATIONS,
    VALIDATING_WEBHOOKS,
    ApiResource,
    Page,
)
from snaploom_operator.cluster.requests import MOST_LEVELS, parse_json
from snaploom_operator.objects import LABEL_ROLE, LABEL_RUN, JsonObject, Ref
from snaploom_operator.settings import OperatorSettings
from snaploom_operator.store.store import Store

Raw = dict[str, Any]
Path = tuple[str | int, ...]

WIDE = "OutputDataset/wide"
READ = (
    *OURS.values(), NAMESPACES, CONFIG_MAPS, PODS, SPARK_APPLICATIONS, APACHE_SPARK_APPLICATIONS,
)  # fmt: skip
OTHERS = [
    document(
        "SkippingIndex",
        "by-day",
        {
            "target": {"outputDataset": "wide"},
            "indexes": [{"type": "MIN_MAX", "column": "day"}],
            "store": {"parquet": {"location": "/indexes/"}},
        },
    ),
    document(
        "MetadataApplicator",
        "labelled",
        {"fieldSelectors": [{"coordinateIncludeRegex": ".*"}], "metadata": {"k": "v"}},
    ),
    document(
        "FieldTransformer",
        "rounding",
        {
            "transformers": [
                {
                    "selectors": [{"coordinateIncludeRegex": ".*"}],
                    "expression": {"sql": "round(value)"},
                }
            ]
        },
    ),
]
FIXED = {
    ("apiVersion",),
    ("kind",),
    *(("metadata", k) for k in ("name", "namespace", "uid", "generation")),
}
"""What an API server itself makes sure of, for a kind that it has."""


def nested(levels: int) -> Raw:
    found: Raw = {}
    for _ in range(levels):
        found = {"a": found}
    return found


HOSTILE: dict[str, Any] = {
    "deep": nested(5_000),
    "deeper than parsers": nested(300),
    "deep lists as text": "[" * 100_000,
    "deep objects as text": '{"a":' * 100_000,
    "many lists as text": "[" + "[]," * 300_000 + "[]]",
    "digits as text": "9" * 5_000,
    "huge": 10**5_000,
    "long": "x" * 1_000_000,
    "half a character": "\ud800\x00",
    "null": None,
    "true": True,
    "negative": -1,
    "fraction": 1e308,
    "list": [None, [], {}, 5],
    "object": {"": {}, "9" * 5_000: {"currentStateSummary": 5}},
    "endless year": "+999999999-12-31T23:59:60Z",
}


def paths(value: Any, above: Path = ()) -> Iterator[Path]:
    members: Any = value.items() if isinstance(value, dict) else enumerate(value)
    for key, member in members:
        if (*above, key) not in FIXED:
            yield (*above, key)
        if isinstance(member, dict | list):
            yield from paths(member, (*above, key))


def put_at(raw: Any, path: Path, value: Any) -> Any:
    """A copy with another value at a place; the value itself is not copied."""
    if not path:
        return value
    result = copy.copy(raw)
    result[path[0]] = put_at(raw[path[0]], path[1:], value)
    return result


async def sound() -> dict[ApiResource, list[Raw]]:
    """Objects of every kind that is read, as they are after a run."""
    harness = await started(*model(), *OTHERS)
    owner = await harness.wait_for(WIDE, is_ready)
    found = {kind: harness.fake.all(kind) for kind in READ}
    (run, *_) = found[SPARK_APPLICATIONS]
    pod = driver_pod(
        owner,
        "ods-wide-1",
        phase="Pending",
        conditions=[{"status": "False", "reason": "Unschedulable", "message": "no node"}],
        containerStatuses=[{"state": {"waiting": {"reason": "ImagePullBackOff"}}}],
    )
    state = {"currentStateSummary": "ResourceReleased", "message": "gone"}
    history = {"0": {"currentStateSummary": "Submitted"}, "1": {"currentStateSummary": "Failed"}}
    apache = {
        **run,
        "apiVersion": APACHE_SPARK_APPLICATIONS.api_version,
        "status": {"currentState": state, "stateTransitionHistory": history},
    }
    local = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": put_at(run["metadata"], ("labels",), {
            **run["metadata"]["labels"], LABEL_ROLE: "application",
        }),
        "data": {"state": "RUNNING", "message": ""},
    }  # fmt: skip
    seen = [{"source": "customer", "snapshots": 3}]
    found[CONFIG_MAPS] += [local, report(owner, run["metadata"]["name"], seen=seen)]
    return found | {PODS: [pod], APACHE_SPARK_APPLICATIONS: [apache]}


def spoilt_everywhere(raws: list[Raw], content: Any) -> Iterator[Raw]:
    """Objects that each have the content in one place, under names of their own."""
    places = ((raw, path) for raw in raws for path in paths(raw))
    for number, (each, path) in enumerate(places):
        named = copy.deepcopy(each)
        name = f"hostile-{number}"
        if named["metadata"].get("labels", {}).get(LABEL_RUN) == named["metadata"]["name"]:
            named["metadata"]["labels"][LABEL_RUN] = name
        named["metadata"] |= {"name": name, "uid": f"uid-{number}"}
        named["metadata"]["resourceVersion"] = str(1_000_000 + number)
        yield put_at(named, path, content)


class WithOthers(FakeCluster):
    """A cluster that lists further objects, which its own rules would not let in."""

    def __init__(self) -> None:
        super().__init__()
        self.others: dict[ApiResource, list[Raw]] = {}

    async def pages(
        self, resource: ApiResource, *, namespace: str | None = None, selector: str = ""
    ) -> AsyncGenerator[Page, None]:
        last = ""
        found = super().pages(resource, namespace=namespace, selector=selector)
        async for page in found:
            last = page.resource_version
            yield page
        yield Page(tuple(self.others.get(resource, ())), last, is_first=False)


def crashed(harness: FakeHarness) -> float:
    """Passes in which code of ours failed."""
    return sum(
        sample.value
        for family in harness.operator.metrics.registry.collect()
        for sample in family.samples
        if sample.name.endswith("reconcile_seconds_count") and sample.labels["outcome"] == "crashed"
    )


def harness_of(cluster: FakeCluster) -> FakeHarness:
    every = OperatorSettings(submitters=(Submitter.SPARK_OPERATOR, Submitter.APACHE_SPARK))
    return FakeHarness(every, cluster=cluster, is_local=True)


@pytest.mark.parametrize("content", HOSTILE)
@pytest.mark.parametrize("kind", READ, ids=lambda kind: f"{kind.kind}.{kind.group}")
async def test_no_content_of_an_object_ends_a_list_a_watch_a_queue_or_a_start(kind, content):
    objects = list(spoilt_everywhere((await sound())[kind], HOSTILE[content]))
    assert objects
    listed = WithOthers()
    listed.others[kind] = objects[::2]
    harness = harness_of(listed)
    await harness.start()
    for each, type_ in itertools.product(objects[1::2], (ChangeType.ADDED, ChangeType.DELETED)):
        deliver(harness.operator, Change(type_, each))
    await harness.settle()
    await harness.apply(*model())
    await harness.wait_for(WIDE, is_ready)
    assert crashed(harness) == 0


class Answering(FakeCluster):
    """A cluster that answers a read with an object that its own rules would not let in."""

    answer: Raw | None = None

    async def get(self, resource: ApiResource, namespace: str, name: str) -> JsonObject:
        found = await super().get(resource, namespace, name)
        is_meant = self.answer is not None and self.answer["kind"] == resource.kind
        return self.answer if is_meant and self.answer is not None else found


async def ended(_: float) -> None:
    raise asyncio.CancelledError


async def with_certificate() -> tuple[Answering, CertificateRotator]:
    """A cluster in which the webhook's certificate was issued."""
    cluster, settings = Answering(["system"]), OperatorSettings(namespace="system")
    names = settings.admission
    secret = an_object(SECRETS, names.certificate_secret, metadata={"namespace": "system"})
    await cluster.create(SECRETS, "system", secret)
    hooks = [{"name": "w.snaploom.io", "clientConfig": {"service": {"name": "webhook"}}}]
    hook = an_object(VALIDATING_WEBHOOKS, names.configuration, webhooks=hooks)
    await cluster.create(VALIDATING_WEBHOOKS, "", hook)
    rotator = CertificateRotator(cluster, settings, pause=ended)
    await rotator.reconcile()
    return cluster, rotator


@pytest.mark.parametrize("content", HOSTILE)
@pytest.mark.parametrize("kind", [SECRETS, VALIDATING_WEBHOOKS], ids=lambda kind: kind.kind)
async def test_no_content_ends_the_rotation_of_certificates(kind, content):
    cluster, rotator = await with_certificate()
    (sound,) = cluster.all(kind)
    for path in paths(sound):
        cluster.answer = put_at(sound, path, HOSTILE[content])
        with suppress(asyncio.CancelledError):  # as after its first check
            await rotator.run()


@pytest.mark.parametrize("content", HOSTILE)
async def test_no_content_of_a_lease_ends_its_contest(content: str) -> None:
    cluster = Answering()
    lease = LeaseObject(cluster, NAMESPACE, "operator", 15, None, now)
    taken = await lease.swap(Swap(await lease.read(), "me", 15))
    assert taken is not None
    (sound,) = cluster.all(LEASES)
    for path in paths(sound):
        cluster.answer = put_at(sound, path, HOSTILE[content])
        state = await lease.read()
        assert isinstance(state.holder, str)
        assert 0 < state.seconds <= LONGEST_PROMISE
        await lease.swap(Swap(state, "another", 15))


def unreadable(store: Store) -> dict[str, int]:
    return dict(store.unreadable())


@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 5_000, '{"format": ' + "9" * 4_000 + "}"])
async def test_an_unreadable_report_is_counted_logged_once_and_shown_at_its_run(text, caplog):
    harness = await started(*model())
    await harness.settle()
    owner = await harness.get(WIDE)
    run = owner["status"]["currentRun"]["name"]
    forged = report(owner, run)
    forged["data"]["report.json"] = text
    del forged["metadata"]["resourceVersion"]
    await harness.fake.create(CONFIG_MAPS, NAMESPACE, forged)
    more: Raw = {"data": {"more": "of it"}}
    await harness.fake.patch(CONFIG_MAPS, NAMESPACE, forged["metadata"]["name"], more)
    patch: Raw = {"status": {"applicationState": {"state": "COMPLETED"}}}
    await harness.fake.patch(SPARK_APPLICATIONS, NAMESPACE, run, patch, subresource="status")
    await harness.advance(600)
    assert "report" in (await harness.get(WIDE))["status"]["lastRun"]["message"]
    assert unreadable(harness.operator.store) == {"ConfigMap": 1}
    assert len([each for each in caplog.records if each.name.endswith("store.store")]) == 1
    await harness.restart()
    assert unreadable(harness.operator.store) == {"ConfigMap": 1}


async def test_a_declaration_that_no_model_reads_has_it_in_its_condition() -> None:
    harness = await started()
    deep = files("deep")
    deep["spec"]["hdfsLike"]["schemaFields"] = [{"name": "c", "dataType": nested(300)}]
    await harness.apply(deep)
    await harness.settle()
    conditions = {
        c["type"]: c for c in (await harness.get("DataSource/deep"))["status"]["conditions"]
    }
    assert conditions["Validated"]["status"] == "False"
    assert unreadable(harness.operator.store) == {"DataSource": 1}
    await harness.apply(files("deep"))
    await harness.settle()
    assert unreadable(harness.operator.store) == {}


@pytest.mark.parametrize("levels", [MOST_LEVELS - 10, MOST_LEVELS + 50, 9_000, 200_000])
def test_a_deep_value_in_an_answer_leaves_the_objects_beside_it(levels: int) -> None:
    deep = "[" * levels + '"]"' + "]" * levels
    found: Any = parse_json(f'{{"items":[{{"a":"\\"["}},{{"b":{deep}}},{{"c":1}}]}}'.encode())
    assert found["items"][::2] == [{"a": '"['}, {"c": 1}]
    assert ("levels" in json.dumps(found["items"][1])) == (levels > MOST_LEVELS)


def test_what_is_no_json_stays_none() -> None:
    with pytest.raises(ValueError, match=r"recursion|EOF"):
        parse_json(b'{"items":[' + b"[" * 500)


async def test_forged_reports_about_sources_that_nobody_declared_are_not_remembered() -> None:
    harness = await started(*model())
    owner, store = await harness.get(WIDE), harness.operator.store
    for number in range(20):
        seen = [{"source": f"forged-{number}-{each}"} for each in range(50)]
        store.put(report(owner, f"ods-wide-{number}", seen=[*seen, {"source": "customer"}]))
    assert len(store._last_seen) == 1
    assert store.last_seen(Ref("DataSource", NAMESPACE, "customer")) is not None


async def test_outputs_that_come_and_go_leave_no_series_of_metrics() -> None:
    harness = await started(*model())
    await harness.wait_for(WIDE, is_ready)

    def published() -> set[str]:
        found = generate_latest(harness.operator.metrics.registry).decode()
        return set(re.findall(r"snaploom_published_rows_total\{.*", found))

    assert published()
    await harness.delete(WIDE)
    await harness.settle()
    assert published() == set()
