"""Fixtures of stores that other processes serve; each is started when a test first asks for it."""

import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.servers import s3servers
from support.servers.databases import driver_jars
from support.servers.ports import free_port, running_server
from support.servers.postgresserver import PASSWORD, USER, Postgres
from support.servers.s3servers import S3Server

COMPONENTS = Path(__file__).parents[1] / "components"
SPARK_JARS = Path(sysconfig.get_paths()["purelib"], "pyspark", "jars")
OF_SPARK = ["hadoop-client-api", "hadoop-client-runtime", "slf4j-api", "log4j-slf4j2-impl"]
OF_SPARK += ["log4j-api", "log4j-core", "commons-logging", "jcl-over-slf4j"]
"""What the servers need and PySpark has, by the beginning of its jar's name."""


@contextmanager
def running_hdfs(folder: Path) -> Iterator[str]:
    """A file system whose blocks lie in `folder`; yields its URI, without a `/` at its end."""
    port = free_port()
    with _running("hdfs", folder, [], folder, port):
        yield f"hdfs://127.0.0.1:{port}"


@contextmanager
def running_catalog(folder: Path, postgres: Postgres) -> Iterator[S3Server]:
    """Iceberg's own REST catalog, over tables of a database; what it logs lies in `folder`."""
    port, url = free_port(), f"jdbc:postgresql://127.0.0.1:{postgres.port}/postgres"
    login = (url, USER, PASSWORD, f"file://{folder}")
    drivers = [str(jar) for jar in driver_jars().glob("postgresql-*.jar")]
    with _running("catalog", folder, drivers, port, *login):
        yield S3Server(f"http://127.0.0.1:{port}", "")


@contextmanager
def _running(component: str, folder: Path, more: list[str], *arguments: object) -> Iterator[None]:
    """The server of a component, until its input ends."""
    jars = [
        f"{s3servers.installed('jars', component)}/*",
        *(str(jar) for name in OF_SPARK for jar in SPARK_JARS.glob(f"{name}-*.jar")),
        *more,
    ]
    command = ["java", "-Xms128m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    command += ["-cp", ":".join(jars), str(COMPONENTS / component / "Server.java")]
    log = folder / "server.log"
    whole = [*command, *map(str, arguments)]
    with running_server(whole, log, lambda: b"ready\n" in log.read_bytes()):
        yield


@pytest.fixture(scope="session")
def versitygw(tmp_path_factory: pytest.TempPathFactory) -> Iterator[s3servers.S3Server]:
    """An S3 server whose conditional writes are right."""
    with s3servers.running_versitygw(tmp_path_factory.mktemp("versitygw")) as server:
        yield server


@pytest.fixture(scope="session")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[s3servers.S3Server]:
    folder: Path = tmp_path_factory.mktemp("moto")
    with s3servers.running_moto(folder) as server:
        yield server


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URI of an HDFS, without a `/` at its end."""
    with running_hdfs(tmp_path_factory.mktemp("hdfs")) as uri:
        yield uri


@pytest.fixture(scope="session")
def rest_catalog(
    tmp_path_factory: pytest.TempPathFactory, postgres: Postgres
) -> Iterator[S3Server]:
    """Iceberg's own REST catalog."""
    with running_catalog(tmp_path_factory.mktemp("catalog"), postgres) as server:
        yield server
