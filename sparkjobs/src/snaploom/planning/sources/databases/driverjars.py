"""The jars of tested JDBC drivers, which `drivers install` knows and the image holds.

Versions and sums are those of `tests/support/components/jdbc`, which a test compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from snaploom.models.datasource import DataSource, Jdbc, JdbcDriver
from snaploom.planning.sources.databases.drivers import DATABASES


@dataclass(frozen=True)
class DriverJar:
    """The jar of one driver."""

    name: str
    """Its name for people; its coordinates where it has none."""
    coordinates: str
    """Group, artifact and version, as Maven writes them."""
    sha256: str

    @property
    def file_name(self) -> str:
        """Name of the jar."""
        _, artifact, version = self.coordinates.split(":")
        return f"{artifact}-{version}.jar"

    @property
    def group_and_artifact(self) -> str:
        """The coordinates without the version."""
        return self.coordinates.rpartition(":")[0]

    @property
    def is_known(self) -> bool:
        """Whether it is a version of a jar of the list, by its name there."""
        known = DRIVER_JAR_BY_NAME.get(self.name)
        return known is not None and known.group_and_artifact == self.group_and_artifact

    @property
    def is_rightly_named(self) -> bool:
        """Whether nobody can take it for another one: by its name, or by its coordinates."""
        return self.is_known or self.name == self.coordinates

    @property
    def path(self) -> str:
        """Where the jar is in a repository of Maven's layout."""
        group, artifact, version = self.coordinates.split(":")
        return f"{group.replace('.', '/')}/{artifact}/{version}/{self.file_name}"


DRIVER_JARS = (
    DriverJar(
        "postgresql",
        "org.postgresql:postgresql:42.7.14",
        "73914527305a40cce504b0d3d90b23caf565136912d607ae8ae7c5895512332c",
    ),
    DriverJar(
        "mariadb",
        "org.mariadb.jdbc:mariadb-java-client:3.5.5",
        "81b9b10dbbd823e5dc9d81bc48435c76d7e92297a8515cfb75bc620917df9baa",
    ),
    DriverJar(
        "mysql",
        "com.mysql:mysql-connector-j:9.4.0",
        "49ed93c8b2bea9cb0929b85a8a28837b191d0f8eac6919fdcef16e36e2cd53b3",
    ),
    DriverJar(
        "h2",
        "com.h2database:h2:2.5.252",
        "90b11dc413da82070ef15fc943282c1408e6ffd34fa68998335fea8603b5ff20",
    ),
    DriverJar(
        "duckdb",
        "org.duckdb:duckdb_jdbc:1.4.4.0",
        "43f0cc93c892699162d46e8a45e2cbb92d92f74b933832f84c78ed551a2608df",
    ),
)
"""Each is called like the database that it reads, as `spec.jdbc.driver` names it."""
DRIVER_JAR_BY_NAME = {jar.name: jar for jar in DRIVER_JARS}


def jars_for_source(source: DataSource, held: Mapping[str, DriverJar]) -> tuple[DriverJar, ...]:
    """Those of some jars that a source needs; none for a source in no database.

    A jar that has no name of ours serves sources that name a `driverClass`, and those of databases
    that are not in the list.
    """
    jdbc = source.spec.jdbc
    if jdbc is None:
        return ()
    name = _jar_name_of(jdbc)
    if name is not None and name in held:
        return (held[name],)
    if name is not None and jdbc.driver_class is None:
        return ()
    return tuple(jar for jar in held.values() if jar.name not in DRIVER_JAR_BY_NAME)


def _jar_name_of(jdbc: Jdbc) -> str | None:
    wanted = jdbc.driver_class
    for driver, database in DATABASES.items():
        is_meant = driver is jdbc.driver if wanted is None else wanted in database.driver_classes
        if is_meant and driver.value.lower() in DRIVER_JAR_BY_NAME:
            return driver.value.lower()
    return None


def database_of(jar: DriverJar) -> JdbcDriver:
    """The database that a jar of the list reads."""
    return JdbcDriver(jar.name.upper())
