"""Parts of SQL that give another result when computed again.

Spark computes rows again when a task or a run is tried again. A key that is random then matches
other rows, and a filter that reads the clock keeps others, so that rows would be lost or doubled
between two attempts. Functions are judged by the list in `functions`; here is what else varies:
words without brackets, texts such as `DATE 'now'`, samples, and LIMIT without ORDER BY.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from snaploom.planning.sqlgate.functions import Determinism, builtin_name, determinism_of
from snaploom.planning.sqlgate.lexer import Token, TokenKind

CHANGES_ROWS = frozenset({Determinism.SESSION, Determinism.RANDOM})
"""Dependences forbidden to SQL that makes rows, keys, groups or filters."""
CHANGES_VERDICTS = frozenset({Determinism.RANDOM})
"""Dependences forbidden to a check and to the choice of an index's files. They may read the clock:
a check asks how old data is, and changes no row."""

REASONS: Mapping[Determinism, str] = MappingProxyType(
    {
        Determinism.SESSION: "it depends on the time, the user or the session of the run",
        Determinism.RANDOM: "it depends on chance, or on where Spark computes a row",
        Determinism.ORDER: "it depends on the order in which Spark comes across rows",
    }
)
"""Why a result varies, as a clause."""

WORDS = frozenset(
    {
        "current_catalog", "current_database", "current_date", "current_path", "current_schema",
        "current_time", "current_timestamp", "current_user", "localtime", "localtimestamp",
        "session_user",
    }
)  # fmt: skip
"""Functions that Spark takes a bare name for, where no column is called so. Not `user`, which
columns are called: the job sees which of the two it is."""
_TYPES = frozenset({"date", "timestamp", "timestamp_ltz", "timestamp_ntz"})
"""Types before a quoted text that Spark reads `now` in."""
_CONVERSIONS = _TYPES | {"to_date", "to_timestamp", "to_timestamp_ltz", "to_timestamp_ntz"}
"""Functions that read `now` in a quoted text."""
_MOMENT = re.compile(
    r"\s*(?:now|today|yesterday|tomorrow)(?:[ \t].*)?\s*", re.IGNORECASE | re.DOTALL
)
"""Texts that Spark takes for the time of the query; a time zone may follow. Not `epoch`, which is
always the same."""
_MADE_STABLE_BY = frozenset(
    {"sort_array", "array_sort", "size", "array_size", "cardinality", "array_max", "array_min",
     "array_contains"}
)  # fmt: skip
"""Functions whose result is the same for every order of an array."""
_WITH_ORDER = frozenset({"OVER", "WITHIN"})
"""Words behind a call that bring an order with them."""


def is_moment(text: str) -> bool:
    """Whether Spark takes a text for the time of the query where it becomes a date or a time."""
    return _MOMENT.fullmatch(text) is not None


def varying_calls(tokens: Sequence[Token]) -> Iterator[tuple[Determinism, str]]:
    """Calls of functions whose result varies.

    The tokens decide, not the tree: the parser replaces functions by others.
    """
    for place, token in enumerate(tokens[:-1]):
        if tokens[place + 1].value != "(" or token.kind not in (TokenKind.WORD, TokenKind.NAME):
            continue
        has_arguments = place + 2 < len(tokens) and tokens[place + 2].value != ")"
        name = _qualified(tokens, place)
        determinism = determinism_of(name, has_arguments=has_arguments)
        if determinism is None or determinism is Determinism.ROW:
            continue
        if determinism is Determinism.ORDER and _has_order(tokens, place):
            continue
        yield determinism, f"{builtin_name(name)}()"


def _qualified(tokens: Sequence[Token], place: int) -> str:
    parts = [tokens[place].name]
    while place >= 2 and tokens[place - 1].value == ".":
        place -= 2
        parts.insert(0, tokens[place].name)
    return ".".join(parts)


def _has_order(tokens: Sequence[Token], place: int) -> bool:
    """Whether a call is inside an order-insensitive one, or has OVER or WITHIN GROUP behind it."""
    is_inside = place >= 2 and tokens[place - 1].value == "("
    if is_inside and tokens[place - 2].name.casefold() in _MADE_STABLE_BY:
        return True
    depth = 0
    for following in range(place + 1, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[following].value, 0)
        if depth == 0:
            behind = tokens[following + 1 : following + 2]
            return bool(behind) and behind[0].upper in _WITH_ORDER
    return False


def moments(tokens: Sequence[Token]) -> Iterator[tuple[Determinism, str]]:
    """Quoted texts that mean the time of the query, by the type or the conversion before them."""
    for place, token in enumerate(tokens):
        if token.kind is not TokenKind.TEXT or not is_moment(token.value.lstrip("rR")[1:-1]):
            continue
        before = [one.value.casefold() for one in tokens[max(place - 2, 0) : place]]
        behind = [one.value.casefold() for one in tokens[place + 1 : place + 3]]
        is_typed = before[-1:] != [] and before[-1] in _TYPES
        is_converted = before[-1:] == ["("] and before[0] in _CONVERSIONS
        is_cast = behind[:1] in (["as"], ["::"]) and behind[-1] in _TYPES
        if is_typed or is_converted or is_cast:
            shown = token.value
            if is_typed:
                shown = f"{before[-1].upper()} {token.value}"
            elif is_converted:
                shown = f"{before[0]}({token.value})"
            yield Determinism.SESSION, shown


def hint_for(found: Iterable[str], determinism: Determinism) -> str:
    """The fix."""
    names = {one.partition("(")[0] for one in found}
    if names & {"uuid", "monotonically_increasing_id", "randstr"}:
        return (
            "make a key of columns that identify the row, such as sha2(concat_ws('|', a, b), 256)"
        )
    if names & {"input_file_name", "input_file_block_start", "input_file_block_length"}:
        return "capture the part of the path that is needed in sourceUriPrefix, such as {day:DATE}"
    if determinism is Determinism.RANDOM:
        return "for a sample take a hash of a column, such as pmod(xxhash64(id), 100) < 10"
    if determinism is Determinism.ORDER:
        return (
            "use min, max, or max_by over a unique column; sort an array by sort_array(...); "
            "write ORDER BY before LIMIT"
        )
    return (
        "use a column of the data, or the snapshot's time in the dataQuery of a complexVirtual "
        "source: timestamp_seconds({{ SNAPSHOT | UNIX_SECONDS }}); a column that is called so "
        "stands in backticks"
    )
