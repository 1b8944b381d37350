"""A node for a control plane: containerd, kubelet, scheduler and proxy; no container engine.

Only root may have one, and only one at a time is on a machine: pods live in the network of one
bridge, at whose address they reach the API server and all that a test serves on this machine.
"""

import fcntl
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path

import psutil
from support.cluster.cluster import (
    PATIENCE,
    READY_SECONDS,
    ControlPlane,
    Server,
    built,
    running_control_plane,
)
from support.cluster.clusterkubectl import KubectlFailed
from support.cluster.images import NATIVE
from support.servers.ports import free_ports

PAUSE = "snaploom.test/pause:1"
"""An image whose only program waits for a signal to end."""
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
def running_containerd(folder: Path) -> Iterator[None]:
    """A container runtime whose pods' network is configured in `folder / "network"`."""
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
        _end_watchers(own)
        _unmount_below(folder)


def _remove_containers(own: Path) -> None:
    """End every container, and with it the process that watches it, and the network of its pod."""
    listed = _ctr(own, "containers", "list", "--quiet").split()
    networks = {network for container in listed for network in _networks(own, container)}
    for container in listed:
        _ctr(own, "tasks", "delete", "--force", container)
        _ctr(own, "containers", "delete", container)
        for attached in Path("/var/lib/cni/results").glob(f"*-{container}-*"):
            attached.unlink()
    for network in networks:
        subprocess.run(["ip", "netns", "delete", network], capture_output=True, check=False)


def _networks(own: Path, container: str) -> Iterator[str]:
    """Names of the network namespaces that a container has, and its pod with it."""
    found = json.loads(_ctr(own, "containers", "info", container) or "{}")
    for namespace in found.get("Spec", {}).get("linux", {}).get("namespaces", ()):
        path = Path(namespace.get("path", ""))
        if namespace["type"] == "network" and path.parent.name == "netns":
            yield path.name


def _end_watchers(own: Path) -> None:
    """End what watches containers that began after they were listed, or did not end."""
    socket = str(own / "socket")
    for process in psutil.process_iter(["cmdline"]):
        if socket in " ".join(process.info["cmdline"] or ()):
            with suppress(psutil.NoSuchProcess):
                for child in process.children(recursive=True):
                    child.kill()
                process.kill()
                process.wait(PATIENCE)


def _unmount_below(folder: Path) -> None:
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for path in sorted((path for path in mounts if path.startswith(str(folder))), reverse=True):
        subprocess.run(["umount", "--lazy", path], check=True)


def _ctr(own: Path, *arguments: str) -> str:
    command = ["ctr", "--address", str(own / "socket"), "--namespace", "k8s.io", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def import_image(folder: Path, name: str, program: Path) -> None:
    """Give containerd an image of one static program."""
    archive = folder / "image.tar"
    layer = _tar({"program": program.read_bytes()})
    settings = {"Entrypoint": ["/program"], "User": "65534"}
    config = json.dumps(
        {
            "architecture": NATIVE,
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
    _check_image(folder, name)


def import_archive(folder: Path, name: str, archive: Path) -> None:
    """Give containerd the image of an OCI archive, by its digest and by the name inside.

    Args:
        folder: of the node.
        name: what pods call it: with its digest, or as the archive has it; without a registry, as a
            kubelet completes it.
        archive: the file.
    """
    completed = f"docker.io/library/{name}"
    base = re.split("[:@]", completed)[0]
    import_command = ("images", "import", "--digests", "--base-name", base)
    _ctr(folder / "containerd", *import_command, str(archive))
    _check_image(folder, completed)


def _check_image(folder: Path, name: str) -> None:
    listed = _ctr(folder / "containerd", "images", "list", "--quiet").split()
    assert name in listed, f"{listed}\n{(folder / 'containerd.log').read_text()}"


def _tar(entries: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in entries.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            entry.mode = 0o755
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


ADDRESS = "10.244.0.1"
"""The bridge's own."""
NEEDS = ("containerd", "ctr", "runc", "iptables", "ip")
NODE = "node"
_BRIDGE = "snaploom0"
_PODS = "10.244.0.0/24"


_KEPT_FREE = 0.01
"""Share of the disk below which the kubelet evicts pods."""


def what_is_missing(folder: Path, room: int = 0) -> list[str]:
    """What this machine lacks for a node, by name; empty when it can have one.

    Args:
        folder: on the disk of the node.
        room: bytes that the test writes there.
    """
    missing = [program for program in NEEDS if shutil.which(program) is None]
    if not Path("/usr/lib/cni/bridge").exists():
        missing.append("containernetworking-plugins")
    disk = shutil.disk_usage(folder)
    needed = room + _KEPT_FREE * disk.total
    if disk.free < needed:
        missing.append(f"{needed / 1e9:.1f} GB of free disk space in {folder}")
    return missing if os.geteuid() == 0 else [*missing, "root"]


@contextmanager
def running_cluster(folder: Path) -> Iterator[ControlPlane]:
    """A control plane with a node that is Ready."""
    with ExitStack() as stack:
        stack.enter_context(_exclusive(folder))
        stack.enter_context(_bridge())
        plane = stack.enter_context(running_control_plane(folder, ADDRESS))
        _write_network(folder / "network")
        stack.enter_context(running_containerd(folder))
        import_image(folder, PAUSE, built("pause"))
        stack.callback(_run, str(built()), "kube-proxy", "--cleanup")
        servers = (_kubelet(plane), _scheduler(plane), _proxy(plane))
        for server in servers:
            server.start()
            stack.callback(server.kill)
        _await_node(plane, servers)
        yield plane


@contextmanager
def _exclusive(folder: Path) -> Iterator[None]:
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
    """Configure the container runtime so that pods are on the bridge."""
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
        "evictionHard": dict.fromkeys(
            ("nodefs.available", "imagefs.available"), f"{_KEPT_FREE:.0%}"
        ),
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
    health, metrics = free_ports(2)
    settings = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "hostnameOverride": NODE,
        "conntrack": {"maxPerCore": 0},
        "healthzBindAddress": f"127.0.0.1:{health}",
        "metricsBindAddress": f"127.0.0.1:{metrics}",
    }
    config = _written(plane.folder / "proxy.json", settings)
    command = (built(), "kube-proxy", f"--config={config}")
    return Server("kube-proxy", command, plane.folder / "kube-proxy.log")


def _await_node(plane: ControlPlane, servers: Sequence[Server]) -> None:
    """Wait until pods can be started on it.

    Raises:
        RuntimeError: it does not become Ready in time, or a server ended; with its log's end.
    """
    wait = ("wait", f"node/{NODE}", f"--timeout={READY_SECONDS:.0f}s")
    try:
        plane.kubectl(*wait, "--for=create")
        plane.kubectl(*wait, "--for=condition=Ready")
    except KubectlFailed as failure:
        raise RuntimeError(f"the node is not ready: {failure}\n{servers[0].tail()}") from failure
    if ended := [server.tail() for server in servers if server.has_ended]:
        raise RuntimeError("\n".join(["a server of the node has ended.", *ended]))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def _written(path: Path, settings: Mapping[str, object]) -> Path:
    path.write_text(json.dumps(settings, indent=2))
    return path
