"""Conditions in SQL over the tables of `prooftables`, made from a seed."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from support.skipping.prooftables import PARTITIONS, POOLS, Value

OPERATORS = ("=", "<", "<=", ">", ">=")

_WHOLE = (
    "{0} + {a} {1} {2}", "{0} - {a} {1} {2}", "{a} - {0} {1} {2}", "-{0} {1} {2}",
    "abs({0}) {1} {2}", "{0} * {a} {1} {2}", "{0} / {a} {1} {3}",
    "{0} div {a} {1} {b}", "{0} % {a} {1} {b}",
    "pmod({0}, {a}) {1} {b}", "try_add({0}, {a}) {1} {2}", "try_multiply({0}, {a}) {1} {2}",
    "try_subtract({a}, {0}) {1} {2}", "CAST({0} AS bigint) + 1 {1} {b}", "{0} + 1.5BD {1} {b}",
    "CAST({0} AS double) * 2 {1} {3}", "round({0}, 0) {1} {2}", "round({0}, -1) {1} {b}",
    "abs({0} - {a}) {1} {2}", "-({0} + {a}) {1} {2}", "coalesce({0} + {a}, {2}) {1} {2}",
    "coalesce({0}, {2}) IN ({2}, {a})", "{0} + {a} IN ({2}, {b})", "CAST({0} AS float) {1} {3}",
    "bround({0}, -1) {1} {b}", "round({0}, -2) {1} {2}", "round({0} + {a}, -1) {1} {b}",
    "{0} % {a} <> {b}", "{0} % {a} IN ({b}, 1)", "{0} % {a} NOT IN ({b}, 1)",
    "({0} + {a}) % 7 {1} {b}", "pmod(-{0}, 7) {1} {b}", "pmod({0}, 100) {1} 40",
    "({0} div 3) % 5 {1} {b}", "{0} % 10 + 1 {1} {b}", "{0} * 2 % 5 {1} {b}",
    "mod({0} % 100, {a}) {1} {b}", "try_mod({0}, {a}) {1} {b}", "abs({0}) % 5 {1} {b}",
    "CAST({0} AS bigint) % 1000 {1} {b}", "round({0}, -1) % 20 {1} {b}",
    "{0} + {a} IN (" + ", ".join(map(str, range(-90, 90, 3))) + ")", "{0} div -1 {1} {b}",
    "{0} + {a} <> {2}", "{0} + {a} NOT IN ({2}, {b})",
    "coalesce({0} % {a}, {b}) {1} {b}", "coalesce({0} div {a}, -{0}, {b}) {1} {b}",
    "coalesce(try_add({0}, {a}), {2}) {1} {2}", "{0} + {a} IS NULL", "NOT (-{0} IS NULL)",
    "CAST({0} AS smallint) {1} {b}", "CAST({0} AS tinyint) + 1 {1} {b}",
    "try_cast({0} AS smallint) {1} {b}", "CAST({0} AS decimal(5,2)) {1} {b}",
    "if({0} > {2}, {0}, {a}) + 1 {1} {b}", "nullif({0}, {2}) {1} {b}",
    "CASE WHEN {0} < {2} THEN {0} ELSE -{0} END {1} {b}",
    "CASE {0} WHEN {2} THEN 1 WHEN {a} THEN {b} ELSE 5 END {1} {b}",
    "greatest({0}, {a}) {1} {2}", "least({0}, {a}) - 1 {1} {b}",
    "abs(coalesce({0}, {a})) {1} {b}", "({0} < {2}) = ({0} > {a})",
    "({0} < {2}) <=> ({0} {1} {a})", "NOT (({0} {1} {2}) = ({0} > {a}))",
    "CASE WHEN {0} {1} {2} THEN {0} > {a} ELSE {0} < {b} END",
    "(({0} {1} {2}) AND ({0} > {a})) IS NULL",
)  # fmt: skip
_FLOATING = (
    "{0} + {a} {1} {2}", "{a} - {0} {1} {2}", "-{0} {1} {2}", "abs({0}) {1} {2}",
    "{0} * {a} {1} {2}",
    "{0} / {a} {1} {2}", "ceil({0}) {1} {b}", "floor({0}) {1} {b}", "round({0}, 1) {1} {2}",
    "round({0}, -1) {1} {b}", "bround({0}, 2) {1} {2}", "CAST({0} AS double) + 1 {1} {2}",
    "ceil({0}) + 1 {1} {b}", "coalesce({0}, {2}) {1} {2}", "floor({0}) % 3 {1} {b}",
    "coalesce({0} + {a}, {2}) {1} {2}", "coalesce(round({0}, 1), {2}) {1} {2}",
    "CAST({0} AS int) {1} {b}", "CAST({0} AS bigint) {1} {b}", "try_cast({0} AS smallint) {1} {b}",
    "CAST({0} AS decimal(9,2)) {1} {b}", "CAST({0} AS float) {1} {2}",
    "if({0} > {2}, {0}, {a}) * 2 {1} {b}", "greatest({0}, {a}) {1} {2}", "least({0}, {a}) {1} {2}",
    "nullif({0}, {2}) {1} {a}",
)  # fmt: skip
_DECIMAL = (
    "{0} + {a} {1} {2}", "{a} - {0} {1} {2}", "-{0} {1} {2}", "abs({0}) {1} {2}", "{0} * 2 {1} {2}",
    "{0} % 3 {1} {b}", "{0} % 0.75BD {1} 0.5BD", "pmod({0}, 7) {1} {b}", "{0} % 3 <> {b}",
    "pmod({0}, -7) {1} {b}", "coalesce({0} + {a}, {2}) {1} {2}", "round({0}, -1) {1} {b}",
    "{0} / 3 {1} {b}", "ceil({0}) {1} {b}", "floor({0}) {1} {b}", "round({0}) {1} {b}",
    "round({0}, 1) {1} {2}", "bround({0}) {1} {b}", "CAST({0} AS decimal(38,10)) + 1 {1} {b}",
    "CAST({0} AS double) + 1 {1} {3}", "{0} * 1.25BD {1} {2}", "{0} + 0.001BD {1} {2}",
    "CAST({0} AS int) {1} {b}", "CAST({0} AS bigint) {1} {b}", "CAST({0} AS decimal(7,1)) {1} {b}",
    "CAST({0} AS decimal(12,0)) {1} {b}", "ceil({0}, 1) {1} {2}", "floor({0}, 1) {1} {2}",
    "greatest({0}, {a}) {1} {2}", "if({0} > {2}, {0}, {a}) {1} {b}", "nullif({0}, {2}) {1} {a}",
)  # fmt: skip
_DATE = (
    "date_add({0}, {n}) {1} {2}", "date_sub({0}, {n}) {1} {2}", "datediff({0}, {2}) {1} {b}",
    "datediff({2}, {0}) {1} {b}", "add_months({0}, {n}) {1} {2}",
    "{0} + INTERVAL '2' MONTH {1} {2}",
    "{0} - INTERVAL '3' DAY {1} {2}", "year({0}) {1} {y}", "year({0}) + 1 {1} {y}",
    "trunc({0}, 'MM') {1} {2}", "trunc({0}, 'YEAR') {1} {2}", "unix_date({0}) {1} {b}",
    "coalesce({0}, {2}) {1} {2}", "year({0}) IN ({y}, 1970)",
    "pmod(datediff({0}, {2}), 7) {1} 3", "unix_date({0}) % 7 {1} {b}", "year({0}) % 4 {1} 0",
    "coalesce(date_add({0}, {n}), {2}) {1} {2}", "year({0}) IS NULL",
    "last_day({0}) {1} {2}", "next_day({0}, 'TU') {1} {2}", "dayofweek({0}) = 3",
    "weekday({0}) {1} 3", "CAST({0} AS timestamp) + INTERVAL '1' HOUR {1} timestamp'{y}-07-01'",
    "date_trunc('MONTH', {0}) {1} timestamp'{y}-07-01'", "unix_timestamp({0}) {1} {b}",
    "date_format({0}, 'yyyy-MM') = '2024-07'", "CAST({0} AS string) = '2024-07-01'",
    "greatest({0}, {2}) {1} {2}", "if({0} > {2}, {0}, date'1999-12-31') {1} {2}",
)  # fmt: skip
_INSTANT = (
    "CAST({0} AS date) {1} date'2024-07-01'",
    "date_add(CAST({0} AS date), {n}) {1} date'2024-07-01'",
    "{0} + INTERVAL '36' HOUR {1} {2}", "{0} - INTERVAL '1' MONTH {1} {2}", "year({0}) {1} {y}",
    "date_trunc('DAY', {0}) {1} {2}", "date_trunc('MONTH', {0}) {1} {2}",
    "trunc({0}, 'MM') {1} {d}", "date_format({0}, 'yyyy-MM-dd') = '2024-07-01'",
    "coalesce({0}, {2}) {1} {2}", "last_day({0}) {1} {d}", "weekday({0}) < 5",
    "if({0} > {2}, {0}, NULL) {1} {2}",
)  # fmt: skip
_EPOCH = (
    "unix_seconds({0}) {1} {s}", "unix_millis({0}) {1} {s}000", "unix_micros({0}) {1} {s}000000",
    "unix_timestamp({0}) {1} {s}", "unix_seconds({0}) % 86400 {1} 3600",
    "pmod(unix_micros({0}), 1000) {1} 1", "CAST({0} AS bigint) {1} {s}",
    "from_utc_timestamp({0}, 'Asia/Tokyo') {1} {2}",
    "CAST({0} AS timestamp_ntz) {1} timestamp_ntz'2024-07-01'",
)  # fmt: skip

FORMS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), _WHOLE),
    **dict.fromkeys(("float", "double"), _FLOATING),
    **dict.fromkeys(("decimal(9,2)", "decimal(30,10)"), _DECIMAL),
    "date": _DATE,
    "timestamp": (*_INSTANT, *_EPOCH),
    "timestamp_ntz": _INSTANT,
}
"""By type of the column: the column, an operator, and literals of some kinds."""


def range_conditions(rng: random.Random, name: str, data_type: str, each: int) -> list[str]:
    return [
        form.format(
            name,
            rng.choice(OPERATORS),
            literal(rng.choice(POOLS[data_type]), data_type),
            literal(rng.choice(POOLS["double"]), "double"),
            a=_operand(rng, data_type),
            b=rng.choice([-128, -5, -1, 0, 1, 2, 5, 300, 1001]),
            n=rng.choice([-400, -31, -1, 0, 1, 3, 30, 800]),
            y=rng.choice([1, 2, 1582, 1969, 1970, 2024, 9999]),
            s=rng.choice([-1, 0, 1, 1719837296, -11670996600]),
            d="date'2024-07-01'",
        )
        for form in FORMS[data_type]
        for _ in range(each)
    ]


def _operand(rng: random.Random, data_type: str) -> str:
    values = [-100, -7, -3, -1, 1, 2, 3, 5, 100]
    return f"CAST({rng.choice(values)} AS {data_type})"


@dataclass(frozen=True)
class Condition:
    text: str
    """SQL."""
    columns: frozenset[str]
    """Columns that it speaks of."""
    parts: tuple[Condition, ...] = ()
    """Conditions within it: a counterexample may shrink to one of these."""
    about: frozenset[str] = frozenset()
    """Columns or expressions that it compares with values, where it was made for that."""


def conditions(rng: random.Random, columns: Mapping[str, str], count: int) -> list[Condition]:
    """So many different conditions over columns, given with their Spark types."""
    found: dict[str, Condition] = {}
    while len(found) < count:
        drawn = _condition(rng, columns, rng.choice([0, 0, 0, 1, 1, 2]))
        found[drawn.text] = drawn
    return list(found.values())


def _condition(rng: random.Random, columns: Mapping[str, str], depth: int) -> Condition:
    if depth == 0:
        return _leaf(rng, columns)
    one, other = (_condition(rng, columns, depth - 1) for _ in range(2))
    form = rng.choice(_FORMS)
    parts = (one, other) if "{1}" in form else (one,)
    text = form.format(one.text, other.text)
    return Condition(text, frozenset().union(*(part.columns for part in parts)), parts)


_FORMS = [
    *("({0}) AND ({1})", "({0}) AND ({1})", "({0}) OR ({1})", "({0}) OR ({1})", "NOT ({0})"),
    *("NOT (({0}) OR ({1}))", "NOT (({0}) AND ({1}))", "NOT (({0}) AND NOT ({1}))"),
    *("coalesce({0}, {1})", "coalesce({0}, false)", "({0}) IS NOT TRUE", "({0}) IS NULL"),
    *("if({0}, {1}, false)", "CASE WHEN {0} THEN {1} END", "CASE WHEN {0} THEN false ELSE {1} END"),
    *("({0}) <=> ({1})", "({0}) = ({1})", "(({0}) OR length(uuid()) = 36) AND ({1})"),
]


def _leaf(rng: random.Random, columns: Mapping[str, str]) -> Condition:
    name = rng.choice(list(columns))
    data_type = columns[name]
    special = _SPECIAL.get(data_type, [])
    if special and rng.random() < 0.45:
        text = rng.choice(special)(rng, name)
    else:
        text = _general(rng, name, data_type)
    return Condition(text, frozenset({name}))


def pool(name: str, data_type: str) -> Sequence[Value]:
    if name == "p":
        return [value for value in PARTITIONS if value]
    return POOLS[data_type]


def _general(rng: random.Random, name: str, data_type: str) -> str:
    values = pool(name, data_type)

    def one() -> str:
        return literal(rng.choice(values), data_type)

    def several(least: int, most: int) -> str:
        return ", ".join(one() for _ in range(rng.randint(least, most)))

    operator = rng.choice(["=", "=", "=", "<=>", "<>", "<", "<=", ">", ">="])
    null = f"CAST(NULL AS {data_type})"
    forms: list[Callable[[], str]] = [
        lambda: f"{name} {operator} {one()}",
        lambda: f"{name} {operator} {one()}",
        lambda: f"{name} {operator} {one()}",
        lambda: f"{one()} {operator} {name}",
        lambda: f"{name} IN ({several(1, 4)})",
        lambda: f"{name} IN ({several(11, 15)})",
        lambda: f"{name} IN ({several(1, 3)}, NULL)",
        lambda: f"{name} NOT IN ({several(1, 4)})",
        lambda: f"{name} NOT IN ({several(11, 15)})",
        lambda: f"{name} BETWEEN {one()} AND {one()}",
        lambda: f"{name} NOT BETWEEN {one()} AND {one()}",
        lambda: f"{name} IS NULL",
        lambda: f"{name} IS NOT NULL",
        lambda: f"{name} IS DISTINCT FROM {one()}",
        lambda: f"{name} <=> {null}",
        lambda: f"{name} {operator} {null}",
        lambda: f"coalesce({name}, {one()}) {operator} {one()}",
        lambda: f"nullif({name}, {one()}) {operator} {one()}",
        lambda: f"array_contains(array({several(1, 3)}), {name})",
    ]
    return rng.choice(forms)()


def literal(value: Value, data_type: str) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int():
            return f"CAST({value} AS {data_type})" if data_type != "int" else f"({value})"
        case float():
            return _float(value, data_type)
        case Decimal():
            return f"CAST({value:f}BD AS {data_type})"
        case str():
            return quoted(value)
        case bytes():
            return f"X'{value.hex()}'"
        case datetime():
            zone = "" if value.tzinfo is None else "+00:00"
            return f"{data_type}'{value.replace(tzinfo=None).isoformat(' ')}{zone}'"
        case date():
            return f"date'{value.isoformat()}'"
    raise TypeError(f"no literal: {value!r}")


def quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _float(value: float, data_type: str) -> str:
    if math.isnan(value) or math.isinf(value):
        word = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return f"{data_type}('{word}')"
    return f"{data_type}('{value!r}')"


Maker = Callable[[random.Random, str], str]


def _text(rng: random.Random) -> str:
    return str(rng.choice(POOLS["string"]))


def _piece(rng: random.Random) -> str:
    text = _text(rng)[-12:]
    start = rng.randint(0, max(len(text) - 1, 0))
    return text[start : start + rng.randint(1, 4)]


def _pattern(rng: random.Random) -> str:
    """LIKE's, with what it takes literally escaped most of the time."""
    text = _piece(rng) if rng.random() < 0.6 else _text(rng)[:8]
    text = "".join(f"\\{sign}" if sign in "%_\\" else sign for sign in text)
    form = rng.choice(["{}%", "{}%", "%{}", "%{}%", "{}", "{}_%", "_{}", "a{}", "{}%{}"])
    return quoted(form.format(text, text))


def _over_text(form: str) -> Maker:
    return lambda rng, name: form.format(
        name,
        quoted(_text(rng)),
        quoted(_piece(rng)),
        _pattern(rng),
        _pattern(rng),
        quoted(_text(rng).lower()),
        rng.randint(0, 3),
        quoted(_text(rng)[:2]),
        n=rng.randint(0, 9),
    )


def _over(form: str, *kinds: str) -> Maker:
    """Fills in the column, an operator, and literals of types."""
    return lambda rng, name: form.format(
        name,
        rng.choice(["=", "<", "<=", ">", ">=", "<>"]),
        *(literal(rng.choice(POOLS[kind]), kind) for kind in kinds),
    )


_STRINGS = [
    _over_text(form)
    for form in (
        *("{0} LIKE {3}", "{0} LIKE {3}", "{0} NOT LIKE {3}", "{0} LIKE ANY ({3}, {4})"),
        *("{0} LIKE ALL ({3}, {4})", "{0} NOT LIKE ANY ({3}, {4})", "{0} ILIKE {3}"),
        *("startswith({0}, {2})", "contains({0}, {2})", "endswith({0}, {2})"),
        *("NOT contains({0}, {2})", "lower({0}) = {5}", "lower({0}) LIKE {3}", "upper({0}) > {1}"),
        *("substring({0}, 1, {6}) = {7}", "substring({0}, {6}, 2) = {7}", "left({0}, 2) = {7}"),
        *("length({0}) > {n}", "length({0}) = {n}", "trim({0}) = {1}", "concat({0}, 'a') = {1}"),
        *("{0} RLIKE 'a+b'", "try_cast({0} AS int) < 50", "try_cast({0} AS date) IS NULL"),
        *("{0} LIKE 'a!%%' ESCAPE '!'", "instr({0}, {2}) > 0", "{0} = concat({1}, '')"),
        *("CAST({0} AS binary) >= CAST({1} AS binary)", "left({0}, 2) IN ({7}, {1})"),
    )
]
_NUMBERS = [
    _over("{0} {1} {2}", "double"),
    _over("{0} {1} {2}", "decimal(9,2)"),
    _over("{0} {1} {2}", "bigint"),
    _over("{0} {1} {2}", "float"),
    _over("{0} {1} 1.5", "int"),
    _over("{0} {1} 5"),
    _over("{0} {1} '2'"),
    _over("CAST({0} AS double) {1} {2}", "double"),
    _over("CAST({0} AS float) {1} {2}", "float"),
    _over("CAST({0} AS string) {1} '5'"),
    _over("{0} % 3 {1} 1"),
    _over("try_add({0}, 1) {1} 2"),
    _over("{0} IN (1, 2.0, 3.5D)"),
    _over("{0} IN ({2}, {3})", "double", "double"),
]
_FLOATS = [
    _over("{0} {1} {2}", "double"),
    _over("{0} {1} {2}", "float"),
    _over("{0} {1} 0.1"),
    _over("{0} {1} 0"),
    _over("isnan({0})"),
    _over("NOT isnan({0})"),
    _over("nanvl({0}, 1) {1} 1"),
    _over("CAST({0} AS double) {1} {2}", "double"),
    _over("-{0} {1} {2}", "double"),
    _over("abs({0}) {1} {2}", "float"),
]
_DATES = [
    _over("year({0}) {1} 2024"),
    _over("year({0}) {1} 1970"),
    _over("year({0}) IN (1582, 2000)"),
    _over("month({0}) {1} 1"),
    _over("trunc({0}, 'MM') {1} {2}", "date"),
    _over("trunc({0}, 'YEAR') {1} {2}", "date"),
    _over("{0} {1} {2}", "timestamp"),
    _over("{0} {1} {2}", "timestamp_ntz"),
    _over("{0} {1} '1970-01-01'"),
    _over("date_add({0}, 1) {1} {2}", "date"),
    _over("datediff({0}, date'1970-01-01') {1} 1"),
    _over("CAST({0} AS string) {1} '1970-01-01'"),
]
_MOMENT_FORMS = [
    _over("CAST({0} AS date) {1} {2}", "date"),
    _over("date({0}) IN ({2}, {3})", "date", "date"),
    _over("{0} {1} {2}", "date"),
    _over("{0} {1} {2}", "timestamp"),
    _over("{0} {1} {2}", "timestamp_ntz"),
    _over("{0} {1} '2024-07-01'"),
    _over("year({0}) {1} 2024"),
    _over("hour({0}) {1} 12"),
    _over("date_trunc('DAY', {0}) {1} {2}", "timestamp"),
    _over("date_trunc('MONTH', {0}) {1} {2}", "timestamp"),
    _over("date_trunc('MILLISECOND', {0}) {1} {2}", "timestamp"),
    _over("{0} + INTERVAL '1' MICROSECOND {1} {2}", "timestamp_ntz"),
    _over("CAST({0} AS string) {1} '2024'"),
]

_SPECIAL: Mapping[str, list[Maker]] = {
    "boolean": [_over("{0}"), _over("NOT {0}"), _over("{0} IS TRUE"), _over("{0} IS NOT FALSE")],
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), _NUMBERS),
    **dict.fromkeys(("decimal(9,2)", "decimal(30,10)"), _NUMBERS),
    **dict.fromkeys(("float", "double"), _FLOATS),
    "string": _STRINGS,
    "binary": [
        _over("startswith({0}, X'00')"),
        _over("contains({0}, X'ff')"),
        _over("endswith({0}, {2})", "binary"),
        _over("length({0}) {1} 1"),
        _over("hex({0}) {1} 'FF'"),
    ],
    "date": _DATES,
    **dict.fromkeys(("timestamp", "timestamp_ntz"), _MOMENT_FORMS),
}
