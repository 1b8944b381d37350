"""Functions that SQL may call: every one of Spark's own, judged once.

The list, `sqlfunctions.toml`, has all functions of Spark 4.1 to 4.3, each with the class that Spark
has for it. Other functions are refused, so a newer Spark's functions are refused until they are
judged here; a test compares the list with the registry of the Spark that runs.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from types import MappingProxyType

from pydantic import TypeAdapter

from snaploom.models.allowances import Allowances
from snaploom.policy.sqltext import Token, TokenKind


class Kind(StrEnum):
    """Places in which a function may stand."""

    VALUE = "VALUE"
    """Anywhere: it makes one value of the values of one row."""
    AGGREGATE = "AGGREGATE"
    """It makes one value of many rows."""
    WINDOW = "WINDOW"
    """It needs OVER."""
    GROUPING = "GROUPING"
    """It decides on, or speaks of, the groups of a GROUP BY."""
    GENERATOR = "GENERATOR"
    """It makes rows of a value."""
    TABLE = "TABLE"
    """It stands where a table does."""


class Determinism(StrEnum):
    """The dependence of a function's result."""

    ROW = "ROW"
    """On its arguments and the session's settings only: the same in every run."""
    ORDER = "ORDER"
    """Also on the order in which Spark comes across rows, or which of several equals it takes."""
    SESSION = "SESSION"
    """On the time, the user or the session: one value a query, another one in another run."""
    RANDOM = "RANDOM"
    """On chance, or on where Spark computes a row: it may differ when a task runs again."""


@dataclass(frozen=True, slots=True)
class Function:
    """One function of Spark, with its judgement."""

    name: str
    classes: frozenset[str]
    """Simple names of Spark's classes for it: more than one where versions differ."""
    kind: Kind
    determinism: Determinism
    refused: str
    """Reason why it is refused, as a clause that follows "it"; empty when it may be called."""


@dataclass(frozen=True, slots=True)
class _Group:
    kind: Kind
    determinism: Determinism
    functions: str
    """`name:Class`, with a `|` between classes."""
    refused: str = ""


_GROUPS = TypeAdapter(tuple[_Group, ...]).validate_python(
    tomllib.loads(files(__package__).joinpath("sqlfunctions.toml").read_text("utf-8"))["group"]
)

FUNCTIONS = MappingProxyType(
    {
        name: Function(
            name, frozenset(classes.split("|")), group.kind, group.determinism, group.refused
        )
        for group in _GROUPS
        for name, _, classes in (entry.rpartition(":") for entry in group.functions.split())
    }
)

_BUILTIN = ("system.builtin.", "builtin.")
"""The schema of Spark's own functions; those of any other are user-defined."""
_WITHOUT_ARGUMENTS = frozenset({"unix_timestamp"})
"""Functions that give the current time without arguments, and convert one with them."""


def builtin_name(name: str) -> str:
    """The name of a function in lower case, without the schema of Spark's own functions."""
    folded = name.casefold()
    return next((folded.removeprefix(p) for p in _BUILTIN if folded.startswith(p)), folded)


def refusal_of(name: str, allow: Allowances) -> str:
    """Return why SQL may not call a function, as a clause; empty when it may.

    `name` is as SQL calls it, with its schema in front.
    """
    bare = builtin_name(name)
    if bare in {builtin_name(allowed) for allowed in allow.functions}:
        return ""
    if "." in bare:
        return "functions of a schema are not on the list"
    known = FUNCTIONS.get(bare)
    if known is None:
        return "it is not on the list of Spark's functions"
    return f"it {known.refused}" if known.refused else ""


def determinism_of(name: str, *, has_arguments: bool = True) -> Determinism | None:
    """The dependence of a function's result; None for one that is not on the list."""
    bare = builtin_name(name)
    if bare in _WITHOUT_ARGUMENTS:
        return Determinism.ROW if has_arguments else Determinism.SESSION
    known = FUNCTIONS.get(bare)
    return None if known is None else known.determinism


# Parts of SQL that give another result when computed again.

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
"""Reason why a result varies, as a clause."""

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
