"""Conditions on expressions over numbers, dates and instants, each a rule that is turned around."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from support.skipping.proofconditions import literal
from support.skipping.prooftables import POOLS

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
    """Some conditions of every form."""
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
