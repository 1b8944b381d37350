"""A node for a control plane: containerd, kubelet, scheduler and proxy; no container engine.

Only root may have one, and only one at a time is on a machine: pods live in the network of one
bridge, at whose address they reach the API server and all that a test serves on this machine.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from support.cluster.cluster import READY_SECONDS, ControlPlane, running_control_plane
from support.cluster.clustercontainers import PAUSE, import_image, running_containerd
from support.cluster.clusterkubectl import KubectlFailed
from support.cluster.kubebox import Server, built
from support.servers.ports import free_ports

ADDRESS = "10.244.0.1"
"""The bridge's own."""
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
