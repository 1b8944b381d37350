"""A marker in place of every credential: whatever fails, nobody can read it anywhere."""

import json
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from support.cluster.clusterjobs import SPARK_SUBMIT
from support.documentation.commands import PROGRAM, start
from support.hostile.canaries import places_of_canaries, watching_arguments
from support.hostile.failingsources import FailingSources
from support.runner.proofscope import IS_WHOLE
from support.servers.databases import driver_jars, fetched_jars
from support.servers.mariadbserver import MariaDb
from support.servers.postgresserver import Postgres
from support.servers.s3servers import S3Server

from snaploom.jobs import submit

pytestmark = pytest.mark.spark

LOG4J = """
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
rootLogger.appenderRef.console.ref = console
appender.file.type = File
appender.file.name = file
appender.file.fileName = {folder}/log4j.txt
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %p %c %m%n%ex
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c %m%n%ex
logger.sql.name = org.apache.spark.sql
logger.sql.level = debug
logger.maria.name = org.mariadb.jdbc
logger.maria.level = debug
logger.s3a.name = org.apache.hadoop.fs.s3a
logger.s3a.level = debug
logger.conf.name = org.apache.hadoop.conf
logger.conf.level = debug
"""


@dataclass
class Room:
    sources: FailingSources
    place: Path
    asked: list[str]

    def start(self, name: str, *command: str, **environment: str) -> str:
        """Run a program with every credential; what it printed."""
        folder = self.place / name
        folder.mkdir()
        with watching_arguments(folder / "arguments.txt"):
            process = start(
                command,
                folder,
                {**self.settings(folder), **self.sources.environment, **environment},
            )
            process.wait(500)
        return (folder / "out.txt").read_text() + (folder / "err.txt").read_text()

    def settings(self, folder: Path) -> dict[str, str]:
        """Spark's event log on, its own lines at their most talkative, all of it in the folder."""
        for name in ("conf", "events", "tmp", "home"):
            (folder / name).mkdir()
        (folder / "conf" / "log4j2.properties").write_text(LOG4J.format(folder=folder))
        (folder / "conf" / "spark-defaults.conf").write_text(
            f"""spark.eventLog.enabled true
                spark.eventLog.compress false
                spark.eventLog.dir file://{folder}/events
                spark.eventLog.logStageExecutorMetrics true
                spark.sql.debug.maxToStringFields 1000
                spark.driver.extraClassPath {driver_jars()}/*:{fetched_jars("s3a")}/*
                spark.local.dir {folder}/tmp
                spark.hadoop.fs.s3a.attempts.maximum 1
                spark.hadoop.fs.s3a.retry.limit 1
            """
        )
        return {
            "SPARK_CONF_DIR": str(folder / "conf"), "TMPDIR": str(folder / "tmp"),
            "HOME": str(folder / "home"), "PYSPARK_PYTHON": sys.executable,
        }  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, list[str]]]:
    """Refuses everybody, and repeats in its answer what it was sent."""
    asked: list[str] = []

    class Refusing(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            given = self.headers.get("Authorization", "")
            asked.append(given)
            body = json.dumps(
                {"error": {"type": "refused", "reason": given}, "status": 401}
            ).encode()
            self.send_response(401)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_HEAD = _answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{running.server_port}", asked
    running.shutdown()


@pytest.fixture(scope="module")
def room(
    tmp_path_factory: pytest.TempPathFactory,
    postgres: Postgres,
    mariadb: MariaDb,
    versitygw: S3Server,
    server: tuple[str, list[str]],
) -> Room:
    place = tmp_path_factory.mktemp("room")
    given = tmp_path_factory.mktemp("given")
    sources = FailingSources(given, postgres, mariadb, versitygw.endpoint, server[0])
    sources.prepare()
    sources.save()
    return Room(sources, place, server[1])


EXPECTED = {
    "wrong-password": "CredentialsRefused",
    "plaintext": "CredentialsRefused",
    "missing-table": "SourceNotReadable",
    "unreachable": "SourceNotReadable",
    "broken-query": "SourceSchemaInvalid",
}
"""Reasons of failures of databases, so that each is known to be what it is meant to be."""


def reports_in(printed: str) -> dict[str, dict[str, str]]:
    lines = [line for line in printed.splitlines() if line.startswith('{"')]
    return {report["output"]: report for report in map(json.loads, lines)}


def refuse_other_failures(room: Room, reports: dict[str, dict[str, str]]) -> None:
    """Make sure that every source failed as it was meant to."""
    for name in room.sources.specs:
        database, _, way = name.partition("-")
        if way in EXPECTED and database != "duckdb":
            assert reports[name]["reason"] == EXPECTED[way], reports[name]
    sound = {name for name, report in reports.items() if report["phase"] == "SUCCEEDED"}
    assert sound == {"postgres-sound", "mariadb-sound", "h2-sound", "files-missing"}


def test_nothing_that_a_submitted_job_leaves_behind_shows_a_credential(room: Room) -> None:
    command = (*SPARK_SUBMIT, submit.__file__, "--config", str(room.sources.place / "model.yaml"))
    printed = room.start("submitted", *command)
    refuse_other_failures(room, reports_in(printed))
    assert "401 refused: Basic ***" in printed  # the server's answer, without what it was sent
    assert {asked.split()[0] for asked in room.asked} == {"Basic", "Bearer"}
    events = [path.read_bytes() for path in room.place.rglob("submitted/events/*/events_*")]
    assert b"JDBCRelation" in b"".join(events)
    assert places_of_canaries(room.place / "submitted", room.sources.place / "out") == []


ON_LAPTOP = (
    "postgres-plaintext", "mariadb-plaintext", "h2-plaintext", "postgres-unread-value",
    "mariadb-unreachable", "duckdb-wrong-password", "files-bad", "s3-refused", "query-broken",
)  # fmt: skip


def test_nothing_that_a_laptop_shows_has_a_credential(room: Room) -> None:
    model = str(room.sources.place / "model.yaml")
    names = tuple(room.sources.specs) if IS_WHOLE else ON_LAPTOP
    printed = room.start("laptop", *PROGRAM, "run", *names, "-f", model, SNAPLOOM_DEBUG="1")
    assert "refuses this user or password" in printed
    assert places_of_canaries(room.place / "laptop", room.sources.place / "out") == []
