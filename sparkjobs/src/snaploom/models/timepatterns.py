"""Patterns of dates in names and columns, such as `yyyyMMdd`: the period that a value names.

A pattern has each unit once, from the year down without a gap, in fixed widths and in any order.
A value is the first moment of its period, in a zone: `2024-05` with `yyyy-MM` is the first of May.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import cache

from whenever import Date, PlainDateTime

WIDEST = 64
"""Characters of the longest pattern."""


class Granularity(StrEnum):
    """Length of the period that a value names."""

    YEAR = "year"
    """A calendar year."""
    MONTH = "month"
    """A calendar month."""
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


UNITS = {
    "yyyy": "[0-9]{4}", "MM": "[0-9]{2}", "dd": "[0-9]{2}", "DDD": "[0-9]{3}", "HH": "[0-9]{2}",
    "mm": "[0-9]{2}", "ss": "[0-9]{2}", "YYYY": "[0-9]{4}", "ww": "[0-9]{2}",
}  # fmt: skip
"""Units, as Java's patterns name them, and their digits. `YYYY` and `ww` are year and week of ISO
8601, whose weeks begin on Monday."""
_DAYS = {
    Granularity.YEAR: {"yyyy"},
    Granularity.MONTH: {"yyyy", "MM"},
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
    """Characters of every value."""

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
        part = {unit: int(number) for unit, number in found.groupdict().items()}
        if "ww" in part:
            monday = date.fromisocalendar(part["YYYY"], part["ww"], 1)
            day = Date(monday.year, monday.month, monday.day)
        elif "DDD" in part:
            day = Date(part["yyyy"], 1, 1).add(days=part["DDD"] - 1)
            if part["DDD"] < 1 or day.year != part["yyyy"]:
                raise ValueError(text)
        else:
            day = Date(part["yyyy"], part.get("MM", 1), part.get("dd", 1))
        clock = (part.get(unit, 0) for unit, _ in _CLOCK)
        return PlainDateTime(day.year, day.month, day.day, *clock)


@cache
def parse_pattern(text: str) -> TimePattern:
    """Parse a pattern such as `yyyyMMdd`, `yyyy-MM` or `YYYY-'W'ww`.

    Raises:
        PatternInvalid: with the reason.
    """
    units: list[str] = []
    form, width, end = "", 0, 0
    for token in _TOKEN.finditer(text):
        if token.start() != end:
            break
        end = token.end()
        unit = token["unit"]
        if unit is None:
            literal = token["text"] if token["text"] is not None else token["quoted"] or "'"
            form, width = form + re.escape(literal), width + len(literal)
            continue
        if unit not in UNITS:
            raise PatternInvalid(f"there is no unit '{unit}'")
        if unit in units:
            raise PatternInvalid(f"'{unit}' stands twice")
        units.append(unit)
        form, width = f"{form}(?P<{unit}>{UNITS[unit]})", width + len(unit)
    if end != len(text):
        raise PatternInvalid("a quote is not closed")
    return TimePattern(text, re.compile(form), _granularity(set(units)), width)


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
