"""Texts with a form of their own: types, lengths of time, local times, and patterns of dates.

A short form is read where a model is parsed, and is the same model as the long form from there on.
Each has a pattern, which the API server checks as well (`snaploom.models.schemas`).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from functools import cache, lru_cache
from typing import Any, Final

from pydantic import BaseModel, GetCoreSchemaHandler, GetJsonSchemaHandler, JsonValue
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema
from whenever import Date, PlainDateTime

TEXT_KEYWORD: Final = "x-snaploom-text"
"""Keyword of the models' JSON Schemas: the pattern and length of a text that may stand instead."""
SHORT_FORM: Final = "short_form"
"""Error type of a text that is no short form."""
SHARED_MODELS: Final = 1024
"""Types and lengths of time that are shared: every schema has `string` and `bigint` again and
again, and their models would be a seventh of an operator's memory."""
LONGEST_SHARED: Final = 32
"""Characters of a short form that is shared: a type of a column, but no structure."""
TEXT_TAG, FORM_TAG = "[text]", "[form]"
"""Pydantic's insertions into the place of an error, which are no part of the path."""


class ShortFormInvalid(ValueError):
    """A text is no short form; the message is the fault."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, eq=False)  # typing hashes what is annotated; there is one of each
class ShortForm:
    """Lets a text stand for a model."""

    read: Callable[[str], dict[str, JsonValue]]
    """The long form of a text; raises `ShortFormInvalid`."""
    pattern: str
    """The pattern of all such texts."""
    max_length: int
    """Characters of the longest."""
    examples: str
    """Examples, for messages."""
    any_of: tuple[dict[str, JsonValue], ...] = ()
    """Schemas of which a long form meets one, for the API server. They are true of every text."""
    more: Mapping[str, JsonValue] = field(default_factory=dict)
    """Further keywords for the API server."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        def parsed(text: str) -> Any:
            try:
                parts = self.read(text) if len(text) <= self.max_length else None
            except ShortFormInvalid as error:
                raise self._refusal(str(error), error.hint) from None
            if parts is None:
                raise self._refusal("the text is too long", "write the long form")
            return source.model_validate(parts)

        shared = lru_cache(SHARED_MODELS)(parsed)
        text = core_schema.no_info_after_validator_function(
            lambda given: (shared if len(given) <= LONGEST_SHARED else parsed)(given),
            core_schema.str_schema(strict=True),
        )
        form = core_schema.no_info_after_validator_function(_shared, handler(source))
        choices: dict[Any, CoreSchema] = {TEXT_TAG: text, FORM_TAG: form}
        return core_schema.tagged_union_schema(choices, _tag)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        assert schema["type"] == "tagged-union"
        result = dict(handler(schema["choices"][FORM_TAG]))
        result[TEXT_KEYWORD] = {
            "pattern": self.pattern,
            "maxLength": self.max_length,
            "examples": self.examples,
            "anyOf": list(self.any_of),
            "more": dict(self.more),
        }
        return result

    def _refusal(self, message: str, hint: str) -> PydanticCustomError:
        words = {"message": message, "expected": f"a mapping, or a text such as {self.examples}"}
        return PydanticCustomError(SHORT_FORM, "{message}", words | {"hint": hint})


_SHARED: Final[dict[tuple[object, ...], BaseModel]] = {}


def _shared(given: BaseModel) -> BaseModel:
    """The one model of its content, for those of numbers and of objects without fields."""
    values = vars(given)
    named = [(name, values[name]) for name in given.model_fields_set]
    if len(_SHARED) >= SHARED_MODELS or not all(_is_plain(value) for _, value in named):
        return given
    return _SHARED.setdefault((type(given), *named), given)


def _is_plain(value: object) -> bool:
    if isinstance(value, BaseModel):
        return not type(value).model_fields
    return isinstance(value, int)


def _having(name: str) -> dict[str, JsonValue]:
    return {"required": [name]}


def _tag(given: object) -> str:
    return TEXT_TAG if isinstance(given, str) else FORM_TAG


# Lengths of time ------------------------------------------------------------------------------

LENGTH_PARTS = ("year", "month", "week", "day", "hour", "minute", "second", "nano")
_NUMBER = "[0-9]{1,12}"
LENGTH_PATTERN = (
    rf"^(({_NUMBER}(ns|s|min|h|d|w|mo|y))+"
    rf"|P({_NUMBER}[YMWD])+(T({_NUMBER}(\.[0-9]{{1,9}})?[HMS])+)?"
    rf"|PT({_NUMBER}(\.[0-9]{{1,9}})?[HMS])+)$"
)
_UNITS = {
    "ns": "nano", "s": "second", "min": "minute", "h": "hour", "d": "day",
    "w": "week", "mo": "month", "y": "year",
}  # fmt: skip
_SHORT = re.compile(rf"({_NUMBER})(ns|s|min|mo|h|d|w|y)")
_ISO = re.compile(
    rf"P(?:(?P<year>{_NUMBER})Y)?(?:(?P<month>{_NUMBER})M)?(?:(?P<week>{_NUMBER})W)?"
    rf"(?:(?P<day>{_NUMBER})D)?(?:T(?=[0-9])(?:(?P<hour>{_NUMBER})H)?"
    rf"(?:(?P<minute>{_NUMBER})M)?(?:(?P<second>{_NUMBER})(?:\.(?P<fraction>[0-9]{{1,9}}))?S)?)?"
)


def read_length(text: str) -> dict[str, JsonValue]:
    """The parts of a length of time: `7d`, `1h30min`, `1mo` (a month) or ISO 8601.

    No unit is called `m`, which would be minutes to some and months to others.
    """
    iso = _ISO.fullmatch(text)
    if iso is not None and len(text) > 1:
        found: dict[str, JsonValue] = {
            part: int(iso[part]) for part in LENGTH_PARTS[:-1] if iso[part] is not None
        }
        if iso["fraction"]:
            found["nano"] = int(iso["fraction"].ljust(9, "0"))
        return found
    pieces = _SHORT.findall(text)
    units = [_UNITS[unit] for _, unit in pieces]
    if not pieces or "".join(number + unit for number, unit in pieces) != text:
        raise ShortFormInvalid("this is no length of time", _length_hint(text))
    if len(set(units)) < len(units):
        raise ShortFormInvalid("a unit stands twice", "add the two up")
    return {unit: int(number) for unit, (number, _) in zip(units, pieces, strict=True)}


_LONG_UNIT = re.compile(r"\s*(\d{1,12})\s*(nano|sec|min|hour|hr|day|week|mon|year|yr)[a-z]*\s*")
_SHORT_UNIT = {
    "nano": "ns", "sec": "s", "min": "min", "hour": "h", "hr": "h", "day": "d", "week": "w",
    "mon": "mo", "year": "y", "yr": "y",
}  # fmt: skip


def _length_hint(text: str) -> str:
    """The form of `7 days` and `5m`, which are usual ways to write lengths."""
    unclear = re.fullmatch(r"(\d{1,12})[mM]", text)
    if unclear is not None:
        return f"write `{unclear[1]}min` for minutes, or `{unclear[1]}mo` for months"
    found = _LONG_UNIT.fullmatch(text.lower())
    return f"write `{found[1]}{_SHORT_UNIT[found[2]]}`" if found else ""


LENGTH = ShortForm(
    read_length,
    LENGTH_PATTERN,
    64,
    "7d, 90min, 1mo or P7D",
    any_of=({"maxProperties": 0}, *map(_having, LENGTH_PARTS)),
)
LENGTH_NOT_ZERO = ShortForm(
    read_length,
    LENGTH_PATTERN,
    64,
    "7d, 90min, 1mo or P7D",
    any_of=tuple(
        {"required": [part], "properties": {part: {"minimum": 1}}} for part in LENGTH_PARTS
    ),
    more={"allOf": [{"pattern": "[1-9]"}]},
)
"""A length of which one part is more than 0; in a text, one digit is."""

# Local times ----------------------------------------------------------------------------------

LOCAL_TIME_PATTERN = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?)?Z?(\[[A-Za-z0-9_+/-]{1,64}\])?$"
)
_LOCAL_TIME = re.compile(
    r"(?P<date>\d{4}-\d{2}-\d{2})"
    r"(?:[T ](?P<hour>\d{2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.(?P<fraction>\d{1,9}))?)?)?"
    r"(?P<utc>Z)?(?:\[(?P<zone>[A-Za-z0-9_+/-]{1,64})\])?",
    re.ASCII,
)
_OFFSET = re.compile(r".*[0-9][+-][0-9]{2}:?[0-9]{2}$")


def read_local_time(text: str) -> dict[str, JsonValue]:
    """The parts of a date, or of a date and time, with its zone in brackets; UTC without one."""
    found = _LOCAL_TIME.fullmatch(text)
    if found is None:
        is_offset = _OFFSET.fullmatch(text) is not None
        raise ShortFormInvalid(
            "an offset is no time zone: it does not follow summer time"
            if is_offset
            else "this is no date, and no date and time",
            "name the zone, such as 2024-01-01T00:00[Australia/Melbourne]" if is_offset else "",
        )
    if found["utc"] and found["zone"] not in (None, "UTC"):
        raise ShortFormInvalid("`Z` is UTC, and another zone is given", "leave out the `Z`")
    try:
        day = datetime.strptime(found["date"], "%Y-%m-%d")
    except ValueError:
        raise ShortFormInvalid("there is no such day", "write a day that the month has") from None
    clock = {part: int(found[part] or 0) for part in ("hour", "minute", "second")}
    return {
        "year": day.year,
        "month": day.month,
        "day": day.day,
        **clock,
        "nano": int((found["fraction"] or "").ljust(9, "0")),
        "timezone": found["zone"] or "UTC",
    }


LOCAL_TIME = ShortForm(
    read_local_time,
    LOCAL_TIME_PATTERN,
    100,
    "2024-01-01 (UTC) or 2024-01-01T06:00[Australia/Melbourne]",
    any_of=(
        {"properties": {"month": {"enum": [1, 3, 5, 7, 8, 10, 12]}}},
        {"properties": {"month": {"enum": [4, 6, 9, 11]}, "day": {"maximum": 30}}},
        {"properties": {"month": {"enum": [2]}, "day": {"maximum": 29}}},
    ),
    more={"maxProperties": 8},
)

# Types ----------------------------------------------------------------------------------------

SQL_NAMES: Mapping[str, str] = {
    "bigint": "long", "int": "integer", "smallint": "short", "tinyint": "byte", "real": "float",
    "numeric": "decimal", "dec": "decimal", "timestamp_ltz": "timestamp",
    "timestamp_ntz": "timestampNtz", "void": "null", "interval": "calendarInterval",
}  # fmt: skip
"""Names of types in Spark SQL, with those in declarations."""
PLAIN_TYPES = frozenset(
    {"binary", "boolean", "byte", "calendarInterval", "date", "double", "float", "integer", "long",
     "null", "short", "string", "timestamp", "timestampNtz"}
)  # fmt: skip
"""Types without parameters."""
_WRITTEN = {name.lower(): name for name in PLAIN_TYPES} | dict(SQL_NAMES)
TYPE_PATTERN = r"^[A-Za-z_]+ *([<(][\s\S]*[>)])?$"
_DEEPEST = 15
"""Levels of types in a text: as deep as BigQuery reads structs; more is no mistake of a person."""
_WORD = re.compile(r"\s*(?:([A-Za-z_][A-Za-z_0-9]*|`[^`]+`|\d{1,4})|(.))", re.DOTALL)


def read_type(text: str) -> dict[str, JsonValue]:
    """The long form of a type as Spark SQL writes it, such as `array<struct<a: int NOT NULL>>`."""
    words = [first or other for first, other in _WORD.findall(text)]
    try:
        found = _read_type(words, 0)
    except IndexError:
        raise ShortFormInvalid("the type ends too early", "close all brackets") from None
    if words:
        raise ShortFormInvalid(f"after the type stands `{words[0]}`", "remove it")
    return found


def _read_type(words: list[str], depth: int) -> dict[str, JsonValue]:
    """The type at the beginning of some words, which are taken away."""
    if depth > _DEEPEST:
        raise ShortFormInvalid(f"types are nested more than {_DEEPEST} deep", "nest fewer types")
    written = words.pop(0)
    name = _WRITTEN.get(written.lower(), written.lower())
    match name:
        case "array":
            _expect(words, "<")
            element = _read_type(words, depth + 1)
            _expect(words, ">")
            return {"array": {"elementType": element}}
        case "map":
            _expect(words, "<")
            key = _read_type(words, depth + 1)
            _expect(words, ",")
            value = _read_type(words, depth + 1)
            _expect(words, ">")
            return {"map": {"keyType": key, "valueType": value}}
        case "struct":
            return {"struct": {"fields": _read_fields(words, depth + 1)}}
        case "decimal":
            numbers = _read_numbers(words) or [10]
            return {"decimal": {"precision": numbers[0], "scale": [*numbers, 0][1]}}
        case _ if name in PLAIN_TYPES:
            return {name: {}}
    raise ShortFormInvalid(f"there is no type `{written}`", _type_hint(written))


def _type_hint(written: str) -> str:
    usual = USUAL_NAMES.get(written.lower())
    return f"it is called `{usual}`" if usual else "write a type of Spark SQL, such as `bigint`"


USUAL_NAMES: Mapping[str, str] = {
    "int32": "int", "int64": "bigint", "int16": "smallint", "int8": "tinyint", "text": "string",
    "varchar": "string", "char": "string", "str": "string", "bool": "boolean", "bytes": "binary",
    "float32": "float", "float64": "double", "datetime": "timestamp", "number": "decimal(38,0)",
    "datetime64": "timestamp_ntz",
}  # fmt: skip
"""Names of types elsewhere, with those in Spark SQL."""


def _read_fields(words: list[str], depth: int) -> list[JsonValue]:
    _expect(words, "<")
    fields: list[JsonValue] = []
    while not fields or words[0] != ">":
        if fields:
            _expect(words, ",")
        name = words.pop(0)
        if words[0] == ":":
            words.pop(0)
        field: dict[str, JsonValue] = {
            "name": name.strip("`"),
            "dataType": _read_type(words, depth),
        }
        if [word.lower() for word in words[:2]] == ["not", "null"]:
            del words[:2]
            field["nullable"] = False
        fields.append(field)
    words.pop(0)
    return fields


def _read_numbers(words: list[str]) -> list[int]:
    if not words or words[0] != "(":
        return []
    words.pop(0)
    numbers = [_read_number(words)]
    if words[0] == ",":
        words.pop(0)
        numbers.append(_read_number(words))
    _expect(words, ")")
    return numbers


def _read_number(words: list[str]) -> int:
    word = words.pop(0)
    if not word.isascii() or not word.isdigit():
        raise ShortFormInvalid(f"`{word}` is no number", "write decimal(PRECISION,SCALE)")
    return int(word)


def _expect(words: list[str], sign: str) -> None:
    found = words.pop(0)
    if found != sign:
        raise ShortFormInvalid(f"`{found}` stands where `{sign}` belongs", "correct the type")


TYPE = ShortForm(
    read_type,
    TYPE_PATTERN,
    4096,
    "bigint, decimal(10,2), array<string> or struct<a:int>",
    any_of=tuple(
        _having(name) for name in sorted(PLAIN_TYPES | {"array", "decimal", "map", "struct"})
    ),
)


# Patterns of dates in names and columns, such as `yyyyMMdd`: the period that a value names.


class Granularity(StrEnum):
    """Length of the period that a value names."""

    YEAR = "year"
    """A calendar year."""
    MONTH = "month"
    """A calendar month."""
    QUARTER = "quarter"
    """Three calendar months, the first from January on."""
    WEEK = "week"
    """A week of ISO 8601, from Monday on."""
    DAY = "day"
    """A calendar day."""
    HOUR = "hour"
    """An hour."""
    MINUTE = "minute"
    """A minute."""
    SECOND = "second"
    """A second."""


_ACCENTED = {"ä": "(?:ä|a\u0308|ae?)", "é": "(?:é|e\u0301|e)", "û": "(?:û|u\u0302|u)",
             "ç": "(?:ç|c\u0327|c)"}  # fmt: skip
"""Letters in one or two characters of Unicode, or without their accent."""
MONTHS = tuple(
    "|".join(
        "".join(_ACCENTED.get(letter, letter) for letter in name)
        for name in sorted(names.split(), reverse=True)
    )
    for names in (
        "january januar janv janvier januari janeiro jan jän jänner enero ene gennaio gen",
        "february februar februari febr février févr febrero febbraio fevereiro feb fév",
        "march märz mrz mars marzo março maart marts mrt mar mär",
        "april avril avr abril abr aprile apr",
        "may mai mei mayo maio maggio maj mag",
        "june juni juin junio junho giugno jun giu",
        "july juli juillet juil julio julho luglio jul lug",
        "august août agosto augustus augusti aug ago",
        "september septembre septiembre setiembre settembre setembro sept sep set",
        "october oktober octobre octubre ottobre outubro oct okt ott out",
        "november novembre noviembre novembro nov",
        "december dezember décembre diciembre dicembre dezembro desember dec dez déc dic des",
    )
)
"""Names of the months in English, German, French, Spanish, Italian, Portuguese, Dutch, Swedish,
Danish and Norwegian, short and in full, as patterns of small letters."""
MONTH_NAME = f"(?i:{'|'.join(MONTHS)})"
UNITS = {
    "yyyy": "[0-9]{4}", "yy": "[0-9]{2}", "Q": "[1-4]", "MM": "[0-9]{2}", "M": "[0-9]{1,2}",
    "MMM": rf"{MONTH_NAME}\.?",
    "dd": "[0-9]{2}", "d": "[0-9]{1,2}", "DDD": "[0-9]{3}", "HH": "[0-9]{2}", "mm": "[0-9]{2}",
    "ss": "[0-9]{2}", "YYYY": "[0-9]{4}", "ww": "[0-9]{2}", "w": "[0-9]{1,2}",
}  # fmt: skip
"""Units, as Java's patterns name them, and their characters. `yy` is a year from 2000 on; `YYYY`
and `ww` are year and week of ISO 8601, whose weeks begin on Monday; `Q` is a quarter."""
_SAME = {"yy": "yyyy", "M": "MM", "MMM": "MM", "d": "dd", "w": "ww"}
"""Units that are other ways to write a unit."""
_ONE_OR_TWO = frozenset({"M", "d", "w"})
_DAYS = {
    Granularity.YEAR: {"yyyy"},
    Granularity.MONTH: {"yyyy", "MM"},
    Granularity.QUARTER: {"yyyy", "Q"},
    Granularity.WEEK: {"YYYY", "ww"},
    Granularity.DAY: {"yyyy", "MM", "dd"},
}
_CLOCK = (("HH", Granularity.HOUR), ("mm", Granularity.MINUTE), ("ss", Granularity.SECOND))
_TOKEN = re.compile(r"'(?P<quoted>[^']*)'|(?P<unit>([A-Za-z])\3*)|(?P<text>[^A-Za-z']+)")


class PatternInvalid(ValueError):
    """A text is no pattern; the message is the fault, without a final full stop."""


@dataclass(frozen=True)
class TimePattern:
    """A parsed pattern."""

    text: str
    form: re.Pattern[str]
    granularity: Granularity
    width: int
    """Characters of every value; the fewest where they differ."""
    has_one_width: bool

    def start(self, value: str | int) -> PlainDateTime:
        """The first moment of the period that a value names, in its own zone.

        `value` may be a number whose leading zeros are missing.

        Raises:
            ValueError: the value is not of the pattern, or there is no such date.
        """
        text = value if isinstance(value, str) else f"{value:0{self.width}d}"
        found = self.form.fullmatch(text)
        if found is None:
            raise ValueError(text)
        part = {unit: _number(unit, written) for unit, written in found.groupdict().items()}
        if "ww" in part:
            monday = date.fromisocalendar(part["YYYY"], part["ww"], 1)
            day = Date(monday.year, monday.month, monday.day)
        elif "DDD" in part:
            day = Date(part["yyyy"], 1, 1).add(days=part["DDD"] - 1)
            if part["DDD"] < 1 or day.year != part["yyyy"]:
                raise ValueError(text)
        else:
            month = part.get("MM", 3 * part.get("Q", 1) - 2)
            day = Date(part["yyyy"], month, part.get("dd", 1))
        clock = (part.get(unit, 0) for unit, _ in _CLOCK)
        return PlainDateTime(day.year, day.month, day.day, *clock)


def _number(unit: str, written: str) -> int:
    if written.isdecimal():
        return int(written) + (2000 if unit == "yyyy" and len(written) == 2 else 0)
    name = written.removesuffix(".")
    return next(n for n, month in enumerate(MONTHS, 1) if re.fullmatch(month, name, re.IGNORECASE))


@cache
def parse_pattern(text: str) -> TimePattern:
    """Parse a pattern such as `yyyyMMdd`, `yyyy-MM` or `YYYY-'W'ww`.

    Raises:
        PatternInvalid: with the reason.
    """
    units: list[str] = []
    form, width, end = "", 0, 0
    has_one_width, before = True, ""
    for token in _TOKEN.finditer(text):
        if token.start() != end:
            break
        end = token.end()
        unit = token["unit"]
        if unit is None:
            literal = token["text"] if token["text"] is not None else token["quoted"] or "'"
            form, width = form + re.escape(literal), width + len(literal)
            if before in _ONE_OR_TWO and literal[0].isdigit():
                raise PatternInvalid(f"nothing shows where '{before}' ends: write all digits")
            before = "digit" if literal[-1].isdigit() else ""
            continue
        if unit not in UNITS:
            raise PatternInvalid(f"there is no unit '{unit}'")
        same = _SAME.get(unit, unit)
        if same in units:
            raise PatternInvalid(f"'{same}' stands twice")
        if before and unit != "MMM" and _ONE_OR_TWO & {before, unit}:
            raise PatternInvalid(f"nothing shows where '{unit}' begins: write all digits")
        units.append(same)
        form, width = f"{form}(?P<{same}>{UNITS[unit]})", width + len(unit)
        has_one_width = has_one_width and unit not in {*_ONE_OR_TWO, "MMM"}
        before = "" if unit == "MMM" else unit
    if end != len(text):
        raise PatternInvalid("a quote is not closed")
    granularity = _granularity(set(units))
    return TimePattern(text, re.compile(form), granularity, width, has_one_width)


def _granularity(units: set[str]) -> Granularity:
    clock = [(unit, length) for unit, length in _CLOCK if unit in units]
    days = {"yyyy", "MM", "dd"} if units >= {"yyyy", "DDD"} and not units & {"MM", "dd"} else None
    named = days or units - {unit for unit, _ in _CLOCK}
    found = next((length for length, wanted in _DAYS.items() if wanted == named), None)
    if found is None or [unit for unit, _ in clock] != [unit for unit, _ in _CLOCK[: len(clock)]]:
        raise PatternInvalid("a unit is missing between the year and the smallest one")
    if clock and found is not Granularity.DAY:
        raise PatternInvalid("hours need a day")
    return clock[-1][1] if clock else found
