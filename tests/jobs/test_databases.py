"""A table of a real PostgreSQL as the root of an output, with files joined to it."""

import time
from pathlib import Path
from typing import Any

import duckdb
import pytest
from support.declared.declarations import document, relationship, simple
from support.declared.declarations import key as text_key
from support.declared.sources import by_field
from support.documentation.commands import end, snaploom_command
from support.servers.databases import driver_jars, in_postgres
from support.servers.postgresserver import PASSWORD, USER, Postgres
from support.weaving.loom import ClusterJob, Loom, ids

from snaploom.models.report import Report, RunPhase
from snaploom.plan.bundles import secret_keys

pytestmark = pytest.mark.spark

IN_SECRET = {"fromSecret": {"name": "shop-db", "userKey": "login", "passwordKey": "secret"}}
BY_DAY = by_field("at", "ISO8601_DATE")
SPLIT = ["id % 2 = 0", "id % 2 = 1"]
CONNECTIONS = (
    "SELECT pid FROM pg_stat_activity WHERE usename = current_user AND pid <> pg_backend_pid()"
)
DEADLINE = 30.0
"""Seconds in which PostgreSQL has to see that a connection was closed."""


def connections(postgres: Postgres) -> set[str]:
    return set(postgres.run(CONNECTIONS).split())


@pytest.fixture
def loom(tmp_path: Path, postgres: Postgres) -> Loom:
    postgres.run(
        """DROP TABLE IF EXISTS shop_order;
           CREATE TABLE shop_order AS SELECT id::bigint, date '2024-01-01' + id % 2 AS at,
             'order ' || id AS note FROM generate_series(0, 5) id"""
    )
    loom = Loom(tmp_path)
    for day in (1, 2):
        loom.write("customer", day, ids(0, 1, 9))
    loom.join("customer")
    loom.sources.remove("order")
    return from_table(loom, postgres)


def from_table(loom: Loom, postgres: Postgres, **settings: Any) -> Loom:
    usual = {"snapshot": BY_DAY, "tablePredicates": SPLIT, "credentials": IN_SECRET}
    table = in_postgres(postgres, "public.shop_order", **usual | settings)
    loom.more = [document("DataSource", "order", table)]
    return loom


def give_secrets(loom: Loom, monkeypatch: pytest.MonkeyPatch, password: str = PASSWORD) -> None:
    values = {"login": USER, "secret": password}
    for key in secret_keys(loom.bundle()):
        monkeypatch.setenv(key.variable, values[key.key])


def published(loom: Loom) -> list[tuple[Any, ...]]:
    files = [str(loom.out / name) for name in loom.state().live_files]
    query = "SELECT data.id, data.note, customer.data.id FROM read_parquet($1) ORDER BY 1"
    return duckdb.execute(query, [files]).fetchall()


EXPECTED = [(key, f"order {key}", key if key < 2 else None) for key in range(6)]


def test_rows_of_the_table_are_woven_by_a_job_that_has_secrets(
    spark, postgres, loom, tmp_path, monkeypatch
):
    give_secrets(loom, monkeypatch)
    before = connections(postgres)
    code, report = ClusterJob(tmp_path).run(loom.bundle())
    assert (code, report.phase, loom.live_days()) == (0, RunPhase.SUCCEEDED, [1, 2])
    assert published(loom) == EXPECTED
    deadline = time.monotonic() + DEADLINE
    while connections(postgres) - before:
        assert time.monotonic() < deadline
    files = (path for path in tmp_path.rglob("*") if path.is_file())
    assert not [path for path in files if PASSWORD.encode() in path.read_bytes()]


@pytest.mark.parametrize("steps", [[], ["TRIM", "UPPER", "REMOVE_DASHES"]])
def test_keys_of_a_table_and_of_a_query_match_once_they_are_normalised(
    spark, postgres, loom, monkeypatch, steps
):
    postgres.run(
        "ALTER TABLE shop_order ADD code char(9); UPDATE shop_order SET code = 'ab-' || id"
    )
    for day in (1, 2):
        loom.write("person", day, [{"id": n, "code": f"Ab{n}\u00a0"} for n in range(3)])
    loom.more.append(simple("customer", "SELECT id, code FROM c", "person"))
    sources = ["order", "customer"]
    one = text_key("code") | ({"normalize": steps} if steps else {})
    joined = relationship("id", (sources, [one]))
    raws = [raw for raw in loom.documents() if raw["kind"] != "DataRelationship"]
    monkeypatch.setattr(loom, "documents", lambda: [*raws, joined])
    give_secrets(loom, monkeypatch)
    report = loom.weave(spark).report
    assert report.phase is RunPhase.SUCCEEDED
    matches = [snapshot.joins[0].matched for snapshot in report.snapshots]
    assert matches == ([2, 1] if steps else [0, 0])
    newest = report.snapshots[-1].unmatched[0]
    assert [near.rows for near in newest.near_misses] == ([] if steps else [1])


def test_password_that_is_refused_ends_the_run_with_a_reason(
    spark, postgres, loom, tmp_path, monkeypatch, capfd
):
    give_secrets(loom, monkeypatch, password="not this one")
    code, report = ClusterJob(tmp_path).run(loom.bundle())
    assert (code, report.phase, report.reason) == (1, RunPhase.FAILED, "CredentialsRefused")
    output = "".join(capfd.readouterr()) + report.dump_json()
    assert "password authentication failed" in output
    assert "not this one" not in output
    assert not loom.out.exists()


def test_table_that_vanishes_while_it_is_read_fails_the_snapshot(
    spark, postgres, loom, monkeypatch
):
    from_table(loom, postgres, isolationLevel="READ_COMMITTED", checkPredicates=False)
    give_secrets(loom, monkeypatch)

    def vanish(point: object) -> None:
        postgres.run("DROP TABLE IF EXISTS shop_order")

    report: Report = loom.weave(spark, reached=vanish).report
    assert report.phase is RunPhase.FAILED
    assert 'relation "public.shop_order" does not exist' in (report.message or "")
    assert report.reason == "SourceNotReadable"


def test_command_line_takes_drivers_from_sparks_jars(postgres, loom, tmp_path):
    login = {"fromPlaintext": {"user": USER, "password": PASSWORD}}
    from_table(loom, postgres, credentials=login)
    jars = ",".join(map(str, driver_jars().glob("postgresql-*.jar")))
    loom.spec = {"run": {"spark": {"sparkConf": {"spark.jars": jars}}}}
    arguments = ("run", "wide", "-f", str(loom.save()), "--allow", "sparkConf=spark.jars")
    process = snaploom_command(*arguments, folder=tmp_path / "process")
    code, out, err = end(process, tmp_path / "process")
    assert (code, loom.live_days()) == (0, [1, 2])
    assert published(loom) == EXPECTED
    assert "SL143" in err
    assert PASSWORD not in out + err
