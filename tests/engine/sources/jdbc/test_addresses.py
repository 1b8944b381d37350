"""Drivers accept our addresses and options, also those of databases that no test has."""

import socket
import subprocess
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from support.servers.databases import driver_jars, fetched_jars

from snaploom.models.datasource import Jdbc, JdbcDriver
from snaploom.sources.databases.drivers import DATABASES, connection_url, properties_of

PROGRAM = Path(__file__).parents[3] / "support" / "components" / "jdbcaddresses" / "Drivers.java"
SERVERS = [driver for driver in JdbcDriver if not DATABASES[driver].is_file]
"""Drivers of files answer nothing without a file; tests read these."""
LOST = {JdbcDriver.MYSQL: {"autoDeserialize"}}
"""What a newer driver does not have any more, and older ones must be denied."""


def declared(driver: JdbcDriver, **changes: object) -> Jdbc:
    usual = {"host": "db", "database": "shop", "tableReference": "t"}
    return Jdbc.parse({"driver": driver, **usual, "snapshot": {"fromReadTime": {}}, **changes})


def asked(word: str, sources: Sequence[Jdbc], **properties: str) -> list[tuple[bool, str]]:
    """For each driver, whether it accepts the URL, and its answer."""
    lines = []
    for source in sources:
        given = "\u0001".join(
            f"{name}={value}" for name, value in {**properties_of(source), **properties}.items()
        )
        driver_class = DATABASES[source.driver].driver_class
        lines.append(f"{word}\t{driver_class}\t{connection_url(source)}\t{given}")
    places = ":".join(f"{folder}/*" for folder in (driver_jars(), fetched_jars("jdbcaddresses")))
    done = subprocess.run(
        ["java", "-Dfile.encoding=UTF-8", "-cp", places, str(PROGRAM)],
        input="\n".join(lines), check=True, capture_output=True, text=True,
    )  # fmt: skip
    answers = [line.split("\t", 1) for line in done.stdout.splitlines()]
    return [(accepted == "true", answer) for accepted, answer in answers]


def test_every_driver_knows_its_address_and_every_option() -> None:
    answers = asked("know", [declared(driver) for driver in SERVERS])
    for driver, (is_accepted, answer) in zip(SERVERS, answers, strict=True):
        known = dict(each.split("=", 1) for each in answer.split("\u0001") if each)
        database = DATABASES[driver]
        options = {*database.options, *database.fixed} - LOST.get(driver, set())
        assert is_accepted
        assert options <= known.keys(), (driver, options - known.keys())


def _listened(server: socket.socket) -> Future[bytes]:
    """The first bytes that anybody sends; the connection is cut off then."""

    def listen() -> bytes:
        connection, _ = server.accept()
        with connection:
            connection.settimeout(60)
            return connection.recv(8192)

    return ThreadPoolExecutor(1).submit(listen)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize(
    ("driver", "first"),
    [(JdbcDriver.SQLSERVER, b"\x12\x01"), (JdbcDriver.ORACLE, b"(SERVICE_NAME=shop)")],
)
def test_drivers_without_a_database_call_where_they_should(driver, first, host):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as server:
        server.settimeout(60)
        port = server.getsockname()[1]
        source = declared(driver, host=host, port=port, database="shop")
        heard = _listened(server)
        ((is_accepted, answer),) = asked(
            "connect", [source], user="u", password="p", loginTimeout="5"
        )
    assert is_accepted
    assert first in heard.result(), answer
