"""A marker in every field that may hold a credential: it is in no output of the operator.

That is status, events, logs, plans, applications and metrics of the operator, and the answers of
its webhook. Other tests cover the output of jobs.
"""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from support.declared.declarations import Raw, document, model, spoilt
from support.operator.fakecluster import FakeCluster
from support.operator.faultycluster import Fault, FaultyCluster, Gate, nth
from support.operator.jobdouble import JobDouble, fails
from support.operator.operatorharness import NAMESPACE, FakeHarness, condition, is_ready
from support.operator.webhooks import a_webhook
from support.servers.certificates import Authority

from snaploom_operator.cluster.port import CONFIG_MAPS, OURS, SPARK_APPLICATIONS, ApiResource

MARKER = "canary-b7e41f0c"
JDBC = {
    "driver": "POSTGRESQL",
    "host": "db.example.org",
    "database": "shop",
    "credentials": {"fromSecret": {"name": "shop-db"}},
    "tableReference": "public.orders",
    "snapshot": {"fromReadTime": {}},
}
OF_S3 = "spark.hadoop.fs.s3a."


def database(**changes: object) -> Raw:
    declared = {name: value for name, value in (JDBC | changes).items() if value is not None}
    return document("DataSource", "customer", {"jdbc": declared})


def conf(key: str, value: str = MARKER) -> Raw:
    return spoilt(model()[-1], "spec.run", {"spark": {"sparkConf": {key: value}}})


def variable(name: str) -> Raw:
    template = {"env": [{"name": name, "value": MARKER}]}
    return spoilt(model()[-1], "spec.run", {"spark": {"podTemplate": template}})


PLAINTEXT = {"fromPlaintext": {"user": f"user-{MARKER}", "password": MARKER}}
BY_URL = f"jdbc:postgresql://db/shop?user=u&password={MARKER}"
FIELDS = {
    "plaintext of a database": database(credentials=PLAINTEXT),
    "url of a database": database(driver=None, host=None, database=None, url=BY_URL),
    "option of a database": database(options={"password": MARKER}),
    "host of a database": database(host=f"u:{MARKER}@db"),
    "option of a format": spoilt(
        model()[0], "spec.hdfsLike.formatOptions", {"password": MARKER, "secretKey": MARKER}
    ),
    "folder of a source": spoilt(model()[0], "spec.hdfsLike.folderUri", f"s3://u:{MARKER}@b/x/"),
    "folder of an output": spoilt(
        model()[-1], "spec.outputFolder.folderUri", f"s3://u:{MARKER}@b/x/"
    ),
    "secret key of S3": conf(f"{OF_S3}secret.key"),
    "session token of S3": conf(f"{OF_S3}session.token"),
    "password of a metastore": conf("spark.hadoop.javax.jdo.option.ConnectionPassword"),
    "secret of authentication": conf("spark.authenticate.secret"),
    "endpoint with a login": conf(f"{OF_S3}endpoint", f"http://u:{MARKER}@store"),
    "variable that is refused": variable("SPARK_AUTH_SECRET"),
}


def all_output(harness: FakeHarness, stored: list[Raw], caplog: object) -> str:
    notes = [note.message for _, note in harness.notes.found]
    metrics = generate_latest(harness.operator.metrics.registry).decode()
    return json.dumps([stored, notes, metrics, str(caplog)])


@pytest.mark.parametrize("field", FIELDS)
async def test_no_field_with_a_secret_is_repeated(
    field: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    hostile = FIELDS[field]
    name = hostile["metadata"]["name"], hostile["kind"]
    harness = FakeHarness()
    await harness.start()
    await harness.apply(*(raw for raw in model() if (raw["metadata"]["name"], raw["kind"]) != name))
    await harness.apply(hostile)
    await harness.settle()
    children = [*await harness.all(SPARK_APPLICATIONS), *await harness.all(CONFIG_MAPS)]
    statuses = [
        stored.get("status", {}) for kind in OURS.values() for stored in await harness.all(kind)
    ]
    output = all_output(harness, [*children, *statuses], caplog.text)
    assert MARKER not in output
    stored = await harness.get("{1}/{0}".format(*name))
    assert condition(stored, "Stalled")["status"] == "True"


@pytest.mark.parametrize("field", FIELDS)
async def test_the_webhook_refuses_without_repeating_it(
    field: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    cluster = FakeCluster(namespaces=["team"])
    async with a_webhook(cluster, tmp_path, Authority(tmp_path, "authority")) as asker:
        answer = await asker.review(FIELDS[field])
    assert answer["allowed"] is False
    assert MARKER not in json.dumps(answer) + caplog.text


async def test_a_failing_run_of_a_database_has_references_to_secrets_only() -> None:
    harness = FakeHarness(double=lambda cluster: JobDouble(cluster, lambda _: fails()))
    await harness.start()
    secret: Raw = {"name": "shop-db", "userKey": "user", "passwordKey": "password"}
    source = database(credentials={"fromSecret": secret})
    *_, wide = model()
    single = spoilt(wide, "spec.dataModel.otherDataSources", [])
    single = spoilt(single, "spec.dataModel.dataRelationships", [])
    once = spoilt(single, "spec.run", {"retry": {"limit": 0}})
    await harness.apply(source, once)
    await harness.wait_for(
        "OutputDataset/wide", lambda raw: bool(raw.get("status", {}).get("lastRun"))
    )
    (application,) = await harness.all(SPARK_APPLICATIONS)
    container = application["spec"]["driver"]["template"]["spec"]["containers"][0]
    references = [entry for entry in container["env"] if "valueFrom" in entry]
    assert len(references) == 2
    assert all("secretKeyRef" in entry["valueFrom"] for entry in references)
    assert not any("value" in entry for entry in references)


# Two operators that both believe to lead: a leader that was paused wakes, and does no harm.


WIDE = "OutputDataset/wide"
OUTPUTS = OURS["OutputDataset"]
STATUS = "status"
DEADLINE = 30.0
"""Seconds within which a leader has reached the write; it takes milliseconds."""


def status_of(stored: Raw) -> Raw:
    """The status, without the times at which conditions changed."""
    status: Raw = stored[STATUS]
    return status


PLACES = [
    ("patch", OUTPUTS, 1),
    ("patch", OUTPUTS, 2),
    ("create", CONFIG_MAPS, 1),
    ("create", SPARK_APPLICATIONS, 1),
]
each_place = pytest.mark.parametrize(("verb", "resource", "number"), PLACES)


async def paused(verb: str, resource: ApiResource, number: int) -> PausedLeader:
    """A leader that stands still before a write, and by then knows of a model with an output."""
    gate = Gate()
    plan = nth(number, Fault(gate=gate), verb=verb, kind=resource.kind)
    harness = FakeHarness(through=lambda inner: FaultyCluster(inner, plan))
    await harness.start()
    await harness.apply(*model())
    working = asyncio.create_task(harness.settle())
    async with asyncio.timeout(DEADLINE):  # a leader that never writes it would never stand still
        await gate.reached.wait()
    # It hears nothing any more while it stands still.
    harness.kill()
    return PausedLeader(harness, gate, working)


class PausedLeader:
    """A leader that stands still in the middle of a pass."""

    def __init__(self, harness: FakeHarness, gate: Gate, working: asyncio.Task[int]) -> None:
        self.harness = harness
        self._gate = gate
        self._working = working

    async def wake(self) -> None:
        """Continue with the state that it had, and observe everything once more."""
        self._gate.opened.set()
        await self._working
        self.harness.operator.queue.add_all(self.harness.operator.store.refs())
        await self.harness.settle()


@each_place
async def test_a_leader_that_wakes_after_the_run_starts_no_second_one(
    verb: str, resource: ApiResource, number: int
) -> None:
    former = await paused(verb, resource, number)
    leader = FakeHarness(cluster=former.harness.fake)
    await leader.start()
    ended = await leader.wait_for(WIDE, is_ready)
    applications = [each["metadata"]["uid"] for each in await leader.all(SPARK_APPLICATIONS)]
    await former.wake()
    await leader.settle()
    left = [each["metadata"]["uid"] for each in await leader.all(SPARK_APPLICATIONS)]
    assert left == applications
    assert len(left) == 1
    assert status_of(await leader.get(WIDE)) == status_of(ended)


@each_place
async def test_a_leader_that_wakes_in_the_middle_of_the_run_does_no_harm(
    verb: str, resource: ApiResource, number: int
) -> None:
    former = await paused(verb, resource, number)
    leader = FakeHarness(cluster=former.harness.fake)
    await leader.start()
    await leader.settle()
    await former.wake()
    ended = await leader.wait_for(WIDE, is_ready)
    assert len(await leader.all(SPARK_APPLICATIONS)) == 1
    assert ended[STATUS]["lastRun"]["phase"] == "Succeeded"
    assert ended[STATUS]["lastRun"]["attempt"] == 0


async def test_a_leader_that_wakes_does_not_bring_back_an_older_spec() -> None:
    former = await paused("patch", OUTPUTS, 2)
    leader = FakeHarness(cluster=former.harness.fake)
    await leader.start()
    changed = [*model()]
    changed[-1]["spec"]["run"] = {"suspend": True}
    await leader.apply(changed[-1])
    await leader.settle()
    newer = await leader.get(WIDE)
    await former.wake()
    await leader.settle()
    assert (await leader.get(WIDE))[STATUS] == newer[STATUS]
    assert (await leader.get(WIDE))["spec"] == newer["spec"]


async def test_an_application_that_comes_after_its_run_was_deleted_is_deleted_again() -> None:
    former = await paused("create", SPARK_APPLICATIONS, 1)
    leader = FakeHarness(cluster=former.harness.fake)
    await leader.start()
    ended = await leader.wait_for(WIDE, is_ready)
    (application,) = await leader.all(SPARK_APPLICATIONS)
    gone = application["metadata"]
    await leader.fake.delete(SPARK_APPLICATIONS, NAMESPACE, gone["name"], uid=gone["uid"])
    await leader.settle()
    former.harness.clock.elapsed += 60
    await former.wake()
    await leader.settle()
    assert await leader.all(SPARK_APPLICATIONS) == []
    assert status_of(await leader.get(WIDE)) == status_of(ended)
