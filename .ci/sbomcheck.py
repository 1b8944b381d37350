"""Prints what differs between an image and its bill of materials, in both directions.

`python .ci/sbomcheck.py ROOT BILL`: ROOT is the image's files, BILL what `.ci/sbom.py` wrote of it.
Every file belongs to a component of the bill, or is one that an installation is known to write
(`WRITTEN`); every component has a file. Ends with 3 when something differs.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from email.parser import Parser
from fnmatch import fnmatchcase
from functools import cache
from importlib.metadata import distributions
from pathlib import Path

from packageurl import PackageURL

PYTHON = ("opt/snaploom/code", "opt/snaploom/python/lib/python3*/site-packages")
"""Folders of Python's packages; globs, as in `.ci/sbom.py`."""
SHOWN = 20
"""Lines of a direction: enough to see where they come from."""
WRITTEN = (
    # by our Dockerfiles; pip notes the programs of a folder of its own in the wrong place
    "opt/snaploom/clusterjob.py",
    "opt/snaploom/entrypoint",
    "opt/snaploom/code/bin/*snaploom",
    "opt/snaploom/python/lib/python3*/site-packages/snaploom.pth",
    # by Python's venv
    "opt/snaploom/python/pyvenv.cfg",
    "opt/snaploom/python/bin/[Aa]ctivate*",
    # by Debian's packages when they are installed: lists, and settings of the system
    "var/lib/dpkg/*",
    "var/lib/apt/extended_states",
    "var/lib/pam/*",
    "var/lib/python/python3*_installed",
    "var/lib/shells.state",
    "var/lib/systemd/deb-systemd-helper-enabled/*",
    "var/cache/apt/archives/lock",
    "var/cache/debconf/*",
    "usr/share/info/dir",
    "etc/.java/.systemPrefs/*",
    "etc/ssl/certs/java/cacerts",
    "root/.bashrc",
    "root/.profile",
    *(
        f"etc/{name}"
        for name in (
            "apt/apt.conf.d/99mmdebstrap",
            "apt/sources.list",
            "ca-certificates.conf",
            "dpkg/dpkg.cfg.d/99mmdebstrap",
            "environment",
            "fstab",
            "group",
            "group-",
            "gshadow",
            "hostname",
            "hosts",
            "inputrc",
            "ld.so.cache",
            "motd",
            "nsswitch.conf",
            "pam.d/common-*",
            "passwd",
            "passwd-",
            "profile",
            ".pwd.lock",
            "python3/debian_config",
            "resolv.conf",
            "security/opasswd",
            "shadow",
            "shells",
            "ssl/certs/ca-certificates.crt",
            "subgid",
            "subuid",
            "timezone",
        )
    ),
)
"""Files of no package; patterns, in which `*` spans folders."""
_COMPILED = re.compile(r"(?P<folder>.*)__pycache__/(?P<name>[^/]+)\.cpython-\d+(\.opt-\d)?\.pyc")


@dataclass(frozen=True)
class Part:
    """A component of a bill."""

    purl: PackageURL
    sums: frozenset[str]
    """SHA-256 of its file, where it is one file."""


@dataclass(frozen=True)
class Difference:
    """What a bill of materials leaves out, and what it has too much."""

    unnamed: tuple[str, ...]
    """Files that no component of the bill has."""
    absent: tuple[str, ...]
    """Package URLs of components that have no file."""

    def __str__(self) -> str:
        """A line for each, the first `SHOWN` of a direction."""
        unnamed = [f"of no component of the bill: {path}" for path in self.unnamed]
        absent = [f"in the bill, but without a file: {purl}" for purl in self.absent]
        return "\n".join([*_first(unnamed), *_first(absent)])


def _first(lines: list[str]) -> list[str]:
    more = [f"... and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    return lines[:SHOWN] + more


def parts_of(bill: str) -> tuple[Part, ...]:
    """The components of a bill (CycloneDX in JSON)."""
    return tuple(
        Part(
            PackageURL.from_string(component["purl"]),
            frozenset(each["content"] for each in component.get("hashes", ())),
        )
        for component in json.loads(bill).get("components", ())
    )


def difference(root: Path, parts: tuple[Part, ...]) -> Difference:
    """Compare the files of an image with the components of its bill."""
    files = frozenset(files_of(root))
    jars = {path: sum_of(root / path) for path in files if path.endswith(".jar")}
    packages = dict([*debian(root), *python(root)])
    owned = {}
    for part in parts:
        name = (part.purl.type, part.purl.name, part.purl.version or "")
        found = {path for path, digest in jars.items() if digest in part.sums}
        # A jar counts only by its sum: PySpark's package would claim what lies in its place.
        owned[part.purl.to_string()] = found | (
            packages.get(name, frozenset()) & files - jars.keys()
        )
    claimed = frozenset().union(*owned.values())
    known = frozenset().union(*packages.values())  # links too, of which some are compiled
    return Difference(
        unnamed=tuple(sorted(path for path in files - claimed if not is_written(path, known))),
        absent=tuple(sorted(purl for purl, paths in owned.items() if not paths)),
    )


def is_written(path: str, known: frozenset[str]) -> bool:
    """Whether a file may be there, or is what Python compiled from one of a package."""
    if compiled := _COMPILED.fullmatch(path):
        source = f"{compiled['folder']}{compiled['name']}.py"
        return source in known or is_written(source, known)
    return any(fnmatchcase(path, pattern) for pattern in WRITTEN)


def files_of(root: Path) -> Iterator[str]:
    """All regular files, by their path inside the image."""
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            if path.is_file() and not path.is_symlink():
                yield path.relative_to(root).as_posix()


def debian(root: Path) -> Iterator[tuple[tuple[str, str, str], frozenset[str]]]:
    """The files of each package that dpkg has installed."""
    database = root / "var/lib/dpkg"
    for paragraph in (database / "status").read_text("utf-8").split("\n\n"):
        fields = Parser().parsestr(paragraph, headersonly=True)
        if fields.get("Status", "").endswith(" installed"):
            name = fields["Package"]
            lists = [
                database / "info" / f"{each}.list"
                for each in (name, f"{name}:{fields['Architecture']}")
            ]
            lines = next(each for each in lists if each.exists()).read_text("utf-8").splitlines()
            paths = frozenset(place(root, line.strip("/")) for line in lines)
            yield ("deb", name, fields["Version"]), paths


def python(root: Path) -> Iterator[tuple[tuple[str, str, str], frozenset[str]]]:
    """The files of each distribution of Python, as its RECORD names them."""
    for pattern in PYTHON:
        for folder in root.glob(pattern):
            inside = folder.relative_to(root).as_posix()
            for found in distributions(path=[str(folder)]):
                name = re.sub(r"[-_.]+", "-", found.name).lower()
                paths = (os.path.normpath(f"{inside}/{path}") for path in found.files or ())
                yield ("pypi", name, found.version), frozenset(place(root, path) for path in paths)


def place(root: Path, path: str) -> str:
    """Where a path leads inside the image, when the links of its folders are followed."""
    folder, _, name = path.rpartition("/")
    return f"{_folder(root, folder)}/{name}".lstrip("/")


@cache
def _folder(root: Path, path: str) -> str:
    if not path:
        return ""
    parent, _, name = path.rpartition("/")
    whole = f"{_folder(root, parent)}/{name}".lstrip("/")
    if not (root / whole).is_symlink():
        return whole
    target = os.readlink(root / whole)
    beside = whole.rpartition("/")[0]
    return _folder(
        root, os.path.normpath(f"/{beside}/{target}" if target[0] != "/" else target).strip("/")
    )


def sum_of(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


if __name__ == "__main__":
    root, bill = sys.argv[1:]
    found = difference(Path(root), parts_of(Path(bill).read_text("utf-8")))
    if found.unnamed or found.absent:
        print(found)  # noqa: T201
        sys.exit(3)
