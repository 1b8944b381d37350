"""Hostile SQL before it reaches Spark: every field whose text becomes SQL has the same gate."""

import re
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot.parser import Parser
from support.declared.declarations import parsed
from support.hostile.tpchqueries import COLUMN, DATABASE, OTHERS, SPARK_FIELDS, SQL_FIELDS

from snaploom.models.findings import Finding
from snaploom.policy import sql, sqlconditions
from snaploom.policy.sqltext import (
    MOST_CHARACTERS,
    MOST_LITERALS,
    MOST_NESTING,
    MOST_TOKENS,
    SqlFacts,
    SqlFault,
    SqlForm,
    SqlRefused,
    SqlText,
    judge,
    scan,
)
from snaploom.validate.validator import validate

ATTACKS = {
    "nested comment": "1 /* /* */ reflect('java.lang.System', 'getenv', 'PATH') /* */ */",
    "comment that goes on": "1 -- \\\n + reflect('java.lang.System', 'getenv', 'PATH')",
    "comment that never ends": "1 /* ",
    "hint": "/*+ BROADCAST(a) */ 1",
    "java": "reflect('java.lang.System', 'getenv', 'PATH')",
    "java in backticks": "`reflect`('java.lang.System', 'getenv', 'PATH')",
    "java by its place": "system.builtin.java_method('java.lang.System', 'getenv', 'PATH')",
    "function of a schema": "somebodys.function(1)",
    "file": "from_protobuf(1, 'a', '/etc/passwd')",
    "variable": "'${env:PATH}'",
    "parameter": "(1 + :name)",
    "marker": "(1 + ?)",
    "dollar quotes": "$$text$$",
    "address as a name": "a://b/c",
    "wide letters": "r\uff45flect(1)",
    "long s": "ea\u017fy(1)",
    "zero width": "re\u200bflect(1)",
    "no-break space": "1\u00a0+ 1",
    "control character": "1 \x0b + 1",
    "NUL": "'a\x00b'",
    "second statement": "1; DROP TABLE a",
    "crash of the parser": "map(x",
    "odd map": "map(1)",
    "too deep": "struct(" * 40 + "1" + ")" * 40,
    "too many tokens": "1" + "+1" * MOST_TOKENS,
    "too many values": f"{COLUMN} IN (" + ",".join("1" * (MOST_LITERALS + 1)) + ")",
}
"""Texts that every field refuses, by attack."""
LEGAL = {
    "plain comments": f"coalesce({COLUMN}, 1) /* of one\nline */ -- and another\n",
    "struct as deep as BigQuery's": "struct(" * 15 + COLUMN + ")" * 15,
    "calls as deep as can be": "abs(" * 30 + COLUMN + ")" * 30,
    "types": f"cast(cast({COLUMN} as struct<a: int, b: array<map<string, int>>>) as string)",
    "quotes": f"concat('it''s', r'\\d', \"a\\\"b\", '\\'', string({COLUMN}))",
    "letters in quotes": f"concat('größe', string({COLUMN}))",
}


def findings(field: str, part: str) -> list[Finding]:
    resource, path = SQL_FIELDS[field]
    found = validate([*parsed([resource(part)]), *parsed(list(OTHERS))])
    return [finding for finding in found if finding.is_error and finding.path == path]


@pytest.mark.parametrize(
    ("field", "attack"),
    [
        (field, attack)
        for field in SQL_FIELDS
        for attack in ATTACKS
        if field != DATABASE or len(ATTACKS[attack]) < 4096  # the schema takes no longer one
    ],
)
def test_a_hostile_text_is_refused_in_every_field(field: str, attack: str) -> None:
    (first, *_) = findings(field, ATTACKS[attack])
    assert first.code in ("SL147", "SL150", "SL151")
    assert "Traceback" not in first.message
    assert first.found


@pytest.mark.parametrize("part", LEGAL.values(), ids=list(LEGAL))
@pytest.mark.parametrize("field", SPARK_FIELDS)
def test_a_legal_text_stays_legal_in_every_field(field: str, part: str) -> None:
    wrapped = f"({part}\n) is not null" if field in ("check", "index where") else part
    assert [finding.message for finding in findings(field, wrapped)] == []


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "opening",
    [
        "struct(", "array(", "map(1, ", "decimal(", "char(", "date(", "timestamp(", "json(",
        "date[", "array[", "(", "f(a -> ", "exists(select ", "a in (", "cast(", "(select ",
        "(values (", "if(", "interval (", "enum(", "nullable(", "object(", "row(", "vector(",
        "x.y(", "case when ",
    ],
)  # fmt: skip
def test_nesting_costs_steps_in_proportion_to_the_text(opening, monkeypatch):
    counted = {depth: steps_of(opening, depth, monkeypatch) for depth in (4, 8, 15)}
    assert counted[8] <= 3 * counted[4] + 200
    assert counted[15] <= 3 * counted[8] + 200


def steps_of(opening: str, depth: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Tokens that the parser steps over for a text that is nested so deep."""
    steps = 0
    advance = Parser._advance

    def counting(parser: Parser, times: int = 1) -> None:
        nonlocal steps
        steps += 1
        advance(parser, times)

    with monkeypatch.context() as patched:
        patched.setattr(Parser, "_advance", counting)
        closing = "".join({"(": ")", "[": "]"}[s] for s in reversed(opening) if s in "([")
        end = " then 1 end" if opening.startswith("case") else closing
        judge(SqlText(opening * depth + "1" + end * depth, SqlForm.EXPRESSION))
    return steps


def test_a_text_without_end_is_refused_when_its_steps_are_taken(monkeypatch):
    monkeypatch.setattr(sqlconditions, "STEPS_AT_LEAST", 10)
    monkeypatch.setattr(sqlconditions, "STEPS_A_TOKEN", 0)
    verdict = judge(SqlText("concat(a, concat(b, concat(c, d)))", SqlForm.EXPRESSION))
    assert isinstance(verdict, SqlFault)
    assert "more than 10 steps for 17 tokens" in verdict.message


def test_whatever_the_parser_throws_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("inside")

    monkeypatch.setattr(Parser, "_parse_statement", broken)
    verdict = judge(SqlText("SELECT 1", SqlForm.QUERY))
    assert verdict == SqlFault("it is not understood (KeyError)")


@pytest.mark.parametrize(
    "text",
    ["ceil()", "floor()", "approx_percentile() at time zone 'x'",
     "substring(case when a then 1 else x -> x end, 'x', locate(a, b, c))"],
)  # fmt: skip
def test_what_has_no_type_for_the_parser_has_facts_all_the_same(text: str) -> None:
    verdict = judge(SqlText(text, SqlForm.EXPRESSION))
    assert isinstance(verdict, SqlFacts)
    assert verdict.data_type == ""


def test_every_exception_of_the_fact_extraction_is_a_finding(monkeypatch):
    monkeypatch.setattr(sql, "_calls", lambda *_: {}["inside"])
    verdict = judge(SqlText("SELECT 1", SqlForm.QUERY))
    assert verdict == SqlFault("it is not understood (KeyError)")


@pytest.mark.parametrize(
    ("query", "reads"),
    [
        ("WITH `a.b` AS (SELECT 1) SELECT * FROM a.b", ("a.b",)),
        ("WITH ss AS (SELECT 1) SELECT * FROM `ß`", ("ß",)),
        ("WITH a AS (SELECT 1) SELECT * FROM A", ()),
    ],
)
def test_only_the_very_name_of_with_stands_for_it(query: str, reads: tuple[str, ...]) -> None:
    verdict = judge(SqlText(query, SqlForm.QUERY))
    assert isinstance(verdict, SqlFacts)
    assert verdict.tables == reads


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("a /* b */ + 1", "a         + 1"),
        ("a -- b\n + 1", "a     \n + 1"),
        ("'-- a' || '/* b */'", "'-- a' || '/* b */'"),
        ("`--` + 1 --", "`--` + 1   "),
        ("a /*\n*/ + 1", "a   \n   + 1"),
        ("a /**/ + 1", "a      + 1"),
    ],
)
def test_comments_are_spaces_in_what_runs(text: str, runs: str) -> None:
    assert scan(text).text == runs


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a /*+ b */", "hints are not allowed (line 1 of the SQL, column 3)"),
        ("a\n + /* /* */ */ 1", "a comment may not stand in another one (line 2"),
        ("a /*/ 1", "this comment never ends"),
        ("a -- b \\\n + 1", "a comment may not end in a backslash"),
        ("'a", "a quoted text never ends"),
        ("'a\\'", "a quoted text never ends"),
        ("`a", "a name in backticks never ends"),
        ("größe", "a name in backticks, as `ö`"),
        ("a)", "this bracket closes none"),
        ("(a", "a bracket is never closed"),
        ("(a]", "this bracket closes none"),
        ("map < :a", "parameters (:name) are not allowed"),
        ("not " * 40 + "a", f"it is nested too deeply: {MOST_NESTING} levels are allowed"),
        ("- " * 40 + "1", f"it is nested too deeply: {MOST_NESTING} levels are allowed"),
        ("a" * (MOST_CHARACTERS + 1), "it may have 65,536 characters"),
    ],
)
def test_the_scan_reports_what_it_refuses_and_where(text: str, message: str) -> None:
    with pytest.raises(SqlRefused, match=re.escape(message)):
        scan(text)


def pieces() -> Iterator[st.SearchStrategy[str]]:
    yield st.sampled_from(
        ["--", "/*", "*/", "/*+", "'", '"', "`", "\\", "\n", "\r", "''", "``", "r'", "R\"", "x'",
         "$", "{", "}", ";", ":", "::", "?", "@", "#", "(", ")", "[", "]", "<", ">", "struct<",
         "case ", " end", "select ", "1", "1e5", "1.", ".5L", "a", "b.c", ",", " ", "->", "=>",
         "|>", "${a}"]
    )  # fmt: skip
    yield st.text(max_size=4)


@given(st.lists(st.one_of(*pieces()), max_size=30).map("".join))
@settings(deadline=None, max_examples=400)
def test_every_text_has_facts_or_a_fault(text: str) -> None:
    for form in SqlForm:
        assert isinstance(judge(SqlText(text, form)), SqlFacts | SqlFault)


@given(st.lists(st.one_of(*pieces()), max_size=30).map("".join))
@settings(deadline=None, max_examples=400)
def test_what_runs_has_no_comment_and_the_same_tokens(text: str) -> None:
    try:
        scanned = scan(text)
    except SqlRefused:
        return
    again = scan(scanned.text)
    assert again.text == scanned.text
    assert again.tokens == scanned.tokens
    assert "".join(scanned.text.split()) == "".join(
        "".join(token.value for token in scanned.tokens).split()
    )
