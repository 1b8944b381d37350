"""The format of text by its first bytes: character set, separator, header; lines or one document.

Nothing here reads files: bytes come in, a `TextFormat` goes out.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

SEPARATORS = (",", ";", "\t", "|")
MOST_COLUMNS = 2_000
"""Columns of one source, as many as a DataSource may declare."""
_LINES_LOOKED_AT = 100
_SAME_WIDTH = 0.8
"""Share of records that must have the same number of values."""
_NUMBER_OR_DATE = re.compile(r"[+-]?[0-9][0-9.,:/TZ -]*")
_BOMS = ((b"\xef\xbb\xbf", "UTF-8"), (b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"))


@dataclass(frozen=True)
class CsvFormat:
    """How CSV is written."""

    encoding: str
    """As Spark names it."""
    separator: str
    has_header: bool
    columns: tuple[str, ...]
    """Of the header; numbered where there is none."""
    escape: str
    """The character that escapes a quote inside quotes: another quote, or a backslash."""
    made_up: bool = False
    """Whether some names are not in the header as they are, which a declared schema would have to
    repeat."""

    @property
    def options(self) -> dict[str, str]:
        """Options of Spark's reader that differ from how CSV is read by itself."""
        found = {"header": "true" if self.has_header else "false"}
        if self.separator != ",":
            found["sep"] = "\\t" if self.separator == "\t" else self.separator
        if self.encoding != "UTF-8":
            found["encoding"] = self.encoding
        if self.escape != '"':
            found["escape"] = self.escape
        return found


@dataclass(frozen=True)
class JsonFormat:
    """How JSON is written."""

    is_lines: bool
    """Whether every line is a record; otherwise a file is one record, or an array of them."""

    @property
    def options(self) -> dict[str, str]:
        """Options of Spark's reader."""
        return {} if self.is_lines else {"multiLine": "true"}


TextFormat = CsvFormat | JsonFormat


class NotRecognised(ValueError):
    """The bytes are not of the format; the text is the reason, for people."""


def refuse_width(columns: int) -> None:
    """Refuse more columns than a source has, before any of them is looked at.

    Raises:
        NotRecognised: there are more.
    """
    if columns > MOST_COLUMNS:
        raise NotRecognised(f"more than {MOST_COLUMNS:,} columns, and a source has no more")


def encoding_of(head: bytes) -> str:
    """The character set of a text, as Spark names it."""
    for mark, encoding in _BOMS:
        if head.startswith(mark):
            return encoding
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4:  # else a character that the head cut
            return "ISO-8859-1"
    return "UTF-8"


def text_of(content: bytes, encoding: str) -> str:
    """Bytes as text, without a byte-order mark; a character that is cut at the end is left out."""
    errors = "ignore" if encoding == "UTF-8" else "replace"
    return content.decode(encoding.lower(), errors).removeprefix("\ufeff")


def csv_format(head: bytes, is_whole: bool) -> CsvFormat:
    """How CSV is written, by the first bytes of a file.

    `is_whole` is whether the first bytes are all.

    Raises:
        NotRecognised: these are no records of values.
    """
    if b"\0" in head and encoding_of(head) != "UTF-16":
        raise NotRecognised("bytes that are no text")
    encoding = encoding_of(head)
    text = text_of(head, encoding)
    if not is_whole:
        text = text[: text.rfind("\n") + 1] or text
    if not text.strip():
        raise NotRecognised("no text")
    escape = "\\" if re.search(r'\\"[^,;\t|\r\n]', text) and '""' not in text else '"'
    separator, rows = _separated(text, escape)
    header, *records = rows
    refuse_width(len(header))
    has_header = _is_header(header, records)
    if has_header:
        given = [name.strip() for name in header]
        # Names as Spark makes them of a header: empty ones and those that stand twice get numbers.
        times = Counter(name.casefold() for name in given)
        names = [
            f"_c{index}" if not name else f"{name}{index}" if times[name.casefold()] > 1 else name
            for index, name in enumerate(given)
        ]
        return CsvFormat(encoding, separator, True, tuple(names), escape, names != given)
    numbered = tuple(f"column_{number + 1}" for number in range(len(header)))
    return CsvFormat(encoding, separator, False, numbered, escape)


def _separated(text: str, escape: str) -> tuple[str, list[list[str]]]:
    """The separator by which most records have the same number of values, and the records."""
    best: tuple[tuple[float, int], str, list[list[str]]] | None = None
    for separator in SEPARATORS:
        reader = csv.reader(
            io.StringIO(text, newline=""),
            delimiter=separator,
            doublequote=escape == '"',
            escapechar=None if escape == '"' else escape,
        )
        rows: list[list[str]] = []
        try:
            for row in reader:
                if row:
                    rows.append(row)
                if len(rows) == _LINES_LOOKED_AT:
                    break
        except csv.Error:
            continue
        if not rows:
            continue
        width, times = Counter(map(len, rows)).most_common(1)[0]
        score = (times / len(rows) if width > 1 else 0.0, width)
        if best is None or score > best[0]:
            best = (score, separator, rows)
    if best is None:
        raise NotRecognised("no records that a separator divides")
    (share, width), separator, rows = best
    if (share if width > 1 else sum(len(row) == 1 for row in rows) / len(rows)) < _SAME_WIDTH:
        raise NotRecognised("lines with different numbers of values")
    if width == 1:
        return ",", rows
    return separator, [row for row in rows if len(row) == width]


def _is_header(header: Sequence[str], records: Sequence[Sequence[str]]) -> bool:
    """Whether the first record has names: texts, each once, of which none is a value below it."""
    names = [name.strip() for name in header if name.strip()]
    # One may be empty, of an index in front or of a separator at the end; most stand once.
    if not names or len(names) < len(header) - 1:
        return False
    if len({name.casefold() for name in names}) <= len(names) / 2:
        return False
    if any(_NUMBER_OR_DATE.fullmatch(name) for name in names):
        return False
    if any(len(name) > 64 for name in names):
        return False
    if not records:
        return True
    columns = list(zip(*records, strict=False))
    if any(_all_numbers(column) for column in columns):
        return True
    repeated = sum(name in column for name, column in zip(header, columns, strict=False) if name)
    return repeated == 0 and all(re.match(r"[^\W\d]", name) for name in names)


def _all_numbers(values: Sequence[str]) -> bool:
    given = [value for value in values if value.strip()]
    return bool(given) and all(_NUMBER_OR_DATE.fullmatch(value.strip()) for value in given)


def json_format(head: bytes) -> JsonFormat:
    """How JSON is written, by the first bytes of a file.

    Raises:
        NotRecognised: it does not begin with an object or an array.
    """
    text = text_of(head, encoding_of(head)).lstrip()
    if text.startswith("["):
        return JsonFormat(is_lines=False)
    if not text.startswith("{"):
        raise NotRecognised("text that is no object and no array of JSON")
    first = text.split("\n", 1)[0]
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return JsonFormat(is_lines=len(first) == len(text))
    return JsonFormat(is_lines=True)
