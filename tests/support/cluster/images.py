"""The project's images: of the release under test, or as our script builds them, once."""

import json
import os
import platform
import re
import subprocess
import tarfile
from dataclasses import dataclass
from functools import cache
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pytest
from support.documentation.examples import REPOSITORY
from support.documentation.packages import released, the_file

_RUN = """
touch "$0/etc/hosts"
mount --bind "$0" "$0"
mount --options remount,bind,ro "$0"
mount --types tmpfs --options mode=1777 tmpfs "$0/tmp"
mount --types proc proc "$0/proc"
mount --bind /dev "$0/dev"
mount --bind /etc/hosts "$0/etc/hosts"
user="$1" folder="$2"; shift 2
exec chroot --userspec="$user" "$0" env --chdir="$folder" --ignore-environment "$@"
"""
"""Runs a program where nothing but `/tmp` can be written, as Kubernetes does."""
NATIVE, OTHER = ("arm64", "amd64") if platform.machine() == "aarch64" else ("amd64", "arm64")
_REMOVED = ".wh."
"""Prefixes of names of files that mark a lower layer's file as removed."""


@dataclass(frozen=True)
class ImageFiles:
    """An image whose layers were unpacked."""

    root: Path
    config: dict[str, Any]
    """The image's configuration, as the archive has it."""
    size: int
    """Of all layers, in bytes, not compressed."""

    @property
    def settings(self) -> dict[str, Any]:
        """What its programs are started with."""
        settings: dict[str, Any] = self.config["config"]
        return settings

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run what the entrypoint derives from arguments."""
        settings = [*self.settings["Env"], *map("=".join, environment.items())]
        place = (str(self.root), self.settings["User"], self.settings["WorkingDir"])
        command = [*settings, *self.settings["Entrypoint"], *arguments]
        return subprocess.run(
            ["unshare", "--mount", "--pid", "--fork", "sh", "-euc", _RUN, *place, *command],
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )


def document(archive: Path, path: str) -> dict[str, Any]:
    """A document (JSON) of an archive (OCI): `index.json`, or what has a digest."""
    with tarfile.open(archive) as opened:
        stored = opened.extractfile(path.replace("sha256:", "blobs/sha256/"))
        assert stored is not None
        found: dict[str, Any] = json.load(stored)
        return found


def unpacked(archive: Path, folder: Path, architecture: str) -> ImageFiles:
    """Unpack an archive (OCI) of one image; only root can, since files have owners."""
    folder.chmod(0o755)  # the image's own root, which its user must get into
    (described,) = document(archive, "index.json")["manifests"]
    manifest = document(archive, described["digest"])
    for each in manifest.get("manifests", ()):  # of a release, which has two architectures
        if each["platform"]["architecture"] == architecture:
            manifest = document(archive, each["digest"])
    for layer in manifest["layers"]:
        _unpack_layer(archive, f"blobs/{layer['digest'].replace(':', '/')}", folder)
    size = sum(layer["size"] for layer in manifest["layers"])
    return ImageFiles(folder, document(archive, manifest["config"]["digest"]), size)


def _unpack_layer(archive: Path, blob: str, folder: Path) -> None:
    pipe = 'tar -xOf "$0" "$1" | zcat --force | tar -xC "$2"'
    subprocess.run(["bash", "-o", "pipefail", "-c", pipe, archive, blob, folder], check=True)
    for mark in folder.rglob(f"{_REMOVED}*"):
        removed = mark.with_name(mark.name.removeprefix(_REMOVED))
        mark.unlink()
        subprocess.run(["rm", "-r", "--force", removed], check=True)


def distributions_of(root: Path) -> set[tuple[str, str]]:
    """Names and versions of what the Python of an image finds."""
    folders = [*root.glob("opt/snaploom/python/lib/python3*/site-packages")]
    found = distributions(path=[*map(str, folders), str(root / "opt/snaploom/code")])
    return {(re.sub(r"[-_.]+", "-", each.name).lower(), each.version) for each in found}


def each_image(*names: str) -> list[object]:
    """Images as parameters of a test; Comet's and the other architecture's are variants."""
    plain = {*names} - {"spark-comet"}
    both = [*names, *(f"{name}/{OTHER}" for name in names)]
    return [pytest.param(n, marks=() if n in plain else pytest.mark.variant) for n in both]


def parts_of(image: str) -> tuple[str, str]:
    """Name and architecture of `spark`, or of `spark/arm64`."""
    name, _, architecture = image.partition("/")
    return name, architecture or NATIVE


BUILD = REPOSITORY / ".ci" / "images"
OPERATOR_IMAGE = "snaploom-operator:test"
SPARK_IMAGE = "snaploom-spark:test"
COMET_IMAGE = "snaploom-spark-comet:test"


def image_archive(image: str) -> Path:
    """The archive (OCI) of the image `operator`, `spark` or `spark-comet`."""
    folder, (name, _) = released(), parts_of(image)
    return the_file(folder, f"snaploom-{name}-[0-9]*.oci.tar") if folder else built_archive(image)


def bill_of_materials(image: str) -> Path:
    """What is in an image (CycloneDX)."""
    folder = released()
    if folder:
        return the_file(folder, "snaploom-{}-[0-9]*-{}.cdx.json".format(*parts_of(image)))
    return built_archive(image).with_suffix(".cdx.json")


@cache
def built_archive(image: str) -> Path:
    """The archive that `.ci/images` builds of this checkout.

    Raises:
        RuntimeError: it cannot be built here; the script has printed why.
    """
    name, architecture = parts_of(image)
    asked = {**os.environ, "ARCHITECTURE": architecture}
    done = subprocess.run([BUILD, name], env=asked, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the image {image} cannot be built: see the output of {BUILD}")
    return Path(done.stdout.strip())
