"""All that a JVM is started with, so that two that are started with the same are alike."""

from __future__ import annotations

import hashlib
import json
import os
import re
import resource
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from snaploom.jobs.hadoopsettings import configured_elsewhere
from snaploom.jobs.session.classarchive import installed_files, java_home
from snaploom.models.run import RunSettings
from snaploom.version import VERSION

OF_THE_TERMINAL = frozenset(
    {
        *("_", "COLUMNS", "GPG_TTY", "LINES", "OLDPWD", "SHLVL", "SSH_TTY", "TERM_SESSION_ID"),
        *("TMUX_PANE", "WINDOWID", "XDG_SESSION_ID"),
    }
)
"""Environment variables that differ from terminal to terminal; neither Java, Spark nor Python goes
by them."""
_NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")
_ENTRIES = re.compile(r"[,:;\s=]+")


@dataclass(frozen=True)
class Launch:
    """What a JVM is started with, and what the process that starts it passes on to it."""

    settings: Mapping[str, str]
    """Of Spark."""
    is_small: bool
    """Whether it is fitted to little work."""
    environment: Mapping[str, str]
    """All variables, those of the terminal among them."""
    folder: str
    """In which the process works."""
    umask: int
    facts: tuple[str, ...]
    """Python, Java, Spark, the folder, and the files that settings name, as they are now."""
    bounds: tuple[str, ...]
    """What a process passes on to its children beside environment, folder and umask."""

    @property
    def key(self) -> str:
        """Is the same for launches whose JVMs are alike."""
        kept = {
            name: value for name, value in self.environment.items() if name not in OF_THE_TERMINAL
        }
        document = json.dumps({**asdict(self), "environment": kept}, sort_keys=True)
        return hashlib.sha256(document.encode()).hexdigest()


def launch_of(
    spark_home: Path,
    settings: Mapping[str, str],
    environment: Mapping[str, str] = os.environ,
    *,
    is_small: bool = False,
) -> Launch | None:
    """What this process would start a JVM with; None where more than that counts.

    Args:
        spark_home: folder of Spark.
        settings: of Spark.
        environment: of the process.
        is_small: whether the process ends after little work.
    """
    java = java_home(environment)
    if java is None or configured_elsewhere(RunSettings(), environment):
        return None
    try:
        folder = os.getcwd()
        files = (*installed_files(java, spark_home), *_files_in(settings))
        python = f"{VERSION} {sys.executable} {sys.version}"
        facts = (python, *map(_state, (Path(folder), *files)))
    except OSError:
        return None
    return Launch(
        settings=dict(settings),
        is_small=is_small,
        environment=dict(environment),
        folder=folder,
        umask=_umask(),
        facts=facts,
        bounds=bounds_of_process(),
    )


def bounds_of_process() -> tuple[str, ...]:
    """Root folder, groups, limits and namespaces of this process."""
    links = (Path("/proc/self/ns", name) for name in _NAMESPACES)
    limits = (name for name in sorted(dir(resource)) if name.startswith("RLIMIT_"))
    return (
        _state(Path("/")),
        f"groups {sorted(os.getgroups())}",
        *(f"{name} {resource.getrlimit(getattr(resource, name))}" for name in limits),
        *(f"{link.name} {link.readlink()}" for link in links if link.is_symlink()),
    )


def to_line(launch: Launch) -> bytes:
    """As one line; bytes of an environment that are no UTF-8 stay what they are."""
    return json.dumps(asdict(launch)).encode() + b"\n"


def from_line(line: bytes) -> Launch:
    """What `to_line` wrote.

    Raises:
        ValueError: it is something else.
    """
    try:
        raw = json.loads(line)
        lists = {name: tuple(raw[name]) for name in ("facts", "bounds")}
        return Launch(**{**raw, **lists})
    except (TypeError, KeyError) as error:
        raise ValueError("no launch") from error


def _files_in(settings: Mapping[str, str]) -> Iterator[Path]:
    """Files and folders on this machine that settings name, and the jars of `folder/*`."""
    for name in sorted(settings):
        value = settings[name]
        for entry in (*value.split(","), *_ENTRIES.split(value)):  # lists of paths may have blanks
            path = Path(entry.removeprefix("file:").removesuffix("*"))
            if entry and path.is_absolute() and path.exists():
                yield path
                if entry.endswith("/*"):
                    yield from sorted(path.glob("*.jar"))


def _state(path: Path) -> str:
    """Changes with a file, or where a folder is another one."""
    found = path.stat()
    identity = f"{path} {found.st_dev} {found.st_ino}"
    return identity if path.is_dir() else f"{identity} {found.st_size} {found.st_mtime_ns}"


def _umask() -> int:
    """Of this process; there is no way to ask but to set it, for a moment to the narrowest."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
