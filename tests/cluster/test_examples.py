"""What we show to people is accepted, and comes back as it was applied."""

import itertools

import pytest
import yaml
from support.documentation.examples import REPOSITORY

EXAMPLES = REPOSITORY / "examples"
OF_OTHERS = {"argo-workflows"}
"""Kinds that an API server with only ours does not have; `tests/orchestrators` reads them."""
FOLDERS = sorted(
    {path.parent for path in EXAMPLES.glob("*/*.yaml")} - {EXAMPLES / n for n in OF_OTHERS}
)
each_example = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


def documents(folder):
    texts = [path.read_text("utf-8") for path in sorted(folder.glob("*.yaml"))]
    loaded = itertools.chain.from_iterable(map(yaml.safe_load_all, texts))
    return {(raw["kind"], raw["metadata"]["name"]): raw for raw in loaded if raw}


def stored(kubectl, namespace):
    return {
        (found["kind"], found["metadata"]["name"]): found
        for found in kubectl.list("snaploom", namespace)
    }


@each_example
@pytest.mark.parametrize("how", [("--server-side",), ()], ids=["server", "client"])
def test_example_is_stored_as_it_was_applied_and_stays_so(kubectl, namespace, folder, how):
    place = (*how, "--namespace", namespace, "-f", str(folder))
    kubectl("apply", "--warnings-as-errors", *place)
    first = stored(kubectl, namespace)
    assert {key: found["spec"] for key, found in first.items()} == {
        key: raw["spec"] for key, raw in documents(folder).items()
    }
    assert kubectl("diff", *place) == ""
    kubectl("apply", *place)
    assert stored(kubectl, namespace) == first


@each_example
def test_two_managers_of_an_example_agree(kubectl, namespace, folder):
    for manager in ("kubectl", "argocd"):
        how = ("--server-side", f"--field-manager={manager}", "--namespace", namespace)
        kubectl("apply", *how, "-f", str(folder))
        assert kubectl("diff", *how, "-f", str(folder)) == ""


def test_what_a_cluster_adds_is_accepted_where_pods_are_restricted(kubectl, namespace):
    kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    place = ("--namespace", namespace, "-f", str(EXAMPLES / "cluster" / "flights"))
    kubectl("apply", "--server-side", "--warnings-as-errors", *place)
    chart = yaml.safe_load((REPOSITORY / "charts/snaploom/Chart.yaml").read_text("utf-8"))
    (container,) = kubectl.get("pod", "console", namespace)["spec"]["containers"]
    assert container["image"] == f"snaploom-spark:{chart['appVersion']}"


def test_starter_of_init_is_accepted(kubectl, namespace):
    starter = REPOSITORY / "sparkjobs/src/snaploom/cli/templates/model.yaml"
    text = starter.read_text("utf-8").replace("@FOLDER@", "/data")
    output = kubectl("apply", "--server-side", "--namespace", namespace, "-f", "-", stdin=text)
    assert "outputdataset.snaploom.io/" in output
