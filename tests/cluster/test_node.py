"""A whole cluster: pods really run, on machines where a test may have a node."""

import json

import pytest
from support.clusternode import NODE, PAUSE, running_cluster

pytestmark = [pytest.mark.node, pytest.mark.slow]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with running_cluster(tmp_path_factory.mktemp("node")) as found:
        found.install_crds()
        yield found


def a_pod(name):
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


def test_pod_of_one_program_runs_until_it_is_deleted(cluster):
    kubectl = cluster.kubectl
    kubectl.apply(a_pod("waiting"), namespace="default")
    kubectl("wait", "pod/waiting", "--for=condition=Ready", "--timeout=120s")
    pod = kubectl.get("pod", "waiting", "default")
    assert pod["spec"]["nodeName"] == NODE
    assert pod["status"]["podIP"].startswith("10.244.0.")
    kubectl("delete", "pod", "waiting", "--timeout=120s")


def test_pods_find_the_api_server_through_its_service(cluster):
    slices = json.loads(
        cluster.kubectl("get", "endpoints", "kubernetes", "--namespace", "default", "-o", "json")
    )
    (subset,) = slices["subsets"]
    assert cluster.url == f"https://{subset['addresses'][0]['ip']}:{subset['ports'][0]['port']}"
