"""`sourceUriPrefix`: what every file of a source begins with, and captured values as instants."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import pairwise

from whenever import Date, OffsetDateTime, PlainDateTime

from snaploom.models import common, shortforms
from snaploom.models.datasource import FromFieldValue, TimeFormat
from snaploom.plan.times import FIRST_INSTANT, LAST_INSTANT, OutOfCalendar, local_instant
from snaploom.policy.addresses import hadoop_uri
from snaploom.policy.regexes import LinearPattern, linear_pattern

# `sourceUriPrefix`: the common beginning of the files of a source, and its captured values.

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
"""The folder value that Hive and Spark write for NULL."""

CapturedValue = str | int


class CaptureType(StrEnum):
    """Type of a captured value."""

    STRING = "STRING"
    INTEGER = "INTEGER"
    LONG = "LONG"
    ISO8601_DATE_TIME = "ISO8601_DATE_TIME"
    """Date and time, with an offset or without; the value stays text."""


SNAPSHOT_TYPES = {
    TimeFormat.ISO8601_DATE: (CaptureType.STRING,),
    TimeFormat.ISO8601_DATE_TIME: (CaptureType.STRING, CaptureType.ISO8601_DATE_TIME),
    TimeFormat.TIMESTAMP: (CaptureType.ISO8601_DATE_TIME,),
    TimeFormat.UNIX_MILLISECONDS: (CaptureType.LONG, CaptureType.STRING),
    TimeFormat.UNIX_SECONDS: (CaptureType.INTEGER, CaptureType.LONG, CaptureType.STRING),
    TimeFormat.PATTERN: (CaptureType.STRING, CaptureType.INTEGER, CaptureType.LONG),
}
"""Capture types that can hold a snapshot time of each format (32 bits hold no milliseconds)."""

_BITS = {CaptureType.INTEGER: 32, CaptureType.LONG: 64}
_NUMBER = rf"(?:[+-]?[0-9]+?|{HIVE_NULL})"
_PATTERN = {
    CaptureType.STRING: r"[^/]+?",
    CaptureType.INTEGER: _NUMBER,
    CaptureType.LONG: _NUMBER,
    CaptureType.ISO8601_DATE_TIME: r"[^/]+?",
}
_CHARACTERS = {
    CaptureType.STRING: re.compile(r"[^/]"),
    CaptureType.INTEGER: re.compile(r"[0-9+-]"),
    CaptureType.LONG: re.compile(r"[0-9+-]"),
    CaptureType.ISO8601_DATE_TIME: re.compile(r"[^/]"),
}
_TOKEN = re.compile(r"\{\{|\}\}|\{(?P<capture>[^{}]*)\}|(?P<brace>[{}])|(?P<text>[^{}]+)")
_CAPTURE = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*):(?P<type>[A-Z0-9_]+)")
_GLOB_SPECIAL = re.compile(r"[*?\[\]{}\\]")
_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")
_LOCAL = re.compile(r"^file:/+")


class PrefixInvalid(ValueError):
    """The text is not a prefix; the message is the reason, without a final full stop."""


class CapturedValueInvalid(ValueError):
    """A file begins with the prefix, but a captured value is NULL or not of its type."""

    def __init__(self, name: str, value: str, expected: str) -> None:
        super().__init__(f"the captured value of {name} is '{value}', expected {expected}")
        self.name = name
        self.value = value
        self.expected = expected


@dataclass(frozen=True, slots=True)
class Capture:
    """A place in the prefix whose text becomes the value of a column."""

    name: str
    type: CaptureType


@dataclass(frozen=True)
class UriPrefix:
    """A parsed prefix: literal texts and captures, in order."""

    text: str
    parts: tuple[str | Capture, ...]

    @classmethod
    def parse(cls, text: str) -> UriPrefix:
        parts = _merged(_tokens(text))
        names = [part.name.casefold() for part in parts if isinstance(part, Capture)]
        for name in names:
            if names.count(name) > 1:
                raise PrefixInvalid(f"'{name}' is captured more than once (case is ignored)")
        if not parts or isinstance(parts[-1], Capture):
            raise PrefixInvalid("it must end with a literal character, such as '/'")
        for left, right in pairwise(parts):
            if isinstance(left, Capture) and isinstance(right, Capture):
                raise PrefixInvalid(
                    f"nothing separates the captures '{left.name}' and '{right.name}'"
                )
        first = parts[0]
        if isinstance(first, str):
            parts = (normal_uri(first), *parts[1:])
        return cls(text, parts)

    @property
    def captures(self) -> tuple[Capture, ...]:
        return tuple(part for part in self.parts if isinstance(part, Capture))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(capture.name for capture in self.captures)

    def capture(self, name: str) -> Capture | None:
        """The capture of that name, ignoring case."""
        return next((c for c in self.captures if c.name.casefold() == name.casefold()), None)

    @cached_property
    def _regex(self) -> re.Pattern[str] | LinearPattern:
        text = "".join(
            f"(?P<{part.name}>{_PATTERN[part.type]})"
            if isinstance(part, Capture)
            else re.escape(part)
            for part in self.parts
        )
        return linear_pattern(text) if self._may_divide_a_name_otherwise else re.compile(text)

    @property
    def _may_divide_a_name_otherwise(self) -> bool:
        """Whether two captures share a name: then Python's engine tries every division of it.

        It is several times as fast for all others, and asked for every file.
        """
        captures = 0
        for part in self.parts:
            if isinstance(part, Capture):
                captures += 1
                if captures > 1:
                    return True
            elif "/" in part:
                captures = 0
        return False

    def match(self, uri: str) -> dict[str, CapturedValue] | None:
        """The captured values of a file, by name; None when it does not begin with the prefix.

        `uri` is as Hadoop's `Path` prints it (folder names as they are on disk).

        Raises:
            CapturedValueInvalid: when a value is NULL or not of its type.
        """
        found = self._regex.match(normal_uri(uri))
        if found is None:
            return None
        return {capture.name: _typed(capture, found[capture.name]) for capture in self.captures}

    def fits_glob(self, glob: str) -> bool:
        """Whether a file that the glob matches could begin with this prefix.

        Compares the text before the glob's first special character; what follows is left to the
        files themselves, each of which is matched when it is listed.
        """
        special = _GLOB_SPECIAL.search(glob)
        head = normal_uri(glob[: special.start()] if special else glob)
        ends = {0}
        for part in self.parts:
            ends = _advance(ends, part, head)
            if len(head) in ends:
                return True
        return bool(ends)


def normal_uri(uri: str) -> str:
    """The URI in one of its forms: `file:///a`, `file:/a` and `/a` are `/a`, `s3:` is `s3a:`."""
    return _LOCAL.sub("/", hadoop_uri(uri))


def hive_decoded(value: str) -> str:
    """The value of a folder name, with `%XX` decoded once as Hive encodes it."""
    return _ESCAPED.sub(lambda code: chr(int(code[1], 16)), value)


def _tokens(text: str) -> list[str | Capture]:
    parts: list[str | Capture] = []
    for token in _TOKEN.finditer(text):
        if token["brace"]:
            raise PrefixInvalid(
                f"there is a single '{token['brace']}' at character {token.start() + 1}; "
                "write it twice, or complete the capture {NAME:TYPE}"
            )
        if token["capture"] is None:
            parts.append(token["text"] or token[0][0])
        else:
            parts.append(_capture(token["capture"]))
    return parts


def _capture(text: str) -> Capture:
    form = _CAPTURE.fullmatch(text)
    if form is None:
        raise PrefixInvalid(
            f"'{{{text}}}' is not a capture of the form {{NAME:TYPE}}, such as {{day:STRING}}, "
            f"with one of the types {', '.join(CaptureType)}"
        )
    if form["type"] not in CaptureType.__members__:
        raise PrefixInvalid(f"'{form['type']}' is not a type; types are {', '.join(CaptureType)}")
    return Capture(form["name"], CaptureType(form["type"]))


def _merged(parts: list[str | Capture]) -> tuple[str | Capture, ...]:
    merged: list[str | Capture] = []
    for part in parts:
        if merged and isinstance(part, str) and isinstance(merged[-1], str):
            merged[-1] += part
        else:
            merged.append(part)
    return tuple(merged)


def _typed(capture: Capture, raw: str) -> CapturedValue:
    value = hive_decoded(raw)
    if value == HIVE_NULL:
        raise CapturedValueInvalid(capture.name, value, "a value, not Hive's name for NULL")
    if capture.type in _BITS:
        bits = _BITS[capture.type]
        # Twenty characters hold every 64-bit number with its sign.
        if len(value.lstrip("+-0")) > 19 or not -(2 ** (bits - 1)) <= int(value) < 2 ** (bits - 1):
            raise CapturedValueInvalid(capture.name, value, f"a whole number of {bits} bits")
        return int(value)
    if capture.type is CaptureType.ISO8601_DATE_TIME and not _is_date_time(value):
        raise CapturedValueInvalid(
            capture.name, value, "an ISO 8601 date and time such as 2020-01-31T12:00:00Z"
        )
    return value


def _is_date_time(value: str) -> bool:
    for form in (OffsetDateTime, PlainDateTime):
        try:
            form.parse_iso(value)
        except ValueError:
            continue
        return True
    return False


def _advance(ends: set[int], part: str | Capture, head: str) -> set[int]:
    """Offsets in `head` where `part` can end when it begins at one of `ends`."""
    if isinstance(part, str):
        reached = ((end, min(len(head), end + len(part))) for end in ends)
        return {stop for end, stop in reached if part.startswith(head[end:stop])}
    allowed = _CHARACTERS[part.type]
    result: set[int] = set()
    for end in ends:
        stop = end
        while stop < len(head) and allowed.match(head[stop]):
            stop += 1
            result.add(stop)
    return result


# Snapshot values as instants: one rule for captures of paths and for columns, on the driver.

EXPECTED = {
    TimeFormat.ISO8601_DATE: "a date such as 2020-01-31",
    TimeFormat.ISO8601_DATE_TIME: "a date and time such as 2020-01-31T12:00:00Z",
    TimeFormat.TIMESTAMP: "a timestamp",
    TimeFormat.UNIX_MILLISECONDS: "whole milliseconds since 1970",
    TimeFormat.UNIX_SECONDS: "whole seconds since 1970",
    TimeFormat.PATTERN: "a date as timePattern has it",
}
"""Examples of values of each format, for messages."""

_UNITS = {
    TimeFormat.UNIX_MILLISECONDS: common.NANOS_PER_MILLISECOND,
    TimeFormat.UNIX_SECONDS: common.NANOS_PER_SECOND,
}
_UNIX_EPOCH = Date(1970, 1, 1)
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")


_MONTH = re.compile(r"[0-9]{4}[-_/.]?(0?[1-9]|1[0-2])")
_MONTH_HINT = (
    "a month is not a date: write `timeFormat: PATTERN` and `timePattern: {}`, or {}, as in "
    "2020-01-01, or name {} as fieldName"
)


def month_hint(values: Iterable[object], *, in_paths: bool) -> str:
    """Hint where values that are not dates are months; empty otherwise."""
    texts = {str(value) for value in values}
    if not texts or not all(map(_MONTH.fullmatch, texts)):
        return ""
    pattern = re.sub("[0-9]{1,2}$", "MM", re.sub("^[0-9]{4}", "yyyy", min(texts)))
    if in_paths:
        column = "a column of the data that holds a date"
        return _MONTH_HINT.format(pattern, "name the files by its first day", column)
    return _MONTH_HINT.format(pattern, "write its first day", "another column that holds a date")


class NotAnInstant(ValueError):
    """A value is not of its format, or lies beyond the years 1 to 9999."""


def instant_of(value: str | int, settings: FromFieldValue) -> common.EpochNanos:
    """Instant of a text or number in the declared format, else `NotAnInstant`."""
    if settings.time_pattern is not None:
        return instant_of_pattern(value, settings.time_pattern, settings.default_timezone)
    unit = _UNITS.get(settings.time_format)
    if unit is not None:
        return bounded(_whole(value) * unit)
    if not isinstance(value, str):
        raise NotAnInstant
    if settings.time_format is TimeFormat.ISO8601_DATE:
        return instant_of_date(value, settings.default_timezone)
    return instant_of_date_time(value, settings.default_timezone)


def instant_of_pattern(value: str | int, pattern: str, zone: str) -> common.EpochNanos:
    """Start of the period that a value names, in a zone; `NotAnInstant` if it names none."""
    try:
        return local_instant(shortforms.parse_pattern(pattern).start(value), zone)
    except (ValueError, OutOfCalendar) as error:
        raise NotAnInstant from error


def instant_of_date(text: str, zone: str) -> common.EpochNanos:
    """The start of a day in a zone; a midnight that the zone skips is the first moment after."""
    try:
        day = Date.parse_iso(text)
        return local_instant(PlainDateTime(day.year, day.month, day.day), zone)
    except (ValueError, OutOfCalendar) as error:
        raise NotAnInstant from error


def instant_of_days(days: int, zone: str) -> common.EpochNanos:
    """Start of a day in a zone, from days since 1970; `NotAnInstant` beyond the calendar."""
    try:
        day = _UNIX_EPOCH.add(days=days)
    except ValueError as error:
        raise NotAnInstant from error
    return instant_of_date(day.format_iso(), zone)


def instant_of_date_time(text: str, zone: str) -> common.EpochNanos:
    """Instant of an ISO 8601 date-time, by default in the zone; else `NotAnInstant`."""
    try:
        return common.EpochNanos(OffsetDateTime.parse_iso(text).timestamp(unit="nanosecond"))
    except ValueError:
        pass
    try:
        return local_instant(PlainDateTime.parse_iso(text), zone)
    except (ValueError, OutOfCalendar) as error:
        raise NotAnInstant from error


def bounded(nanos: int) -> common.EpochNanos:
    """Nanoseconds as an instant; `NotAnInstant` beyond the calendar."""
    if not FIRST_INSTANT <= nanos <= LAST_INSTANT:
        raise NotAnInstant
    return common.EpochNanos(nanos)


def _whole(value: str | int) -> int:
    if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value) is None:
        raise NotAnInstant
    return int(value)
