"""Over every pair of its switches, the chart gives objects that fit each other and Kubernetes."""

import shlex
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from support.cluster.chart import (
    CHART,
    MATRIX,
    NAMESPACE,
    HelmFailed,
    Raw,
    Rendered,
    helm,
    identity,
    render_text,
)
from support.cluster.cluster import Cluster
from support.documentation.pages import DOCS, blocks_of

WITHOUT_CRDS = {"crds": {"enabled": False}}
SCHEMAS = Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema"
OLDEST = 30
"""Minor version of the oldest Kubernetes that the chart takes."""
VERSIONS = sorted(
    minor
    for folder in SCHEMAS.glob("v1.*-strict")
    if (minor := int(folder.name.split(".")[1])) >= OLDEST
)
OTHERS = ("monitoring.coreos.com", "cert-manager.io")
"""Groups whose schemas Kubernetes does not have."""
CLUSTER_KINDS = (
    "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition",
    "ValidatingWebhookConfiguration",
)  # fmt: skip


def numbered(values: Raw) -> Raw:
    return values | {"crds": values["crds"] | WITHOUT_CRDS["crds"]}


@cache
def rendered(number: int) -> Rendered:
    return Rendered.of(numbered(MATRIX[number]))


every_case = pytest.mark.parametrize("case", range(len(MATRIX)))


def faults(stored: Raw, minor: int) -> list[str]:
    """Objections of the API server of a version."""
    if stored["apiVersion"].partition("/")[0] in OTHERS:
        return []
    try:
        kubernetes_validate.validate(stored, f"1.{minor}", strict=True)
    except kubernetes_validate.ValidationError as error:
        return [f"{identity(stored)}: {error.message}"]
    return []


def test_helm_finds_nothing_to_complain_of() -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", "--kube-version", "1.34.4", CHART)


@pytest.mark.parametrize("replicas", [1, 3])
def test_budget_lets_every_node_be_emptied(replicas: int) -> None:
    (budget,) = Rendered.of({"admission": {"replicas": replicas}}).of_kind("PodDisruptionBudget")
    assert budget["spec"]["maxUnavailable"] == 1
    assert "minAvailable" not in budget["spec"]


def test_an_older_kubernetes_is_refused() -> None:
    with pytest.raises(HelmFailed, match="incompatible with Kubernetes"):
        render_text(WITHOUT_CRDS, kubernetes="1.29.0")


def test_the_chart_is_of_this_version() -> None:
    about = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    assert about["appVersion"] == version("snaploom")


@pytest.mark.parametrize("minor", VERSIONS)
def test_every_supported_kubernetes_takes_the_defaults(minor: int) -> None:
    objects = Rendered.of({}, kubernetes=f"1.{minor}.0").objects
    assert [fault for each in objects for fault in faults(each, minor)] == []


@every_case
def test_oldest_and_newest_kubernetes_take_it(case: int) -> None:
    objects = rendered(case).objects
    assert objects
    for minor in (VERSIONS[0], VERSIONS[-1]):
        assert [fault for each in objects for fault in faults(each, minor)] == []


@every_case
def test_nothing_is_random(case: int) -> None:
    values = numbered(MATRIX[case])
    assert render_text(values) == render_text(values)


@every_case
def test_names_are_unique_and_short_enough(case: int) -> None:
    objects = rendered(case).objects
    assert len(rendered(case).names()) == len(objects)
    assert [each for each in objects if len(each["metadata"]["name"]) > 63] == []


@every_case
def test_every_object_names_its_namespace_and_its_labels(case: int) -> None:
    for each in rendered(case).objects:
        assert ("namespace" in each["metadata"]) == (each["kind"] not in CLUSTER_KINDS)
        labels = each["metadata"]["labels"]
        assert labels["app.kubernetes.io/instance"] == "snaploom"
        assert labels["app.kubernetes.io/name"] != "mistaken"
        if "commonLabels" in MATRIX[case] and MATRIX[case]["commonLabels"]:
            assert labels["company"] == "example"


@every_case
def test_operator_reads_the_settings(case: int) -> None:
    values, settings = MATRIX[case], rendered(case).settings()
    assert settings.namespace == NAMESPACE
    assert settings.watch_namespaces == tuple(dict.fromkeys(values["watchNamespaces"]))
    assert list(settings.submitters) == values["operator"]["submitters"]
    assert settings.limits.runs == values["operator"].get("limits", {}).get("runs", 50)
    assert settings.admission.protect_dependants == values["admission"]["protectDependants"]


def test_every_release_has_a_lease_of_its_own_that_it_may_hold() -> None:
    for release, lease in (("snaploom", "snaploom-operator"), ("other", "other-snaploom-operator")):
        found = Rendered.of(WITHOUT_CRDS, release=release)
        assert found.settings().lease == lease
        named = [
            rule["resourceNames"]
            for role in found.of_kind("Role")
            for rule in role["rules"]
            if "leases" in rule["resources"] and "resourceNames" in rule
        ]
        assert named == [[lease]]


@every_case
def test_names_in_the_settings_are_those_of_objects(case: int) -> None:
    found, values = rendered(case), MATRIX[case]
    settings = found.settings()
    if values["admission"]["enabled"]:
        (webhook,) = (
            each["spec"]["template"]["spec"]
            for each in found.of_kind("Deployment")
            if each["metadata"]["name"].endswith("-webhook")
        )
        (volume,) = (each for each in webhook["volumes"] if each["name"] == "certificates")
        assert volume["secret"]["secretName"] == settings.admission.certificate_secret
        found.one("ValidatingWebhookConfiguration", settings.admission.configuration)
        found.one("Service", settings.admission.service)
    if values["admission"]["enabled"] and settings.admission.is_certificate_rotated:
        found.one("Secret", settings.admission.certificate_secret)
    if values["spark"]["serviceAccount"].get("create", True):
        assert settings.spark.service_account_name in {
            each["metadata"]["name"] for each in found.of_kind("ServiceAccount")
        }


@every_case
def test_selectors_find_the_pods_of_their_deployment_only(case: int) -> None:
    deployments = rendered(case).of_kind("Deployment")
    for one in deployments:
        selector = one["spec"]["selector"]["matchLabels"].items()
        assert [
            other
            for other in deployments
            if selector <= other["spec"]["template"]["metadata"]["labels"].items()
        ] == [one]


@every_case
def test_services_lead_to_ports_of_pods(case: int) -> None:
    found = rendered(case)
    for service in found.of_kind("Service"):
        selector = service["spec"]["selector"].items()
        pods = [
            each["spec"]["template"]
            for each in found.of_kind("Deployment")
            if selector <= each["spec"]["template"]["metadata"]["labels"].items()
        ]
        assert pods
        for pod in pods:
            names = {port["name"] for port in pod["spec"]["containers"][0]["ports"]}
            assert {port["targetPort"] for port in service["spec"]["ports"]} <= names


@every_case
def test_pods_are_restricted(case: int) -> None:
    for _, pod in rendered(case).pods():
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostPID", "hostIPC", "initContainers"} & pod.keys()
        for container in pod["containers"]:
            context: dict[str, Any] = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert context["readOnlyRootFilesystem"] is True
            assert {"requests", "limits"} <= container["resources"].keys()


@every_case
def test_pods_start_anew_when_settings_change(case: int) -> None:
    values = numbered(MATRIX[case])
    changed = Rendered.of(values | {"clusterDomain": "other.local"})
    for before, after in zip(
        rendered(case).of_kind("Deployment"), changed.of_kind("Deployment"), strict=True
    ):
        hashes = [
            each["spec"]["template"]["metadata"]["annotations"]["snaploom.io/settings"]
            for each in (before, after)
        ]
        assert hashes[0] != hashes[1]


@pytest.mark.parametrize("is_allowed", [False, True])
def test_urls_of_databases_are_refused_unless_a_value_allows_them(is_allowed: bool) -> None:
    values = WITHOUT_CRDS | ({"allowJdbcUrl": True} if is_allowed else {})
    assert Rendered.of(values).settings().allow_jdbc_url is is_allowed


def test_lineage_is_sent_to_the_address_of_a_value() -> None:
    key = {"secret": "lineage", "key": "token"}
    lineage = {"url": "https://lineage.example/open", "namespace": "prod", "apiKey": key}
    assert Rendered.of(WITHOUT_CRDS).settings().lineage.url == ""
    assert Rendered.of(WITHOUT_CRDS | {"lineage": lineage}).settings().lineage.dump() == lineage


def test_runs_with_an_accelerator_have_an_image_of_their_own() -> None:
    given = {"image": {"repository": "registry.example/comet", "tag": "7"}}
    settings = Rendered.of(WITHOUT_CRDS | {"spark": {"comet": given}}).settings()
    assert settings.comet.dump() == {"image": "registry.example/comet:7", "sparkVersion": "4.1.4"}
    assert Rendered.of(WITHOUT_CRDS).settings().comet.image.startswith("snaploom-spark-comet:")


@pytest.mark.parametrize("url", ["http://user:pass@host", "http://host?key=1", "file:///tmp/a"])
def test_a_secret_in_the_address_of_lineage_is_refused(url: str) -> None:
    with pytest.raises(HelmFailed, match="url"):
        Rendered.of(WITHOUT_CRDS | {"lineage": {"url": url}})


def test_drivers_export_spark_metrics_where_a_value_enables_them() -> None:
    own = {"application": {"sparkConf": {"spark.ui.enabled": "true", "spark.a": "1"}}}
    found = Rendered.of(WITHOUT_CRDS | {"metrics": {"podMonitor": {"enabled": True}}, "spark": own})
    conf = found.settings().spark.spark_conf
    assert conf["spark.a"] == "1"
    assert conf["spark.ui.prometheus.enabled"] == "true"
    (monitor,) = found.of_kind("PodMonitor")
    assert monitor["spec"]["selector"]["matchLabels"] == {"snaploom.io/role": "driver"}
    assert {each["port"] for each in monitor["spec"]["podMetricsEndpoints"]} == {"spark-ui"}
    assert not Rendered.of(WITHOUT_CRDS).of_kind("PodMonitor")


def test_nothing_of_pages_is_there_unless_a_value_enables_them() -> None:
    assert [name for name in Rendered.of(WITHOUT_CRDS).names() if "pages" in name[2]] == []


@pytest.mark.parametrize(("secret", "port"), [("", 80), ("pages-tls", 443)])
def test_pages_are_served_with_the_certificate_of_a_secret(secret: str, port: int) -> None:
    found = Rendered.of(WITHOUT_CRDS | {"pages": {"enabled": True, "tlsSecret": secret}})
    (served,) = found.one("Service", "snaploom-pages")["spec"]["ports"]
    assert (served["port"], served["targetPort"]) == (port, "pages")
    pod = dict(found.pods())["snaploom-pages"]
    secrets = [each["secret"]["secretName"] for each in pod["volumes"] if "secret" in each]
    assert secrets == ([secret] if secret else [])
    mounts = {each["mountPath"] for each in pod["containers"][0]["volumeMounts"]}
    folder = found.settings().pages.certificate_folder
    assert folder in mounts if secret else folder == ""


def test_a_policy_limits_who_asks_for_pages() -> None:
    peer = {"podSelector": {"matchLabels": {"app": "proxy"}}}
    policy = {"enabled": True, "pagesFrom": [peer]}
    values = WITHOUT_CRDS | {"pages": {"enabled": True}, "networkPolicy": policy}
    (found,) = Rendered.of(values).of_kind("NetworkPolicy")
    (rule,) = [each for each in found["spec"]["ingress"] if each["ports"][0]["port"] == "pages"]
    assert rule["from"] == [peer]


def test_pods_run_on_where_nothing_of_theirs_changes() -> None:
    before = Rendered.of(WITHOUT_CRDS)
    after = Rendered.of(WITHOUT_CRDS | {"metrics": {"dashboard": {"enabled": True}}})
    assert before.of_kind("Deployment") == after.of_kind("Deployment")


def test_pod_settings_are_in_the_pods() -> None:
    (case, *_) = (i for i, each in enumerate(MATRIX) if "env" in each["operator"])
    _, pod = next(each for each in rendered(case).pods() if each[0].endswith("-operator"))
    (container,) = pod["containers"]
    assert pod["tolerations"] == [{"key": "spark", "operator": "Exists", "effect": "NoSchedule"}]
    assert pod["priorityClassName"] == "system-cluster-critical"
    assert pod["securityContext"]["runAsUser"] == 10001
    assert {each["name"] for each in container["env"]} == {"HTTPS_PROXY", "NODE"}
    assert "authorities" in {each["name"] for each in pod["volumes"]}
    assert "/etc/ssl/certs" in {each["mountPath"] for each in container["volumeMounts"]}
    assert container["livenessProbe"]["periodSeconds"] == 20


def test_a_pod_pulls_by_the_secrets_of_its_namespace() -> None:
    application = {"imagePullSecrets": ["of-jobs"]}
    spark = {"namespaces": ["data"], "application": application}
    found = Rendered.of({"imagePullSecrets": [{"name": "of-release"}], "spark": spark})
    pulled = {
        name: [each["name"] for each in spec["imagePullSecrets"]] for name, spec in found.pods()
    }
    assert pulled.pop("snaploom-test-spark") == ["of-jobs"]
    assert set(map(tuple, pulled.values())) == {("of-release",)}


def test_pods_have_minutes_to_start_on_a_busy_node() -> None:
    for _, pod in Rendered.of(WITHOUT_CRDS).pods():
        for probe in (each["startupProbe"] for each in pod["containers"] if "ports" in each):
            assert probe["periodSeconds"] * probe["failureThreshold"] >= 120


INSTALL = DOCS / "how-to/install.md"
OPERATOR_NAMESPACE = "snaploom-system"
OBJECTS = [
    text
    for page in sorted((DOCS / "operating").glob("*.md"))
    for block in blocks_of(page)
    if block.language == "text" and (text := block.text).startswith("apiVersion:")
]
"""Objects of Kubernetes that pages show whole."""


@pytest.fixture(scope="module")
def plain(bare_cluster: Cluster) -> Iterator[Cluster]:
    """A cluster with the namespace of the page, which is gone afterwards with the CRDs."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OPERATOR_NAMESPACE}}
    bare_cluster.kubectl.apply(namespace)  # other tests of this cluster may have left it
    yield bare_cluster
    for kind in ("clusterrole", "clusterrolebinding", "validatingwebhookconfiguration"):
        ours = f"app.kubernetes.io/instance={OPERATOR_NAMESPACE.partition('-')[0]}"
        bare_cluster.kubectl("delete", kind, "--selector", ours, "--ignore-not-found")
    bare_cluster.delete_crds()
    bare_cluster.kubectl("delete", "namespace", OPERATOR_NAMESPACE)


def rendered_as_shown() -> str:
    """What the page's command renders, without a file of values."""
    block = next(b for b in blocks_of(INSTALL) if "helm template" in b.text)
    command = block.text.replace("\\\n", " ").partition(">")[0]
    program, *arguments = shlex.split(command)
    assert program == "helm"
    given = [str(CHART) if each == "charts/snaploom" else each for each in arguments]
    at = given.index("--values")
    return helm(*given[:at], *given[at + 2 :])


def test_manifests_install_all_but_tests_and_change_nothing_again(plain: Cluster) -> None:
    text = rendered_as_shown()
    objects: list[Raw] = [each for each in yaml.safe_load_all(text) if each]
    expected = {each for each in Rendered.of({}).names() if each[0] != "Pod"}
    assert {identity(each) for each in objects} == expected
    apply = ("apply", "--server-side", "--filename", "-")
    assert plain.kubectl(*apply, stdin=text).count("serverside-applied") == len(objects)
    found = plain.kubectl(
        "get", "deployments,secrets", "--namespace", OPERATOR_NAMESPACE, "--output", "name"
    )
    before = plain.kubectl("get", "clusterrole", "snaploom-operator", "--output", "yaml")
    plain.kubectl(*apply, stdin=rendered_as_shown())
    assert {"deployment.apps/snaploom-operator", "deployment.apps/snaploom-webhook"} <= set(
        found.split()
    )
    assert plain.kubectl("get", "clusterrole", "snaploom-operator", "--output", "yaml") == before


@pytest.mark.parametrize("text", OBJECTS, ids=range(len(OBJECTS)))
def test_objects_that_pages_show_are_accepted(bare_cluster: Cluster, text: str) -> None:
    stored: Raw = yaml.safe_load(text)
    metadata = {**stored["metadata"], "namespace": "default"}
    plain = yaml.safe_dump({**stored, "metadata": metadata})
    bare_cluster.kubectl("create", "--dry-run=server", "--filename", "-", stdin=plain)
