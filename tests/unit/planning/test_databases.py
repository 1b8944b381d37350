"""Addresses of databases: what is declared stays in its place, whatever characters it has."""

from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snaploom.models.datasource import Jdbc, JdbcDriver
from snaploom.sources.databases.declared import TableNameInvalid, table_parts
from snaploom.sources.databases.drivers import (
    DATABASES,
    HOST,
    connection_url,
    first_statement,
    properties_of,
)

NAMES = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=20)


def declared(driver: str, **settings: Any) -> Jdbc:
    raw = {"driver": driver, "tableReference": "t", "snapshot": {"fromReadTime": {}}, **settings}
    return Jdbc.parse(raw)


@pytest.mark.parametrize(
    ("driver", "settings", "url"),
    [
        ("POSTGRESQL", {"host": "db"}, "jdbc:postgresql://db:5432/shop"),
        ("POSTGRESQL", {"host": "::1", "port": 5}, "jdbc:postgresql://[::1]:5/shop"),
        ("MYSQL", {"host": "db"}, "jdbc:mysql://db:3306/shop"),
        ("MARIADB", {"host": "::1"}, "jdbc:mysql://[::1]:3306/shop?permitMysqlScheme"),
        (
            "MARIADB",
            {"url": "jdbc:mariadb://db/shop?sslMode=verify-full"},
            "jdbc:mysql://db/shop?sslMode=verify-full&permitMysqlScheme",
        ),
        ("SQLSERVER", {"host": "::1"}, "jdbc:sqlserver://;serverName=::1;portNumber=1433"),
        ("ORACLE", {"host": "db"}, "jdbc:oracle:thin:@//db:1521/shop"),
        ("H2", {"host": "db"}, "jdbc:h2:tcp://db:9092/shop"),
        ("H2", {}, "jdbc:h2:file:shop"),
        ("DUCKDB", {}, "jdbc:duckdb:shop"),
    ],
)
def test_url_of_a_database(driver: str, settings: dict[str, Any], url: str) -> None:
    place = settings if "url" in settings else {"database": "shop", **settings}
    assert connection_url(declared(driver, **place)) == url


@given(NAMES)
def test_no_name_of_a_database_becomes_an_option(name: str) -> None:
    url = urlsplit(
        connection_url(declared("POSTGRESQL", host="db", database=name)).removeprefix("jdbc:")
    )
    assert (unquote(url.path), url.query, url.fragment) == (f"/{name}", "", "")
    of_file = DATABASES[JdbcDriver.H2].database_form
    assert of_file is not None
    is_refused = any(mark in name for mark in ":;?") or ".." in name.split("/")
    assert (of_file.fullmatch(f"/{name}") is None) == is_refused


@given(st.text(max_size=20))
def test_no_host_ends_early(host: str) -> None:
    if HOST.fullmatch(host):
        assert not set(host) & set("/?#@;&=%[]() \\\n")


def test_sql_server_hears_of_its_database_by_an_option() -> None:
    options = properties_of(declared("SQLSERVER", host="db", database="a;b=c"))
    assert options == {"databaseName": "a;b=c"}


def test_what_is_fixed_is_not_for_a_source_to_change() -> None:
    for database in DATABASES.values():
        assert not database.options & set(database.fixed) - {"tcpKeepAlive"}


@given(st.lists(NAMES, min_size=1, max_size=3))
def test_quoted_names_of_a_table_are_taken_letter_for_letter(names: list[str]) -> None:
    reference = ".".join('"' + name.replace('"', '""') + '"' for name in names)
    assert table_parts(reference) == tuple(names)


@pytest.mark.parametrize(
    "reference", ["", ".", "a.", ".a", "a..b", 'a"b', '"a', '""', 'a."b"c', "a.b.c.d", " "]
)
def test_what_is_no_name_is_refused(reference: str) -> None:
    with pytest.raises(TableNameInvalid):
        table_parts(reference)


@given(st.sampled_from(JdbcDriver), NAMES)
def test_a_quoted_name_ends_where_it_should(driver: JdbcDriver, name: str) -> None:
    database = DATABASES[driver]
    first, last = database.quotes
    quoted = database.quoted(name)
    assert (quoted[0], quoted[-1]) == (first, last)
    assert quoted[1:-1].replace(last * 2, "") == name.replace(last, "")


@pytest.mark.parametrize(
    ("driver", "settings", "statement"),
    [
        ("POSTGRESQL", {}, ""),
        ("MARIADB", {}, "SET SESSION TRANSACTION READ ONLY"),
        (
            "MYSQL",
            {"isolationLevel": "REPEATABLE_READ"},
            "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
        ),
        ("SQLSERVER", {"isolationLevel": "SNAPSHOT"}, "SET TRANSACTION ISOLATION LEVEL SNAPSHOT"),
    ],
)
def test_first_statement_makes_a_session_read_only(
    driver: str, settings: dict[str, Any], statement: str
) -> None:
    assert first_statement(declared(driver, host="db", database="shop", **settings)) == statement


def test_embedded_databases_are_opened_for_reading_only() -> None:
    assert properties_of(declared("H2", database="/shop"))["ACCESS_MODE_DATA"] == "r"
    assert "ACCESS_MODE_DATA" not in properties_of(declared("H2", host="db", database="shop"))
    assert properties_of(declared("DUCKDB", database="/shop"))["enable_external_access"] == "false"
