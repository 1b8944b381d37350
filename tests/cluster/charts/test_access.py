"""Accounts may do what their code does, and nothing else: as the API server judges it."""

import json
import os
import subprocess
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from generation.permissions import GrantedRule, rules_of_accounts, rules_of_people
from support.cluster.chart import (
    MATRIX,
    NAMESPACE,
    RELEASE,
    Raw,
    Release,
    Rendered,
    Right,
    Values,
    allowed,
)
from support.cluster.cluster import Cluster
from support.cluster.clusterkubectl import Kubectl

from snaploom.models.kinds import KINDS
from snaploom_operator.settings import OperatorSettings

CERTIFICATE = "snaploom-webhook-certificate"
LEASE = OperatorSettings().lease
WITHOUT_CRDS: Raw = {"crds": {"enabled": False}}
OURS = [f"{kind.plural}.snaploom.io" for kind in KINDS]
VERBS = (
    "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection",
)  # fmt: skip
OPERATOR = {
    **dict.fromkeys(OURS, "get list watch patch"),
    **{f"{resource}/status": "patch" for resource in OURS},
    "sparkapplications.sparkoperator.k8s.io": "get list watch create delete",
    "sparkapplications.spark.apache.org": "",
    "configmaps": "get list watch create patch delete",
    "pods": "list watch",
    "events.events.k8s.io": "get create patch",
    "pods/log": "",
    "pods/exec": "",
    "secrets": "",
    "serviceaccounts": "",
    "serviceaccounts/token": "",
    "services": "",
    "jobs.batch": "",
    "roles.rbac.authorization.k8s.io": "",
    "rolebindings.rbac.authorization.k8s.io": "",
}
"""What the operator may do wherever it looks after resources."""
WEBHOOK = {resource: "list watch" if resource in OURS else "" for resource in OPERATOR}
PAGES = dict.fromkeys(OPERATOR, "") | {
    f"{plural}.snaploom.io": "list watch"
    for plural in ("outputdatasets", "datasources", "skippingindexes")
}
REVIEWS = {
    Right("create", "tokenreviews.authentication.k8s.io"),
    Right("create", "subjectaccessreviews.authorization.k8s.io"),
}
"""What the pages may ask the API server about others."""
SPARK = dict.fromkeys(OPERATOR, "") | {
    "pods": "get list watch create patch delete deletecollection",
    "configmaps": "get create update deletecollection",
    "services": "deletecollection",
    "persistentvolumeclaims": "list create deletecollection",
    "leases.coordination.k8s.io": "get create update",
}
OWN = {
    Right("create", "leases.coordination.k8s.io", NAMESPACE),
    Right("create", "leases.coordination.k8s.io", NAMESPACE, LEASE),
    *(Right(verb, "leases.coordination.k8s.io", NAMESPACE, LEASE) for verb in ("get", "patch")),
    *(Right(verb, "secrets", NAMESPACE, CERTIFICATE) for verb in ("get", "patch")),
}
"""What the operator may do in its own namespace besides."""
WITHOUT_NAMESPACE = {
    Right(verb, "validatingwebhookconfigurations.admissionregistration.k8s.io", name="snaploom")
    for verb in ("get", "patch")
}
"""What the operator may do outside all namespaces, wherever it looks after resources."""
BEYOND = [
    Right(verb, resource, name=name)
    for verb, (resource, name) in product(
        (*VERBS, "bind", "escalate", "impersonate"),
        (
            ("nodes", ""),
            ("namespaces", ""),
            ("users", ""),
            ("tokenreviews.authentication.k8s.io", ""),
            ("subjectaccessreviews.authorization.k8s.io", ""),
            ("customresourcedefinitions.apiextensions.k8s.io", ""),
            ("clusterroles.rbac.authorization.k8s.io", ""),
            ("validatingwebhookconfigurations.admissionregistration.k8s.io", ""),
            ("validatingwebhookconfigurations.admissionregistration.k8s.io", "snaploom"),
            ("validatingwebhookconfigurations.admissionregistration.k8s.io", "another"),
        ),
    )
]
"""Questions about what is in no namespace."""


@pytest.fixture(scope="module")
def release(bare_cluster: Cluster) -> Iterator[Release]:
    """A release that watches every namespace."""
    found = Release(bare_cluster)
    bare_cluster.install_crds()
    bare_cluster.kubectl("create", "namespace", "jobs")
    found.upgrade(WITHOUT_CRDS | {"spark": {"namespaces": ["jobs"]}, "pages": {"enabled": True}})
    yield found
    found.uninstall()
    bare_cluster.kubectl("delete", "namespace", "jobs", "--wait=false")
    bare_cluster.delete_crds()


@pytest.fixture(scope="module")
def narrow(bare_cluster: Cluster) -> Iterator[Release]:
    """A release that watches two namespaces."""
    found = Release(bare_cluster, "narrow", "narrow")
    for name in ("team-a", "team-b"):
        bare_cluster.kubectl("create", "namespace", name)
    values = {"watchNamespaces": ["team-a", "team-b"], "pages": {"enabled": True}}
    found.upgrade(WITHOUT_CRDS | values)
    yield found
    found.uninstall()
    for name in ("team-a", "team-b"):
        bare_cluster.kubectl("delete", "namespace", name, "--wait=false")


def granted(table: dict[str, str], namespace: str) -> set[Right]:
    return {
        Right(verb, resource, namespace)
        for resource, verbs in table.items()
        for verb in verbs.split()
    }


def questions(table: dict[str, str], namespace: str) -> list[Right]:
    return [Right(verb, resource, namespace) for resource in table for verb in VERBS]


def own_questions(namespace: str) -> list[Right]:
    kinds = (
        ("leases.coordination.k8s.io", ""), ("leases.coordination.k8s.io", LEASE),
        ("secrets", ""), ("secrets", "another"), ("secrets", CERTIFICATE),
    )  # fmt: skip
    return [
        Right(verb, resource, namespace, name) for verb, (resource, name) in product(VERBS, kinds)
    ]


def test_the_operator_may_do_its_work_everywhere(release: Release) -> None:
    account = (NAMESPACE, "snaploom-operator")
    for namespace in ("", "default", "jobs"):
        found = allowed(release.cluster, account, questions(OPERATOR, namespace))
        assert found == granted(OPERATOR, namespace)


def test_the_operator_may_do_little_outside_namespaces(release: Release) -> None:
    seen = {Right(verb, "namespaces") for verb in ("list", "watch")}
    found = allowed(release.cluster, (NAMESPACE, "snaploom-operator"), BEYOND)
    assert found == WITHOUT_NAMESPACE | seen


def test_the_operator_may_change_its_own_certificate_and_lease_only(release: Release) -> None:
    account = (NAMESPACE, "snaploom-operator")
    assert allowed(release.cluster, account, own_questions(NAMESPACE)) == OWN
    assert allowed(release.cluster, account, own_questions("default")) == set()


def test_the_webhook_may_look_and_no_more(release: Release) -> None:
    account = (NAMESPACE, "snaploom-webhook")
    for namespace in ("", "default"):
        found = allowed(release.cluster, account, questions(WEBHOOK, namespace))
        assert found == granted(WEBHOOK, namespace)
    assert allowed(release.cluster, account, [*BEYOND, *own_questions(NAMESPACE)]) == set()


def test_pages_may_look_and_ask_about_users_and_no_more(release: Release) -> None:
    account = (NAMESPACE, "snaploom-pages")
    for namespace in ("", "default"):
        found = allowed(release.cluster, account, questions(PAGES, namespace))
        assert found == granted(PAGES, namespace)
    assert allowed(release.cluster, account, [*BEYOND, *own_questions(NAMESPACE)]) == REVIEWS


def test_a_driver_may_do_what_spark_does_in_its_namespace_only(release: Release) -> None:
    account = ("jobs", "snaploom-spark")
    found = allowed(release.cluster, account, questions(SPARK, "jobs"))
    assert found == granted(SPARK, "jobs")
    for namespace in ("", "default", NAMESPACE):
        assert allowed(release.cluster, account, questions(SPARK, namespace)) == set()
    leases = {
        Right(verb, "leases.coordination.k8s.io", "jobs", name)
        for verb in ("get", "create", "update")
        for name in ("", LEASE)
    }
    assert allowed(release.cluster, account, [*BEYOND, *own_questions("jobs")]) == leases


def test_single_namespaces_bring_no_right_elsewhere(narrow: Release) -> None:
    account, cluster = ("narrow", "narrow-snaploom-operator"), narrow.cluster
    webhook_account = ("narrow", "narrow-snaploom-webhook")
    pages_account = ("narrow", "narrow-snaploom-pages")
    for namespace in ("team-a", "team-b"):
        found = allowed(cluster, account, questions(OPERATOR, namespace))
        assert found == granted(OPERATOR, namespace)
        webhook = allowed(cluster, webhook_account, questions(WEBHOOK, namespace))
        assert webhook == granted(WEBHOOK, namespace)
        pages = allowed(cluster, pages_account, questions(PAGES, namespace))
        assert pages == granted(PAGES, namespace)
        driver = allowed(cluster, (namespace, "snaploom-spark"), questions(SPARK, namespace))
        assert driver == granted(SPARK, namespace)
    for namespace in ("", "default", "narrow"):
        assert allowed(cluster, account, questions(OPERATOR, namespace)) == set()
        assert allowed(cluster, pages_account, questions(PAGES, namespace)) == set()
    assert allowed(cluster, account, BEYOND) == set()
    assert allowed(cluster, pages_account, BEYOND) == REVIEWS


def test_people_have_our_kinds_by_the_roles_that_they_have(release: Release) -> None:
    kubectl, namespace = release.cluster.kubectl, "jobs"
    reading, writing = "get list watch", "create update patch delete deletecollection"
    for role, verbs in (
        ("view", reading), ("edit", f"{reading} {writing}"), ("admin", f"{reading} {writing}"),
    ):  # fmt: skip
        kubectl("create", "serviceaccount", role, "--namespace", namespace)
        binding = [f"--clusterrole={role}", f"--serviceaccount={namespace}:{role}"]
        kubectl("create", "rolebinding", role, "--namespace", namespace, *binding)
        table = dict.fromkeys(OURS, verbs) | {
            f"{resource}/status": "get update patch" if role == "admin" else "" for resource in OURS
        }
        found = allowed(release.cluster, (namespace, role), questions(table, namespace))
        assert found == granted(table, namespace)


@pytest.mark.parametrize("component", ["operator", "webhook", "pages", "spark"])
def test_what_helm_test_asks_is_answered_as_it_should_be(release, component, tmp_path):
    done = run_helm_test(release, component, tmp_path)
    assert (done.stdout, done.returncode) == ("", 0)


def test_helm_test_fails_where_a_right_is_missing(release: Release, tmp_path: Path) -> None:
    kubectl = release.cluster.kubectl
    set_verbs(kubectl, ["list"])
    done = run_helm_test(release, "webhook", tmp_path)
    set_verbs(kubectl, ["list", "watch"])
    assert done.returncode == 1
    assert "can snaploom-webhook watch datasources.snaploom.io" in done.stdout


def set_verbs(kubectl: Kubectl, verbs: list[str]) -> None:
    patch = [{"op": "replace", "path": "/rules/0/verbs", "value": verbs}]
    role = ["clusterrole", "snaploom-webhook", "--type=json", "--patch", json.dumps(patch)]
    kubectl("patch", *role)


def run_helm_test(
    release: Release, component: str, folder: Path
) -> subprocess.CompletedProcess[str]:
    """Run the script of a test pod as its account, where no pod can run."""
    pod = release.manifest().one("Pod", f"snaploom-test-{component}")
    where, account = pod["metadata"]["namespace"], pod["spec"]["serviceAccountName"]
    (container,) = pod["spec"]["containers"]
    program = folder / "kubectl"
    program.write_text("#!/bin/sh\nexec " + " ".join(release.cluster.kubectl.program) + ' "$@"\n')
    program.chmod(0o755)
    kubeconfig = release.cluster.kubeconfig_of(where, account)
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", "KUBECONFIG": str(kubeconfig)}
    return subprocess.run(
        [*container["command"], *container["args"]],
        env=os.environ | environment | {"HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("case", range(len(MATRIX)))
def test_no_rule_has_a_wildcard(case: int) -> None:
    values: Values = MATRIX[case] | WITHOUT_CRDS
    for role in Rendered.of(values, release=RELEASE).of_kind("Role", "ClusterRole"):
        for rule in role["rules"]:
            names = [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
            assert not [each for each in names if "*" in each]
            assert not {"bind", "escalate", "impersonate"} & set(rule["verbs"])
            assert rule["resources"]


EVERYTHING: Raw = {
    "operator": {"submitters": ["SparkOperator", "ApacheSpark"], "queueScheduler": "Kueue"},
    "pages": {"enabled": True},
}
"""Values by which no rule is left out."""


def as_documented(rule: GrantedRule) -> tuple[frozenset[str], ...]:
    return tuple(map(frozenset, (rule.groups, rule.resources, rule.verbs)))


def rendered(rule: Raw) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(rule[key]) for key in ("apiGroups", "resources", "verbs"))


def test_every_rule_of_an_account_is_listed() -> None:
    found = Rendered.of(EVERYTHING)
    documented: dict[str, list[tuple[frozenset[str], ...]]] = {}
    for (component, _), rules in rules_of_accounts().items():
        documented.setdefault(component, []).extend(as_documented(rule) for rule in rules)
    for component in ("operator", "webhook", "pages", "spark"):
        assert documented.pop(component) == [rendered(rule) for rule in found.rules(component)]
    assert documented == {}


def test_every_rule_of_people_is_listed() -> None:
    found = Rendered.of(EVERYTHING).of_kind("ClusterRole")
    of_people = {
        each["metadata"]["name"].removeprefix("snaploom-"): each["rules"]
        for each in found
        if "app.kubernetes.io/component" not in each["metadata"]["labels"]
    }
    documented = {rule.names[0].split("`")[1]: [as_documented(rule)] for rule in rules_of_people()}
    assert documented == {
        role: [rendered(rule) for rule in rules] for role, rules in of_people.items()
    }


def test_no_rule_lacks_a_reason() -> None:
    rules = [rule for rules in rules_of_accounts().values() for rule in rules]
    for rule in (*rules, *rules_of_people()):
        assert rule.why.endswith("."), rule
        assert len(rule.why.split()) > 5, rule
