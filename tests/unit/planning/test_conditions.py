"""Conditions of databases: what may stand in one, in every dialect."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snaploom.policy.sqltext import SqlFault, SqlForm, SqlText, judge
from snaploom.sources.databases.drivers import DATABASES

DIALECTS = sorted({database.dialect for database in DATABASES.values()})


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
