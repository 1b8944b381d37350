"""A node for a control plane: containerd, kubelet, scheduler and proxy; no container engine.

Only root may have one, and only one at a time is on a machine: pods live in the network of one
bridge, at whose address they reach the API server and all that a test serves on this machine.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import shutil
import subprocess
import tarfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path

from support.cluster import READY_SECONDS, ControlPlane, running_control_plane
from support.clusterkubectl import KubectlFailed
from support.kubebox import Server, built

ADDRESS = "10.244.0.1"
"""The bridge's own."""
PAUSE = "snaploom.test/pause:1"
"""An image whose only program waits until it is told to end."""
NEEDS = ("containerd", "ctr", "runc", "iptables", "ip")
NODE = "node"
_BRIDGE = "snaploom0"
_PODS = "10.244.0.0/24"


def what_is_missing() -> list[str]:
    """What this machine lacks for a node, by name; empty when it can have one."""
    missing = [program for program in NEEDS if shutil.which(program) is None]
    if not Path("/usr/lib/cni/bridge").exists():
        missing.append("containernetworking-plugins")
    return missing if os.geteuid() == 0 else [*missing, "root"]


@contextmanager
def running_cluster(folder: Path) -> Iterator[ControlPlane]:
    """A control plane with a node that is Ready."""
    with ExitStack() as stack:
        stack.enter_context(_alone(folder))
        stack.enter_context(_bridge())
        plane = stack.enter_context(running_control_plane(folder, ADDRESS))
        _write_network(folder / "network")
        stack.enter_context(_containerd(folder))
        _import_image(folder, PAUSE, built("pause"))
        stack.callback(_run, str(built()), "kube-proxy", "--cleanup")
        for server in (_kubelet(plane), _scheduler(plane), _proxy(plane)):
            server.start()
            stack.callback(server.kill)
        _await_node(plane)
        yield plane


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait until no other test of this machine has a node."""
    folder.mkdir(parents=True, exist_ok=True)
    with built("pause").with_name("node.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _bridge() -> Iterator[None]:
    """The bridge; earlier than its first pod, since the API server listens at its address."""
    subprocess.run(["ip", "link", "delete", _BRIDGE], capture_output=True, check=False)
    _run("ip", "link", "add", _BRIDGE, "type", "bridge")
    _run("ip", "address", "add", f"{ADDRESS}/24", "dev", _BRIDGE)
    _run("ip", "link", "set", _BRIDGE, "up")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    try:
        yield
    finally:
        _run("ip", "link", "delete", _BRIDGE)


def _write_network(folder: Path) -> None:
    """Tell the container runtime that pods are on the bridge."""
    folder.mkdir()
    addresses = {"type": "host-local", "subnet": _PODS, "routes": [{"dst": "0.0.0.0/0"}]}
    bridge = {
        "type": "bridge",
        "bridge": _BRIDGE,
        "isGateway": True,
        "hairpinMode": True,
        "ipam": addresses | {"dataDir": str(folder / "addresses")},
    }
    network = {"cniVersion": "1.0.0", "name": "snaploom", "plugins": [bridge]}
    (folder / "10-snaploom.conflist").write_text(json.dumps(network))


_CONTAINERD = """
version = 2
root = "{folder}/root"
state = "{folder}/state"
[grpc]
  address = "{folder}/socket"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true  # without CAP_SYS_RESOURCE runc dies otherwise
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{network}"
"""


@contextmanager
def _containerd(folder: Path) -> Iterator[None]:
    own = folder / "containerd"
    own.mkdir()
    config = own / "config.toml"
    network = folder / "network"
    config.write_text(_CONTAINERD.format(folder=own, pause=PAUSE, network=network))
    # It does not end with its input by itself: a shell ends it.
    script = f'containerd --config "{config}" < /dev/null & cat > /dev/null; kill -KILL $!'
    server = Server("containerd", ("sh", "-c", script), folder / "containerd.log")
    server.start()
    try:
        yield
    finally:
        _remove_containers(own)
        server.close_input()
        _unmount_below(folder)


def _remove_containers(own: Path) -> None:
    """End every container, and with it the process that watches it."""
    listed = _ctr(own, "containers", "list", "--quiet").split()
    for container in listed:
        _ctr(own, "tasks", "delete", "--force", container)
        _ctr(own, "containers", "delete", container)


def _unmount_below(folder: Path) -> None:
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for path in sorted((path for path in mounts if path.startswith(str(folder))), reverse=True):
        _run("umount", "--lazy", path)


def _ctr(own: Path, *arguments: str) -> str:
    command = ["ctr", "--address", str(own / "socket"), "--namespace", "k8s.io", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _import_image(folder: Path, name: str, program: Path) -> None:
    """Give containerd an image of one static program."""
    archive = folder / "image.tar"
    layer = _tar({"program": program.read_bytes()})
    settings = {"Entrypoint": ["/program"], "User": "65534"}
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": settings,
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{sha256(layer).hexdigest()}"]},
        }
    ).encode()
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    entries = {
        "manifest.json": json.dumps(manifest).encode(),
        "config.json": config,
        "layer.tar": layer,
    }
    archive.write_bytes(_tar(entries))
    own = folder / "containerd"
    deadline = time.monotonic() + READY_SECONDS
    while "cri" not in _ctr(own, "plugins", "list") and time.monotonic() < deadline:
        time.sleep(0.1)
    _ctr(own, "images", "import", str(archive))
    assert name in _ctr(own, "images", "list", "--quiet"), (folder / "containerd.log").read_text()


def _tar(entries: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in entries.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            entry.mode = 0o755
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def _kubelet(plane: ControlPlane) -> Server:
    folder = plane.folder / "kubelet"
    folder.mkdir()
    user = f"system:node:{NODE}"
    kubeconfig = plane.write_kubeconfig(folder / "kubeconfig", user, "system:nodes")
    settings = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(plane.authority.certificate)},
        },
        "authorization": {"mode": "Webhook"},
        "address": ADDRESS,
        "healthzPort": 0,
        "readOnlyPort": 0,
        "cgroupDriver": "cgroupfs",
        "failSwapOn": False,
        "failCgroupV1": False,
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "evictionHard": {"nodefs.available": "1%", "imagefs.available": "1%"},
        "podLogsDir": str(folder / "logs"),
        "containerRuntimeEndpoint": f"unix://{plane.folder}/containerd/socket",
    }
    config = _written(folder / "config.json", settings)
    flags = [
        f"--kubeconfig={kubeconfig}",
        f"--config={config}",
        f"--hostname-override={NODE}",
        f"--node-ip={ADDRESS}",
        f"--root-dir={folder / 'root'}",
        f"--cert-dir={folder / 'certificates'}",
    ]
    return Server("kubelet", (built(), "kubelet", *flags), plane.folder / "kubelet.log")


def _scheduler(plane: ControlPlane) -> Server:
    user = "system:kube-scheduler"
    kubeconfig = plane.write_kubeconfig(plane.folder / "scheduler.kubeconfig", user, user)
    flags = [f"--kubeconfig={kubeconfig}", "--leader-elect=false", "--secure-port=0"]
    command = (built(), "kube-scheduler", *flags)
    return Server("kube-scheduler", command, plane.folder / "kube-scheduler.log")


def _proxy(plane: ControlPlane) -> Server:
    user = "system:kube-proxy"
    kubeconfig = plane.write_kubeconfig(plane.folder / "proxy.kubeconfig", user, user)
    settings = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "hostnameOverride": NODE,
        "conntrack": {"maxPerCore": 0},
        "healthzBindAddress": "127.0.0.1:0",
        "metricsBindAddress": "127.0.0.1:0",
    }
    config = _written(plane.folder / "proxy.json", settings)
    command = (built(), "kube-proxy", f"--config={config}")
    return Server("kube-proxy", command, plane.folder / "kube-proxy.log")


def _await_node(plane: ControlPlane) -> None:
    """Wait until pods can be started on it.

    Raises:
        RuntimeError: it does not become Ready in time; with the end of the kubelet's log.
    """
    wait = ("wait", f"node/{NODE}", f"--timeout={READY_SECONDS:.0f}s")
    try:
        plane.kubectl(*wait, "--for=create")
        plane.kubectl(*wait, "--for=condition=Ready")
    except KubectlFailed as failure:
        log = (plane.folder / "kubelet.log").read_text()[-3000:]
        raise RuntimeError(f"the node is not ready: {failure}\n{log}") from failure


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def _written(path: Path, settings: Mapping[str, object]) -> Path:
    path.write_text(json.dumps(settings, indent=2))
    return path
