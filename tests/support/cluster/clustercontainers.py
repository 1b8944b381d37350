"""The container runtime of a node, and images for it that no registry has."""

from __future__ import annotations

import io
import json
import platform
import re
import subprocess
import tarfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

import psutil
from support.cluster.cluster import READY_SECONDS
from support.cluster.kubebox import PATIENCE, Server

PAUSE = "snaploom.test/pause:1"
"""An image whose only program waits for a signal to end."""
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
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
            "architecture": _ARCHITECTURES[platform.machine()],
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
    """Check that an image is there."""
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
