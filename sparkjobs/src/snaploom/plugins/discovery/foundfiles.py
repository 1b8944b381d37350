"""Files below a URI, listed within bounds, and the format of text by its first bytes."""

import csv
import io
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from snaploom.confidential import visible, without_secrets
from snaploom.errors import ArgumentInvalid, ObjectNotFound, SourceNotReadable
from snaploom.files.measured import names_of
from snaploom.files.objectstore import ObjectInfo, ObjectStore
from snaploom.files.stores import open_store
from snaploom.policy.addresses import store_kind
from snaploom.policy.secretdetection import secret_form

# Bounds of reading, and the evidence needed to declare something.

MOST_FILES = 100_000
"""Files that are listed below one URI: names only, some 100 bytes each."""
SOURCE_BYTES = 256 * 1024 * 1024
"""Bytes of one source that are read, of text after decompression: beyond it evenly spread parts."""
ALL_BYTES = 4 * 1024 * 1024 * 1024
"""Bytes of all sources that are read: of many sources each has its share, `LEAST_BYTES` or more."""
LEAST_BYTES = 16 * 1024 * 1024
SECONDS = 120
"""Seconds that the reading of one source takes, beyond which a sixteenth of it is read instead."""
MOST_VALUES = 100_000_000
"""Values of one source (rows times columns) that are read: a few bytes may stand for millions."""
MOST_PARTS = 2_000
"""Files of one source that are opened: each is a request or more to a store."""
PACKED = 8
"""Times as large as it is stored that text probably is, if it is packed."""
HEAD_BYTES = 1024 * 1024
"""Bytes at the beginning of a file by which its format is recognised, and the longest header."""
METADATA_BYTES = 32 * 1024 * 1024
"""Bytes of one file of a table's metadata."""
MOST_TABLES = 200
"""Tables of one database that are looked into; each takes some questions to its catalogue."""
DATABASE_ROWS = 20_000
"""Rows of one table of a database that are read: they come over a network, from a server that has
other work."""
COUNTED_ROWS = 10_000_000
"""Rows of a table of a database up to which it is asked about all of them, by `count(DISTINCT ..)`
and the like; by its statistics, where it has some."""
FILE_VALUES = 10_000_000
"""Values of one table that are read, of a file that has several."""
MOST_MANIFESTS = 100
"""Manifests of one Iceberg table that are read; each names up to some thousand files."""
# Forms that declarations have (`models.datasource`).
LONGEST_NAME = 512
"""Characters of the name of a column."""
LONGEST_URI = 1_900
"""Characters of a path; a glob is longer than it by a few."""

# Keys.
MOST_KEY_COLUMNS = 3
"""Columns of a compound key: four and more are found by chance in small samples."""
MOST_COLUMNS_COMBINED = 12
"""Columns of one source of which sets are tried: 66 pairs and 220 triples."""
LONGEST_KEY_TEXT = 64
"""Characters, on average, of a text that may be part of a key: longer ones are descriptions."""

# Relationships.
SAME_NAME = 0.8
"""Likeness of names from which they mean the same: equal, or equal but for singular and prefix."""
LIKE_NAME = 0.5
"""Likeness of names from which they may mean the same: an abbreviation, a part of a name."""
INCLUDED_SAME_NAME = 0.6
"""Share of values that must be in the parent where names are the same: registers lag behind."""
INCLUDED_LIKE_NAME = 0.9
"""Share where names are only alike."""
INCLUDED_OTHER_NAME = 0.95
"""Share where names have nothing in common: of 92 airports that flights go to, 88 are known."""
DISTINCTIVE_VALUES = 5
"""Distinct texts from which inclusion is evidence without a name: fewer (M, F) fit anywhere."""
FEW_VALUES = 3
"""Distinct texts that are enough where the parent has at least `WIDE_PARENT` times as many."""
WIDE_PARENT = 20
DENSE_SHARE = 0.5
"""Share of the whole numbers between least and greatest from which they are a sequence. Numbers of
a sequence from about 1 on are in every longer sequence, so that inclusion proves nothing."""
SEQUENCE_START = 1_000
"""Least value up to which a dense sequence counts as one that begins at 1."""
INCLUDED_COMPOUND = 0.8
"""Share of value combinations for a compound key, all of whose names must be alike."""
WEAK_SHARE = 0.95
"""Share from which a relationship that is not declared is shown as a comment."""
MOST_WEAK = 10
"""Weak relationships that are shown."""

# The output.
MOST_ELEMENTS = 200
"""Structs of one source in each row, on average, up to which it is grouped: those of nested arrays
multiply."""
MOST_STRUCTS = 500_000
"""Structs of arrays in one snapshot, where rows of a source are repeated: some hundred MB."""
MOST_REPEATED = 10
"""Such structs in each row, on average, that a larger output may have."""
MOST_JOINS = 60
"""Sources of one output, roles included."""
DEEPEST_JOIN = 6
"""Joins between the root and a source."""


# The format of text by its first bytes: character set, separator, header; lines or one document.

SEPARATORS = (",", ";", "\t", "|")
NULL_TEXTS = ("", "NULL", "null", "NA", "N/A", "n/a", "#N/A", "\\N", "None", "NaN", "nan", "-")
"""Texts that exports write for a missing value."""
MOST_COLUMNS = 2_000
"""Columns of one source, as many as a DataSource may declare."""
_LINES_LOOKED_AT = 100
csv.field_size_limit(max(csv.field_size_limit(), HEAD_BYTES))  # one value may fill the head
_FEWEST_ALIKE = 10
"""Values that are as long as each other not by chance, as codes are."""
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
        found = {"header": "true" if self.has_header else "false"}
        if self.separator != ",":
            found["sep"] = "\\t" if self.separator == "\t" else self.separator
        if self.encoding != "UTF-8":
            found["encoding"] = self.encoding
        if self.escape != '"':
            found["escape"] = self.escape
        if not self.quote:
            found["quote"] = ""
        if self.line_end:
            found["lineSep"] = self.line_end
        if self.has_lines:
            found["multiLine"] = "true"
        return found


@dataclass(frozen=True)
class JsonFormat:
    """Form of JSON."""

    is_lines: bool
    """Whether every line is a record; otherwise a file is one record, or an array of them."""

    @property
    def options(self) -> dict[str, str]:
        """Options of Spark's reader."""
        return {} if self.is_lines else {"multiLine": "true"}


class NotRecognised(ValueError):
    """The bytes are not of the format; the text is the reason, for people."""


def refuse_width(columns: int) -> None:
    """Refuse more columns than a source has, before any of them is looked at.

    Raises:
        NotRecognised: there are more.
    """
    if columns > MOST_COLUMNS:
        raise NotRecognised(f"more than {MOST_COLUMNS:,} columns or keys, and a source has no more")


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
    return separator if width > 1 else ",", [row for _, row in rows]


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
    given = [value.strip() for value in values if value.strip() not in NULL_TEXTS]
    if _KEY_NAME.search(name.strip()):
        return not any(map(_KEY_NAME.search, given))
    lengths = {*map(len, given)}
    return len(given) >= _FEWEST_ALIKE and len(lengths) == 1 and len(name.strip()) not in lengths


def _is_code(name: str, values: Sequence[str]) -> bool:
    """Whether a text is one of codes below it, as S001: as long, with digits where they are."""
    shapes = {re.sub("[A-Z]", "A", re.sub("[0-9]", "9", text)) for text in (name, *values)}
    return len(shapes) == 1 and len(values) > 2 and len(name) > 3 and "9" in shapes.pop()


def _all_numbers(values: Sequence[str]) -> bool:
    given = [value.strip() for value in values if value.strip() not in NULL_TEXTS]
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


# The files below a URI with their sizes, listed once and never opened.

_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass(frozen=True)
class Place:
    """A folder that was named, opened."""

    uri: str
    """Ends in `/`."""
    store: ObjectStore = field(compare=False, repr=False)


@dataclass(frozen=True)
class FoundFile:
    """A file below one of the URIs."""

    place: Place
    key: str
    """Relative to the place, `/`-separated."""
    size: int

    @property
    def uri(self) -> str:
        """As declarations name it."""
        return self.place.uri + self.key


@dataclass(frozen=True)
class LeftOut:
    """Something that is there and is not declared."""

    what: str
    """File, folder, table or relationship."""
    why: str


@dataclass(frozen=True)
class Guess:
    """A choice that the data leave open, for people."""

    what: str
    chosen: str
    others: tuple[str, ...]
    evidence: str
    change: str
    """Remedy if it is wrong."""

    @property
    def text(self) -> str:
        """The guess on one line."""
        others = f", and not {' or '.join(self.others)}" if self.others else ""
        return f"guess: {self.what}: {self.chosen}{others} ({self.evidence}); else {self.change}"


@dataclass(frozen=True)
class Question:
    """A choice that a person may make."""

    text: str
    options: tuple[str, ...]
    default: int
    """Place of the option that is taken without an answer."""
    effect: float
    """Values of the output that depend on it."""


Ask = Callable[[Sequence[Question]], Sequence[int | None]]
"""Asks a person. For each question it returns the place of the option that was chosen, or None
where it was not asked."""


def nobody(questions: Sequence[Question]) -> Sequence[int | None]:
    """Return no answer."""
    return [None] * len(questions)


@dataclass(frozen=True)
class Listing:
    """All files below the URIs."""

    files: tuple[FoundFile, ...]
    left_out: tuple[LeftOut, ...]


def list_files(uris: Iterable[str]) -> Listing:
    """The files below URIs, sorted by URI, each once.

    Raises:
        ArgumentInvalid: a URI has a secret in it, or letters that globs take for their own.
        SourceNotReadable: there is nothing at a URI.
        StorageError: a store cannot be asked.
    """
    found, left_out = dict[str, FoundFile](), list[LeftOut]()
    for uri in uris:
        files, others = _below(uri)
        found.update((file.uri, file) for file in files)
        left_out.extend(others)
    return Listing(tuple(found[uri] for uri in sorted(found)), tuple(dict.fromkeys(left_out)))


def _below(uri: str) -> tuple[list[FoundFile], list[LeftOut]]:
    refuse_secret(uri)
    _refuse_other_kinds(uri)
    whole = uri if _SCHEME.match(uri) else os.path.normpath(Path(uri).absolute())
    if not uri or not _is_written_as_is(whole):
        raise ArgumentInvalid(
            "declarations cannot have this path",
            path="--from",
            found=visible(uri) or "an empty text",
            expected="a path of text without `$(`, which begins a variable",
            hint="name a folder or file of data; or rename it, or make a link to it without",
        )
    one = _as_file(whole)
    if one is not None:
        return [one], []
    store = open_store(whole.rstrip("/") + "/", create=False)
    place = Place(store.uri, store)
    listed = sorted(islice(store.list(""), MOST_FILES + 1), key=lambda info: info.key)
    if not listed:
        raise SourceNotReadable(
            "there are no files here",
            path="--from",
            found=f"nothing at {store.uri}",
            expected="a folder with files, or a file",
            hint="name the folder above: this is no glob"
            if re.search(r"[*?\[{]", uri)
            else "check the spelling; for a bucket, check endpoint and credentials in the "
            "environment as well",
        )
    why = f"only the first {MOST_FILES:,} files were looked at"
    left_out = [LeftOut(place.uri, why) for _ in listed[MOST_FILES:]]
    files = []
    for info in listed[:MOST_FILES]:
        reason = _not_readable(info)
        if reason:
            left_out.append(LeftOut(place.uri + info.key, reason))
        else:
            files.append(FoundFile(place, info.key, info.size))
    return files, left_out


def _not_readable(info: ObjectInfo) -> str:
    if not info.is_plain:
        return "a link, pipe or device, which is not followed"
    if not _is_written_as_is(info.key):
        return "its name has `$(`, which begins a variable, or is no text: rename it"
    return ""


def _is_written_as_is(path: str) -> bool:
    """Whether declarations can have a path as it is."""
    return "$(" not in path and path == path.encode("utf-8", "replace").decode("utf-8")


def _as_file(whole: str) -> FoundFile | None:
    """The one file that a URI names; None for a folder or a missing file."""
    head, _, name = whole.rstrip("/").rpartition("/")
    path = re.sub(r"^file:(?://)?(?=/)", "", whole)
    if path.startswith("/"):
        if not os.path.isfile(path):
            return None
    elif whole.endswith("/") or "." not in name or head.endswith(("/", ":")):
        return None
    store = open_store(head + "/", create=False)
    try:
        info = store.head(name)
    except ObjectNotFound:
        return None
    return None if info is None else FoundFile(Place(store.uri, store), name, info.size)


def _refuse_other_kinds(uri: str) -> None:
    scheme = uri.partition(":")[0].lower()
    kind = store_kind(scheme)
    if kind is not None and not kind.is_looked_into:
        raise ArgumentInvalid(
            f"{scheme}: is not looked into",
            path="--from",
            found=without_secrets(uri.partition("?")[0]),
            expected="a path, a URI with file:, s3:, gs: or az:, or a database (jdbc:)",
            hint="copy the newest files, with their folders, to a disk (`hdfs dfs -get`), start "
            "from the copy, and write the URI instead of its path into what was written",
        )


def refuse_secret(uri: str) -> None:
    """Refuse a URI with a user, a password or a signature in it, which declarations would show.

    Raises:
        ArgumentInvalid: there is one; it is not shown.
    """
    form = secret_form(uri)
    if form:
        raise ArgumentInvalid(
            f"there is {form} in this URI, and declarations are read by many",
            path="--from",
            found=without_secrets(re.sub(r"//[^/@]*@", "//***@", uri.partition("?")[0])),
            expected="a URI without user, password and signature",
            hint="leave them out; buckets take AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of the "
            "environment, a database <NAME>_DB_USER and <NAME>_DB_PASSWORD",
        )
