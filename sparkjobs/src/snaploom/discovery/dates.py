"""Dates in names of files and folders: their forms, and the instants that they mean."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from snaploom.models.datasource import TimeFormat

EARLIEST, LATEST = 1970, 2100
"""Years of dates in names: other numbers are numbers."""


class Unit(StrEnum):
    """How exact a date is."""

    SECOND = "second"
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    YEAR = "year"


@dataclass(frozen=True)
class DateForm:
    """One way to write a date in a name."""

    name: str
    """As people write it, and Spark's patterns."""
    pattern: str
    strptime: str
    """Python's format of the text without separators that the engine takes apart; empty for seconds
    or milliseconds since 1970."""
    unit: Unit
    time_format: TimeFormat | None
    """How the engine reads it; None where `name` is the pattern by which it does."""

    def instant(self, text: str) -> datetime | None:
        """The time in UTC; None where the text is no such date."""
        if not re.fullmatch(self.pattern, text):
            return None
        try:
            if not self.strptime:
                seconds = int(text) / (1000 if self.time_format is _MILLIS else 1)
                found = datetime.fromtimestamp(seconds, UTC)
            elif self.unit is Unit.WEEK:  # strptime takes a week 53 of any year
                found = datetime.fromisocalendar(int(text[:4]), int(text[-2:]), 1)
                found = found.replace(tzinfo=UTC)
            else:
                found = datetime.strptime(text.rstrip("Z"), self.strptime).replace(tzinfo=UTC)
        except (ValueError, OverflowError, OSError):
            return None
        return found if EARLIEST <= found.year <= LATEST else None


_MILLIS = TimeFormat.UNIX_MILLISECONDS
_DATE, _TIME = TimeFormat.ISO8601_DATE, TimeFormat.ISO8601_DATE_TIME


def _week(separator: str, letters: str) -> DateForm:
    """An ISO week such as `2026-W05`, by the text between year and number."""
    return DateForm(
        f"YYYY{separator}'{letters}'ww", rf"\d{{4}}{separator}{letters}\d\d",
        f"%G{separator}{letters}%V", Unit.WEEK, None,
    )  # fmt: skip


FORMS: tuple[DateForm, ...] = (
    *(_week(between, letters) for between in ("-", "_", "") for letters in ("W", "w", "KW", "kw")),
    DateForm("yyyy-MM-ddTHH:mm:ss", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ?", "%Y-%m-%dT%H:%M:%S",
             Unit.SECOND, _TIME),
    DateForm("yyyyMMddTHHmmss", r"\d{8}T\d{6}Z?", "%Y%m%dT%H%M%S", Unit.SECOND, _TIME),
    DateForm("yyyyMMdd_HHmmss", r"\d{8}_\d{6}", "%Y%m%d_%H%M%S", Unit.SECOND, None),
    DateForm("yyyy-MM-dd_HH-mm-ss", r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d", "%Y-%m-%d_%H-%M-%S",
             Unit.SECOND, None),
    DateForm("yyyy-MM-dd", r"\d{4}-\d\d-\d\d", "%Y-%m-%d", Unit.DAY, _DATE),
    DateForm("yyyy_MM_dd", r"\d{4}_\d\d_\d\d", "%Y_%m_%d", Unit.DAY, None),
    DateForm("yyyy.MM.dd", r"\d{4}\.\d\d\.\d\d", "%Y.%m.%d", Unit.DAY, None),
    DateForm("dd.MM.yyyy", r"\d\d\.\d\d\.\d{4}", "%d.%m.%Y", Unit.DAY, None),
    DateForm("dd-MM-yyyy", r"\d\d-\d\d-\d{4}", "%d-%m-%Y", Unit.DAY, None),
    DateForm("dd_MM_yyyy", r"\d\d_\d\d_\d{4}", "%d_%m_%Y", Unit.DAY, None),
    DateForm("yyyyMMddHHmmss", r"\d{14}", "%Y%m%d%H%M%S", Unit.SECOND, None),
    DateForm("milliseconds since 1970", r"1\d{12}", "", Unit.SECOND, _MILLIS),
    DateForm("yyyyMMddHHmm", r"\d{12}", "%Y%m%d%H%M", Unit.SECOND, None),
    DateForm("yyyyMMddHH", r"20\d{8}", "%Y%m%d%H", Unit.HOUR, None),
    DateForm("seconds since 1970", r"1\d{9}", "", Unit.SECOND, TimeFormat.UNIX_SECONDS),
    DateForm("yyyyMMdd", r"\d{8}", "%Y%m%d", Unit.DAY, _DATE),
    DateForm("yyyy-MM", r"\d{4}-\d\d", "%Y-%m", Unit.MONTH, None),
    DateForm("yyyy_MM", r"\d{4}_\d\d", "%Y_%m", Unit.MONTH, None),
    DateForm("yyyyMM", r"\d{6}", "%Y%m", Unit.MONTH, None),
    DateForm("yyyy", r"\d{4}", "%Y", Unit.YEAR, None),
)  # fmt: skip
"""Longer forms first: the first that fits a text is taken."""

_DATE_TEXT = re.compile(
    r"(?<![0-9])(?:" + "|".join(f"(?:{form.pattern})" for form in FORMS) + r")(?![0-9])"
)


@dataclass(frozen=True)
class FoundDate:
    """A date inside a text."""

    start: int
    end: int
    form: DateForm
    instant: datetime


def date_of(text: str) -> FoundDate | None:
    """The date that a whole text is; None for another text."""
    for form in FORMS:
        instant = form.instant(text)
        if instant is not None:
            return FoundDate(0, len(text), form, instant)
    return None


def dates_in(text: str) -> Iterator[FoundDate]:
    """The dates in a text, one after the other."""
    for match in _DATE_TEXT.finditer(text):
        found = date_of(match[0])
        if found is not None:
            yield FoundDate(match.start(), match.end(), found.form, found.instant)
