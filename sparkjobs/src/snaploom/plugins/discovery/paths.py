"""Paths in pieces: text, dates, values of folders, and days in names of files."""

from __future__ import annotations

import re
from calendar import monthrange
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol

from snaploom.errors import StorageError
from snaploom.models.shortforms import parse_pattern
from snaploom.plugins.discovery.dates import DateForm, FoundDate, Orders, Unit, dates_in, orders_of
from snaploom.plugins.discovery.foundfiles import FoundFile, Guess
from snaploom.policy.fileformats import known_formats

# Days and hours in names of files: `2026/02/visits-03.parquet`, `visits-2026-02-03-14.csv`.

FEWEST_FILES = 5
"""In one month at least: fewer numbers are as likely those of shops or regions."""
_NUMBERED = frozenset({"part", "chunk", "batch", "shard", "split", "file", "page", "store", "run"})
"""Words behind which a number is none of a day."""


def date_piece(paths: Sequence[ParsedPath]) -> tuple[int, str] | None:
    """The piece that is the day or the hour of every file, and which; None where none is known.

    Two digits may as well be the number of a part. They are days where each is one of its month,
    and either some month has all of its days or they are not counted from 1 without a gap. Numbers
    that are the same in every month are none. They are hours where some day has all of them. The
    paths are of the files of one source, with the same pieces.
    """
    pieces = paths[0].pieces
    numbers = [index for index, piece in enumerate(pieces) if piece.kind is Kind.ANY]
    parts = [piece.text for piece in pieces if piece.kind is Kind.PART_OF_DATE]
    forms = [piece.form for piece in pieces if piece.form is not None]
    is_month = parts == ["year", "month"] if not forms else not parts and all(
        form.unit is Unit.MONTH and not form.has_names for form in forms
    )  # fmt: skip
    is_day = not parts and [form.unit for form in forms] == [Unit.DAY]
    if len(numbers) != 1 or not (is_month or is_day):
        return None
    (place,) = numbers
    if is_numbered(pieces, place):
        return None
    by_time: dict[datetime, set[int]] = defaultdict(set)
    for path in paths:
        if path.instant is None or not re.fullmatch(r"[0-9]{2}", path.values[place]):
            return None
        by_time[path.instant].add(int(path.values[place]))
    if is_day:
        are_hours = max(by_time.values(), key=len) == set(range(24))
        return (place, "hour") if are_hours and max(map(max, by_time.values())) < 24 else None
    return (place, "day") if _are_days(by_time) else None


def may_be_days(paths: Sequence[ParsedPath]) -> bool:
    """Whether a number beside the year may be the month, week or day, and not that of a part."""
    pieces = paths[0].pieces
    return any(
        len(texts) > 1
        and all(re.fullmatch("[0-9]{1,3}", text) and int(text) <= 366 for text in texts)
        for place, piece in enumerate(pieces)
        if piece.kind is Kind.ANY and not is_numbered(pieces, place)
        for texts in [{path.values[place] for path in paths}]
    )


def is_numbered(pieces: Sequence[Piece], place: int) -> bool:
    """Whether the word in front of a number is that of a part."""
    before = pieces[place - 1].text.rpartition("/")[2] if place else ""
    words = re.findall(r"[A-Za-z]+", before)
    return bool(words) and words[-1].lower() in _NUMBERED


def _are_days(by_month: Mapping[datetime, set[int]]) -> bool:
    lengths = {month: monthrange(month.year, month.month)[1] for month in by_month}
    if any(min(days) < 1 or max(days) > lengths[month] for month, days in by_month.items()):
        return False
    if any(len(days) == lengths[month] for month, days in by_month.items()):
        return True
    sets = list(by_month.values())
    is_repeated = len(sets) > 1 and all(days == sets[0] for days in sets)
    has_gaps = any(len(days) < max(days) for days in sets)
    return has_gaps and not is_repeated and max(map(len, sets)) >= FEWEST_FILES


def guess_of_names(
    pieces: Sequence[Piece], values: Sequence[Sequence[str]], times: Sequence[datetime | None]
) -> Guess | None:
    """The guess about what else dates in names may mean, or numbers beside them."""
    unit, place = unit_of(pieces), date_place(pieces)
    if times[0] is None:
        return None
    two = [
        (one[place], one[other])
        for other, piece in enumerate(pieces)
        if place is not None and piece.form and piece.form.unit is unit is Unit.DAY
        for one, time in zip(values, times, strict=True)
        if piece.form.instant(one[other]) != time
    ]
    if two:
        change = "write the capture of the other one as `fieldName`"
        return Guess("dates in names", f"the last, as {two[0][0]}", two[0][1:], "two days", change)
    is_time = place is not None and unit in (Unit.HOUR, Unit.SECOND)
    behind = pieces[place + 1].text if place is not None and is_time else ""
    if offset := re.match("[+-](?!00)[0-9]{2}[-:_]?[0-9]{2}(?![0-9])", behind):
        change = "set `defaultTimezone` in sources.yaml, and begin the interval accordingly"
        why = "names have an offset"
        return Guess("times in names", "those of UTC", (f"of {offset[0]}",), why, change)
    places = [n for n, piece in enumerate(pieces) if piece.kind is Kind.ANY]
    if not places or any(is_numbered(pieces, n) for n in places):
        return None
    by_time: dict[datetime | None, set[str]] = defaultdict(set)
    for time, one in zip(times, values, strict=True):
        by_time[time].add(re.sub("[-_. ]", "", "".join(one[n] for n in places)))
    numbers, form = list(by_time.values()), _NUMBERS_WITHIN.get(unit, "x")
    longest = max(map(len, numbers))
    if longest < 2 or not all(re.fullmatch(form, text) for some in numbers for text in some):
        return None
    if unit is not Unit.DAY:
        is_open, finer = longest >= FEWEST_FILES, "days"
        why = f"no number is too large for a day of the {unit}"
    else:
        are_counted, has_minutes = _are_counted(numbers), len(min(numbers[0])) > 2
        is_clear = are_counted and (len(numbers) > 1 or has_minutes)
        is_open, finer = not is_clear and (longest >= FEWEST_FILES or not are_counted), "hours"
        why = "they may be times of the day, of which no day has every hour"
    change = "write days as 2024-05-31, hours as 2024-05-31T14, or parts as `part-14`"
    what = f"numbers beside the {unit} in names"
    return Guess(what, "numbers of parts", (finer,), why, change) if is_open else None


_NUMBERS_WITHIN = {
    Unit.DAY: "([01][0-9]|2[0-3])([0-5][0-9]){0,2}", Unit.WEEK: "[1-7]",
    Unit.MONTH: "0?[1-9]|[12][0-9]|3[01]", Unit.QUARTER: "0?[1-9]|[1-8][0-9]|9[012]",
}  # fmt: skip
"""Numbers that may be hours or times of a day, or days of a longer period."""


def _are_counted(numbers: Iterable[set[str]]) -> bool:
    """Whether the numbers of each period are counted from 0 or 1."""
    found = [set(map(int, some)) for some in numbers]
    return all(min(some) < 2 and max(some) - min(some) < len(some) for some in found)


# Paths in pieces: text, dates, values of folders, and parts that vary within one table.

DATA_ENDINGS = {ending: each.name for each in known_formats() for ending in each.endings}
"""Formats by the ending of a name; `txt` is looked into."""
COMPRESSED = frozenset({"gz", "bz2", "zst", "deflate", "snappy", "lz4"})
"""Endings behind that of a format, by which Spark knows how text is compressed."""
UNIQUE = re.compile(
    r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|(?<![A-Za-z0-9])[0-9a-f]{16,}(?![A-Za-z0-9])",
    re.IGNORECASE,
)
_PART = re.compile(r"part[-_](?:[rm]-)?[0-9a-f-]*[0-9]")
"""Names of Spark and Hadoop for parts of a table; `part_categories` is a table of its own."""
PART_WORDS = ("part", "chunk", "shard")
"""Words of which a number needs no separator to be that of a part: `orders_part0001`."""
_BEFORE = "|".join(f"(?<=[^A-Za-z]{word})|(?<=^{word})" for word in PART_WORDS)
_NUMBER = re.compile(rf"(?:(?<![A-Za-z0-9])|{_BEFORE})[0-9]{{1,6}}(?![A-Za-z0-9])")
_HIVE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.+)")
_PARTS_OF_DATE = {
    "year": frozenset({"year", "y", "yyyy", "jahr", "yr"}),
    "month": frozenset({"month", "m", "mm", "monat", "mon"}),
    "quarter": frozenset({"quarter", "q", "qtr", "quartal", "trimestre"}),
    "week": frozenset({"week", "w", "ww", "kw", "woche", "wk", "isoweek", "iso_week"}),
    "day": frozenset({"day", "d", "dd", "tag"}),
    "hour": frozenset({"hour", "h", "hh", "stunde", "hr"}),
}
_NAMED = parse_pattern("yyyy MMM")


class Kind(StrEnum):
    """The kind of a piece of a path."""

    TEXT = "text"
    DATE = "date"
    """A date, of the form of the piece."""
    PART_OF_DATE = "part"
    """The year, quarter, month, day or hour of a date that takes several folders."""
    VALUE = "value"
    """The value of a folder such as `country=DE`."""
    ANY = "any"
    """A number of a part, or a unique text."""
    WEEKDAY = "weekday"
    """The day of the week of the date beside it, `Mon`."""
    PACKED = "packed"
    """The ending by which text is compressed, or nothing."""


@dataclass(frozen=True)
class Piece:
    """A piece of a path that all files of a source have in common, but for its value."""

    kind: Kind
    text: str
    """Of TEXT the text, of PART_OF_DATE year, quarter, month, week, day or hour; of others the
    name of the capture, which may be empty."""
    form: DateForm | None = None
    orders: Orders = ()
    """Of a date whose form is not decided."""


@dataclass(frozen=True)
class ParsedPath:
    """A path in pieces."""

    pieces: tuple[Piece, ...]
    values: tuple[str, ...]

    @property
    def instant(self) -> datetime | None:
        """The time that its dates mean together; None without any."""
        parts = {
            piece.text: int(value) if value.isdecimal() else
            _NAMED.start(f"1970 {value}").month
            for piece, value in zip(self.pieces, self.values, strict=True)
            if piece.kind is Kind.PART_OF_DATE
        }  # fmt: skip
        place = date_place(self.pieces)
        form = None if place is None else self.pieces[place].form
        try:
            if place is not None and form is not None:
                exact = form.instant(self.values[place])
                if exact and form.unit is Unit.MONTH:
                    exact = exact.replace(day=parts.get("day", 1))
                is_day = exact and form.unit is Unit.DAY
                return exact.replace(hour=parts.get("hour", 0)) if exact and is_day else exact
            if "year" not in parts:
                return None
            if "week" in parts:
                return datetime.fromisocalendar(parts["year"], parts["week"], 1).replace(tzinfo=UTC)
            month = parts.get("month", 3 * parts.get("quarter", 1) - 2)
            return datetime(
                parts["year"], month, parts.get("day", 1), parts.get("hour", 0), tzinfo=UTC
            )
        except ValueError:
            return None


_WITHIN = {Unit.MONTH: "day", Unit.DAY: "hour"}
"""The part of a date that a number in a name may add to a whole date of a unit."""


def date_place(pieces: Sequence[Piece]) -> int | None:
    """The place of the whole date: the last of the finest unit; None without any.

    None as well where parts of a date make a finer one: `2026/02/03/budget_2026.csv`.
    """
    finest = list(Unit)
    units = [(-finest.index(piece.form.unit), place)
             for place, piece in enumerate(pieces) if piece.form is not None]  # fmt: skip
    parts = {piece.text for piece in pieces if piece.kind is Kind.PART_OF_DATE}
    fineness, place = max(units, default=(0, None))
    has_finer = "year" in parts and any(finest.index(Unit(part)) < -fineness for part in parts)
    return None if has_finer else place


def unit_of(pieces: Sequence[Piece]) -> Unit:
    """Precision of the dates of paths; a day without any."""
    place = date_place(pieces)
    form = None if place is None else pieces[place].form
    parts = [piece.text for piece in pieces if piece.kind is Kind.PART_OF_DATE]
    if form is not None:
        parts = [form.unit, *(part for part in parts if part == _WITHIN.get(form.unit))]
    return min(map(Unit, parts), key=list(Unit).index, default=Unit.DAY)


def format_of(file: FoundFile) -> str | None:
    """The format by the ending of a name; of another one on a disk by the first bytes."""
    endings = file.key.rpartition("/")[2].lower().split(".")[1:]
    while endings and endings[-1] in COMPRESSED:
        endings.pop()
    found = DATA_ENDINGS.get(endings[-1]) if endings else None
    if found or not file.size or not file.uri.startswith("file:"):
        return found
    with suppress(StorageError):
        head = file.place.store.get_range(file.key, 0, max(map(len, _MAGIC)))
        found = next((name for magic, name in _MAGIC.items() if head.startswith(magic)), None)
    return found


_MAGIC = {b"SQLite format 3\0": "sqlite", b"PAR1": "parquet", b"ORC": "orc", b"Obj\x01": "avro"}
"""Formats by the first bytes of a file."""


def parse_path(key: str, no_dates: Mapping[Orders, Kind] = MappingProxyType({})) -> ParsedPath:
    """A path in pieces.

    Dates are not decided, since all files of a source decide together. Of `no_dates` some turned
    out to be none; they are numbers (`ANY`), or text in which other dates and numbers may be.
    """
    *folders, name = key.split("/")
    pieces: list[Piece] = []
    values: list[str] = []

    def add(piece: Piece, value: str) -> None:
        if piece.kind is Kind.TEXT and pieces and pieces[-1].kind is Kind.TEXT:
            pieces[-1] = Piece(Kind.TEXT, pieces[-1].text + value)
            values[-1] += value
        elif value:
            pieces.append(piece)
            values.append(value)

    date = _folders_of_date(folders, no_dates)
    for index, folder in enumerate(folders):
        hive = _HIVE.fullmatch(folder)
        if date is not None and date.start <= index < date.end:
            if index > date.start:
                continue
            found = [_keyed(each) for each in folders[date.start : date.end]]
            keys, texts = ("/".join(each) for each in zip(*found, strict=True))
            add(Piece(Kind.DATE, keys, orders=date.orders), texts)
        elif _is_hour(folders, index, date):
            key, text = _keyed(folder)
            add(Piece(Kind.TEXT, ""), key)
            add(Piece(Kind.PART_OF_DATE, "hour"), text)
        elif hive is not None:
            add(Piece(Kind.TEXT, ""), f"{hive[1]}=")
            orders = orders_of(hive[2])
            is_date = bool(orders) and orders not in no_dates
            add(Piece(Kind.DATE, hive[1], orders=orders) if is_date else
                Piece(Kind.VALUE, hive[1]), hive[2])  # fmt: skip
        else:
            _add_text(folder, add, no_dates, is_name=False)
        add(Piece(Kind.TEXT, ""), "/")
    stem, point, ending = name.partition(".")
    known = (*DATA_ENDINGS, *COMPRESSED)  # unlike the `2026` of `.2026.csv`, the `c000` of Spark's
    while "." in ending and ending.partition(".")[0].lower() not in known:
        more, _, ending = ending.partition(".")
        stem = f"{stem}.{more}"
    _add_text(stem, add, no_dates, is_name=True)
    plain, packed = ending, ""
    while plain.rpartition(".")[2].lower() in COMPRESSED:
        plain, _, last = plain.rpartition(".")
        packed = f".{last}{packed}"
    add(Piece(Kind.TEXT, ""), point + plain)
    pieces.append(Piece(Kind.PACKED, ""))
    values.append(packed)
    pieces = [Piece(p.kind, v) if p.kind is Kind.TEXT else p
              for p, v in zip(pieces, values, strict=True)]  # fmt: skip
    return ParsedPath(tuple(pieces), tuple(values))


def _keyed(folder: str) -> tuple[str, str]:
    """A folder such as `day=3` as key and value, any other one without key."""
    key, equals, value = folder.rpartition("=") if _HIVE.fullmatch(folder) else ("", "", folder)
    return key + equals, value


def _folders_of_date(folders: Sequence[str], no_dates: Container[Orders]) -> FoundDate | None:
    """Return the first and the last folder of a date such as `2026/02/03`, longer ones first."""
    keyed = [_keyed(folder) for folder in folders]
    for number in (3, 2):
        for first in range(len(folders) - number + 1):
            keys, texts = zip(*keyed[first : first + number], strict=True)
            found = (
                tuple(one for one in group if _are_parts(one[0].name.split("/"), keys))
                for group in orders_of("/".join(texts))
            )
            orders = tuple(filter(None, found))
            if orders and orders not in no_dates:
                return FoundDate(first, first + number, orders)
    return None


def _are_parts(units: Sequence[str], keys: Sequence[str]) -> bool:
    """Whether folders are these units of a date, by their keys where they have some."""
    parts = [_PARTS_BY_UNIT.get(unit.rpartition("'")[2]) for unit in units]
    return len(units) == len(keys) and all(
        (not key and _TWO.fullmatch(unit)) or (part is not None and (
            key[:-1].lower() in _PARTS_OF_DATE[part]
            if key else part not in ("week", "quarter") or "'" in unit
        ))
        for part, unit, key in zip(parts, units, keys, strict=True)
    )  # fmt: skip


def date_parts(piece: Piece, form: DateForm, text: str) -> list[tuple[Piece, str]]:
    """The pieces of a date that takes several folders, with their values."""
    found: list[tuple[Piece, str]] = []
    parts = (each.split("/") for each in (piece.text, form.name, text))
    for key, unit, value in zip(*parts, strict=True):
        letters, plain = unit.split("'")[1:] if "'" in unit else ("", unit)
        before = f"{'/' if found else ''}{key}{letters}"
        found += [(Piece(Kind.TEXT, before), before)] if before else []
        if two := _TWO.fullmatch(plain):
            first, second = value.split(two[2])
            found.append((Piece(Kind.PART_OF_DATE, _PARTS_BY_UNIT[two[1]]), first))
            found.append((Piece(Kind.TEXT, two[2]), two[2]))
            plain, value = two[3], second
        part = Piece(Kind.PART_OF_DATE, _PARTS_BY_UNIT[plain])
        found.append((part, value.removeprefix(letters)))
    return found


_TWO = re.compile("(MM?|dd?)([-_. ])(MM?|dd?)")
"""Month and day in one folder below the year."""
_PARTS_BY_UNIT = {
    "yyyy": "year", "YYYY": "year", "MM": "month", "M": "month", "MMM": "month", "dd": "day",
    "d": "day", "ww": "week", "w": "week", "Q": "quarter",
}  # fmt: skip


def _is_hour(folders: Sequence[str], index: int, date: FoundDate | None) -> bool:
    """Whether a folder is the hour of the day in front of it: `dt=2026-02-03/hour=05`."""
    key, text = _keyed(folders[index])
    before = date.orders if date is not None and date.end == index else orders_of(
        _keyed(folders[index - 1])[1] if index and key else "")  # fmt: skip
    forms = [form for group in before for one in group for form in one]
    is_named = key[:-1].lower() in _PARTS_OF_DATE["hour"] if key else date is not None
    is_day = all(form.unit is Unit.DAY and (date or not form.has_names) for form in forms)
    return (
        bool(forms) and is_day and is_named and re.fullmatch("[01]?[0-9]|2[0-3]", text) is not None
    )


def _add_text(text: str, add: _Add, no_dates: Mapping[Orders, Kind], *, is_name: bool) -> None:
    """Text with the dates in it, and of a file's name with numbers of parts.

    Digits of a UUID or a hash may look like a year or a day; they are none.
    """
    position = 0
    unique = [match.span() for match in UNIQUE.finditer(text)]
    found = dates_in(text, [each for each, kind in no_dates.items() if kind is Kind.TEXT])
    are_years = [date.orders[0][0][0].unit is Unit.YEAR for date in found]
    for date, is_year in zip(found, are_years, strict=True):
        if any(start < date.end and date.start < end for start, end in unique):
            continue
        is_whole = date.end - date.start == len(text)
        if is_year and not (is_whole or (is_name and all(are_years))):
            continue  # 2030 of 20240501_2030 is a time, if it is not the number of a part
        _add_between(text[position : date.start], add, is_name, found, no_dates)
        is_number = date.orders in no_dates
        add(Piece(Kind.ANY, "") if is_number else Piece(Kind.DATE, "", orders=date.orders),
            text[date.start : date.end])  # fmt: skip
        position = date.end
    _add_between(text[position:], add, is_name, found, no_dates)


def _add_between(
    text: str, add: _Add, is_name: bool, dates: Sequence[FoundDate],
    no_dates: Container[Orders],
) -> None:  # fmt: skip
    if any(d.orders[0][0][0].unit is Unit.DAY for d in dates) and WEEKDAYS not in no_dates:
        for match in _WEEKDAY.finditer(text):
            _add_between(text[: match.start()], add, is_name, (), no_dates)
            add(Piece(Kind.TEXT, ""), "")
            add(Piece(Kind.WEEKDAY, ""), match[0])
            _add_between(text[match.end() :], add, is_name, (), no_dates)
            return
    if is_name and _PART.match(text):
        add(Piece(Kind.TEXT, ""), text[:5])
        add(Piece(Kind.ANY, ""), text[5:])
        return
    position = 0
    for match in (UNIQUE if not is_name else _EITHER).finditer(text):
        add(Piece(Kind.TEXT, ""), text[position : match.start()])
        add(Piece(Kind.ANY, ""), match[0])
        position = match.end()
    add(Piece(Kind.TEXT, ""), text[position:])


WEEKDAYS: Orders = ()
"""Stands for words such as `Mon` among what turned out to be no date."""
_WEEKDAY = re.compile(
    r"(?<![^\W_])(?:mon(?:day|tag)?|tue(?:s|sday)?|wed(?:nesday)?|thu(?:rs?|rsday)?|fri(?:day)?"
    r"|sat(?:urday)?|sun(?:day)?|(?:diens|donners|frei|sams|sonn)tag|mittwoch|mo|di|mi|do|fr|sa|so)"
    r"(?![^\W_])", re.IGNORECASE,
)  # fmt: skip
_BEGINNINGS = (("mo",), ("tu", "di"), ("we", "mi"), ("th", "do"), ("fr",), ("sa",), ("su", "so"))


def fit_weekdays(paths: Sequence[ParsedPath], forms: dict[int, tuple[DateForm, ...]]) -> bool:
    """Keep the forms of dates that have the days of the week beside them; whether there are some.

    A word that is the same everywhere is none of these.
    """
    for place, piece in enumerate(paths[0].pieces):
        texts = {path.values[place].lower() for path in paths}
        if piece.kind is Kind.WEEKDAY and len(texts) > 1:
            for index, some in forms.items():
                days = {(path.values[index], path.values[place][:2].lower()) for path in paths}
                forms[index] = tuple(f for f in some if all(
                    (time := f.instant(text)) and name in _BEGINNINGS[time.weekday()]
                    for text, name in days))  # fmt: skip
    return all(forms.values())


_EITHER = re.compile(f"{UNIQUE.pattern}|{_NUMBER.pattern}", re.IGNORECASE)


class _Add(Protocol):
    """`parse_path.add`: appends a piece with its value."""

    def __call__(self, piece: Piece, value: str, /) -> None:
        """Append it."""
