"""The commands that talk to a cluster, on a real API server, as a person types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.cluster import Cluster
from support.clusterkubectl import Kubectl
from support.declarations import Raw, document, files, output, relationship
from support.declarations import key as join_key
from support.shop import Told, snaploom

RELATIONSHIP = relationship(
    "customer-id", (["customer"], [join_key("id")]), (["address"], [join_key("customer")])
)
MODEL = (files("customer"), files("address"), RELATIONSHIP, output())


@pytest.fixture
def place(control_plane: Cluster, namespace: str, kubectl: Kubectl) -> tuple[str, ...]:
    """Options that lead to a namespace with a model in it."""
    kubectl.apply(*MODEL, namespace=namespace)
    return ("--kubeconfig", str(control_plane.kubeconfig), "-n", namespace)


def run_of(kubectl: Kubectl, namespace: str) -> Raw:
    stored = kubectl.get("outputdataset", "wide", namespace)
    annotations = stored["metadata"].get("annotations", {})
    return {"token": annotations.get("snaploom.io/run"), **stored["spec"].get("run", {})}


def test_status_shows_what_is_declared(place: tuple[str, ...]) -> None:
    told = snaploom("status", *place)
    assert (told.code, told.err) == (0, "")
    assert "OutputDataset/wide  not seen by the operator yet" in told.out
    assert "DataSource/address  as address" in told.out


def test_status_as_json_holds_the_resources(place: tuple[str, ...]) -> None:
    document_ = snaploom("status", "ods/wide", "-o", "json", *place).document
    assert [resource["metadata"]["name"] for resource in document_["resources"]] == ["wide"]


def test_status_tells_a_resource_that_it_cannot_read(
    place: tuple[str, ...], namespace: str, kubectl: Kubectl
) -> None:
    # The schema of a CRD describes recursive types one level deep.
    deep = {"array": {"elementType": {"array": {"elementType": {"nonsense": {}}}}}}
    transformer = {"cast": {"dataType": deep}, "selectors": [{"coordinateIncludeRegex": "."}]}
    wrong = document("FieldTransformer", "wrong", {"transformers": [transformer]})
    kubectl.apply(wrong, namespace=namespace)
    told = snaploom("status", *place)
    assert told.code == 0
    assert "FieldTransformer/wrong  cannot be shown" in told.out


def test_an_empty_namespace_is_told_as_such(control_plane: Cluster, namespace: str) -> None:
    told = snaploom("status", "--kubeconfig", control_plane.kubeconfig, "-n", namespace)
    assert told.out == f"Nothing is declared in the namespace {namespace}; `-n` names another.\n"


def test_trigger_asks_for_another_run_each_time(
    place: tuple[str, ...], namespace: str, kubectl: Kubectl
) -> None:
    assert snaploom("trigger", "wide", *place).code == 0
    first = run_of(kubectl, namespace)["token"]
    snaploom("trigger", "ods/wide", *place)
    assert first not in (None, run_of(kubectl, namespace)["token"])


def test_suspend_and_resume_change_the_resource_and_nothing_else(
    place: tuple[str, ...], namespace: str, kubectl: Kubectl
) -> None:
    before = kubectl.get("outputdataset", "wide", namespace)["spec"]
    assert snaploom("suspend", "wide", *place).code == 0
    assert run_of(kubectl, namespace)["suspend"] is True
    assert "starts when it is resumed" in snaploom("trigger", "wide", *place).out
    assert snaploom("resume", "wide", *place).code == 0
    after = kubectl.get("outputdataset", "wide", namespace)["spec"]
    assert after == {**before, "run": {"suspend": False}}


def test_what_is_so_already_is_told_as_such(place: tuple[str, ...], namespace: str) -> None:
    assert snaploom("resume", "wide", *place).out.endswith("it was not suspended\n")
    assert (
        f": suspended; `snaploom resume wide -n {namespace}`"
        in snaploom("suspend", "wide", *place).out
    )
    assert "suspended already" in snaploom("suspend", "wide", *place).out


def test_trigger_tells_that_a_pause_holds_the_run_back(
    place: tuple[str, ...], namespace: str, kubectl: Kubectl
) -> None:
    kubectl("annotate", "outputdataset", "wide", "snaploom.io/paused=true", "-n", namespace)
    snaploom("suspend", "wide", *place)
    for command in ("trigger", "resume"):
        told = snaploom(command, "wide", *place).out
        assert "the annotation snaploom.io/paused holds back every run" in told


@pytest.mark.parametrize("command", ["status", "trigger", "suspend", "resume", "logs"])
def test_a_resource_that_is_not_there_is_one_error(
    place: tuple[str, ...], namespace: str, command: str
) -> None:
    told = snaploom(command, "ods/narrow", *place)
    assert told.code == 2
    assert told.err.count("error SL191") == 1
    assert namespace in told.err


def test_logs_of_an_output_that_never_ran_say_so(place: tuple[str, ...]) -> None:
    told = snaploom("logs", "wide", *place)
    assert (told.code, told.out) == (2, "")
    assert "it has not run yet" in told.err


def test_a_kubeconfig_that_leads_nowhere_is_one_error(tmp_path: Path) -> None:
    told: Told = snaploom("status", "--kubeconfig", tmp_path / "missing")
    assert told.code == 2
    assert "there is no way to a Kubernetes cluster" in told.err


def test_a_context_that_is_not_in_the_kubeconfig_is_one_error(control_plane: Cluster) -> None:
    told = snaploom("status", "--kubeconfig", control_plane.kubeconfig, "--context", "other")
    assert told.code == 2
    assert "no context 'other'" in told.err


def test_the_name_of_the_kubectl_plugin_runs_the_same_program(place: tuple[str, ...]) -> None:
    from_plugin = json.loads(snaploom("status", "-o", "json", *place).out)
    assert len(from_plugin["resources"]) == len(MODEL)
