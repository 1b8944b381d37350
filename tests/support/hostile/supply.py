"""What the project is made of, for tests of its supply chain: locks, scripts, and stand-ins."""

import base64
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from support.documentation.examples import REPOSITORY

SCRIPTS = REPOSITORY / ".ci"
LOCKS = sorted((SCRIPTS / "locks").glob("*.txt"))
COMPONENTS = REPOSITORY / "tests" / "support" / "components"
_PIN = re.compile(r"^(?P<name>[a-z0-9-]+)==(?P<version>[^ ;]+)(?: ; [^\\]+)? \\$")


@dataclass(frozen=True)
class Pin:
    """A package as a lock has it."""

    name: str
    version: str
    sums: tuple[str, ...]


def pins_of(lock: Path) -> dict[str, Pin]:
    """The packages of a lock, by name; every line must be of one."""
    lines = [line for line in lock.read_text().splitlines() if not line.startswith("#")]
    pins: dict[str, Pin] = {}
    for line in lines:
        if named := _PIN.fullmatch(line):
            name = named["name"]
            pins[name] = Pin(name, named["version"], ())
        else:
            (digest,) = re.findall(r"^    --hash=sha256:([0-9a-f]{64})(?: \\)?$", line)
            pins[name] = Pin(name, pins[name].version, (*pins[name].sums, digest))
    return pins


def script(name: str) -> ModuleType:
    """A program of `.ci`, as a module."""
    spec = importlib.util.spec_from_file_location(f"ci_{name}", SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def wheel(folder: Path, text: str) -> Path:
    """A wheel of the package `woven`, whose one module holds a text."""
    files = {
        "woven.py": text,
        "woven-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: woven\nVersion: 1.0\n",
        "woven-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},{_record(content)}\n" for name, content in files.items())
    files["woven-1.0.dist-info/RECORD"] = f"{record}woven-1.0.dist-info/RECORD,,\n"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "woven-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as opened:
        for name, content in files.items():
            opened.writestr(name, content)
    return path


def _record(content: str) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content.encode()).digest()).decode()
    return f"sha256={digest.rstrip('=')},{len(content)}"


def sum_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def run(command: list[str | Path], **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script with more in its environment."""
    return subprocess.run(
        command,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def copied(name: str, checkout: Path) -> Path:
    """A script of `.ci` in a checkout of a test's own, whose components it reads."""
    (checkout / ".ci").mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(SCRIPTS / name, checkout / ".ci" / name))


def stand_in(folder: Path, name: str, text: str) -> None:
    """A program (bash) that is found in place of another when its folder is first in PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/usr/bin/env bash\nset -euo pipefail\n{text}\n")
    path.chmod(0o755)
