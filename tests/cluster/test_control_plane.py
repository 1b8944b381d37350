"""The test environment itself: a control plane starts, breaks and ends as commanded."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from support.cluster.cluster import (
    BUILD,
    KUBECONFIG_VARIABLE,
    Cluster,
    ControlPlane,
    any_cluster,
    running_control_plane,
)
from support.cluster.clusterkubectl import KubectlFailed
from support.cluster.clusternode import what_is_missing
from support.cluster.wholecluster import IMAGES
from support.documentation.examples import REPOSITORY
from support.hostile.supply import run, stand_in

TESTS = Path(__file__).parents[1]
DEADLINE = 60.0


def a_config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def until(condition):
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def test_kubectl_that_fails_raises_its_message(kubectl, namespace):
    with pytest.raises(KubectlFailed, match='configmaps "absent" not found') as failure:
        kubectl.get("configmap", "absent", namespace)
    assert failure.value.code == 1


def test_given_cluster_is_used_and_nothing_started(control_plane, tmp_path, monkeypatch):
    monkeypatch.setenv(KUBECONFIG_VARIABLE, str(control_plane.kubeconfig))
    with any_cluster(tmp_path) as found:
        assert not isinstance(found, ControlPlane)
        assert found.kubectl.get("namespace", "default")["metadata"]["name"] == "default"
    assert not (tmp_path / "etcd").exists()


@pytest.fixture(scope="module")
def broken_plane(tmp_path_factory):
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


TOOLS = "bash cat chmod cksum cut dirname flock head id mkdir mv sed sort"
GO = """#!/bin/sh
case "$1" in
  env) echo go{version} ;;
  version) echo go version go{version} ;;
  build)
    echo build >> {log}
    while [ "$1" != -o ]; do shift; done
    echo program > "$2" && chmod +x "$2" ;;
esac
"""


@pytest.fixture
def bin_folder(tmp_path):
    """A PATH of its own with what the script needs, but neither Go nor apt."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in TOOLS.split():
        (folder / tool).symlink_to(shutil.which(tool))
    return folder


@pytest.fixture
def environment(tmp_path, bin_folder):
    return {"PATH": str(bin_folder), "SNAPLOOM_TEST_CACHE": str(tmp_path / "cache")}


def put_go(bin_folder, log, version="1.26.1"):
    (bin_folder / "go").write_text(GO.format(version=version, log=log))
    (bin_folder / "go").chmod(0o755)


def start(environment):
    pipe = subprocess.PIPE
    return subprocess.Popen([BUILD], env=environment, stdout=pipe, stderr=pipe, text=True)


def test_processes_at_once_build_it_once(tmp_path, bin_folder, environment):
    put_go(bin_folder, tmp_path / "log")
    ends = [builder.communicate() for builder in [start(environment) for _ in range(4)]]
    (path,) = {Path(stdout.strip()) for stdout, _ in ends}
    assert path.read_text() == "program\n"
    assert (tmp_path / "log").read_text() == "build\n"
    assert [name.name for name in path.parent.iterdir() if "building" in name.name] == []


def test_what_was_built_is_found_without_go(tmp_path, bin_folder, environment):
    put_go(bin_folder, tmp_path / "log")
    first, _ = start(environment).communicate()
    (bin_folder / "go").unlink()
    assert start(environment).communicate() == (first, "")


@pytest.mark.parametrize("version", [None, "1.19.8"])
def test_missing_or_old_go_is_reported_with_what_to_do(tmp_path, bin_folder, environment, version):
    if version is not None:
        put_go(bin_folder, tmp_path / "log", version)
    builder = start(environment)
    _, stderr = builder.communicate()
    assert builder.returncode == 1
    assert (
        "with Go 1.24 or newer; found: " + (f"go version go{version}" if version else "none")
        in stderr
    )
    assert "SNAPLOOM_TEST_KUBECONFIG=" in stderr


SCRIPT = REPOSITORY / ".ci" / "kind"
DOCKER = r"""
echo "$*" | tr '\n' ' ' >>{place}/called; echo >>{place}/called
case "$*" in
  {refused}) echo "No room left" >&2; exit 1 ;;
  info*) echo "{{}}" ;;
  run*) echo "$3" >{place}/node ;;
  "ps "*.Names*) cat {place}/node 2>/dev/null || true ;;
  logs*) echo "Reached target Multi-User System." ;;
  inspect*role*) echo control-plane ;;
  inspect*IPAddress*) echo "172.18.0.2,fc00::2" ;;
  inspect*NetworkSettings.Ports*) printf '127.0.0.1\t6443\n' ;;
  *"cat /kind/version") echo v1.37.0 ;;
  *admin.conf) echo 'clusters: [{{name: c, cluster: {{server: "https://node:6443"}}}}]'
    echo 'users: [{{name: u, user: {{}}}}]'
    echo 'contexts: [{{name: x, context: {{cluster: c, user: u}}}}]' ;;
  *"config dump") echo 'version = 3'
    printf '[plugins."io.containerd.cri.v1.images"]\nsnapshotter = "s"\n' ;;
  *"get nodes"*) echo True ;;
  *"images import"*) cat >>{place}/imported ;;
  rm*) rm {place}/node ;;
  save*) echo "archive of $4" >"$3" ;;
esac
"""


@pytest.fixture
def beside_kind(tmp_path):
    """Run a command beside a cluster; what Docker was called with, and how the script ended."""

    def beside(*command, refused="nothing"):
        stand_in(tmp_path / "bin", "docker", DOCKER.format(place=tmp_path, refused=refused))
        path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
        done = run([SCRIPT, *command], PATH=path, KIND_EXPERIMENTAL_PROVIDER="docker")
        return (tmp_path / "called").read_text().splitlines(), done

    return beside


def test_command_finds_a_cluster_that_has_the_images(beside_kind, tmp_path):
    called, done = beside_kind("bash", "-c", 'cat "$E2E_KUBECONFIG"')
    assert done.returncode == 0, done.stderr
    assert "server: https://127.0.0.1:6443" in done.stdout
    assert (tmp_path / "imported").read_text() == (
        "archive of docker.io/library/snaploom-operator:test\n"
        "archive of docker.io/library/snaploom-spark:test\n"
        "archive of docker.io/library/snaploom-spark-comet:test\n"
    )
    started = next(line for line in called if line.startswith("run "))
    assert "kindest/node:" in started
    assert "@sha256:" in started
    assert called[-1].startswith("rm -f -v snaploom-")


@pytest.mark.parametrize("refused", ["build*", "run*", "*kubeadm*init*", "*import*"])
def test_command_is_not_run_when_there_is_no_cluster(refused, beside_kind, tmp_path):
    _, done = beside_kind("echo", "is run", refused=refused)
    assert done.returncode != 0
    assert "is run" not in done.stdout
    assert "No room left" in done.stderr
    assert not (tmp_path / "node").exists()


def test_cluster_of_a_command_that_fails_is_deleted(beside_kind, tmp_path):
    _, done = beside_kind("bash", "-c", "exit 7")
    assert done.returncode == 7
    assert not (tmp_path / "node").exists()


def test_engine_that_does_not_work_is_named_in_a_line(beside_kind):
    called, done = beside_kind("true", refused="*")
    assert (called, done.returncode, done.stdout) == (["info "], 1, "")
    (line,) = done.stderr.splitlines()
    assert line.endswith("Docker, Podman or nerdctl: docker does not work: No room left")


def test_engine_that_is_missing_is_named_in_a_line():
    done = run([SCRIPT, "true"], KIND_EXPERIMENTAL_PROVIDER="absent")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Not run: kind needs Docker, Podman or nerdctl: absent is not installed\n"


@pytest.mark.parametrize(
    ("free", "room", "lacking"),
    [(0.9, 0, "1.0"), (1, 0, ""), (6.9, IMAGES, "7.0"), (7, IMAGES, "")],
)
def test_room_that_a_node_lacks_is_named(tmp_path, monkeypatch, free, room, lacking):
    disk = SimpleNamespace(total=100e9, free=free * 1e9)
    monkeypatch.setattr(shutil, "disk_usage", {tmp_path: disk}.__getitem__)
    named = [each for each in what_is_missing(tmp_path, room) if "disk" in each]
    assert named == ([f"{lacking} GB of free disk space in {tmp_path}"] if lacking else [])


@contextmanager
def commanded(folder):
    command = [sys.executable, "-m", "support.cluster.clustercommand", str(folder)]
    environment = os.environ | {"PYTHONPATH": str(TESTS)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True) as started:
        try:
            yield started
        finally:
            started.send_signal(signal.SIGTERM)


def test_cluster_of_a_person_is_reached_by_what_it_prints(tmp_path):
    with commanded(tmp_path / "cluster") as started:
        lines = iter(started.stdout.readline, "")
        line = next(line for line in lines if "export KUBECONFIG=" in line)
        kubeconfig = Path(re.search(r"export KUBECONFIG=(\S+)", line)[1])
        kubectl = Cluster(tmp_path, kubeconfig).kubectl
        assert "outputdatasets" in kubectl("api-resources", "--api-group=snaploom.io")
        with commanded(tmp_path / "cluster") as second:
            assert second.wait() == 1
            output = second.stderr.read()
        assert output == f"There is one already: export KUBECONFIG={kubeconfig}\n"
        started.send_signal(signal.SIGTERM)
        assert started.stdout.read().endswith("Stopped.\n")
        assert started.wait() == 0
