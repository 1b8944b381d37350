"""`format: xlsx`: a sheet of a workbook of Excel, by the XML that it is made of.

The parts that have values are read as a stream, so that what a sheet claims takes no memory
(decision 0062). Formulas have the value that they had when the workbook was saved.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property, lru_cache
from itertools import islice
from xml.parsers import expat

import pyarrow as pa

from snaploom.files.measured import FileTable, MeasuredTable, Row, TableMissing, Value, names_of

_OLD = b"\xd0\xcf\x11\xe0"
"""Beginning of the workbooks of older versions, and of those with a password."""
_LARGEST_PART, _LARGEST_SHEET = 256 << 20, 4 << 30
"""Bytes of XML that are unpacked: of what is kept in memory, and of a sheet, which is not."""
_LONGEST_TEXT = 1 << 20
"""Characters of a cell; Excel has at most 32,767."""
_MOST_COLUMNS = 16_384
_READ = 1 << 18
_HEAD = 100
"""Rows by which a header is recognised."""
_CELL = re.compile(r"\$?([A-Z]{1,3})\$?([0-9]{1,7})")
_NUMBER = re.compile(r"-?(?=[0-9.])[0-9]*(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,3})?")
_ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")
"""A control character, which XML cannot have."""

# Formats of numbers by which these are dates; the rest of Excel's own numbers are none.

_DAYS, _TIMES, _BOTH = "y", "h", "yh"
_OWN_FORMATS: Mapping[int, str] = {
    **dict.fromkeys((*range(14, 18), *range(27, 32), 36, *range(50, 55), 57, 58), _DAYS),
    **dict.fromkeys((*range(18, 22), *range(32, 36), 45, 46, 47, 55, 56), _TIMES),
    22: _BOTH,
}
_NO_FORMAT = re.compile(r'"[^"]*"|\\.|[_*].|\[(?![hms]+\])[^\[\]]*\]', re.IGNORECASE | re.DOTALL)
_MILLISECONDS_A_DAY = 86_400_000
_LAST_DAY = 2_958_466
"""Days from the beginning of Excel's calendar to the year 10000."""
_LEAP_DAY = 60
"""The 29th of February 1900, which Excel has and no calendar."""


class CellError(ValueError):
    """An error such as `#N/A` in a cell, where a value should be.

    `nulls` is the option by which it is none.
    """

    def __init__(self, cell: str, text: str, nulls: str) -> None:
        super().__init__(
            f'cell {cell} has the error {text}: correct it, as by IFERROR(.., ""), or set the '
            f'option nullValue to "{nulls}"'
        )
        self.nulls = nulls


def open_xlsx(
    file: pa.NativeFile,
    *,
    sheet: str = "",
    header: str = "true",
    null_value: str = "",
    schema: pa.Schema | None = None,
    most: int = 0,
) -> pa.RecordBatchReader:
    """Open a sheet, which must be named where several are visible.

    Its columns are those of the first row that is not empty, by their letters without a header.

    Raises:
        ValueError: it is no workbook, has no such sheet, or a cell does not fit.
    """
    book = _Workbook(file)
    named = [one for one in book.sheets if one.name.casefold() == sheet.casefold()]
    wanted = named if sheet else [one for one in book.sheets if one.is_visible]
    if len(wanted) != 1:
        raise TableMissing("sheet", sheet, [one.name for one in book.sheets])
    rows = _Rows(book, wanted[0], header.lower() == "true", null_value)
    letters = dict(zip(rows.names, map(_letters, range(len(rows.names))), strict=True))
    return MeasuredTable(
        rows.names, rows.values, lambda number, column: f"cell {letters[column]}{number} ({column})"
    ).opened(schema, most)


def tables_of(file: pa.NativeFile) -> tuple[FileTable, ...]:
    """The sheets of a workbook, hidden ones included.

    Raises:
        ValueError: it is no workbook.
    """
    book = _Workbook(file)
    are_several = sum(one.is_visible for one in book.sheets) > 1
    return tuple(
        FileTable(
            one.name,
            {"sheet": one.name} if are_several or not one.is_visible else {},
            head=_head(book, one),
            why_not="" if one.is_visible else "hidden: show it in Excel, or declare it by hand",
        )
        for one in book.sheets
    )


def _head(book: _Workbook, sheet: _Sheet, null: str = "") -> tuple[tuple[str, ...], ...]:
    """The first rows; none where a cell of them is at fault, which reading the sheet names."""
    try:
        rows = [cells for _, cells in islice(_Rows(book, sheet, True, null).cells([]), _HEAD)]
    except CellError as error:
        return _head(book, sheet, error.nulls)
    except ValueError:
        return ()
    width = max((max(cells) + 1 for cells in rows), default=0)
    return tuple(
        tuple("" if (value := cells.get(place)) is None else str(value) for place in range(width))
        for cells in rows
    )


@dataclass(frozen=True)
class _Sheet:
    name: str
    part: str
    """Name of its XML in the archive."""
    is_visible: bool


class _Workbook:
    """A workbook, of which sheets can be read again and again."""

    def __init__(self, file: pa.NativeFile) -> None:
        head = file.read(4)
        file.seek(0)
        if head == _OLD:
            raise ValueError("it has a password, or is of Excel 2003: save it as .xlsx without one")
        try:
            self._archive = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError) as error:
            raise ValueError(f"it is no workbook, or was cut short: {error}") from None
        self._folder = ""
        self._is_from_1904 = False
        self.sheets = tuple(self._sheets())

    def parse(
        self,
        part: str,
        begin: Callable[[str, Mapping[str, str]], None],
        end: Callable[[str], None] = lambda _: None,
        text: Callable[[str], None] | None = None,
        largest: int = _LARGEST_PART,
    ) -> Iterator[None]:
        """Parse a part, some bytes at each step; `_local` has names without their namespace."""
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler = begin
        parser.EndElementHandler = end
        parser.CharacterDataHandler = text
        parser.StartDoctypeDeclHandler = _refuse_doctype
        try:
            about = self._archive.getinfo(part)
            if about.file_size > largest:
                size = f"{about.file_size:,} bytes, and at most {largest:,} are unpacked"
                raise ValueError(f"{part} of it has {size}")
            with self._archive.open(about) as opened:
                while content := opened.read(_READ):
                    parser.Parse(content)
                    yield
                parser.Parse(b"", True)
                yield
        except KeyError:
            raise ValueError(f"it is no workbook: {part} is missing") from None
        except (expat.ExpatError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError,
                EOFError) as error:  # fmt: skip
            raise ValueError(f"{part} of it cannot be read: {error}") from None

    def _sheets(self) -> Iterator[_Sheet]:
        places = self._relations("")
        book = next((target for kind, target in places.values() if kind == "officeDocument"), "")
        self._folder = posixpath.dirname(book)
        targets = self._relations(book)
        found: list[tuple[str, str, bool]] = []

        def begin(name: str, given: Mapping[str, str]) -> None:
            name = _local(name)
            if name == "sheet":
                number = next((v for k, v in given.items() if k.endswith(" id")), "")
                found.append((given.get("name", ""), number, "state" not in given
                              or given["state"] == "visible"))  # fmt: skip
            elif name == "workbookPr":
                self._is_from_1904 = given.get("date1904", "0") in ("1", "true")

        for _ in self.parse(book, begin):
            pass
        self._targets = dict(targets.values())
        for name, number, is_visible in found:
            kind, target = targets.get(number, ("", ""))
            if kind == "worksheet":  # others have charts, or macros
                yield _Sheet(name, target, is_visible)

    def _relations(self, part: str) -> dict[str, tuple[str, str]]:
        """Kind and part of what another part refers to, by its number."""
        folder, name = posixpath.split(part)
        found: dict[str, tuple[str, str]] = {}

        def begin(element: str, given: Mapping[str, str]) -> None:
            if _local(element) == "Relationship" and given.get("TargetMode") != "External":
                target = posixpath.normpath(posixpath.join("/", folder, given.get("Target", "")))
                kind = given.get("Type", "").rpartition("/")[2]
                found[given.get("Id", "")] = kind, target.lstrip("/")

        for _ in self.parse(posixpath.join(folder, "_rels", f"{name}.rels"), begin):
            pass
        return found

    @cached_property
    def texts(self) -> list[str]:
        """The texts that cells refer to by number."""
        texts: list[str] = []
        parts: list[str] = []
        inside = [False, False]  # a run of a text, and notes on its pronunciation

        def begin(name: str, _: Mapping[str, str]) -> None:
            name = _local(name)
            if name == "si":
                parts.clear()
            elif name in ("t", "rPh"):
                inside[name == "rPh"] = True

        def end(name: str) -> None:
            name = _local(name)
            if name == "si":
                texts.append("".join(parts))
            elif name in ("t", "rPh"):
                inside[name == "rPh"] = False

        def text(value: str) -> None:
            if inside == [True, False]:
                parts.append(value)

        if "sharedStrings" in self._targets:
            for _ in self.parse(self._targets["sharedStrings"], begin, end, text):
                pass
        return texts

    @cached_property
    def formats(self) -> list[str]:
        """Of each style of cells, whether its numbers are days, times, both or neither."""
        own = dict(_OWN_FORMATS)
        found: list[str] = []
        inside: list[str] = []

        def begin(name: str, given: Mapping[str, str]) -> None:
            name = _local(name)
            if name == "numFmt":
                own[int(given.get("numFmtId", "0"))] = _meaning(given.get("formatCode", ""))
            elif name == "cellXfs":
                inside.append(name)
            elif name == "xf" and inside:
                found.append(own.get(int(given.get("numFmtId", "0")), ""))

        def end(name: str) -> None:
            if _local(name) == "cellXfs":
                inside.clear()

        if "styles" in self._targets:
            for _ in self.parse(self._targets["styles"], begin, end):
                pass
        return found

    def dated(self, number: float, meaning: str) -> Value:
        """The date of a number, or the text of a time of day or a duration.

        Raises:
            ValueError: Excel has no date for it.
        """
        milliseconds = round(number * _MILLISECONDS_A_DAY)
        if meaning == _TIMES:
            seconds, rest = divmod(abs(milliseconds), 1000)
            shown = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
            return "-" * (milliseconds < 0) + shown + (f".{rest:03}" if rest else "")
        days, rest = divmod(milliseconds, _MILLISECONDS_A_DAY)
        is_leap_day = days == _LEAP_DAY and not self._is_from_1904
        if not 0 <= number < _LAST_DAY or is_leap_day:
            raise ValueError("is no day of a calendar")
        first = datetime(1904, 1, 1) if self._is_from_1904 else datetime(1899, 12, 30)
        if not self._is_from_1904 and days < _LEAP_DAY:
            days += 1
        found = first + timedelta(days=days, milliseconds=rest)
        return found.date() if meaning == _DAYS and not rest else found


@lru_cache(256)
def _local(name: str) -> str:
    return name.rpartition(" ")[2]


def _refuse_doctype(*_: object) -> None:
    raise ValueError("its XML declares entities, which no workbook has")


def _meaning(code: str) -> str:
    letters = _NO_FORMAT.sub("", code.partition(";")[0]).lower()
    if "general" in letters:
        return ""
    is_time = bool(re.search("[hs]", letters))
    is_day = bool(re.search("[yd]", letters)) or ("m" in letters and not is_time)
    return _DAYS * is_day + _TIMES * is_time


class _Rows:
    """The rows of a sheet, below its header."""

    def __init__(self, book: _Workbook, sheet: _Sheet, has_header: bool, null: str) -> None:
        self._book = book
        self._part = sheet.part
        self._null = null
        self._first, cells = next(self.cells([]), (0, {}))
        self._has_header = has_header
        if has_header:
            width = max(cells, default=-1) + 1
            self.names = names_of(["" if (v := cells.get(n)) is None else str(v).strip()
                                   for n in range(width)])  # fmt: skip
        else:
            width = max((max(cells) + 1 for _, cells in self.cells([])), default=0)
            self.names = tuple(f"column_{place + 1}" for place in range(width))

    def values(self) -> Iterator[Row]:
        """All rows that are not empty.

        Raises:
            ValueError: a cell is beside the columns, or one of several that are merged.
        """
        merged: list[str] = []
        width, last = len(self.names), 0
        for last, cells in self.cells(merged):
            if last == self._first and self._has_header:
                continue
            if (place := max(cells)) >= width:
                raise ValueError(
                    f"cell {_letters(place)}{last} is beside the header, which ends in "
                    f"{_letters(width - 1)}{self._first}: write a name above it, or remove what is "
                    "above the header"
                )
            yield last, tuple(cells.get(place) for place in range(width))
        for area in merged:
            rows = [int(row) for _, row in _CELL.findall(area)]
            if rows and rows[0] <= last and rows[-1] >= self._first:
                raise ValueError(
                    f"the cells {area} are merged, and only the first has a value: unmerge them, "
                    "and fill the others"
                )

    def cells(self, merged: list[str]) -> Iterator[tuple[int, dict[int, Value]]]:
        """The number of each row that is not empty, and its cells that are not.

        At the end `merged` has the areas of merged cells.
        """
        rows: list[tuple[int, dict[int, Value]]] = []
        cells: dict[int, Value] = {}
        parts: list[str] = []
        number, place, kind, style, is_read = 0, -1, "n", 0, False

        def begin(name: str, given: Mapping[str, str]) -> None:
            nonlocal cells, number, place, kind, style, is_read
            name = _local(name)
            if name == "c":
                ref = _CELL.fullmatch(given["r"]) if "r" in given else None
                after, place = place, place + 1 if ref is None else _place(ref[1])
                if not after < place < _MOST_COLUMNS:
                    raise ValueError(f"its cells are out of order in row {number}")
                kind, style = given.get("t", "n"), int(given.get("s", "0"))
                parts.clear()
            elif name in ("v", "t"):
                is_read = True
            elif name == "rPh":
                is_read = False
            elif name == "row":
                after, number = number, int(given.get("r", number + 1))
                if number <= after:
                    raise ValueError(f"its rows are out of order behind row {after}")
                cells, place = {}, -1
            elif name == "mergeCell":
                merged.append(given.get("ref", ""))

        def end(name: str) -> None:
            nonlocal is_read
            name = _local(name)
            if name in ("v", "t"):
                is_read = False
            elif name == "c" and parts:
                value = self._value("".join(parts), kind, style, number, place)
                if value is not None:
                    cells[place] = value
            elif name == "row" and cells:
                rows.append((number, cells))

        def text(value: str) -> None:
            if is_read:
                parts.append(value)
                if len(value) > _LONGEST_TEXT or sum(map(len, parts)) > _LONGEST_TEXT:
                    shown = f"cell {_letters(place)}{number}"
                    raise ValueError(f"{shown} has more than {_LONGEST_TEXT:,} characters")

        for _ in self._book.parse(self._part, begin, end, text, _LARGEST_SHEET):
            yield from rows
            rows.clear()

    def _value(self, text: str, kind: str, style: int, number: int, place: int) -> Value:
        try:
            if kind == "s":
                text = self._book.texts[int(text)]
            if kind in ("s", "str", "inlineStr"):
                text = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
            if text in ("", self._null) or (kind == "e" and text in self._null.split()):
                return None
            if kind == "b":
                return text == "1"
            if kind == "d":
                found = datetime.fromisoformat(text)
                return found if "T" in text else found.date()
            if kind == "n":
                return self._number(text, style)
        except (ValueError, IndexError) as error:
            raise ValueError(
                f"cell {_letters(place)}{number} cannot be read: {text[:60]} {error}"
            ) from None
        if kind == "e":
            nulls = " ".join([*(e for e in self._null.split() if e[0] == "#"), text])
            raise CellError(f"{_letters(place)}{number}", text, nulls)
        return text

    def _number(self, text: str, style: int) -> Value:
        if _NUMBER.fullmatch(text) is None:
            raise ValueError("is no number")
        number = int(text) if text.lstrip("-").isdigit() and len(text) < 40 else float(text)
        meaning = self._book.formats[style] if style < len(self._book.formats) else ""
        return self._book.dated(number, meaning) if meaning else number


def _letters(place: int) -> str:
    letters = ""
    while place >= 0:
        place, rest = divmod(place, 26)
        letters, place = chr(65 + rest) + letters, place - 1
    return letters


def _place(letters: str) -> int:
    place = 0
    for letter in letters:
        place = place * 26 + ord(letter) - 64
    return place - 1
