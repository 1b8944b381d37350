"""What `helm template` renders installs without Helm, as the page on installing describes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import pytest
import yaml
from support.cluster.chart import CHART, Raw, Rendered, helm, identity
from support.cluster.cluster import Cluster
from support.documentation.pages import DOCS, blocks_of

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
