"""A whole cluster: pods really run, on machines where a test may have a node."""

import time

import psutil
import pytest
from support.cluster.cluster import SERVICE
from support.cluster.clusternode import NODE, PAUSE, running_cluster

DEADLINE = 60.0
pytestmark = [pytest.mark.node, pytest.mark.slow]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("node")
    with running_cluster(folder) as found:
        found.install_crds()
        yield found
    assert [command for command in commands() if str(folder) in command] == []


def commands():
    return [" ".join(each.info["cmdline"] or ()) for each in psutil.process_iter(["cmdline"])]


def a_pod(name, *arguments):
    security = {
        "runAsNonRoot": True,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    container = {
        "name": "pause",
        "image": PAUSE,
        "args": list(arguments),
        "imagePullPolicy": "Never",
        "securityContext": security,
    }
    metadata = {"name": name, "labels": {"app": name}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
    }


def until(condition):
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.2)


def test_pod_of_one_program_runs_until_it_is_deleted(cluster):
    kubectl = cluster.kubectl
    kubectl.apply(a_pod("waiting"), namespace="default")
    kubectl("wait", "pod/waiting", "--for=condition=Ready", "--timeout=120s")
    pod = kubectl.get("pod", "waiting", "default")
    assert pod["spec"]["nodeName"] == NODE
    assert pod["status"]["podIP"].startswith("10.244.0.")
    kubectl("delete", "pod", "waiting", "--timeout=120s")


@pytest.mark.parametrize("address", [f"{SERVICE}:443", "{host}"], ids=["service", "machine"])
def test_pod_reaches_the_api_server(cluster, address, request):
    """Through its Service, and at the bridge, where a test may serve other things."""
    target = address.format(host=cluster.url.removeprefix("https://"))
    name = request.node.callspec.id
    kubectl = cluster.kubectl
    kubectl.apply(a_pod(name, target), namespace="default")
    kubectl("wait", f"pod/{name}", "--for=condition=Ready", "--timeout=120s")
    until(lambda: kubectl("logs", name, "--namespace", "default") == f"reached {target}\n")
