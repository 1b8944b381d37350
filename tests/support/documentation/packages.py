"""Environments that have nothing but files of a release, for tests that use it from there.

RELEASE names the folder of a release, which `make release` built; without it what `make packages`
makes is one.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from support.documentation.examples import REPOSITORY

RELEASE_VARIABLE = "RELEASE"


def _interpreters() -> Iterator[str]:
    """One interpreter of each supported version that this machine has, on the path or by pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for minor in range(11, 15):
        name = f"python3.{minor}"
        known = sorted(map(str, pyenv.glob(f"versions/*/bin/{name}")))
        for found in (shutil.which(name), *known):
            if found and not subprocess.run([found, "-c", ""], capture_output=True).returncode:
                yield found
                break


PYTHONS = tuple(_interpreters())
"""Interpreters of this machine that are supported."""


def build_packages(folder: Path, **environment: str) -> Path:
    _run([REPOSITORY / ".ci" / "release", "packages", folder], REPOSITORY, environment)
    return folder


def released() -> Path | None:
    """The folder of the release under test; None where the checkout is tested."""
    folder = os.environ.get(RELEASE_VARIABLE)
    return Path(folder).resolve() if folder else None


def release_packages(folder: Path) -> Path:
    """What can be installed: the release under test, or packages built in a folder."""
    return released() or build_packages(folder)


def the_file(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    assert len(found) == 1, f"{folder}: {pattern} matches {[path.name for path in found]}"
    return found[0]


@dataclass(frozen=True)
class Installed:
    """An environment of its own, with packages of a release."""

    folder: Path
    packages: Path

    @property
    def programs(self) -> Path:
        return self.folder / "bin"

    def install(self, lock: str, *wheels: str) -> None:
        requirements = self.packages / f"requirements-{lock}.txt"
        tools = REPOSITORY / ".ci" / "locks" / "tools.txt"
        for each in (tools, requirements):  # PySpark is published as sources: the tools build it
            _run([REPOSITORY / ".ci" / "locked", self.programs / "python", each], self.folder)
        paths = [the_file(self.packages, f"{name}-*.whl") for name in wheels]
        pip = [self.programs / "python", "-m", "pip"]
        _run([*pip, "install", "--quiet", "--no-index", "--no-deps", *paths], self.folder)
        _run([*pip, "check"], self.folder)

    def run(self, *command: str | Path, folder: Path | None = None, code: int = 0) -> str:
        """Run one of its programs, which has to end with a code; all that it printed."""
        program = self.programs / command[0]
        return _run([program, *command[1:]], folder or self.folder, {"NO_COLOR": "1"}, code)


def empty_environment(folder: Path, packages: Path, python: str = sys.executable) -> Installed:
    _run([python, "-m", "venv", folder], REPOSITORY)
    return Installed(folder, packages)


def _run(
    command: list[str | Path],
    folder: Path,
    environment: dict[str, str] | None = None,
    code: int = 0,
) -> str:
    hidden = ("PYTHONPATH", "VIRTUAL_ENV", "SPARK_HOME", "PYSPARK_PYTHON")
    inherited = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        command,
        cwd=folder,
        env={**inherited, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == code, f"{command}\n{done.stdout}"
    return done.stdout
