"""Databases as sources: addresses, declared keys, and credentials that are only named."""

from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from snaploom.errors import ArgumentInvalid
from snaploom.models.allowances import NO_ALLOWANCES
from snaploom.models.datasource import JdbcDriver
from snaploom.plugins.discovery.discover import Discovery, discover
from snaploom.plugins.discovery.foundfiles import LeftOut
from snaploom.plugins.discovery.profiles import (
    DatabaseAddress,
    DatabaseContent,
    ReadTable,
    database_address,
)
from snaploom.run.declarations import read_declarations
from snaploom.sources.databases.declared import DeclaredKey

URL = "jdbc:postgresql://db.example.org:6543/shop-eu?sslmode=verify-full"
DAYS = [date(2026, 1, 1) + timedelta(days=n) for n in range(5)]


def read(name: str, columns: dict[str, object], key: str, *foreign: DeclaredKey) -> ReadTable:
    sample = pa.table(columns)
    return ReadTable(f"sales.{name}", name, sample, len(sample), (key,), foreign)


PEOPLE = read("people", {"nr": [7, 8, 9], "name": ["a", "b", "c"]}, "nr")
ORDERS = read(
    "orders",
    {"id": list(range(10)), "sold_to": [7, 8] * 5, "order_date": DAYS * 2},
    "id",
    DeclaredKey("orders_sold_to_fkey", ("sold_to",), "sales.people", ("nr",)),
    DeclaredKey("elsewhere", ("id",), "other.table", ("id",)),
)


def found(*uris: str, tables: tuple[ReadTable, ...] = (PEOPLE, ORDERS)) -> Discovery:
    def read_database(address: DatabaseAddress) -> DatabaseContent:
        return DatabaseContent(tables, (LeftOut(f"{address.uri} sales.big", "too many"),))

    return discover(uris, "file:///model/", read_database=read_database)


def test_a_url_is_an_address_without_who_connects() -> None:
    address = database_address(URL)
    assert (address.driver, address.host, address.port) == (
        JdbcDriver.POSTGRESQL, "db.example.org", 6543,
    )  # fmt: skip
    assert address.variables == ("SHOP_EU_DB_USER", "SHOP_EU_DB_PASSWORD")
    assert address.uri == "jdbc:postgresql://db.example.org:6543/shop-eu"
    assert database_address("jdbc:duckdb:/data/shop.duckdb").variables is None


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:oracle:thin:@//db/shop",
        "jdbc:postgresql://db",
        "jdbc:postgresql:///shop",
        "jdbc:postgresql://db:port/shop",
        "jdbc:postgresql://db/shop?socketFactory=org.example.Sockets",
        "jdbc:postgresql://ada:very-secret-1@db/shop",
        "jdbc:postgresql://db/shop?user=ada&password=very-secret-1",
        "jdbc:duckdb:shop.duckdb",
        "jdbc:",
    ],
)
def test_a_url_that_is_no_plain_address_is_refused(url: str) -> None:
    with pytest.raises(ArgumentInvalid) as refused:
        database_address(url)
    assert refused.value.path == "--from"
    assert refused.value.hint
    assert "very-secret-1" not in str(refused.value)


def test_declared_keys_are_relationships_whatever_names_mean() -> None:
    result = found(URL)
    (one,) = result.relationships.declared
    assert (one.child, one.child_columns, one.parent) == ("orders", ("sold_to",), "people")
    assert "foreign key orders_sold_to_fkey" in one.evidence
    assert "key: nr (declared by the database)" in result.files["sources.yaml"]
    assert result.tree.root.table == "orders"


def test_a_declared_key_leads_to_a_column_that_was_read() -> None:
    narrow = read("people", {"name": ["a", "b", "c"]}, "name")
    assert found(URL, tables=(narrow, ORDERS)).relationships.declared == ()


def test_who_connects_is_named_by_variables_and_what_is_written_validates(tmp_path: Path) -> None:
    result = found(URL)
    text = result.files["sources.yaml"]
    assert "fromEnvironment: {userVariable: SHOP_EU_DB_USER" in text
    assert "options: {sslmode: verify-full}" in text
    assert "sales.big: too many" in text
    assert "fieldName: order_date, timeFormat: ISO8601_DATE" in text
    for name, content in result.files.items():
        (tmp_path / name).write_text(content)
    assert read_declarations([tmp_path], NO_ALLOWANCES).findings == ()


def test_tables_of_a_database_are_joined_to_files(tmp_path: Path) -> None:
    rows = "".join(f"{n},{n % 10}\n" for n in range(40))
    (tmp_path / "order_notes.csv").write_text("note_no,order_id\n" + rows)
    (tmp_path / "orders.csv").write_text("a,b\nx,y\n")
    result = found(str(tmp_path), URL)
    links = {(r.child, r.parent) for r in result.relationships.declared}
    assert links == {("sales_orders", "people"), ("order_notes", "sales_orders")}


def test_without_spark_databases_are_refused() -> None:
    with pytest.raises(ArgumentInvalid, match="can be looked into"):
        discover([URL], "file:///model/")
