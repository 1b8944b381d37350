"""A marker in every field that may hold a credential: it is in no output of the operator.

That is status, events, logs, plans, applications and metrics of the operator, and the answers of
its webhook. Other tests cover the output of jobs.
"""

import json
import logging

import pytest
from prometheus_client import generate_latest
from support.declared.declarations import Raw, document, model, spoilt
from support.operator.fakecluster import FakeCluster
from support.operator.jobdouble import JobDouble, fails
from support.operator.operatorharness import FakeHarness, condition, started
from support.operator.webhooks import a_webhook
from support.servers.certificates import Authority

from snaploom_operator.cluster.port import CONFIG_MAPS, OURS, SPARK_APPLICATIONS

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
async def test_no_field_with_a_secret_is_repeated(field, caplog):
    caplog.set_level(logging.DEBUG)
    hostile = FIELDS[field]
    name = hostile["metadata"]["name"], hostile["kind"]
    others = (raw for raw in model() if (raw["metadata"]["name"], raw["kind"]) != name)
    harness = await started(*others, hostile)
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
async def test_the_webhook_refuses_without_repeating_it(field, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    cluster = FakeCluster(namespaces=["team"])
    async with a_webhook(cluster, tmp_path, Authority(tmp_path, "authority")) as asker:
        answer = await asker.review(FIELDS[field])
    assert answer["allowed"] is False
    assert MARKER not in json.dumps(answer) + caplog.text


async def test_a_failing_run_of_a_database_has_references_to_secrets_only() -> None:
    harness = await started(double=lambda cluster: JobDouble(cluster, lambda _: fails()))
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
