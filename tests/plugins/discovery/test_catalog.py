"""`init --from` a real PostgreSQL: declared keys, parts of tables, samples, and who connects."""

import secrets
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.declared.shop import snaploom
from support.servers.databases import make_duckdb
from support.servers.mariadbserver import DATABASE
from support.servers.postgresserver import PASSWORD, USER, Postgres

from snaploom.plugins.discovery import databases
from snaploom.plugins.discovery.databasefiles import read_database_file
from snaploom.plugins.discovery.databases import read_database
from snaploom.plugins.discovery.discover import discover
from snaploom.plugins.discovery.profiles import DatabaseAddress, DatabaseContent, database_address

pytestmark = pytest.mark.spark

TABLES = """
CREATE SCHEMA {0};
CREATE TABLE {0}."Cities" (id int PRIMARY KEY, name text);
CREATE TABLE {0}.people (nr bigint PRIMARY KEY, name text, boss bigint REFERENCES {0}.people);
CREATE TABLE {0}.orders (shop int, no int, sold_to bigint NOT NULL REFERENCES {0}.people (nr),
  ship_to int CONSTRAINT to_city REFERENCES {0}."Cities", order_date date NOT NULL,
  PRIMARY KEY (shop, no));
CREATE TABLE {0}.lines (shop int, order_no int, pos int, amount numeric(9, 2), about jsonb,
  FOREIGN KEY (shop, order_no) REFERENCES {0}.orders, PRIMARY KEY (shop, order_no, pos));
CREATE TABLE {0}.visits (at timestamptz, nr bigint) PARTITION BY RANGE (at);
CREATE TABLE {0}.visits_2026 PARTITION OF {0}.visits
  FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
CREATE VIEW {0}.seen AS SELECT * FROM {0}.people;
INSERT INTO {0}."Cities" SELECT n, 'city ' || n FROM generate_series(1, 4) n;
INSERT INTO {0}.people SELECT n, 'p' || n, CASE WHEN n > 1 THEN 1 END FROM generate_series(1, 30) n;
INSERT INTO {0}.orders SELECT n % 2, n, n % 30 + 1, n % 4 + 1, date '2026-03-01' + n % 5
  FROM generate_series(1, 100) n;
INSERT INTO {0}.lines SELECT shop, no, pos, pos * 1.5, '{{}}'
  FROM {0}.orders, generate_series(1, 2) pos;
INSERT INTO {0}.visits SELECT timestamptz '2026-01-01' + n * interval '1 hour', n % 30 + 1
  FROM generate_series(1, 50) n;
"""


@pytest.fixture
def url(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> str:
    schema = f"init_{secrets.token_hex(4)}"
    postgres.run(TABLES.format(schema))
    monkeypatch.setenv("POSTGRES_DB_USER", USER)
    monkeypatch.setenv("POSTGRES_DB_PASSWORD", PASSWORD)
    return f"jdbc:postgresql://127.0.0.1:{postgres.port}/postgres?currentSchema={schema}"


def address(file: Path) -> DatabaseAddress:
    return database_address(f"jdbc:duckdb:{file}")


def content(url: str) -> DatabaseContent:
    return read_database(database_address(url))


def test_tables_have_their_declared_keys_and_first_rows(url: str, spark: SparkSession) -> None:
    tables = {table.name: table for table in content(url).tables}
    assert set(tables) == {"Cities", "people", "orders", "lines", "visits"}
    orders, lines = tables["orders"], tables["lines"]
    assert orders.primary_key == ("shop", "no")
    keys = {(key.columns, key.parent_columns) for key in orders.foreign_keys}
    assert keys == {(("sold_to",), ("nr",)), (("ship_to",), ("id",))}
    assert [(key.columns, key.parent) for key in lines.foreign_keys] == [
        (("shop", "order_no"), orders.reference)
    ]
    assert (len(lines.sample), lines.rows) == (200, 200)


def test_tables_beyond_the_bound_are_left_out(url, spark, monkeypatch):
    monkeypatch.setattr(databases, "MOST_TABLES", 2)
    found = content(url)
    assert len(found.tables) == 2
    assert {each.why for each in found.left_out} == {"only 2 tables are looked into"}


def test_rows_beyond_the_bound_are_not_read(url, spark, postgres, monkeypatch):
    monkeypatch.setattr(databases, "DATABASE_ROWS", 50)
    postgres.run("ANALYZE")
    (lines,) = [table for table in content(url).tables if table.name == "lines"]
    assert (len(lines.sample), lines.rows) == (50, 200)


def test_a_database_answers_for_rows_that_were_not_read(url, spark, postgres, monkeypatch):
    monkeypatch.setattr(databases, "DATABASE_ROWS", 20)
    schema = url.partition("currentSchema=")[2]
    postgres.run(f"UPDATE {schema}.orders SET ship_to = NULL WHERE no > 50")
    found = discover([url], "file:///model/", read_database=read_database)
    orders = next(profile for profile in found.profiles if profile.name == "orders")
    assert (orders.rows, orders.rows_read) == (100, 20)
    assert (orders.column("no").values.distinct, orders.column("no").is_unique) == (100, True)
    sold_to = next(r for r in found.relationships.declared if r.child_columns == ("sold_to",))
    assert (sold_to.included.share, sold_to.included.compared) == (1.0, 30)
    assert sold_to.evidence.endswith("all rows")


def test_a_database_becomes_declarations_that_validate_and_plan(url, spark, tmp_path):
    result = snaploom("init", tmp_path / "model", "--from", url)
    assert result.code == 0, result.err
    assert "5 tables read" in result.out
    assert "foreign key to_city" in result.out
    text = "".join(path.read_text() for path in (tmp_path / "model").glob("*.yaml"))
    assert PASSWORD not in text + result.out + result.err
    assert "userVariable: POSTGRES_DB_USER" in text
    assert snaploom("validate", tmp_path / "model").code == 0
    planned = snaploom("plan", "lines-wide", "-f", tmp_path / "model")
    assert planned.code == 0, planned.err


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ("POSTGRES_DB_PASSWORD", "no environment variable POSTGRES_DB_PASSWORD"),
        ("database", "there is no such database"),
    ],
)
def test_a_database_that_cannot_be_asked_is_one_error(
    url: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str,
    text: str,
) -> None:  # fmt: skip
    if change == "database":
        url = url.replace("/postgres?", "/nowhere?")
        monkeypatch.setenv("NOWHERE_DB_USER", USER)
        monkeypatch.setenv("NOWHERE_DB_PASSWORD", PASSWORD)
    else:
        monkeypatch.delenv(change)
    result = snaploom("init", tmp_path / "model", "--from", url)
    assert result.code != 0
    assert text in result.err
    assert PASSWORD not in result.err
    assert "Traceback" not in result.err
    assert not (tmp_path / "model").exists()


SHOP = """CREATE TABLE Buyers (nr int PRIMARY KEY, name varchar(20));
CREATE TABLE Sales (id int PRIMARY KEY, sold_to int, about int,
  CONSTRAINT to_buyer FOREIGN KEY (sold_to) REFERENCES Buyers (nr));
INSERT INTO Buyers VALUES (1, 'a'), (2, 'b');
INSERT INTO Sales VALUES (10, 1, 5), (11, 2, 6), (12, 2, 7);"""


@pytest.mark.parametrize("driver", ["mariadb", "mysql"])
def test_tables_of_mariadb_have_their_declared_keys(mariadb, spark, monkeypatch, driver):
    mariadb.run(f"DROP TABLE IF EXISTS Sales; DROP TABLE IF EXISTS Buyers; {SHOP}")
    monkeypatch.setenv("SHOP_DB_USER", USER)
    monkeypatch.setenv("SHOP_DB_PASSWORD", PASSWORD)
    found = content(f"jdbc:{driver}://127.0.0.1:{mariadb.port}/{DATABASE}")
    tables = {table.name: table for table in found.tables}
    (key,) = tables["Sales"].foreign_keys
    assert (key.name, key.columns, key.parent) == ("to_buyer", ("sold_to",), "Buyers")
    assert tables["Buyers"].primary_key == ("nr",)
    assert tables["Sales"].sample.num_rows == 3


def test_tables_of_a_duckdb_file_are_found_and_run(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    file = tmp_path / "data" / "shop.duckdb"
    make_duckdb(spark, file, *filter(str.strip, SHOP.split(";")))
    tables = {table.name: table for table in read_database_file(address(file)).tables}
    assert set(tables) == {"Buyers", "Sales"}
    assert tables["Sales"].primary_key == ("id",)
    assert tables["Sales"].sample.num_rows == 3
    assert tables["Sales"].foreign_keys[0].parent == "main.Buyers"
    result = snaploom("init", tmp_path / "model", "--from", tmp_path / "data")
    assert result.code == 0, result.err
    planned = snaploom("plan", "sales-wide", "-f", tmp_path / "model")
    assert planned.code == 0, planned.err


def test_a_file_that_is_no_database_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "shop.duckdb").write_bytes(bytes(8) + b"DUCK" + bytes(5000))
    result = snaploom("init", tmp_path / "model", "--from", tmp_path)
    assert result.code != 0
    assert "this file of DuckDB cannot be read" in result.err
    assert "Traceback" not in result.err
