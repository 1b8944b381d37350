"""Types that hold all values of columns of text."""

from collections.abc import Sequence
from typing import NamedTuple

from snaploom.plugins.discovery.dates import (
    BOOLEAN,
    DATE,
    DOUBLE,
    LONG,
    STRING,
    TIMESTAMP,
    UNSIGNED,
    ColumnType,
)
from snaploom.plugins.discovery.foundfiles import NULL_TEXTS
from snaploom.plugins.discovery.names import column_words
from snaploom.plugins.discovery.scratch import Scratch, text

_WHOLE = "CAST(TRY_CAST({0} AS {1}) AS VARCHAR) = {0}"
FITS = {
    LONG: _WHOLE.format("{0}", "BIGINT"),
    UNSIGNED: _WHOLE.format("{0}", "HUGEINT") + " AND length({0}) <= 20",
    # A whole number without a point is one of DOUBLE only where that holds all of its digits.
    # 4E6 is a code: programs that print a capital E print a point or a sign as well.
    DOUBLE: (
        "regexp_full_match({0}, '-?((0|[1-9][0-9]*)(e[+-]?[0-9]{{1,3}}|E[+-][0-9]{{1,3}})?"
        "|(0|[1-9][0-9]*)?[.][0-9]+([eE][+-]?[0-9]{{1,3}})?)')"
        " AND length(ltrim(regexp_replace({0}, '[eE].*|[^0-9]', '', 'g'), '0')) <= 17"
        " AND isfinite(TRY_CAST({0} AS DOUBLE))"
        " AND (regexp_matches({0}, '[.eE]') OR abs(TRY_CAST({0} AS DOUBLE)) < 9007199254740992)"
        " AND (TRY_CAST({0} AS DOUBLE) <> 0 OR NOT regexp_matches({0}, '^[^eE]*[1-9]'))"
    ),
    DATE: "length({0}) = 10 AND " + _WHOLE.format("{0}", "DATE"),
    TIMESTAMP: (
        "regexp_full_match({0}, '[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ]([01][0-9]|2[0-3]):[0-5][0-9]:"
        "[0-5][0-9]([.][0-9]{{1,6}})?(Z|[+-][0-9]{{2}}:[0-9]{{2}})?')"
        " AND TRY_CAST({0} AS TIMESTAMP) IS NOT NULL"
    ),
    BOOLEAN: "{0} IN ('true', 'false', 'TRUE', 'FALSE', 'True', 'False')",
}  # fmt: skip
"""For each type, the best first, whether it holds a text."""
SQL_TYPES = {LONG: "BIGINT", UNSIGNED: "HUGEINT", DATE: "DATE", TIMESTAMP: "TIMESTAMP"}
"""Types of DuckDB as which the values of keys are compared."""
_FIRST_ROWS = 10_000
"""Rows by which most types are ruled out."""
_SHOWN = {LONG: "whole numbers", DOUBLE: "numbers", DATE: "dates", TIMESTAMP: "times"}
_FEWEST_OTHERS = 2
"""Values of a type from which one other value is an exception."""


def typed_texts(
    scratch: Scratch, table: str, names: Sequence[str]
) -> tuple[list[tuple[str, ColumnType, str]], dict[str, tuple[str, ...]], list[str]]:
    """Columns with the types that hold all of their values but texts for no value; these; notes."""
    columns, null_texts, notes = [], {}, []
    looks = _looks(scratch, table, [f"c{place}" for place in range(len(names))])
    for place, (name, look) in enumerate(zip(names, looks.values(), strict=True)):
        kind, nulls, why = _type_of(scratch, table, f"c{place}", look)
        if kind is DOUBLE and _are_codes(scratch, table, f"c{place}", name):
            kind, nulls = STRING, ()
        value, sql = f"c{place}", SQL_TYPES.get(kind)
        if nulls:
            null_texts[name] = nulls
            value = f"CASE WHEN c{place} NOT IN ({', '.join(map(text, nulls))}) THEN c{place} END"
        is_key = kind is STRING and why != _WITH_COMMAS  # numbers that measure are none
        own = f"CAST({value} AS {sql})" if sql else value if is_key else ""
        columns.append((name, kind, own))
        notes += [f"{name} is text{why}"] if why else []
        if kind is DOUBLE and scratch.all(_ARE_THOUSANDS.format(f"c{place}", table))[0][0]:
            notes.append(f"a guess: the points of {name} are decimal points, as of 1.234 below 2")
    return columns, null_texts, notes


_FOR_ONE_ROW = " for one row only: all other values are {}"
_WITH_COMMAS = ": its numbers have commas, which a fieldTransformer can replace"
_ARE_THOUSANDS = (
    "SELECT bool_and(regexp_full_match({0}, '-?[1-9][0-9]{{0,2}}([.][0-9]{{3}})?')) FROM {1} "
    "WHERE contains({0}, '.') OR length({0}) > 4"
)
"""Whether all numbers with a point, and long ones, could have it between thousands."""
_COMMAS = "regexp_full_match({0}, '[+-]?[0-9]{{1,3}}([., ]?[0-9]{{3}})*(,[0-9]+)?')"


def note_of_text(scratch: Scratch, table: str, column: str, name: str) -> str:
    """The note about a column of text that is no text but for a value or two; else empty."""
    (look,) = _looks(scratch, table, [column]).values()
    kind, nulls, why = _type_of(scratch, table, column, look)
    if nulls and kind in _SHOWN:
        return f"{name} is text for {', '.join(nulls)} only: all other values are {_SHOWN[kind]}"
    return f"{name} is text{why}" if why else ""


class _Look(NamedTuple):
    """What a column has in the first rows."""

    is_all: bool
    """Whether there are no more rows."""
    nulls: Sequence[str] = ()
    """Texts for no value."""
    others: int = 0
    wrong: Sequence[int] = (0,) * len(FITS)
    """How many of the others each type does not hold."""
    has_commas: bool = False
    """Whether all are numbers, some with commas."""


def _looks(scratch: Scratch, table: str, columns: Sequence[str]) -> dict[str, _Look]:
    """A look at columns by one question for all: to plan it takes longer than to answer it."""
    tests = (f"count(*) FILTER (NOT n AND ({test.format('v')}) IS NOT TRUE)"
             for test in FITS.values())  # fmt: skip
    found = scratch.all(
        f"SELECT c, coalesce(list(DISTINCT v ORDER BY v) FILTER (n), []), count(*) FILTER (NOT n), "
        f"[{', '.join(tests)}], bool_and({_COMMAS.format('v')}) AND bool_or(contains(v, ',')) "
        f"FROM (SELECT c, v, v IN ({', '.join(map(text, NULL_TEXTS))}) AS n FROM (FROM {table} "
        f"LIMIT {_FIRST_ROWS}) UNPIVOT (v FOR c IN ({', '.join(columns)}))) GROUP BY c"
    )
    is_all = scratch.number(f"SELECT count(*) FROM {table}") <= _FIRST_ROWS
    looks = {str(column): _Look._make([is_all, *facts]) for column, *facts in found}
    return {column: looks.get(column, _Look(is_all)) for column in columns}


def _type_of(
    scratch: Scratch, table: str, column: str, look: _Look
) -> tuple[ColumnType, tuple[str, ...], str]:
    """The best type of a column, and the texts for no value without which it would be none.

    Of text also why it is none of another type, where all values but one are, or commas are in the
    way; else empty.
    """
    given = f"FROM {table} WHERE {column} IS NOT NULL"
    exception = ""
    for (kind, test), count in zip(FITS.items(), look.wrong, strict=True):
        if count > 1 or (count and look.is_all and look.others - count < _FEWEST_OTHERS):
            continue
        others, fitting = tuple(look.nulls), look.others
        wrong = f"({test.format(column)}) IS NOT TRUE"
        if count or not look.is_all:
            most = len(NULL_TEXTS) + 1
            others = tuple(str(row[0]) for row in scratch.all(
                f"SELECT DISTINCT {column} {given} AND {wrong} ORDER BY 1 LIMIT {most}"
            ))  # fmt: skip
            fitting = scratch.number(f"SELECT count(*) {given} AND NOT ({wrong})")
        if set(others) <= set(NULL_TEXTS) and fitting:
            return kind, others, ""
        if len(others) == 1 and fitting >= _FEWEST_OTHERS and not exception:
            rows = scratch.number(f"SELECT count(*) {given} AND {wrong}")
            shown = _SHOWN.get(kind, "") if rows == 1 else ""
            exception = shown and _FOR_ONE_ROW.format(shown)
    exception = _WITH_COMMAS if look.has_commas else exception
    has_marks = "\\N" in look.nulls or (  # of MySQL
        not look.is_all and scratch.all(f"SELECT 1 {given} AND {column} = '\\N' LIMIT 1")
    )
    return STRING, ("\\N",) if has_marks else (), exception


def _are_codes(scratch: Scratch, table: str, column: str, name: str) -> bool:
    """Whether numbers with a point are codes, as 11.10 beside 11.01: a fraction identifies none."""
    words = column_words(name)
    odd = f"regexp_full_match({column}, '[0-9]+[.][0-9]+') IS NOT TRUE"
    digits = f"length(split_part({column}, '.', 2))"
    (row,) = scratch.all(
        f"SELECT min({digits}) = max({digits}), count(*) FILTER ({odd}) FROM {table} "
        f"WHERE {column} IS NOT NULL"
    )
    return words.has_id and row == (True, 0)
