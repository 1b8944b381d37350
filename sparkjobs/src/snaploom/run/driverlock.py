"""Jars of a project's runs: a lock file names jar and hash, and a cache outside it has the jars.

The lock file stands beside `snaploom.yaml`, is committed with it, and is found in the same way. A
jar is only used where its hash is that of the lock file.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from snaploom.confidential import visible
from snaploom.errors import ArgumentInvalid
from snaploom.loading.load import Loaded
from snaploom.loading.project import nearest_file
from snaploom.localfiles import CACHE_VARIABLE, cache_folder, open_plain, read_plain, write_file
from snaploom.models.datasource import DataSource
from snaploom.sources.databases.drivers import COMET_JAR, KNOWN_JARS, DriverJar, jars_for_source

LOCK_FILE = "snaploom-drivers.lock"
"""Name of the lock file; its ending keeps it from being read as a declaration."""
REPOSITORY_VARIABLE = "SNAPLOOM_MAVEN_REPOSITORY"
"""Environment variable that names a repository: a folder, or a URL without user and password."""
COORDINATES = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]*:){2}[A-Za-z0-9_][A-Za-z0-9_.-]*")
"""Group, artifact and version. None begins with a point, so that no path leads upwards."""
UNLISTED = "--unlisted"
"""Option of `drivers install` that allows a jar that is not known here."""
MOST_LOCK_BYTES = 64 * 1024
"""Bytes of a lock file; a driver takes some 150."""
_LINE = re.compile(rf"(\S+) ({COORDINATES.pattern}) sha256:([0-9a-f]{{64}})")
_HEAD = "# JDBC drivers and their hashes. `snaploom drivers install` writes it; commit it.\n"


def read_lock(file: Path) -> dict[str, DriverJar]:
    """The drivers of a lock file by name; none where there is no file."""
    try:
        text = read_plain(file, MOST_LOCK_BYTES).decode()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise _not_a_lock(file, str(error)) from error
    if len(text) > MOST_LOCK_BYTES:
        raise _not_a_lock(file, f"more than {MOST_LOCK_BYTES:,} bytes")
    found: dict[str, DriverJar] = {}
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise _not_a_lock(file, line[:200])
        jar = DriverJar(match[1], match[2], match[3])
        if not jar.is_rightly_named:
            raise _misnamed(file, jar)
        found[jar.name] = jar
    return found


def write_lock(file: Path, jars: Mapping[str, DriverJar]) -> None:
    """Replace a lock file."""
    lines = [f"{jar.name} {jar.coordinates} sha256:{jar.sha256}\n" for jar in jars.values()]
    try:
        write_file(file, _HEAD + "".join(sorted(lines)), is_durable=True)
    except OSError as error:
        raise ArgumentInvalid(
            "the lock file cannot be written",
            path="--folder",
            found=f"{file}: {error.strerror or error}",
            expected="the folder of a project, which may be written to",
            hint="name it with --folder",
        ) from error


def cached_jar(jar: DriverJar) -> Path:
    """Return the path of a driver's jar on this machine, which need not exist."""
    try:
        return cache_folder() / "drivers" / jar.sha256 / jar.file_name
    except FileNotFoundError as error:
        raise ArgumentInvalid(
            "there is no place for JDBC drivers",
            path=CACHE_VARIABLE,
            found=str(error),
            expected="a folder that may be written to",
            hint=f"set {CACHE_VARIABLE} to one",
        ) from error


def hash_of(file: Path) -> str:
    """SHA-256 of a file."""
    with open_plain(file) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def verified_jar(jar: DriverJar, lock: Path) -> Path:
    """The jar of a driver, whose bytes are those that a lock file names."""
    file = cached_jar(jar)
    try:
        found = hash_of(file)
    except OSError as error:
        raise ArgumentInvalid(
            f"the {jar.title} is not installed on this machine",
            path=LOCK_FILE,
            found=f"{file}: {(error.strerror or str(error)).lower()}",
            expected=f"{jar.coordinates}, which {visible(str(lock))} names",
            hint=install_hint(jar),
        ) from error
    if found != jar.sha256:
        raise ArgumentInvalid(
            f"the {jar.title} on this machine is not that of the lock file",
            path=LOCK_FILE,
            found=f"sha256 {found} of {file}",
            expected=f"sha256 {jar.sha256}",
            hint=f"somebody changed it: remove it; then {install_hint(jar)}",
        )
    return file


def install_hint(jar: DriverJar) -> str:
    """Return how to install the jar of a driver, and what to consider before."""
    if jar.is_known:
        return f"to fetch {jar.coordinates}, run: snaploom drivers install {jar.name}"
    return (
        f"{jar.coordinates} is unknown to Snaploom, and would run with your rights: only if you "
        f"trust it, run: snaploom drivers install {jar.coordinates} {UNLISTED}"
    )


def jars_for(loaded: Loaded) -> tuple[Path, ...]:
    """The jars of locked drivers that some sources need, verified; none where nothing is locked."""
    return tuple(dict.fromkeys(verified_jar(jar, lock) for jar, lock in _needed(loaded)))


def accelerator_jar(loaded: Loaded) -> Path | None:
    """The jar of the locked accelerator, verified; None where none is locked."""
    files = (nearest_file(Path(located.file), LOCK_FILE) for located in loaded.located)
    for file in dict.fromkeys(file for file in files if file is not None):
        jar = read_lock(file).get(COMET_JAR.name)
        if jar is not None:
            return verified_jar(jar, file)
    return None


def _needed(loaded: Loaded) -> Iterator[tuple[DriverJar, Path]]:
    locks: dict[Path, dict[str, DriverJar]] = {}
    for located in loaded.located:
        file = nearest_file(Path(located.file), LOCK_FILE)
        if file is None or not isinstance(located.resource, DataSource):
            continue
        if file not in locks:
            locks[file] = read_lock(file)
        for jar in jars_for_source(located.resource, locks[file]):
            yield jar, file


def _misnamed(file: Path, jar: DriverJar) -> ArgumentInvalid:
    known = KNOWN_JARS.get(jar.name)
    return ArgumentInvalid(
        "the lock file gives a driver's name to another jar",
        path=LOCK_FILE,
        found=visible(f"{file}: {jar.name} {jar.coordinates}"),
        expected=f"{jar.name} {known.group_and_artifact}:VERSION" if known is not None
        else "coordinates as the name of a driver that Snaploom does not know",
        hint="ask who wrote the line, and remove it; nothing was fetched or used",
    )  # fmt: skip


def _not_a_lock(file: Path, found: str) -> ArgumentInvalid:
    return ArgumentInvalid(
        "this is no lock file of drivers",
        path=LOCK_FILE,
        found=visible(f"{file}: {found}"),
        expected="lines of NAME GROUP:ARTIFACT:VERSION sha256:HASH",
        hint="remove it, and run `snaploom drivers install` for each driver",
    )
