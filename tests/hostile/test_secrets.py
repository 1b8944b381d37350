"""A marker in place of every credential: whatever fails, nobody can read it anywhere."""

import json
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from support.declared.declarations import Raw, document
from support.documentation.commands import PROGRAM, start
from support.hostile.canaries import canary, places_of_canaries, watching_arguments
from support.runner.proofscope import IS_WHOLE
from support.servers.databases import (
    driver_jars,
    fetched_jars,
    in_duckdb,
    in_h2,
    in_mariadb,
    in_postgres,
    make_h2,
)
from support.servers.mariadbserver import MariaDb
from support.servers.ports import free_port
from support.servers.postgresserver import Postgres
from support.servers.s3servers import ACCESS_KEY, BUCKET, S3Server
from support.weaving.loom import SPARK_SUBMIT, START

from snaploom.models.allowances import ALLOW_VARIABLE
from snaploom.models.datasource import Credentials
from snaploom.plan.bundles import user_and_password
from snaploom.run import submit

RIGHT, WRONG, SHARED = canary("right"), canary("wrong"), canary("secret")
BY_ENVIRONMENT = {"fromEnvironment": {"userVariable": "DB_USER", "passwordVariable": "DB_PASSWORD"}}
BY_WRONG = {"fromEnvironment": {"userVariable": "DB_USER", "passwordVariable": "DB_WRONG"}}
BY_SECRET = {"fromSecret": {"name": "shop", "userKey": "login", "passwordKey": "word"}}
BY_PLAINTEXT = {"fromPlaintext": {"user": "keeper", "password": WRONG}}


@dataclass
class FailingSources:
    """Declarations in a folder, and the environment that their runs need."""

    place: Path
    postgres: Postgres
    mariadb: MariaDb
    s3: str
    lineage: str
    specs: dict[str, Raw] = field(default_factory=dict)
    indexes: list[Raw] = field(default_factory=list)

    def prepare(self) -> None:
        """Make databases and files, those that are sound and those that are not."""
        self.postgres.run(
            f"""DROP TABLE IF EXISTS kept; DROP ROLE IF EXISTS keeper;
                CREATE ROLE keeper LOGIN PASSWORD '{RIGHT}';
                CREATE TABLE kept AS SELECT id::bigint, 'n' || id AS note, id + 0.5 AS half
                  FROM generate_series(1, 5) id;
                GRANT SELECT ON kept TO keeper"""
        )
        self.mariadb.run(
            f"""DROP USER IF EXISTS keeper; CREATE USER keeper IDENTIFIED BY '{SHARED}';
                GRANT ALL ON shop.* TO keeper; DROP TABLE IF EXISTS kept;
                CREATE TABLE kept AS SELECT 1 AS id, 'n' AS note, 1.5 AS half"""
        )
        h2 = self.place / "room.h2"
        make_h2(
            h2, f"CREATE TABLE KEPT AS SELECT 1 AS ID; CREATE USER KEEPER PASSWORD '{RIGHT}' ADMIN"
        )
        self._databases()
        self._files()
        self.indexes = [self._index("refused"), self._index("unreachable")]

    def _databases(self) -> None:
        h2 = self.place / "room.h2"
        makers: dict[str, tuple[Any, Any, Raw]] = {
            "postgres": (in_postgres, self.postgres, BY_ENVIRONMENT),
            "mariadb": (in_mariadb, self.mariadb, BY_SECRET),
            "h2": (in_h2, h2, BY_ENVIRONMENT),
        }
        whole = [{"name": "half", "dataType": {"long": {}}}]
        for kind, (make, where, login) in makers.items():
            table = "KEPT" if kind == "h2" else "kept"
            self.specs[f"{kind}-sound"] = make(where, table, credentials=login)
            self.specs[f"{kind}-wrong-password"] = make(where, table, credentials=BY_WRONG)
            self.specs[f"{kind}-plaintext"] = make(where, table, credentials=BY_PLAINTEXT)
            self.specs[f"{kind}-missing-table"] = make(where, "nowhere", credentials=login)
            self.specs[f"{kind}-broken-query"] = make(
                where, table, credentials=login, tablePredicates=["nothing = 1"]
            )
            if kind != "h2":
                self.specs[f"{kind}-unreachable"] = make(
                    where, table, credentials=login, port=free_port()
                )
                self.specs[f"{kind}-unread-value"] = make(
                    where, table, credentials=login, schemaFields=whole
                )
        self.specs["h2-unreachable"] = in_h2(self.place / "no", "KEPT", credentials=BY_ENVIRONMENT)
        self.specs["duckdb-wrong-password"] = in_duckdb(
            self.place / "no.duckdb", "kept", credentials=BY_WRONG
        )

    def _files(self) -> None:
        (self.place / "bad.parquet").write_text("this is no Parquet file")
        pq.write_table(pa.table({"id": [1]}), self.place / "sound.parquet")
        for name, data_format, uri in (
            ("files-bad", "parquet", self.place / "bad.parquet"),
            ("files-missing", "parquet", self.place / "nowhere" / "x.parquet"),
            ("s3-refused", "parquet", f"s3a://{BUCKET}/kept/*.parquet"),
            ("s3-missing-bucket", "json", "s3a://nowhere-at-all/kept/*"),
            ("s3-output", "parquet", self.place / "sound.parquet"),
        ):
            self.specs[name] = {
                "hdfsLike": {
                    "format": data_format, "sourceUriGlobs": [str(uri)],
                    "snapshot": {"fromReadTime": {}},
                }
            }  # fmt: skip
        query = "SELECT CAST(raise_error(note) AS STRING) AS x, id FROM c"
        self.specs["query-broken"] = {
            "simpleVirtual": {"dataSource": "postgres-sound", "alias": "c", "dataQuery": query}
        }
        query = "SELECT nothing FROM c"
        self.specs["query-unresolved"] = {
            "simpleVirtual": {"dataSource": "postgres-sound", "alias": "c", "dataQuery": query}
        }

    def _index(self, how: str) -> Raw:
        store = {
            "scheme": "http", "host": "127.0.0.1",
            "port": int(self.lineage.rsplit(":", 1)[1]) if how == "refused" else free_port(),
            "auth": "BASIC", "credentials": BY_WRONG,
        }  # fmt: skip
        spec = {
            "target": {"path": {"uri": f"file://{self.place}/sound.parquet", "format": "parquet"}},
            "indexes": [{"type": "MIN_MAX", "column": "id"}],
            "store": {"openSearch": store},
        }
        return document("SkippingIndex", f"search-{how}", spec)

    def _output(self, name: str) -> Raw:
        interval = {"intervalStartDate": {**START, "year": 2026}, "intervalLength": {"year": 1}}
        folder = (
            f"s3a://{BUCKET}/out/" if name == "s3-output" else f"file://{self.place}/out/{name}/"
        )
        root = {"dataSource": name, "snapshotFilter": {"fromInterval": interval}}
        return document(
            "OutputDataset",
            name,
            {
                "dataModel": {"rootDataSource": root},
                "outputFolder": {"folderUri": folder, "snapshotFormat": {"hivePartitioned": {}}},
            },
        )

    def save(self) -> Path:
        """The declarations as one file."""
        sources = [document("DataSource", name, spec) for name, spec in self.specs.items()]
        outputs = [self._output(name) for name in self.specs]
        path = self.place / "model.yaml"
        path.write_text(yaml.safe_dump_all([*sources, *outputs, *self.indexes]), "utf-8")
        return path

    @property
    def environment(self) -> dict[str, str]:
        """Every credential that is not in the declarations."""
        keys = user_and_password(Credentials.model_validate(BY_SECRET))
        assert keys is not None
        user, password = keys
        return {
            "DB_USER": "keeper", "DB_PASSWORD": RIGHT, "DB_WRONG": WRONG,
            user.variable: "keeper", password.variable: SHARED,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": canary("s3"),
            "AWS_ENDPOINT_URL": self.s3, "AWS_REGION": "us-east-1",
            "SNAPLOOM_LINEAGE_URL": self.lineage, "SNAPLOOM_LINEAGE_API_KEY": canary("lineage"),
            "VAULT_TOKEN": canary("vault"),
            ALLOW_VARIABLE: json.dumps({"formats": ["h2"], "endpoints": ["127.0.0.1"]}),
        }  # fmt: skip


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
