"""The format of text by its first bytes, and the types that hold all values of its columns."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from snaploom.files.measured import names_of
from snaploom.plugins.discovery.dates import (
    BOOLEAN,
    DATE,
    DOUBLE,
    LONG,
    STRING,
    TIMESTAMP,
    UNSIGNED,
    ColumnType,
)
from snaploom.plugins.discovery.foundfiles import HEAD_BYTES, NotRecognised, refuse_width
from snaploom.plugins.discovery.names import column_words
from snaploom.plugins.discovery.scratch import Scratch, text

# The format of text by its first bytes: character set, separator, header; lines or one document.

SEPARATORS = (",", ";", "\t", "|")
NULL_TEXTS = ("", "NULL", "null", "NA", "N/A", "n/a", "#N/A", "\\N", "None", "NaN", "nan", "-")
"""Texts that exports write for a missing value."""
_LINES_LOOKED_AT = 100
csv.field_size_limit(max(csv.field_size_limit(), HEAD_BYTES))  # one value may fill the head
_FEWEST_ALIKE = 10
"""Different values that are as long as each other not by chance, as codes are."""
_KEY_NAME = re.compile("[^\\W_](?:[_ ][iI][dD]|(?<=[a-z])I[dD])$")
_NUMBER_OR_DATE = re.compile(r"[+-]?[0-9][0-9.,:/TZ -]*")
_BOMS = ((b"\xef\xbb\xbf", "UTF-8"), (b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"))


@dataclass(frozen=True)
class CsvFormat:
    """Dialect of CSV."""

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
    is_guess: bool = False
    """Whether the first record is a header by its looks only, as all columns have texts."""
    quote: str = '"'
    """Encloses values; empty where quotes are characters of them as any other."""
    line_end: str = ""
    """Behind each record, where a run does not find it out by itself."""
    has_lines: bool = False
    """Whether values go over several lines, likewise."""

    @property
    def options(self) -> dict[str, str]:
        """Options of Spark's reader that differ from how CSV is read by itself."""
        usual = {"sep": ",", "encoding": "UTF-8", "escape": '"', "quote": '"', "lineSep": ""}
        given = {
            "sep": "\\t" if self.separator == "\t" else self.separator,
            "encoding": self.encoding, "escape": self.escape, "quote": self.quote,
            "lineSep": self.line_end,
        }  # fmt: skip
        found = {name: text for name, text in given.items() if text != usual[name]}
        lines = {"multiLine": "true"} if self.has_lines else {}
        return {"header": "true" if self.has_header else "false", **found, **lines}


@dataclass(frozen=True)
class JsonFormat:
    """Form of JSON."""

    is_lines: bool
    """Whether every line is a record; otherwise a file is one record, or an array of them."""

    @property
    def options(self) -> dict[str, str]:
        """Options of Spark's reader."""
        return {} if self.is_lines else {"multiLine": "true"}


def encoding_of(head: bytes) -> str:
    """The character set of a text, as Spark names it; refuses what `other_encoding` does."""
    for mark, encoding in _BOMS:
        if head.startswith(mark):
            return encoding
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4:  # else a character that the head cut
            return other_encoding(head)
    return "UTF-8"


def other_encoding(content: bytes) -> str:
    """The character set of a text that is not UTF-8.

    Raises:
        NotRecognised: most of its characters are, but for ASCII, or Spark does not read it.
    """
    others = re.sub("[\0-\x7f]", "", content.decode("utf-8", "replace"))
    faults = others.count("\ufffd")
    if 2 * faults < len(others):
        raise NotRecognised(f"{faults:,} of its characters are not UTF-8, as others are: repair it")
    if odd := re.search(rb"[\x80-\x9f]", content):  # control characters, which no text has
        found = f"the byte 0x{odd[0].hex()}, as of {odd[0].decode('cp1252', 'replace')}"
        remedy = "convert it, as by `iconv -f windows-1252 -t UTF-8`"
        raise NotRecognised(f"{found} in windows-1252, is not ISO-8859-1: {remedy}")
    return "ISO-8859-1"


def text_of(content: bytes, encoding: str) -> str:
    """Bytes as text, without a byte-order mark; a character that is cut at the end is left out."""
    errors = "ignore" if encoding == "UTF-8" else "replace"
    return content.decode(encoding.lower(), errors).removeprefix("\ufeff")


def csv_format(head: bytes, is_whole: bool) -> CsvFormat:
    """Return the dialect of CSV, by the first bytes of a file.

    `is_whole` is whether the first bytes are all.

    Raises:
        NotRecognised: these are no records of values.
    """
    if b"\0" in head and encoding_of(head) != "UTF-16":
        raise NotRecognised("bytes that are no text")
    encoding = encoding_of(head)
    text = text_of(head, encoding)
    if not is_whole:
        text = text[: text.rfind("\n" if "\n" in text else "\r") + 1]
        if not text:
            raise NotRecognised(f"a header of more than {len(head):,} bytes")
    if not text.strip():
        raise NotRecognised("no text")
    escape = "\\" if re.search(r'\\"[^,;\t|\r\n]', text) and '""' not in text else '"'
    separator, rows = _separated(text, escape)
    header, *records = rows
    refuse_width(len(header))
    has_header, is_guess = is_header(header, records)
    if has_header:
        given = [name.strip() for name in header]
        names = names_of(given)
        return CsvFormat(encoding, separator, True, names, escape, list(names) != given, is_guess)
    return CsvFormat(encoding, separator, False, numbered_columns(len(header)), escape)


def refuse_odd_headers(heads: Mapping[str, bytes], separator: str, *, may_be_tables: bool) -> None:
    """Refuse a file whose first line has none of the names that others have.

    One that is a header as well is let through where files may be tables of their own.

    Raises:
        NotRecognised: there is one.
    """
    firsts: dict[str, tuple[str, ...]] = {}
    for file, head in heads.items():
        line = re.split(rb"[\r\n]", head, maxsplit=1)[0].decode(errors="replace").casefold()
        rows = csv.reader([line], delimiter=separator)
        firsts[file] = tuple(name.strip() for row in rows for name in row)
    times = Counter(firsts.values())
    known: set[str] = set()
    for names in sorted(times, key=lambda each: (not is_header(each, ())[0], -times[each])):
        is_other = known and known.isdisjoint(names)
        if is_other and not (may_be_tables and is_header(names, ())[0]):
            file = next(file for file in firsts if firsts[file] == names)
            raise NotRecognised(
                f"{file}, line 1 has no name of a column that other files have: write the header "
                "there, or move the file away"
            )
        known.update(names)


def numbered_columns(number: int) -> tuple[str, ...]:
    """Names for columns that have none."""
    return tuple(f"column_{place + 1}" for place in range(number))


def _separated(text: str, escape: str) -> tuple[str, list[list[str]]]:
    """The separator by which most records have the same number of values, and the records."""
    best: tuple[tuple[float, int], str, list[tuple[int, list[str]]]] | None = None
    for separator in SEPARATORS:
        reader = csv.reader(
            io.StringIO(text, newline=""),
            delimiter=separator,
            doublequote=escape == '"',
            escapechar=None if escape == '"' else escape,
        )
        rows: list[tuple[int, list[str]]] = []
        try:
            for row in reader:
                if row:
                    rows.append((reader.line_num, row))
                if len(rows) == _LINES_LOOKED_AT:
                    break
        except csv.Error:
            continue
        if not rows:
            continue
        width, times = Counter(len(row) for _, row in rows).most_common(1)[0]
        score = (times / len(rows) if width > 1 else 0.0, width)
        if best is None or score > best[0]:
            best = (score, separator, rows)
    if best is None:
        raise NotRecognised("no records that a separator divides")
    (_, width), separator, rows = best
    if rows[0][1] in (["sep=", ""], [f"sep={separator}"]):
        raise NotRecognised("line 1 names the separator for Excel, and is no header: remove it")
    for line, row in rows:
        if len(row) != width:
            raise NotRecognised(another_width(line, len(row), width))
    records = [row for _, row in rows]
    # Programs write a title with the separators of the table below it.
    filled = [sum(map(bool, map(str.strip, row))) for row in records]
    above = next((place for place, values in enumerate(filled) if values > 1), 0)
    if above:
        first, below = (is_header(records[place], records[place + 1 :]) for place in (0, above))
        if below[0] and (not first[0] or below < first):
            line = rows[above][0]
            raise NotRecognised(f"line {line:,} has the names of columns: remove what is above it")
    return separator if width > 1 else ",", records


def another_width(line: int, values: int, width: int) -> str:
    """The sentence about a line that no reader takes, since its record has another length."""
    given = "1 value" if values == 1 else f"{values:,} values"
    remedy = (
        "give every column a name there, or remove it if the header is below"
        if line == 1
        else "correct it, or remove it if it is no record"
    )
    return f"line {line:,} has {given} where other lines have {width:,}: {remedy}"


def is_header(header: Sequence[str], records: Sequence[Sequence[str]]) -> tuple[bool, bool]:
    """Whether the first record has names, and whether that is a guess.

    Names are texts, each once, of which none is a value below it.
    """
    # Excel may leave columns behind its table that have neither a name nor a value.
    ends = (n for row in (header, *records) for n, text in enumerate(row, 1) if text.strip())
    header = header[: max(ends, default=0)]
    names = [name.strip() for name in header if name.strip()]
    # One may be empty, of an index in front or of a separator at the end; most stand once.
    if (
        not names
        or len(names) < len(header) - 1
        or len({name.casefold() for name in names}) <= len(names) / 2
        or any(_NUMBER_OR_DATE.fullmatch(name) or len(name) > 64 for name in names)
    ):
        return False, False
    columns = list(zip(*records, strict=False))
    if any(_all_numbers(column) for column in columns):
        return True, False
    if any(_is_code(name, column) for name, column in zip(header, columns, strict=False)):
        return False, False
    pairs = zip(header, columns, strict=False)  # `id` may be Indonesia, or Indonesian
    repeated = any(name in column for name, column in pairs if name.casefold() not in {"", "id"})
    is_sure = any(map(_is_no_value, header, columns))
    return not repeated and all(re.match(r"[^\W\d]", name) for name in names), not is_sure


def _is_no_value(name: str, values: Sequence[str]) -> bool:
    """Whether a text is surely none of a column: called as a key, or not as long as all others."""
    given = {value.strip() for value in values} - {*NULL_TEXTS}
    if _KEY_NAME.search(name.strip()):
        return not any(map(_KEY_NAME.search, given))
    lengths = {*map(len, given)}
    return len(given) >= _FEWEST_ALIKE and len(lengths) == 1 and len(name.strip()) not in lengths


def _is_code(name: str, values: Sequence[str]) -> bool:
    """Whether a text is one of codes below it, as S001: as long, with digits where they are."""
    shapes = {re.sub("[A-Z]", "A", re.sub("[0-9]", "9", text)) for text in (name, *values)}
    return len(shapes) == 1 and len(values) > 2 and len(name) > 3 and "9" in shapes.pop()


def _all_numbers(values: Sequence[str]) -> bool:
    given = {value.strip() for value in values} - {*NULL_TEXTS}
    return bool(given) and all(map(_NUMBER_OR_DATE.fullmatch, given))


def json_format(head: bytes) -> JsonFormat:
    """Return the form of JSON, by the first bytes of a file.

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


# Types that hold all values of columns of text.

_WHOLE = "CAST(TRY_CAST({0} AS {1}) AS VARCHAR) = {0}"
FITS = {
    LONG: _WHOLE.format("{0}", "BIGINT"),
    UNSIGNED: _WHOLE.format("{0}", "HUGEINT") + " AND length({0}) <= 20",
    # A whole number without a point is one of DOUBLE only where that holds all of its digits.
    # 4E6 is a code: programs that print a capital E print a point or a sign as well.
    DOUBLE: (
        "regexp_full_match({0}, '-?((0|[1-9][0-9]*)(e[+-]?[0-9]{{1,3}}|E[+-][0-9]{{1,3}})?"
        "|(0|[1-9][0-9]*)?[.][0-9]+([eE][+-]?[0-9]{{1,3}})?)')"
        " AND length(ltrim(regexp_replace({0}, '[eE].*|[^0-9]', '', 'g'), '0')) <= 17"
        " AND isfinite(TRY_CAST({0} AS DOUBLE))"
        " AND (regexp_matches({0}, '[.eE]') OR abs(TRY_CAST({0} AS DOUBLE)) < 9007199254740992)"
        " AND (TRY_CAST({0} AS DOUBLE) <> 0 OR NOT regexp_matches({0}, '^[^eE]*[1-9]'))"
    ),
    DATE: "length({0}) = 10 AND " + _WHOLE.format("{0}", "DATE"),
    TIMESTAMP: (
        "regexp_full_match({0}, '[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ]([01][0-9]|2[0-3]):[0-5][0-9]:"
        "[0-5][0-9]([.][0-9]{{1,6}})?(Z|[+-][0-9]{{2}}:[0-9]{{2}})?')"
        " AND TRY_CAST({0} AS TIMESTAMP) IS NOT NULL"
    ),
    BOOLEAN: "{0} IN ('true', 'false', 'TRUE', 'FALSE', 'True', 'False')",
}  # fmt: skip
"""For each type, the best first, whether it holds a text."""
SQL_TYPES = {LONG: "BIGINT", UNSIGNED: "HUGEINT", DATE: "DATE", TIMESTAMP: "TIMESTAMP"}
"""Types of DuckDB as which the values of keys are compared."""
_FIRST_ROWS = 10_000
"""Rows by which most types are ruled out."""
_SHOWN = {LONG: "whole numbers", DOUBLE: "numbers", DATE: "dates", TIMESTAMP: "times"}
_FEWEST_OTHERS = 2
"""Values of a type from which one other value is an exception."""


def typed_texts(
    scratch: Scratch, table: str, names: Sequence[str]
) -> tuple[list[tuple[str, ColumnType, str]], dict[str, tuple[str, ...]], list[str]]:
    """Columns with the types that hold all of their values but texts for no value; these; notes."""
    columns, null_texts, notes = [], {}, []
    looks = _looks(scratch, table, [f"c{place}" for place in range(len(names))])
    for place, (name, look) in enumerate(zip(names, looks.values(), strict=True)):
        kind, nulls, why = _type_of(scratch, table, f"c{place}", look)
        if kind is DOUBLE and _are_codes(scratch, table, f"c{place}", name):
            kind, nulls = STRING, ()
        value, sql = f"c{place}", SQL_TYPES.get(kind)
        if nulls:
            null_texts[name] = nulls
            value = f"CASE WHEN c{place} NOT IN ({', '.join(map(text, nulls))}) THEN c{place} END"
        is_key = kind is STRING and why != _WITH_COMMAS  # numbers that measure are none
        own = f"CAST({value} AS {sql})" if sql else value if is_key else ""
        columns.append((name, kind, own))
        notes += [f"{name} is text{why}"] if why else []
        if kind is DOUBLE and scratch.all(_ARE_THOUSANDS.format(f"c{place}", table))[0][0]:
            notes.append(f"a guess: the points of {name} are decimal points, as of 1.234 below 2")
    return columns, null_texts, notes


_FOR_ONE_ROW = " for one row only: all other values are {}"
_WITH_COMMAS = ": its numbers have commas, which a fieldTransformer can replace"
_ARE_THOUSANDS = (
    "SELECT bool_and(regexp_full_match({0}, '-?[1-9][0-9]{{0,2}}([.][0-9]{{3}})?')) FROM {1} "
    "WHERE contains({0}, '.') OR length({0}) > 4"
)
"""Whether all numbers with a point, and long ones, could have it between thousands."""
_COMMAS = "regexp_full_match({0}, '[+-]?[0-9]{{1,3}}([., ]?[0-9]{{3}})*(,[0-9]+)?')"


def note_of_text(scratch: Scratch, table: str, column: str, name: str) -> str:
    """The note about a column of text that is no text but for a value or two; else empty."""
    (look,) = _looks(scratch, table, [column]).values()
    kind, nulls, why = _type_of(scratch, table, column, look)
    if nulls and kind in _SHOWN:
        return f"{name} is text for {', '.join(nulls)} only: all other values are {_SHOWN[kind]}"
    return f"{name} is text{why}" if why else ""


class _Look(NamedTuple):
    """Facts about a column in the first rows."""

    is_all: bool
    """Whether there are no more rows."""
    nulls: Sequence[str] = ()
    """Texts for no value."""
    others: int = 0
    wrong: Sequence[int] = (0,) * len(FITS)
    """The number of others that each type does not hold."""
    has_commas: bool = False
    """Whether all are numbers, some with commas."""


def _looks(scratch: Scratch, table: str, columns: Sequence[str]) -> dict[str, _Look]:
    """A look at columns by one question for all: to plan it takes longer than to answer it."""
    tests = (f"count(*) FILTER (NOT n AND ({test.format('v')}) IS NOT TRUE)"
             for test in FITS.values())  # fmt: skip
    found = scratch.all(
        f"SELECT c, coalesce(list(DISTINCT v ORDER BY v) FILTER (n), []), count(*) FILTER (NOT n), "
        f"[{', '.join(tests)}], bool_and({_COMMAS.format('v')}) AND bool_or(contains(v, ',')) "
        f"FROM (SELECT c, v, v IN ({', '.join(map(text, NULL_TEXTS))}) AS n FROM (FROM {table} "
        f"LIMIT {_FIRST_ROWS}) UNPIVOT (v FOR c IN ({', '.join(columns)}))) GROUP BY c"
    )
    is_all = scratch.number(f"SELECT count(*) FROM {table}") <= _FIRST_ROWS
    looks = {str(column): _Look._make([is_all, *facts]) for column, *facts in found}
    return {column: looks.get(column, _Look(is_all)) for column in columns}


def _type_of(
    scratch: Scratch, table: str, column: str, look: _Look
) -> tuple[ColumnType, tuple[str, ...], str]:
    """The best type of a column, and the texts for no value without which it would be none.

    Of text also why it is none of another type, where all values but one are, or commas are in the
    way; else empty.
    """
    given = f"FROM {table} WHERE {column} IS NOT NULL"
    exception = ""
    for (kind, test), count in zip(FITS.items(), look.wrong, strict=True):
        if count > 1 or (count and look.is_all and look.others - count < _FEWEST_OTHERS):
            continue
        others, fitting = tuple(look.nulls), look.others
        wrong = f"({test.format(column)}) IS NOT TRUE"
        if count or not look.is_all:
            most = len(NULL_TEXTS) + 1
            others = tuple(str(row[0]) for row in scratch.all(
                f"SELECT DISTINCT {column} {given} AND {wrong} ORDER BY 1 LIMIT {most}"
            ))  # fmt: skip
            fitting = scratch.number(f"SELECT count(*) {given} AND NOT ({wrong})")
        if set(others) <= set(NULL_TEXTS) and fitting:
            return kind, others, ""
        if len(others) == 1 and fitting >= _FEWEST_OTHERS and not exception:
            rows = scratch.number(f"SELECT count(*) {given} AND {wrong}")
            shown = _SHOWN.get(kind, "") if rows == 1 else ""
            exception = shown and _FOR_ONE_ROW.format(shown)
    exception = _WITH_COMMAS if look.has_commas else exception
    has_marks = "\\N" in look.nulls or (  # of MySQL
        not look.is_all and scratch.all(f"SELECT 1 {given} AND {column} = '\\N' LIMIT 1")
    )
    return STRING, ("\\N",) if has_marks else (), exception


def _are_codes(scratch: Scratch, table: str, column: str, name: str) -> bool:
    """Whether numbers with a point are codes, as 11.10 beside 11.01: a fraction identifies none."""
    words = column_words(name)
    odd = f"regexp_full_match({column}, '[0-9]+[.][0-9]+') IS NOT TRUE"
    digits = f"length(split_part({column}, '.', 2))"
    (row,) = scratch.all(
        f"SELECT min({digits}) = max({digits}), count(*) FILTER ({odd}) FROM {table} "
        f"WHERE {column} IS NOT NULL"
    )
    return words.has_id and row == (True, 0)
