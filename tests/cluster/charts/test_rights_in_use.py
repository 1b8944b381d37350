"""All processes run as the chart's accounts: nothing is refused, and no right is idle.

What they ask for stands in the audit log of the API server. So a rule that is missing shows as a
refusal, and one that nobody needs as a right that was never used: taking away any other one would
have been a refusal.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes.client import ApiClient, Configuration, CoordinationV1Api, CoreV1Api
from kubernetes.config import load_kube_config
from support.cluster.auditlog import Asked, AuditedControlPlane
from support.cluster.chart import NAMESPACE, Raw, Release, Right, allowed
from support.cluster.cluster import Cluster as AnyCluster
from support.cluster.sparkcrds import install_spark_crds
from support.declared.declarations import document, model, spoilt
from support.operator.clusters import a_config_map, a_transformer, until
from support.operator.jobdouble import report
from support.operator.operatorharness import RealHarness, is_ready
from support.operator.pagesprocess import PagesProcess, expired, user_of
from support.operator.runrequests import a_request, an_output
from support.operator.webhookprocess import WebhookProcess
from support.operator.webhooks import HOST
from support.servers.certificates import Authority

from snaploom.models.common import now
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.report import RunPhase
from snaploom.output.leases import Contender, carry_out
from snaploom.run.clusterobjects import ClusterLease, ConfigMapPlace, ConfigMapReport
from snaploom.run.joblog import Owner, RunIdentity
from snaploom_operator.apply.events import EventRecorder
from snaploom_operator.apply.executor import apply
from snaploom_operator.cluster.client import open_cluster
from snaploom_operator.cluster.port import SECRETS, SPARK_APPLICATIONS, VALIDATING_WEBHOOKS, Cluster
from snaploom_operator.conditions import Reason
from snaploom_operator.decision import Create, Ensure, EventType, Note, RemoveFinalizer, Unparsable
from snaploom_operator.errors import NameTaken
from snaploom_operator.objects import Metadata, Ref
from snaploom_operator.settings import OperatorSettings
from snaploom_operator.submit.applications import SparkOperatorForm

JOBS_NAMESPACE = "jobs"
"""Where resources are."""
PATIENCE = 10.0
"""Seconds within which a changed role counts; it takes milliseconds."""
INDEX = {
    "target": {"path": {"uri": "/data/lake", "format": "parquet"}},
    "store": {"parquet": {"location": "/data/indexes"}},
    "indexes": [{"type": "MIN_MAX", "column": "price"}],
    "run": {"suspend": True},
}
APPLICATOR = {"fieldSelectors": [{"coordinateIncludeRegex": "a"}], "metadata": {"k": "v"}}
SPARE = (
    document("SkippingIndex", "spare", INDEX),
    document("MetadataApplicator", "spare", APPLICATOR),
    a_transformer("spare"),
)
"""One of each kind that the model lacks."""


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuditedControlPlane]:
    found = AuditedControlPlane(tmp_path_factory.mktemp("audited"))
    try:
        found.start()
        found.install_crds()
        install_spark_crds(found.kubectl)
        found.kubectl("create", "namespace", JOBS_NAMESPACE)
        yield found
    finally:
        found.close()


@pytest.fixture(params=[(), (JOBS_NAMESPACE,)], ids=["everywhere", "in one namespace"])
def release(plane: AuditedControlPlane, request: pytest.FixtureRequest) -> Iterator[Release]:
    """The chart, in a namespace of its own for each scope, so that accounts differ."""
    watched: tuple[str, ...] = request.param
    found = Release(plane, namespace=f"{NAMESPACE}-{'narrow' if watched else 'wide'}")
    found.upgrade({
        "crds": {"enabled": False},
        "watchNamespaces": list(watched),
        "pages": {"enabled": True},
        "spark": {"namespaces": [JOBS_NAMESPACE]},
    })  # fmt: skip
    yield found
    found.uninstall()


class InstalledHarness(RealHarness):
    """An operator as the chart installs it.

    Args:
        cluster: the cluster, for the test.
        kubeconfig: how the operator reaches it.
        settings: what the chart renders for it.
    """

    def __init__(self, cluster: Cluster, kubeconfig: Path, settings: OperatorSettings) -> None:
        super().__init__(cluster, kubeconfig, JOBS_NAMESPACE)
        self._settings = settings


def idle(rules: list[Raw], asked: set[Asked]) -> list[str]:
    """Rights that were not used: a verb of a rule on none of its resources, or the other way."""
    found = []
    for rule in rules:
        used = {
            (each.verb, each.resource)
            for each in asked
            if each.group in rule["apiGroups"]
            and each.resource in rule["resources"]
            and each.verb in rule["verbs"]
            and (each.name in rule.get("resourceNames", [each.name]) or each.verb == "create")
        }
        verbs, resources = {verb for verb, _ in used}, {resource for _, resource in used}
        found += [f"{verb} {rule['resources']}" for verb in rule["verbs"] if verb not in verbs]
        found += [f"any {each}" for each in rule["resources"] if each not in resources]
    return found


def refused(asked: set[Asked]) -> list[Asked]:
    return [each for each in asked if not each.is_allowed]


async def test_the_operator_has_the_rights_that_it_uses(plane, release):
    account = (release.namespace, "snaploom-operator")
    kubeconfig = plane.kubeconfig_of(*account)
    ports = {"health_port": 0, "metrics_port": 0, "readiness_port": 0}
    settings = release.manifest().settings().model_copy(update=ports)
    async with open_cluster(plane.kubeconfig) as cluster:
        harness = InstalledHarness(cluster, kubeconfig, settings)
        await harness.start()
        try:
            await everyday_work(harness)
            await certificate_is_issued(harness, settings)
        finally:
            await harness.stop()
    await rare_work(kubeconfig)
    asked = plane.asked_by(*account)
    assert refused(asked) == []
    assert idle(release.manifest().rules("operator"), asked) == []
    assert rules_not_missed(release, account, asked) == []


def rules_not_missed(
    release: Release, account: tuple[str, str], asked: set[Asked], component: str = "operator"
) -> list[Raw]:
    """Rules without which the API server would have refused nothing that was asked for."""
    samples = {(each.verb, each.group, each.resource, each.namespace): each for each in asked}
    rights = [each.right for each in samples.values()]
    found = []
    for role in release.manifest().of_kind("Role", "ClusterRole"):
        metadata = role["metadata"]
        if metadata["labels"].get("app.kubernetes.io/component") != component:
            continue
        for rule in role["rules"]:
            set_rules(release.cluster, role, [each for each in role["rules"] if each != rule])
            if not is_refused_soon(release.cluster, account, rights):
                found.append(rule)
        set_rules(release.cluster, role, role["rules"])
    return found


def is_refused_soon(cluster: AnyCluster, account: tuple[str, str], rights: list[Right]) -> bool:
    """Whether an account lacks one of some rights, once the API server knows of the last change."""
    deadline = time.monotonic() + PATIENCE
    while allowed(cluster, account, rights) == set(rights):
        if time.monotonic() > deadline:
            return False
    return True


def set_rules(cluster: AnyCluster, role: Raw, rules: list[Raw]) -> None:
    """Change what a role allows."""
    metadata = role["metadata"]
    where = ["--namespace", metadata["namespace"]] if "namespace" in metadata else []
    change = [{"op": "add", "path": "/rules", "value": rules}]
    named = [role["kind"], metadata["name"], *where]
    cluster.kubectl("patch", *named, "--type=json", "--patch", json.dumps(change))


async def everyday_work(harness: RealHarness) -> None:
    """Apply, change and delete declarations of every kind."""
    *others, output = model()
    output = spoilt(output, "spec.run", {
        "deletionPolicy": "Delete", "historyLimit": {"successful": 0, "failed": 0},
    })  # fmt: skip
    await harness.apply(*others, *SPARE, output)
    await harness.wait_for("OutputDataset/wide", is_ready)
    await harness.apply(spoilt(output, "spec.dataModel.otherDataSources.0.fieldName", "home"))
    await harness.wait_for("OutputDataset/wide", is_ready)
    for raw in SPARE:
        await harness.wait_for(f"{raw['kind']}/spare", lambda raw: "status" in raw)
    await harness.delete("OutputDataset/wide")
    await harness.wait_for("OutputDataset/wide", lambda raw: not raw)

    for raw in (*others, *SPARE):
        await harness.delete(f"{raw['kind']}/{raw['metadata']['name']}")


async def certificate_is_issued(harness: RealHarness, settings: OperatorSettings) -> None:
    secret, webhooks = settings.admission.certificate_secret, settings.admission.configuration

    async def is_issued() -> bool:
        held: Any = await harness.cluster.get(SECRETS, settings.namespace, secret)
        trusted: Any = await harness.cluster.get(VALIDATING_WEBHOOKS, "", webhooks)
        bundles = [each["clientConfig"].get("caBundle") for each in trusted["webhooks"]]
        return "tls.key" in held.get("data", {}) and all(bundles)

    await until(is_issued)


async def rare_work(kubeconfig: Path) -> None:
    """What large outputs need, and what follows a lost answer, done by the code that does it."""
    mine, theirs = (an_output("gone", uid=uid, namespace=JOBS_NAMESPACE) for uid in ("1", "2"))
    note = Note(EventType.NORMAL, Reason.RUN_STARTED, f"as {kubeconfig.stem}")
    async with open_cluster(kubeconfig) as cluster:
        for _ in range(2):
            created = await apply(application_of(mine), mine, cluster)
        for text in ("as it was", "as it is"):
            plan = a_config_map("gone-plan", {"plan.json": text})
            await apply(Ensure(plan), mine, cluster)  # as of an output with very many joins
        with pytest.raises(NameTaken):
            await apply(application_of(theirs), theirs, cluster)
        await apply(RemoveFinalizer(), unparsable(mine), cluster)
        for _ in range(2):
            recorder = EventRecorder(cluster, "test")
            await recorder.post(Ref("OutputDataset", JOBS_NAMESPACE, "gone"), "1", note, now())
        found = Metadata.of(created or {})
        await cluster.delete(SPARK_APPLICATIONS, JOBS_NAMESPACE, found.name, uid=found.uid)


def unparsable(resource: OutputDataset) -> Unparsable:
    """A resource as it is known where its spec cannot be read."""
    ref = Ref(resource.kind, JOBS_NAMESPACE, resource.name)
    uid = resource.metadata.uid or ""
    return Unparsable(now=now(), ref=ref, uid=uid, generation=1, findings=(), status=None)


def application_of(owner: OutputDataset) -> Create:
    manifest: Any = SparkOperatorForm().manifest(a_request(owner, name="ods-gone-00000000"))
    manifest["metadata"].pop("ownerReferences")  # of what has no owner the cluster makes an end
    return Create(SPARK_APPLICATIONS, manifest)


def test_the_webhook_has_the_rights_that_it_uses(plane, release, tmp_path):
    account = (release.namespace, "snaploom-webhook")
    watched = release.manifest().settings().watch_namespaces
    issued = Authority(tmp_path, "authority").issue(HOST)
    kubeconfig = plane.kubeconfig_of(*account)
    with WebhookProcess(tmp_path / "webhook", kubeconfig, issued, watched).running() as process:
        rules = release.manifest().rules("webhook")
        process.until(lambda: not idle(rules, plane.asked_by(*account)))
    assert refused(plane.asked_by(*account)) == []


def test_pages_have_the_rights_that_they_use(plane, release, tmp_path):
    account = (release.namespace, "snaploom-pages")
    plane.kubectl.apply(*model(), namespace=JOBS_NAMESPACE)
    token = user_of(plane, JOBS_NAMESPACE, f"reader-{release.namespace}")
    watched = release.manifest().settings().watch_namespaces
    kubeconfig = plane.kubeconfig_of(*account)
    folder = tmp_path / "pages"
    with PagesProcess(folder, kubeconfig, watched=watched).running() as process:
        assert f"{JOBS_NAMESPACE}/wide" in process.asked("/", token).text
        assert process.asked("/", "garbage").status == 401
        assert process.asked("/", expired(token, plane.signing_key)).status == 401
        rules = release.manifest().rules("pages")
        process.until(lambda: not idle(rules, plane.asked_by(*account)))
    asked = plane.asked_by(*account)
    assert refused(asked) == []
    assert idle(rules, asked) == []
    assert rules_not_missed(release, account, asked, "pages") == []


def test_a_job_may_write_its_report_and_hold_its_lease(plane, release):
    configuration = Configuration()
    account = (JOBS_NAMESPACE, "snaploom-spark")
    load_kube_config(str(plane.kubeconfig_of(*account)), client_configuration=configuration)
    # Of an owner that is there: what belongs to nobody is removed.
    *_, declared = model()
    plane.kubectl.apply(declared, namespace=JOBS_NAMESPACE)
    uid = plane.kubectl.get("outputdataset", "wide", JOBS_NAMESPACE)["metadata"]["uid"]
    owner, place = (
        Owner("OutputDataset", "wide", JOBS_NAMESPACE),
        ConfigMapPlace(JOBS_NAMESPACE, release.namespace),
    )
    identity = RunIdentity("run", uid, 0)
    with ApiClient(configuration) as client:
        writer = ConfigMapReport(place, owner, identity, lambda: CoreV1Api(client))
        writer.write(report())
        writer.write(report(RunPhase.FAILED))
        uri, leases = f"s3://lake/{release.namespace}/", CoordinationV1Api(client)
        lease = ClusterLease(uri, owner, identity, now, lambda: leases)
        contender = Contender("run", 30, 30, time.monotonic)
        assert carry_out(contender.hold(), lease)
        assert carry_out(contender.hold(), lease)
        carry_out(contender.release(), lease)
    asked = plane.asked_by(*account)
    assert refused(asked) == []
    for resource in ("configmaps", "leases"):
        assert {each.verb for each in asked if each.resource == resource} == {
            "get", "create", "update",
        }  # fmt: skip
