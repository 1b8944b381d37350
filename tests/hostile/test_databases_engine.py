"""Databases as a way to files, other tables and programs: tried on those that tests start.

Sources are opened without validation, as from a Bundle that somebody else made.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from support.declared.sources import NOW, a_bundle, rows_at
from support.servers.databases import (
    in_duckdb,
    in_h2,
    in_mariadb,
    in_postgres,
    make_duckdb,
    make_h2,
)
from support.servers.mariadbserver import MariaDb
from support.servers.postgresserver import Postgres

from snaploom.errors import SourceError
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.findings import InvalidDeclarations
from snaploom.sources.readers import Sources

pytestmark = pytest.mark.spark

Rows = list[tuple[object, ...]]
Reading = Callable[..., Rows]

OF_ALL = (
    "(SELECT count(*) FROM other) = 1",
    "EXISTS (SELECT 1 FROM other)",
    "a = 1 UNION SELECT 1",
    "a = 1; DROP TABLE other",
    "a = 1 -- or 1 = 1",
    "a = 1 /* or 1 = 1 */",
    "a = 1) OR (1 = 1",
)
OF_POSTGRES = (
    "pg_read_file('/etc/passwd') LIKE 'root%'",
    "pg_ls_dir('/') IS NOT NULL",
    "lo_import('/etc/passwd') > 0",
    "lo_creat(-1) > 0",
    "dblink('host=127.0.0.1', 'SELECT 1') IS NULL",
    "pg_sleep(5) IS NOT NULL",
    "set_config('a.b', 'c', false) = 'c'",
    "pg_catalog.pg_sleep(5) IS NOT NULL",
    "\"pg_sleep\"(5) IS NOT NULL",
    "'pg_authid'::regclass IS NOT NULL",
    "(TABLE other) IS NOT NULL",
    "a = $$1$$::int",
    "a = 1 OR 'x' = E'\\' OR pg_sleep(5) IS NOT NULL --'",
)  # fmt: skip
OF_MARIADB = (
    "load_file('/etc/passwd') IS NULL",
    "sleep(5) = 0",
    "benchmark(1000000000, md5('x')) = 0",
    "get_lock('x', 5) = 1",
    "a = 1 INTO OUTFILE '/tmp/canary'",
    "a = 1 /*!50000 OR sleep(5) = 0 */",
    "a = 1 # OR 1 = 1",
    "@@datadir IS NULL",
    "(@x := 1) = 1",
)
OF_DUCKDB = (
    "(FROM read_csv('/etc/passwd')) IS NOT NULL",
    "read_text('/etc/passwd') IS NOT NULL",
    "glob('/etc/*') IS NOT NULL",
    "getenv('HOME') = '/root'",
    "(SELECT count(*) FROM '/etc/passwd') = 1",
    "list_transform([1], x -> x) = [1]",
    "a = 1 OR COLUMNS('a') = 1",
)


@pytest.fixture
def read(spark: SparkSession) -> Iterator[Reading]:
    """Reads a source as a run does; its connections are closed in the end."""
    opened: list[Sources] = []

    def all_rows(spec: dict[str, Any], allow: Allowances = NO_ALLOWANCES) -> Rows:
        opened.append(Sources(spark, a_bundle(spec), NOW, allow=allow))
        return rows_at(opened[-1].reader("orders"), NOW)

    yield all_rows
    for each in opened:
        each.close()


def split(predicate: str) -> dict[str, Any]:
    return {"tablePredicates": [predicate], "checkPredicates": False}


def refused(read: Reading, spec: dict[str, Any], allow: Allowances = NO_ALLOWANCES) -> set[str]:
    with pytest.raises(InvalidDeclarations) as caught:
        read(spec, allow)
    return {finding.code for finding in caught.value.findings}


@pytest.mark.parametrize("predicate", [*OF_ALL, *OF_POSTGRES])
def test_predicate_reaches_nothing_in_postgres(read: Reading, predicate: str) -> None:
    # The server is not even asked: nobody listens there.
    assert refused(read, in_postgres(Postgres(Path("/nowhere"), 1), "t", **split(predicate))) == {
        "SL147"
    }


@pytest.mark.parametrize("predicate", [*OF_ALL, *OF_MARIADB])
@pytest.mark.parametrize("driver", ["MARIADB", "MYSQL"])
def test_predicate_reaches_nothing_in_mariadb(read: Reading, driver: str, predicate: str) -> None:
    server = MariaDb(Path("/nowhere"), 1)
    assert refused(read, in_mariadb(server, "t", driver, **split(predicate))) == {"SL147"}


@pytest.mark.parametrize("predicate", [*OF_ALL, *OF_DUCKDB])
def test_predicate_reaches_nothing_in_duckdb(read: Reading, predicate: str) -> None:
    assert refused(read, in_duckdb(Path("/nowhere"), "t", **split(predicate))) == {"SL147"}


@pytest.mark.parametrize(
    "function", ["FILE_READ('/etc/passwd')", "CSVREAD('/etc/passwd')", "LINK_SCHEMA('a', 'b', 'c')"]
)
def test_predicate_reaches_nothing_in_h2(read: Reading, function: str) -> None:
    spec = in_h2(Path("/nowhere"), "T", **split(f"{function} IS NOT NULL"))
    assert refused(read, spec, Allowances(formats=("h2",))) == {"SL147"}


JAVA = """CREATE TABLE T(A INT); INSERT INTO T VALUES (1);
CREATE TRIGGER TT AFTER INSERT ON T FOR EACH ROW AS $$ org.h2.api.Trigger create()
  throws Exception {{ new java.io.File("{canary}").createNewFile(); return (c, a, b) -> {{}}; }} $$;
"""


def test_java_in_a_file_of_h2_does_not_run(read: Reading, tmp_path: Path) -> None:
    make_h2(tmp_path / "shop", JAVA.format(canary=tmp_path / "canary"))
    (tmp_path / "canary").unlink()
    assert refused(read, in_h2(tmp_path / "shop", "T")) == {"SL136"}
    assert not (tmp_path / "canary").exists()


def test_name_of_a_table_is_no_file_in_duckdb(spark, read, tmp_path):
    make_duckdb(spark, tmp_path / "shop.db", "CREATE TABLE t AS SELECT 1 AS a")
    (tmp_path / "other.csv").write_text("a\nCANARY\n")
    assert read(in_duckdb(tmp_path / "shop.db", "t")) == [(1,)]
    with pytest.raises(SourceError) as caught:
        read(in_duckdb(tmp_path / "shop.db", f'"{tmp_path}/other.csv"'))
    assert "CANARY" not in str(caught.value)


def test_view_of_duckdb_reads_no_file(spark: SparkSession, read: Reading, tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("a\nCANARY\n")
    view = f"CREATE VIEW v AS SELECT * FROM read_csv('{tmp_path}/other.csv')"
    make_duckdb(spark, tmp_path / "shop.db", view)
    with pytest.raises(SourceError):
        read(in_duckdb(tmp_path / "shop.db", "v"))


@pytest.mark.parametrize("level", [None, "READ_COMMITTED", "REPEATABLE_READ"])
def test_view_of_postgres_that_writes_is_refused(postgres, read, level):
    postgres.run(
        """CREATE TABLE IF NOT EXISTS written (a int);
        CREATE OR REPLACE FUNCTION writing() RETURNS int LANGUAGE sql AS
          $$ INSERT INTO written VALUES (1) RETURNING 1 $$;
        CREATE OR REPLACE VIEW writer AS SELECT writing() AS a"""
    )
    settings = {} if level is None else {"isolationLevel": level}
    with pytest.raises((SourceError, PySparkException, Py4JError), match=r"(?i)read-only"):
        read(in_postgres(postgres, "writer", **settings))
    assert postgres.run("SELECT count(*) FROM written").strip() == "0"


@pytest.mark.parametrize("level", [None, "READ_COMMITTED"])
def test_view_of_mariadb_that_writes_is_refused(mariadb, read, level):
    mariadb.run(
        """CREATE TABLE IF NOT EXISTS written (a int);
        DROP FUNCTION IF EXISTS writing;
        DELIMITER //
        CREATE FUNCTION writing() RETURNS int MODIFIES SQL DATA
          BEGIN INSERT INTO written VALUES (1); RETURN 1; END //
        DELIMITER ;
        CREATE OR REPLACE VIEW writer AS SELECT writing() AS a"""
    )
    settings = {} if level is None else {"isolationLevel": level}
    with pytest.raises((SourceError, PySparkException, Py4JError), match=r"(?i)read.only"):
        read(in_mariadb(mariadb, "writer", **settings))
    assert mariadb.run("SELECT count(*) FROM written") == "0"


def test_class_of_a_driver_that_is_not_on_the_list_is_not_loaded(read: Reading) -> None:
    spec = in_postgres(Postgres(Path("/nowhere"), 1), "t", driverClass="org.example.Canary")
    assert refused(read, spec) == {"SL136"}
