"""Addresses of databases: what is declared stays in its place, whatever characters it has."""

import re
import time
from itertools import pairwise
from typing import Any
from urllib.parse import unquote, urlsplit

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snaploom.models.datasource import Jdbc, JdbcDriver
from snaploom.policy.secretdetection import names_a_login
from snaploom.policy.sqltext import SqlFault, SqlForm, SqlText, judge
from snaploom.sources.databases.declared import TableNameInvalid, table_parts
from snaploom.sources.databases.drivers import (
    DATABASES,
    DRIVER_JAR_BY_NAME,
    HOST,
    connection_url,
    driver_hint,
    first_statement,
    properties_of,
)
from snaploom.sources.databases.splits import doubt_of

NAMES = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=20).filter(
    lambda name: "$(" not in name  # a variable of Kubernetes
)


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
def test_first_statement_makes_a_session_read_only(driver, settings, statement):
    assert first_statement(declared(driver, host="db", database="shop", **settings)) == statement


def test_embedded_databases_are_opened_for_reading_only() -> None:
    assert properties_of(declared("H2", database="/shop"))["ACCESS_MODE_DATA"] == "r"
    assert "ACCESS_MODE_DATA" not in properties_of(declared("H2", host="db", database="shop"))
    assert properties_of(declared("DUCKDB", database="/shop"))["enable_external_access"] == "false"


DIALECTS = sorted({database.dialect for database in DATABASES.values()})
VALUES = [None, *range(-12, 13)]

OPERATORS = st.sampled_from(["<", "<=", ">", ">=", "="])

numbers = st.integers(-9, 9)
joined = st.lists(numbers, min_size=1, max_size=3).map(lambda of: ", ".join(map(str, of)))


def conditions_on(compared):
    comparisons = st.one_of(
        st.builds("{} {} {}".format, st.just(compared), OPERATORS, numbers),
        st.builds("{} {} {}".format, numbers, OPERATORS, st.just(compared)),
        st.builds("{} BETWEEN {} AND {}".format, st.just(compared), numbers, numbers),
        st.builds("{} IN ({})".format, st.just(compared), joined),
        st.sampled_from(["Id is null", f"{compared} IS NULL"]),
    )
    both = st.sampled_from(["AND", "or"])
    return st.recursive(comparisons, lambda of: st.builds("({}) {} {}".format, of, both, of))


def ranges_between(bounds):
    """What divides numbers at bounds, as Spark's own `lowerBound` and `numPartitions` do."""
    inner = [f"id >= {one} AND id < {other}" for one, other in pairwise(bounds)]
    return [f"id < {bounds[0]} OR id IS NULL", *inner, f"id >= {bounds[-1]}"]


def rows_that(condition):
    table = f"(SELECT UNNEST({VALUES!r}::INT[]) AS id)".replace("None", "NULL")
    return duckdb.sql(f"SELECT id FROM {table} WHERE {condition}").fetchall()


def rows_not_met_once(predicates):
    met = " + ".join(f"CASE WHEN ({each}) THEN 1 ELSE 0 END" for each in predicates)
    return rows_that(f"({met}) <> 1")


@pytest.mark.slow
@given(st.lists(conditions_on("id"), min_size=1, max_size=5))
def test_rows_in_doubt_are_those_that_do_not_meet_one_predicate(predicates):
    doubted = doubt_of(predicates, "duckdb").condition('"id"') or "false"
    assert rows_that(doubted) == rows_not_met_once(predicates)


remainders = st.integers(1, 5).flatmap(
    lambda by: st.lists(
        st.one_of(
            conditions_on(f"id % {by}"),
            conditions_on(f"(mod(id, {by}))"),
            st.integers(0, by).map(f"id % {by} = {{}}".format),
        ),
        min_size=1,
        max_size=6,
    )
)


@pytest.mark.slow
@given(remainders)
def test_of_remainders_all_rows_that_do_not_meet_one_predicate_are_in_doubt(predicates):
    doubt = doubt_of(predicates, "duckdb")
    doubted = "true" if doubt is None else doubt.condition('"id"') or "false"
    assert set(rows_not_met_once(predicates)) <= set(rows_that(doubted))


@pytest.mark.slow
@pytest.mark.parametrize("parts", [1, 2, 7, 1000])
@pytest.mark.parametrize("form", ["id % {} = {}", "MOD(id, {}) = {}", "(id % {}) IN ({})"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_of_each_remainder_once_only_what_is_below_zero_and_null_are_in_doubt(dialect, form, parts):
    split = [form.format(parts, part) for part in range(parts)]
    below = "x < 0 OR " if parts > 1 else ""
    assert doubt_of(split, dialect).condition("x") == f"{below}x IS NULL"
    assert doubt_of([*split[1:], f"{split[0]} OR id IS NULL OR id % {parts} < 0"], dialect) == (
        doubt_of(["id < 0 OR id IS NULL", "id >= 0"], dialect)
    )


@given(st.lists(st.integers(-(10**18) + 1, 10**18 - 1), min_size=1, unique=True).map(sorted))
def test_ranges_that_meet_leave_nothing_in_doubt(bounds):
    assert doubt_of(ranges_between(bounds), "postgres").condition('"id"') == ""


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("predicates", "doubted"),
    [
        (["id < 10", "10 <= ID"], "x IS NULL"),
        (["id <= 9 OR id IS NULL", "id >= 11"], "x >= 10 AND x < 11"),
        (["id BETWEEN 1 AND 5", "id IN (6, 7)", "id IS NULL"], "x < 1 OR x >= 8"),
        (["id < 5", "id > - 3 OR id IS NULL"], "x >= -2 AND x < 5"),
        (["id IS NULL"], "x IS NOT NULL"),
    ],
)
def test_doubt_is_a_condition_that_an_index_answers(dialect, predicates, doubted):
    assert doubt_of(predicates, dialect).condition("x") == doubted


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "predicate",
    [
        "mod(id, 2) = 1",
        "id % 2 = 1",
        "id % 0 = 1",
        "id % -2 = 1",
        "id % 2.5 = 1",
        "id %% 2 = 1",
        "id %> 2",
        "id <% 2",
        "2 % id = 1",
        "id % 4 % 2 = 1",
        "id % other = 1",
        "mod(other, 2) = 1",
        "abs(id) % 2 = 1",
        "id < 5.0",
        "id < 5e3",
        "id < 0x1F",
        "id < 1_000",
        "id < '5'",
        "id < other",
        "other < 5",
        "t.id < 5",
        "id <> 5",
        "NOT id < 5",
        "id IS NOT NULL",
        "id < 5 -- more",
        "id < 5 /* more */",
        "id < 5 || id > 9",
        "id < 1000000000000000000",
        "id IN (SELECT 1)",
        "id < ALL (SELECT 1)",
        "1 < id < 5",
        "id < 5 COLLATE x",
        "id",
        "5",
        "5 < 7",
        "id <",
        "id < 5) GROUP BY (id",
        "id < 5) UNION SELECT 1 FROM t WHERE (id > 5",
        "(" * 2000 + "id < 5" + ")" * 2000,
    ],
)
def test_what_may_mean_something_else_leaves_every_row_in_doubt(dialect, predicate):
    assert doubt_of(["id >= 5", predicate], dialect) is None


@pytest.mark.parametrize(
    "split",
    [
        ["id % 2 = 0"],
        ["id % 2 = 0", "id % 2 = 2"],
        ["id % 2 = 0", "id % 2 >= 0"],
        ["id % 2 = 0", "id % 3 = 1", "id % 3 = 2"],
    ],
)
def test_remainders_above_zero_that_are_not_met_once_leave_every_row_in_doubt(split):
    assert doubt_of(split, "postgres") is None


def fault_of(condition: str, dialect: str, *added: str) -> str:
    verdict = judge(SqlText(condition, SqlForm.CONDITION, dialect, added))
    return verdict.message if isinstance(verdict, SqlFault) else ""


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "condition",
    [
        "id >= 1000 AND id < 2000 OR id IS NULL",
        "mod(id, 4) = 0",
        "id % 4 = -1",
        "abs(mod(id, 4)) IN (1, 2)",
        "NOT (a LIKE 'x%' OR b BETWEEN 1 AND 2.5)",
        "a IN (1, ')') OR b = '--'",
        "c = 'it''s;'",
        "day >= DATE '2024-01-01'",
        "extract(year FROM day) = 2024",
        "CASE WHEN a > 1 THEN 'x' ELSE 'y' END <> upper(b)",
        "coalesce(a, 0) + 1 = cast(b AS integer)",
        "substring(a, 1, 2) = 'x' AND trim(b) IS NOT NULL",
        "(a, b) IN ((1, 2), (3, 4))",
        "name = 'Grüße'",
        "a IS DISTINCT FROM 3",
    ],
)
def test_conditions_about_columns_are_sound(dialect: str, condition: str) -> None:
    assert fault_of(condition, dialect) == ""


@pytest.mark.parametrize(
    ("dialect", "condition"),
    [
        ("postgres", "mod(hashtext(a::text), 4) = 0"),
        ("postgres", "date_trunc('month', at) = TIMESTAMP '2024-01-01 00:00:00'"),
        ("postgres", 'isfinite(at) AND "ID" > 3'),
        ("mysql", "crc32(a) % 4 = 0 AND `order` = 1"),
        ("mysql", "year(day) = 2024"),
        ("tsql", "[a b] = 1 AND datepart(year, day) = 2024"),
        ("oracle", "ora_hash(id, 3) = 0"),
        ("duckdb", "hash(id) % 4 = 0"),
    ],
)
def test_each_database_has_its_own_functions(dialect: str, condition: str) -> None:
    assert fault_of(condition, dialect) == ""


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "condition",
    [
        "", " ", "a = 1; DROP TABLE t", "a = 1 -- x", "a = 1 /* x */", "a = 1 # x",
        "a = 1 /*!50000 OR 1 = 1 */", "a = 1) OR (1 = 1", "(a = 1", "a = 'x",
        "a = (SELECT 1)", "EXISTS (SELECT 1 FROM t)", "(FROM t) = 1", "(TABLE t) = 1",
        "a = ANY (VALUES (1))", "t.a = 1", "s.f(a) = 1", '"f"(1) = 1', "`f`(1) = 1",
        "[f](1) = 1", "f(1) = 1", "extract(year FROM (SELECT day FROM t)) = 1",
        "a = E'\\' OR f(1) --'", "a = U&'\\0041'", "a = $$x$$", "a = N'x'", "a = x'41'",
        "a = 'x\\' OR 1 = 1 OR b = '", "@@version = 'x'", ":a = 1", "? = a", "a[1] = 1",
        "{'a': 1} = 1", "a -> 'b' = 1", "a ~ '(x+)+y'", "regexp_like(a, '(x+)+y')",
        "repeat('x', 1000000000) = a", "nextval('s') = 1", "NEXT VALUE FOR s = 1",
        "current_setting('x') = 'y'", "utl_http.request('http://x') = 'y'",
        "xp_cmdshell('x') = 1", "OPENROWSET('a', 'b', 'c') = 1", "dbms_lock.sleep(9) = 1",
        "a = 1 LIMIT 1", "a = 1 UNION SELECT 1", "a = 1 INTO OUTFILE '/tmp/x'",
        "a = 1 FOR UPDATE", "count(*) OVER () = 1", "COLUMNS('a') = 1", "grüße = 1",
    ],
)  # fmt: skip
def test_what_reaches_out_is_refused_in_every_dialect(dialect: str, condition: str) -> None:
    assert fault_of(condition, dialect)


def test_an_administrator_adds_functions() -> None:
    added = ("My_Hash", "regexp_like")
    assert fault_of("my_hash(a) = 1", "postgres", *added) == ""
    assert fault_of("regexp_like(a, 'x')", "oracle", *added) == ""
    assert "allow.functions" in fault_of("other(a) = 1", "postgres", *added)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "piece", ["(", "abs(", "NOT ", "- ", "CASE WHEN ", "a IN (", "coalesce(a, ", "cast(", "'", "a."]
)
def test_nested_conditions_take_no_time(dialect: str, piece: str) -> None:
    begun = time.perf_counter()
    for length in (30, 4096 // len(piece)):
        fault_of(piece * length + "1" + ")" * (length * piece.count("(")), dialect)
    assert time.perf_counter() - begun < 5  # where nothing bounds it, minutes


@given(st.text(alphabet="ab1 ()'\"`\\-/*;,.=<>$#@[]{}:&|%fsELCTROM\n", max_size=40))
def test_accepted_conditions_have_neither_comment_nor_second_statement(text: str) -> None:
    for dialect in DIALECTS:
        if not fault_of(text, dialect):
            assert not any(mark in text for mark in ("\\", ";", "$", "#", "@", "{", "/*"))
            assert text.count("(") == text.count(")") or "'" in text or '"' in text


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:postgresql://db/shop?user=scott",
        "jdbc:postgresql://scott@db/shop",
        "jdbc:postgresql://db/shop?ssl=true&sslpassword=tiger",
        "jdbc:mysql://scott:ti/ger@db/shop",
        "jdbc:mysql://db/shop?pass%77ord2=tiger",
        "jdbc:mysql://address=(host=db)( password = tiger)/shop",
        "jdbc:mysql://(host=db,user=scott)/shop",
        "jdbc:mysql://scott%40db/shop",
        "jdbc:mariadb://db/shop?keyStorePassword=tiger",
        "jdbc:sqlserver://db;databaseName=shop; PWD=tiger",
        "jdbc:sqlserver://db;accessToken=tiger",
        "jdbc:sqlserver://db;UserName=scott",
        "jdbc:oracle:thin:scott/tiger@//db:1521/shop",
        "jdbc:oracle:thin:@//db:1521/shop?oracle.net.wallet_password=tiger",
        "jdbc:h2:file:/data/shop;USER=sa",
        "jdbc:duckdb:/data/shop.db;motherduck_token=tiger",
    ],
)
def test_a_login_is_found(url: str) -> None:
    assert names_a_login(url)


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:postgresql://a:5,b:6/user?targetServerType=preferSecondary&sslmode=verify-full",
        "jdbc:mysql://db/shop?useReadAheadInput=true&sessionVariables=sql_mode=ANSI",
        "jdbc:sqlserver://db:1433;databaseName=shop;encrypt=strict",
        "jdbc:oracle:thin:@(DESCRIPTION=(ADDRESS=(PROTOCOL=tcps)(HOST=db)(PORT=2484)))",
        "jdbc:oracle:thin:@tcps://db:2484/shop",
        "jdbc:h2:file:/home/user/shop;IFEXISTS=TRUE",
    ],
)
def test_what_is_no_login_passes(url: str) -> None:
    assert not names_a_login(url)


@given(st.sampled_from(["password", "USER", "keyStoreSecret"]), st.sampled_from("?;&,("))
def test_no_way_of_writing_a_name_hides_it(name: str, before: str) -> None:
    written = "".join(f"%{ord(letter):02x}" for letter in name)
    assert names_a_login(f"jdbc:mysql://db/shop{before}{name}=x")
    assert names_a_login(f"jdbc:mysql://db/shop{before}{written}=x")


@pytest.mark.parametrize("database", DATABASES.values(), ids=[each.value for each in DATABASES])
def test_a_missing_driver_names_the_command_that_installs_it(database):
    command = re.search("`snaploom drivers install (.+?)`", driver_hint(database.driver_class))
    assert command[1] in DRIVER_JAR_BY_NAME or command[1].endswith("VERSION --unlisted")
    assert "driverClass" in driver_hint("org.example.Driver")
