"""Installation, upgrade and removal by Helm on a real API server."""

import base64
import json
from collections.abc import Iterator

import pytest
from support.cluster.chart import (
    CHART,
    NAMESPACE,
    RELEASE,
    HelmFailed,
    Raw,
    Release,
    earliest_chart,
)
from support.cluster.cluster import Cluster
from support.cluster.clusterkubectl import KubectlFailed

from snaploom.models.kinds import KINDS
from snaploom.models.schemas import crd_name

SOURCE: Raw = {
    "apiVersion": "snaploom.io/v1alpha1",
    "kind": "DataSource",
    "metadata": {"name": "kept", "namespace": "default"},
    "spec": {"simpleVirtual": {"dataSource": "a", "alias": "a", "dataQuery": "SELECT * FROM a"}},
}
CRDS = [crd_name(kind) for kind in KINDS]
WITHOUT_CRDS: Raw = {"crds": {"enabled": False}}
"""Helm takes seconds for them."""
WEBHOOK = "validatingwebhookconfiguration"


@pytest.fixture
def release(bare_cluster: Cluster) -> Iterator[Release]:
    """A release that is gone afterwards, with its CRDs."""
    found = Release(bare_cluster)
    yield found
    if RELEASE in bare_cluster.kubectl("get", "secrets", "--namespace", NAMESPACE, "-o", "name"):
        found.uninstall()
    bare_cluster.delete_crds()


def uids(cluster: Cluster, *kinds: str) -> dict[str, str]:
    """UID of every object of some kinds, by kind and name."""
    printed = cluster.kubectl("get", ",".join(kinds), "--all-namespaces", "--output", "json")
    return {
        f"{each['kind']}/{each['metadata']['name']}": each["metadata"]["uid"]
        for each in json.loads(printed)["items"]
    }


def create_source(cluster: Cluster) -> None:
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", *CRDS)
    cluster.kubectl.apply(SOURCE)


def fill_certificate(release: Release) -> None:
    """What the operator does when it issues a certificate."""
    patch = {"data": {"tls.crt": encoded("certificate"), "tls.key": encoded("key")}}
    name = "snaploom-webhook-certificate"
    release.cluster.kubectl(
        "patch", "secret", name, "--namespace", NAMESPACE, "--type=merge", "-p", json.dumps(patch)
    )
    authority = [
        {"op": "add", "path": f"/webhooks/{number}/clientConfig/caBundle", "value": AUTHORITY}
        for number, _ in enumerate(release.stored(WEBHOOK, "snaploom")["webhooks"])
    ]
    release.cluster.kubectl(
        "patch", WEBHOOK, "snaploom", "--type=json", "-p", json.dumps(authority)
    )


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


AUTHORITY = encoded("-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n")


def differences(cluster: Cluster, manifest: list[Raw]) -> str:
    """What would change in the cluster if a manifest was applied; empty for nothing."""
    everything = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifest})
    options = ["--server-side", "--force-conflicts", "--field-manager=gitops"]
    try:
        return cluster.kubectl("diff", *options, "--filename", "-", stdin=everything)
    except KubectlFailed as error:
        return f"{error}"


def test_api_server_adds_nothing_that_git_does_not_have(release: Release) -> None:
    release.upgrade(WITHOUT_CRDS)
    rendered = [each for each in release.manifest().objects if each["kind"] != "Pod"]
    assert differences(release.cluster, rendered) == ""
    (ours,) = (each for each in rendered if each["kind"] == "ValidatingWebhookConfiguration")
    assert release.stored(WEBHOOK, "snaploom")["webhooks"] == ours["webhooks"]


def test_an_upgrade_keeps_certificates(release: Release) -> None:
    release.upgrade(WITHOUT_CRDS)
    fill_certificate(release)
    release.upgrade(
        WITHOUT_CRDS | {"logs": {"level": "debug"}, "admission": {"failurePolicy": "Fail"}}
    )
    secret = release.stored("secret", "snaploom-webhook-certificate")
    assert secret["data"] == {"tls.crt": encoded("certificate"), "tls.key": encoded("key")}
    webhooks = release.stored(WEBHOOK, "snaploom")["webhooks"]
    assert [each["clientConfig"]["caBundle"] for each in webhooks] == [AUTHORITY, AUTHORITY]
    assert [each["failurePolicy"] for each in webhooks] == ["Fail", "Ignore"]


def test_definitions_that_the_command_line_applied_are_taken_over(release: Release) -> None:
    release.cluster.install_crds()
    create_source(release.cluster)
    before = uids(release.cluster, "crd", "datasource")
    with pytest.raises(HelmFailed, match="cannot be imported into the current release"):
        release.upgrade({})
    release.upgrade({}, CHART, "--take-ownership")
    after = uids(release.cluster, "crd", "datasource")
    assert {name: after.get(name) for name in before} == before
    labels = release.cluster.kubectl.get("crd", CRDS[0])["metadata"]["labels"]
    assert labels["app.kubernetes.io/managed-by"] == "Helm"
    release.upgrade({"logs": {"level": "debug"}})


def test_the_same_chart_again_changes_nothing(release: Release) -> None:
    release.upgrade(WITHOUT_CRDS)
    before = versions(release)
    release.upgrade(WITHOUT_CRDS)
    assert versions(release) == before


def versions(release: Release) -> dict[str, str]:
    """Resource version of every object of the release."""
    found = {}
    for each in release.manifest().objects:
        if each["kind"] not in ("Pod", "Deployment"):  # of a Deployment also its status is counted
            stored = release.stored(each["kind"], each["metadata"]["name"])
            found[f"{each['kind']}/{each['metadata']['name']}"] = stored["metadata"][
                "resourceVersion"
            ]
    return found


def test_upgrade_from_the_first_chart_keeps_every_resource(release, tmp_path):
    release.upgrade({}, earliest_chart(tmp_path))
    create_source(release.cluster)
    fill_certificate(release)
    kept = ("crd", "secret", "serviceaccount", "datasource")
    before = uids(release.cluster, *kept)
    release.upgrade({})
    after = uids(release.cluster, *kept)
    lost = {name for name, uid in before.items() if after.get(name) != uid}
    assert {name for name in lost if "helm.release" not in name} == set()
    assert release.stored("secret", "snaploom-webhook-certificate")["data"]


def test_resources_outlive_the_chart_and_are_found_again(release: Release) -> None:
    release.upgrade({})
    create_source(release.cluster)
    before = uids(release.cluster, "crd", "datasource")
    kept = ("CustomResourceDefinition", "Pod")
    installed = [each for each in release.manifest().objects if each["kind"] not in kept]
    release.uninstall()
    assert uids(release.cluster, "crd", "datasource") == before
    left = uids(release.cluster, *{each["kind"] for each in installed})
    assert [
        each for each in installed if f"{each['kind']}/{each['metadata']['name']}" in left
    ] == []
    release.upgrade({})
    assert uids(release.cluster, "crd", "datasource") == before


def test_without_keep_the_kinds_go_with_the_chart(release: Release) -> None:
    release.upgrade({"crds": {"keep": False}})
    release.uninstall(wait=False)
    release.cluster.await_deletion_of_crds()


def test_a_cluster_may_have_the_kinds_already(release: Release) -> None:
    release.cluster.install_crds()
    release.upgrade({"crds": {"enabled": False}})
    assert release.manifest().of_kind("CustomResourceDefinition") == []
