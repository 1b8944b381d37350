"""Fetches the jar of a JDBC driver: from a named repository of Maven's layout, or as Spark does."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

from pyspark import SparkConf
from pyspark.errors import PySparkException

from snaploom.errors import ArgumentInvalid
from snaploom.localfiles import CACHE_VARIABLE
from snaploom.run.driverlock import REPOSITORY_VARIABLE, cached_jar, hash_of
from snaploom.run.session.jvm import launched
from snaploom.sources.databases.drivers import DriverJar

FETCH_SECONDS = 60.0
"""Seconds for which a repository may be silent."""
MOST_JAR_BYTES = 512 * 1024 * 1024
"""Bytes of a driver's jar; that of DuckDB, the largest of ours, has 80 MB."""
_PIECE = 1024 * 1024


def install_jar(jar: DriverJar, repository: str = "") -> DriverJar:
    """The driver with the hash of its jar, now in the cache; not fetched where it is there.

    Without a hash, any jar that is found is taken, and its hash is new. `repository` is a folder or
    URL; empty for Spark's resolution.
    """
    if jar.sha256 and _is_cached(jar):
        return jar
    with TemporaryDirectory(prefix="snaploom-driver-") as folder:
        fetched = Path(folder) / jar.file_name
        if repository:
            _copy_from(repository, jar, fetched)
        else:
            _resolve_by_spark(jar, Path(folder), fetched)
        found = DriverJar(jar.name, jar.coordinates, hash_of(fetched))
        if jar.sha256 and found.sha256 != jar.sha256:
            raise ArgumentInvalid(
                f"the jar that was fetched for {jar.name} is not the one that was locked",
                path="NAME",
                found=f"sha256 {found.sha256} of {jar.coordinates}",
                expected=f"sha256 {jar.sha256}",
                hint="nothing was installed: look at the repository, which has another jar under "
                "this version",
            )
        _keep(fetched, cached_jar(found))
    return found


def _is_cached(jar: DriverJar) -> bool:
    try:
        return hash_of(cached_jar(jar)) == jar.sha256
    except OSError:
        return False


def _keep(fetched: Path, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        written = target.with_name(f".{target.name}-{os.getpid()}")
        shutil.copyfile(fetched, written)
        os.replace(written, target)
    except OSError as error:
        raise ArgumentInvalid(
            "the cache of drivers cannot be written",
            path=CACHE_VARIABLE,
            found=f"{target}: {error.strerror or error}",
            expected="a folder that may be written to",
            hint=f"set {CACHE_VARIABLE} to one",
        ) from error


def _copy_from(repository: str, jar: DriverJar, target: Path) -> None:
    place = _place(repository)
    size = 0
    try:
        with (
            urlopen(f"{place.rstrip('/')}/{jar.path}", timeout=FETCH_SECONDS) as answer,
            target.open("wb") as stream,
        ):
            while piece := answer.read(_PIECE):
                size += len(piece)
                if size > MOST_JAR_BYTES:
                    raise OSError(f"more than {MOST_JAR_BYTES:,} bytes")
                stream.write(piece)
    except (OSError, ValueError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        raise _not_fetched(jar, f"{place}: {reason}") from error


def _place(repository: str) -> str:
    """The URL of a repository; it has no secret, since errors name it."""
    try:
        address = urlsplit(repository)
    except ValueError:  # of brackets that hold no address
        raise _no_repository("no URL") from None
    if not address.scheme:
        return Path(repository).absolute().as_uri()
    has_more = "@" in address.netloc or address.query or address.fragment
    if address.scheme not in ("http", "https", "file") or has_more:
        host = address.netloc.rpartition("@")[2]
        raise _no_repository(f"{address.scheme}://{host}" + ", and more" * bool(has_more))
    return repository


def _no_repository(found: str) -> ArgumentInvalid:
    return ArgumentInvalid(
        "this is no repository that can be asked",
        path="--repository",
        found=found,
        expected="a folder, or a URL of http, https or file without user, password and query",
        hint=f"correct --repository, or {REPOSITORY_VARIABLE}",
    )


def _resolve_by_spark(jar: DriverJar, folder: Path, target: Path) -> None:
    """Start a JVM as Spark does, which resolves packages first; it is ended at once."""
    settings: Mapping[str, str] = {
        "spark.jars.packages": jar.coordinates,
        "spark.jars.ivy": str(folder / "ivy"),
    }
    with TemporaryFile() as log:
        try:
            conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
            gateway = launched(conf, log)
            gateway.shutdown()
            gateway.proc.stdin.close()
        except (PySparkException, OSError) as error:
            log.seek(0)
            lines = [line for line in log.read().decode(errors="replace").splitlines() if line]
            why = next((line.strip() for line in lines if "not found" in line), str(error))
            raise _not_fetched(jar, why[:300]) from error
    group, artifact, version = jar.coordinates.split(":")
    resolved = folder / "ivy" / "jars" / f"{group}_{artifact}-{version}.jar"
    try:
        shutil.copyfile(resolved, target)
    except OSError as error:
        raise _not_fetched(jar, f"Spark has resolved no {resolved.name}") from error


def _not_fetched(jar: DriverJar, found: str) -> ArgumentInvalid:
    return ArgumentInvalid(
        f"the {jar.title} cannot be fetched",
        path="NAME",
        found=found,
        expected=f"a repository with {jar.coordinates}",
        hint="check the network, or name a repository that this machine reaches: --repository, "
        f"or {REPOSITORY_VARIABLE}",
    )
