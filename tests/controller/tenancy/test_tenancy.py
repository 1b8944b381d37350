"""What a tenant may write, and that nothing of it reaches beyond the tenant's own namespace."""

from typing import Any

import pytest
from support.declared.declarations import Raw, model, spoilt
from support.operator.operatorharness import NAMESPACE, FakeHarness, condition, has_reason, is_ready

from snaploom_operator.cluster.port import CONFIG_MAPS, OURS, SPARK_APPLICATIONS
from snaploom_operator.objects import LABEL_OWNER

WIDE = "OutputDataset/wide"
NEIGHBOUR = "neighbour"
HOST_PATH = {"name": "host", "hostPath": {"path": "/"}}
OF_HOST = {"volumes": [HOST_PATH], "volumeMounts": [{"name": "host", "mountPath": "/host"}]}


async def started() -> FakeHarness:
    harness = FakeHarness()
    harness.fake.add_namespace(NEIGHBOUR)
    await harness.start()
    return harness


async def with_output(path: str, value: object) -> FakeHarness:
    """A model whose output contains something hostile at one place."""
    harness = await started()
    changed = (spoilt(r, path, value) if r["kind"] == "OutputDataset" else r for r in model())
    await harness.apply(*changed)
    await harness.settle()
    return harness


def child_names(stored: list[Raw]) -> list[str]:
    return [each["metadata"]["name"] for each in stored]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.run.spark.podTemplate", OF_HOST),
        ("spec.run.spark.podTemplate", {"hostNetwork": True}),
        ("spec.run.spark.podTemplate", {"containers": [{"name": "sidecar", "image": "miner"}]}),
        ("spec.run.spark.podTemplate", {"labels": {"snaploom.io/owner-uid": "of-another"}}),
        ("spec.run.spark.sparkConf", {"spark.master": "k8s://elsewhere"}),
        ("spec.run.spark.sparkConf", {"spark.kubernetes.namespace": NEIGHBOUR}),
        ("spec.run.spark.sparkConf", {"spark.kubernetes.driver.podTemplateFile": "/etc/passwd"}),
        ("spec.run.spark.sparkConf", {"spark.kubernetes.file.upload.path": "s3a://elsewhere"}),
        ("spec.run.spark.sparkConf", {"spark.jars.packages": "com.example:miner:1"}),
        ("spec.run.spark.sparkConf", {"spark.app.name=x --conf spark.master": "local"}),
        ("spec.run.spark.sparkConf", {"spark.app.name": "${env:AWS_SECRET_ACCESS_KEY}"}),
        ("spec.run.spark.serviceAccountName", f"{NEIGHBOUR}/admin"),
        ("spec.dataModel.rootDataSource.dataSource", f"{NEIGHBOUR}/customer"),
        ("spec.dataModel.rootDataSource.dataSource", "customer\nkind: Secret"),
        ("spec.outputFolder.folderUri", "file:///data/" + "a" * 1_000_000),
    ],
)
async def test_a_hostile_output_is_refused_and_runs_nothing(path: str, value: object) -> None:
    harness = await with_output(path, value)
    stored = await harness.get(WIDE)
    assert condition(stored, "Ready")["status"] == "False"
    assert condition(stored, "Stalled")["reason"] == "Invalid"
    assert await harness.all(SPARK_APPLICATIONS) == []
    assert await harness.all(CONFIG_MAPS) == []


async def test_a_reference_does_not_find_the_neighbours_source() -> None:
    harness = await started()
    for raw in model():
        theirs = {**raw, "metadata": {**raw["metadata"], "namespace": NEIGHBOUR}}
        if raw["kind"] == "OutputDataset":
            await harness.apply(raw)
        else:
            await harness.cluster.create(OURS[raw["kind"]], NEIGHBOUR, theirs)
    await harness.wait_for(WIDE, has_reason("ReferenceMissing"))
    assert await harness.all(SPARK_APPLICATIONS) == []


async def test_an_application_that_names_another_namespaces_output_is_ignored() -> None:
    harness = await started()
    await harness.apply(*model())
    await harness.wait_for(WIDE, is_ready)
    (ours,) = await harness.all(SPARK_APPLICATIONS)
    forged = forged_from(ours)
    await harness.cluster.create(SPARK_APPLICATIONS, NEIGHBOUR, forged)
    before = await harness.get(WIDE)
    await harness.settle()
    assert (await harness.get(WIDE))["status"] == before["status"]


async def test_what_a_neighbour_made_under_our_labels_is_never_deleted() -> None:
    harness = await started()
    await harness.apply(*model())
    await harness.wait_for(WIDE, is_ready)
    (ours,) = await harness.all(SPARK_APPLICATIONS)
    await harness.cluster.create(SPARK_APPLICATIONS, NEIGHBOUR, forged_from(ours))
    await harness.delete(WIDE)
    await harness.settle()
    left = await harness.cluster.list(SPARK_APPLICATIONS, namespace=NEIGHBOUR)
    assert child_names([dict(each) for each in left.items]) == ["forged"]


@pytest.mark.parametrize("text", ["{{ .Values }}", "$(id)", "a\nb: c", "`id`", "%(name)s"])
async def test_text_that_looks_like_a_template_arrives_as_it_is(text: str) -> None:
    harness = await with_output("spec.run.spark.sparkConf", {"spark.scheduler.pool": text})
    (application,) = await harness.all(SPARK_APPLICATIONS)
    assert application["spec"]["sparkConf"]["spark.scheduler.pool"] == text


async def test_everything_a_run_creates_is_in_its_own_namespace() -> None:
    harness = await started()
    await harness.apply(*model())
    await harness.wait_for(WIDE, is_ready)
    created = [*await harness.all(SPARK_APPLICATIONS), *await harness.all(CONFIG_MAPS)]
    everywhere = [
        *(await harness.cluster.list(SPARK_APPLICATIONS)).items,
        *(await harness.cluster.list(CONFIG_MAPS)).items,
    ]
    assert len(everywhere) == len(created)
    assert {each["metadata"]["namespace"] for each in created} == {NAMESPACE}


def forged_from(application: Raw) -> Raw:
    """An application of another namespace that claims to be our output's."""
    metadata: dict[str, Any] = application["metadata"]
    return {
        **application,
        "metadata": {
            "name": "forged",
            "namespace": NEIGHBOUR,
            "labels": {**metadata["labels"], LABEL_OWNER: metadata["labels"][LABEL_OWNER]},
            "annotations": metadata["annotations"],
        },
        "status": {"applicationState": {"state": "RUNNING"}},
    }
