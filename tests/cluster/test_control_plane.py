"""The test environment itself: a control plane starts, breaks and ends as commanded."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from support.cluster.cluster import (
    KUBECONFIG_VARIABLE,
    Cluster,
    ControlPlane,
    any_cluster,
    running_control_plane,
)
from support.cluster.clusterkubectl import KubectlFailed

from snaploom.models.kinds import KINDS

TESTS = Path(__file__).parents[1]
DEADLINE = 60.0


def a_config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def until(condition):
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def test_cluster_serves_every_kind_of_ours(kubectl):
    served = kubectl("api-resources", "--api-group=snaploom.io", "--output=name").split()
    assert sorted(served) == sorted(f"{kind.plural}.snaploom.io" for kind in KINDS)


def test_namespace_of_a_test_is_new_and_empty(kubectl, namespace):
    assert kubectl.list("outputdatasets", namespace) == []
    assert kubectl.get("namespace", namespace)["status"]["phase"] == "Active"


def test_kubectl_that_fails_raises_its_message(kubectl, namespace):
    with pytest.raises(KubectlFailed, match='configmaps "absent" not found') as failure:
        kubectl.get("configmap", "absent", namespace)
    assert failure.value.code == 1


def test_service_account_is_known_and_may_nothing(control_plane, kubectl, namespace):
    kubectl("create", "serviceaccount", "visitor", "--namespace", namespace)
    visitor = Cluster(control_plane.folder, control_plane.kubeconfig_of(namespace, "visitor"))
    review = json.loads(visitor.kubectl("auth", "whoami", "--output=json"))
    assert review["status"]["userInfo"]["username"] == f"system:serviceaccount:{namespace}:visitor"
    with pytest.raises(KubectlFailed, match="Forbidden"):
        visitor.kubectl.list("datasources", namespace)


def test_an_owned_object_is_deleted_with_its_owner(kubectl, namespace):
    kubectl.apply(a_config_map("owner"), namespace=namespace)
    uid = kubectl.get("configmap", "owner", namespace)["metadata"]["uid"]
    owned = a_config_map("owned")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}
    owned["metadata"]["ownerReferences"] = [reference]
    kubectl.apply(owned, namespace=namespace)
    kubectl("delete", "configmap", "owner", "--namespace", namespace)
    kubectl("wait", "--for=delete", "configmap/owned", "--namespace", namespace, "--timeout=60s")


def test_given_cluster_is_used_and_nothing_started(control_plane, tmp_path, monkeypatch):
    monkeypatch.setenv(KUBECONFIG_VARIABLE, str(control_plane.kubeconfig))
    with any_cluster(tmp_path) as found:
        assert not isinstance(found, ControlPlane)
        assert found.kubectl.get("namespace", "default")["metadata"]["name"] == "default"
    assert not (tmp_path / "etcd").exists()


@pytest.fixture(scope="module")
def broken_plane(tmp_path_factory):
    """A control plane whose servers are ended in every way, one after the other."""
    with running_control_plane(tmp_path_factory.mktemp("broken")) as plane:
        yield plane


@pytest.mark.parametrize("end", ["stop", "kill"])
@pytest.mark.parametrize("broken", ["etcd", "apiserver", "controllers"])
def test_objects_outlive_the_end_of_a_server(broken_plane, broken, end):
    plane = broken_plane
    plane.kubectl.apply(a_config_map("kept", colour="red"), namespace="default")
    server = getattr(plane, broken)
    getattr(server, end)()
    assert not server.is_running
    server.start()
    plane.await_ready()
    assert plane.kubectl.get("configmap", "kept", "default")["data"] == {"colour": "red"}


def test_planes_at_once_know_nothing_of_each_other(control_plane, own_control_plane):
    own_control_plane.kubectl("create", "namespace", "mine")
    assert own_control_plane.kubectl.list("outputdatasets", "mine") == []
    with pytest.raises(KubectlFailed, match="not found"):
        control_plane.kubectl.get("namespace", "mine")


def test_objects_of_a_folder_are_found_again(tmp_path):
    with running_control_plane(tmp_path) as plane:
        plane.kubectl.apply(a_config_map("kept"), namespace="default")
    with running_control_plane(tmp_path) as plane:
        assert plane.kubectl.get("configmap", "kept", "default")


def test_start_that_fails_shows_the_log_of_the_server(tmp_path):
    plane = ControlPlane(tmp_path)
    plane.apiserver.command = [*plane.apiserver.command, "--no-such-flag"]
    try:
        with pytest.raises(RuntimeError, match="unknown flag: --no-such-flag"):
            plane.start()
    finally:
        plane.close()


HOLDER = """
import sys, time
from pathlib import Path
from support.cluster.cluster import running_control_plane
with running_control_plane(Path(sys.argv[1])) as plane:
    print(*(server.process.pid for server in plane.servers), flush=True)
    time.sleep(600)
"""


def test_no_server_survives_the_process_that_started_it(tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(TESTS)},
    )
    with holder:
        servers = [psutil.Process(int(pid)) for pid in holder.stdout.readline().split()]
        assert len(servers) == 3
        holder.send_signal(signal.SIGKILL)
    until(lambda: not any(server.is_running() for server in servers))
