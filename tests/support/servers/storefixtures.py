"""Fixtures of stores that other processes serve; each is started when a test first asks for it."""

import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.servers import s3servers
from support.servers.databases import driver_jars
from support.servers.glueserver import running_glue
from support.servers.ports import free_port, running_server
from support.servers.postgresserver import PASSWORD, USER, Postgres
from support.servers.s3servers import S3Server

from snaploom.run.session.spark import s3a_settings

COMPONENTS = Path(__file__).parents[1] / "components"
SPARK_JARS = Path(sysconfig.get_paths()["purelib"], "pyspark", "jars")
OF_SPARK = ["hadoop-client-api", "hadoop-client-runtime", "slf4j-api", "log4j-slf4j2-impl"]
OF_SPARK += ["log4j-api", "log4j-core", "commons-logging", "jcl-over-slf4j"]
OF_SPARK += ["httpclient", "httpcore"]
"""What the servers need and PySpark has, by the beginning of its jar's name."""


@contextmanager
def running_hdfs(folder: Path) -> Iterator[str]:
    """A file system whose blocks lie in `folder`; yields its URI, without a `/` at its end."""
    port = free_port()
    with _running("hdfs", folder, _jars("hdfs"), folder, port):
        yield f"hdfs://127.0.0.1:{port}"


@contextmanager
def running_catalog(
    folder: Path, postgres: Postgres, address: str = "127.0.0.1", bucket: S3Server | None = None
) -> Iterator[S3Server]:
    """Iceberg's own REST catalog, over tables of a database.

    Args:
        folder: for its log.
        postgres: the database.
        address: of this machine, where it listens.
        bucket: the server of tables in a bucket; others are files of this machine.
    """
    port, url = free_port(), f"jdbc:postgresql://127.0.0.1:{postgres.port}/postgres"
    login = (url, USER, PASSWORD, f"file://{folder}")
    jars = [str(jar) for jar in driver_jars().glob("postgresql-*.jar")]
    keys: Mapping[str, str] = {}
    if bucket is not None:
        jars.append(f"{s3servers.installed('jars', 's3a')}/*")
        keys = bucket.environment
    jars += _jars("catalog")  # Last: Iceberg's jar of tests has a class of S3A too.
    files = [f"{key[len(_HADOOP) :]}={value}" for key, value in s3a_settings(keys).items()]
    with _running("catalog", folder, jars, address, port, *login, *files, **keys):
        yield S3Server(f"http://{address}:{port}", "")


_HADOOP = "spark.hadoop."
"""Start of Spark's names of Hadoop's settings."""


@contextmanager
def running_metastore(folder: Path, keeps_types: str = "false") -> Iterator[int]:
    """Hive's own metastore, of Spark's jars; yields its port.

    One that keeps types, as Hive's do by default, refuses a column of another at its position.
    """
    port = free_port()
    with _running("metastore", folder, [f"{SPARK_JARS}/*"], port, folder, keeps_types):
        yield port


def _jars(component: str) -> list[str]:
    of_spark = (jar for name in OF_SPARK for jar in SPARK_JARS.glob(f"{name}-*.jar"))
    return [f"{s3servers.installed('jars', component)}/*", *map(str, of_spark)]


@contextmanager
def _running(
    component: str, folder: Path, jars: list[str], *arguments: object, **environment: str
) -> Iterator[None]:
    """The server of a component, until its input ends."""
    command = ["java", "-Xms128m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    command += ["-cp", ":".join(jars), str(COMPONENTS / component / "Server.java")]
    log = folder / "server.log"
    whole = [*command, *map(str, arguments)]
    with running_server(whole, log, lambda: b"ready\n" in log.read_bytes(), **environment):
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


@pytest.fixture(scope="session")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Port of a metastore of Hive."""
    with running_metastore(tmp_path_factory.mktemp("metastore")) as port:
        yield port


@pytest.fixture(scope="session")
def glue() -> Iterator[S3Server]:
    """A stand-in for AWS Glue."""
    with running_glue() as server:
        yield server
