"""Rows of CSV and JSON, all of which are looked at to find the types that hold them."""

import io
import json
import re
from codecs import getincrementaldecoder
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import duckdb
import pyarrow as pa

from snaploom.models.common import ArrayType, DataType, MapType, SchemaField, StructType
from snaploom.plugins.discovery.dates import (
    BOOLEAN,
    DATE,
    DOUBLE,
    LONG,
    STRING,
    TIMESTAMP,
    UNSIGNED,
    ColumnType,
    Family,
)
from snaploom.plugins.discovery.foundfiles import (
    HEAD_BYTES,
    LONGEST_NAME,
    NotRecognised,
    refuse_width,
)
from snaploom.plugins.discovery.layout import Layout
from snaploom.plugins.discovery.paths import Kind
from snaploom.plugins.discovery.profiles import SourceProfile, column_profiles, may_be_whole
from snaploom.plugins.discovery.scratch import FILE, SNAPSHOT, Rows, Scratch, text
from snaploom.plugins.discovery.textforms import (
    FITS,
    SQL_TYPES,
    CsvFormat,
    another_width,
    csv_format,
    encoding_of,
    json_format,
    numbered_columns,
    other_encoding,
    refuse_odd_headers,
    typed_texts,
)
from snaploom.plugins.discovery.typedfiles import BUFFER, Meter, Part, object_file

# Files of text, unpacked and in UTF-8, in the folder of the scratch database.

NO_HEADER = "there is no header: names of columns are numbers, give them their own"
GUESSED_HEADER = "a guess: its first line is a header, as no value below is equal to one of it"
GUESSED_CHARSET = "a guess: its character set is ISO-8859-1, since it is not UTF-8"
QUOTES_AS_TEXT = "quotes are characters of its values, none of which is in quotes"
EMPTY_LINE = 'one column, with an empty line: write "" for a value, or remove the line'
OTHER_SEPARATOR = "a guess: one column, though {} divides all lines: write a comma instead"
_PACKED = {"gz": "gzip", "bz2": "bz2", "zst": "zstd"}
_OF_HADOOP = (".deflate", ".snappy", ".lz4")


@dataclass(frozen=True)
class _Text:
    """A file of text, or its beginning."""

    part: Part
    path: Path
    encoding: str
    """Of the stored file, as Spark names it; that of `path` is UTF-8."""
    is_whole: bool
    size: int
    """Bytes that were read, after unpacking."""
    share: float
    """Of the file that was read."""
    line_end: str
    """Of its first line, as it is stored; empty without any."""

    @cached_property
    def head(self) -> bytes:
        """Its beginning, in UTF-8."""
        with self.path.open("rb") as file:
            return file.read(HEAD_BYTES)


def _unpacked(part: Part, number: int, folder: Path, meter: Meter, encoding: str = "") -> _Text:
    """The text of a file, cut at a line end where that is not all; in UTF-8 if all of it is.

    Raises:
        NotRecognised: it is compressed in a way that cannot be read here.
    """
    name = part.file.key.lower()
    if name.endswith(_OF_HADOOP):
        raise NotRecognised(f"text compressed as {name.rpartition('.')[2]}, which only Spark reads")
    stored = object_file(part.file, meter)
    source: pa.NativeFile = pa.PythonFile(io.BufferedReader(stored, BUFFER), "r")
    codec = _PACKED.get(name.rpartition(".")[2])
    if codec is not None:
        source = pa.CompressedInputStream(source, codec)
    content = source.read(min(HEAD_BYTES, part.limit))
    encoding, held, first_end = encoding or encoding_of(content), "", ""
    size = last_end = 0
    if codec is not None and encoding == "UTF-16":
        raise NotRecognised("packed text in UTF-16, which no run reads: unpack it, or write UTF-8")
    decoder = getincrementaldecoder(encoding)("strict" if encoding == "UTF-8" else "replace")
    path = folder / f"{part.snapshot}-{number}"
    line_end = b"\n" if b"\n" in content else b"\r"
    with path.open("wb") as target:
        while content:
            try:
                decoded = held + decoder.decode(content)
            except UnicodeDecodeError:
                return _unpacked(part, number, folder, meter, other_encoding(content))
            if encoding == "ISO-8859-1":
                other_encoding(content)
            decoded = decoded if size else decoded.removeprefix("\ufeff")
            if not size and (found := re.search("\r?\n|\r", decoded)):
                first_end = found[0]
            size += len(content)
            content = source.read(min(BUFFER, part.limit - size))
            held = "\r" if content and decoded.endswith("\r") else ""
            # Lines that another program added may end in another way, which DuckDB refuses.
            written = decoded.removesuffix(held).replace("\r\n", "\n").encode()
            if line_end in written:
                last_end = target.tell() + written.rindex(line_end) + 1
            target.write(written)
        is_whole = size < part.limit or not source.read(1)
        if last_end and not is_whole:
            target.truncate(last_end)
    share = 1.0 if is_whole else stored.tell() / max(1, part.file.size)
    return _Text(part, path, encoding, is_whole, size, share, first_end)


@dataclass(frozen=True)
class _Table:
    """A table with the rows of all files, and the types that hold them."""

    columns: Sequence[tuple[str, ColumnType, str]]
    """Each with its name in the table, or an expression; empty if it is no part of a key."""
    table: str
    options: Mapping[str, str]
    has_one_schema: bool = True
    notes: tuple[str, ...] = ()
    null_texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """As `SourceProfile.null_texts`."""


def profile_text(
    layout: Layout, parts: Sequence[Part], scratch: Scratch, meter: Meter, most: int
) -> SourceProfile:
    """The profile of a source of text by the rows of its files, or of parts of them.

    At most `most` bytes are unpacked.

    Raises:
        NotRecognised: the files are not what their names mean, or Spark would not read them.
    """
    folder = scratch.folder / scratch.name()
    folder.mkdir()
    texts: list[_Text] = []
    for number, part in enumerate(parts):
        left = most - sum(each.size for each in texts)
        bounded = replace(part, limit=min(part.limit, left))
        texts.append(_unpacked(bounded, number, folder, meter))
    given = [each for each in texts if each.head.strip()]
    if not given:
        raise NotRecognised("no text")
    try:
        is_json = layout.data_format == "json"
        found = _json(scratch, given) if is_json else _csv(scratch, given, layout)
    finally:
        for each in texts:
            each.path.unlink()
    kept = [(name, kind, f"c{place}" if own else "") for place, (name, kind, own)
            in enumerate(found.columns)]  # fmt: skip
    wanted = [f"{own} AS c{place}" for place, (_, _, own) in enumerate(found.columns) if own]
    table = scratch.name()
    listed = ", ".join([*wanted, SNAPSHOT, FILE])
    scratch.run(f"CREATE TABLE {table} AS SELECT {listed} FROM {found.table} ORDER BY rowid")
    scratch.run(f"DROP TABLE {found.table}")
    read = scratch.number(f"SELECT count(*) FROM {table}")
    covered = sum(each.share * each.part.file.size for each in texts)
    is_all = len(texts) == len(layout.files) and all(each.is_whole for each in texts)
    stored = sum(file.size for file in layout.files)
    in_all = read if is_all else max(read + 1, round(read * stored / max(1.0, covered)))
    snapshots = len({each.part.snapshot for each in given})
    files = tuple(each.part.file.uri for each in texts)
    rows = Rows(scratch, table, read, in_all, snapshots, files)
    return SourceProfile(
        layout.name, layout, column_profiles(rows, kept), rows.values((SNAPSHOT,)), found.options,
        found.has_one_schema, found.notes, null_texts=found.null_texts,
    )  # fmt: skip


_NUMBERS = (
    f"CAST(regexp_extract(filename, '([0-9]+)-[0-9]+$', 1) AS UINTEGER) AS {SNAPSHOT}, "
    f"CAST(regexp_extract(filename, '([0-9]+)$', 1) AS UINTEGER) AS {FILE}"
)


def _paths(texts: Sequence[_Text]) -> str:
    return "[" + ", ".join(text(str(each.path)) for each in texts) + "]"


# CSV: all values as texts at first.

_LONGEST_LINE = 16 * 1024 * 1024
_FIRST_LINES = 100
_FAULTS = {
    "UNQUOTED VALUE": "a value in quotes does not end, or has text behind its last quote: write "
    "quotes inside of it doubled",
}


def _csv(scratch: Scratch, texts: Sequence[_Text], layout: Layout) -> _Table:
    first = texts[0]
    form = csv_format(first.head, is_whole=first.size <= len(first.head))
    kinds = {each.encoding: each.part.file.key for each in texts}
    if len(kinds) > 1 and "UTF-16" not in kinds:  # ASCII is part of the others
        kinds = {each.encoding: each.part.file.key for each in texts
                 if each.encoding != "UTF-8" or not each.path.read_bytes().isascii()}  # fmt: skip
    if len(kinds) > 1:
        found = ", ".join(f"{file} is {encoding}" for encoding, file in kinds.items())
        raise NotRecognised(f"{found}: write all files in one character set")
    ends = {each.line_end: each.part.file.key for each in texts if each.line_end}
    returns = ends.get("\r")
    if returns and len(ends) > 1:
        other = next(key for key in ends.values() if key != returns)
        raise NotRecognised(f"records end with CR in {returns}, and with LF in {other}")
    form = replace(form, encoding=next(iter(kinds)), line_end="\r" if returns else "")
    if len(form.columns) == 1 and re.search("(?i)[.](txt|dat|asc)", first.part.file.key):
        raise NotRecognised("text that no separator divides into columns")
    headers = {each: _header_of(each, form) for each in texts} if form.has_header else {}
    if form.is_guess and len(headers) > 1 and _are_records(list(headers.values())):
        form = replace(form, has_header=False, columns=numbered_columns(len(form.columns)),
                       made_up=False, is_guess=False)  # fmt: skip
        headers = {}
    if headers:
        heads = {each.part.file.key: each.head for each in texts}
        has_numbers = any(piece.kind is Kind.ANY for piece in layout.pieces)
        refuse_odd_headers(heads, form.separator, may_be_tables=has_numbers)
    groups: dict[tuple[str, ...], list[_Text]] = {}
    for each in texts:
        groups.setdefault(headers.get(each, form.columns), []).append(each)
    names: dict[str, str] = {}
    for header in groups:
        for name in header:
            names.setdefault(name.casefold(), name)
    refuse_width(len(names))
    places = {folded: place for place, folded in enumerate(names)}
    table = scratch.name()
    listed = ", ".join(f"c{place} VARCHAR" for place in places.values())
    scratch.run(f"CREATE TABLE {table} ({listed}, {SNAPSHOT} UINTEGER, {FILE} UINTEGER)")
    for header, group in groups.items():
        own = [f"c{places[name.casefold()]}" for name in header]
        _load_csv(scratch, table, own, group, form)
    is_one = len({tuple(name.casefold() for name in header) for header in groups}) == 1
    if form.escape != '"' or form.line_end:  # else the ends of records are looked for at the run
        lines = " OR ".join(f"regexp_matches(c{place}, '[\\r\\n]')" for place in places.values())
        if scratch.all(f"SELECT 1 FROM {table} WHERE {lines} LIMIT 1"):
            form = replace(form, has_lines=True, line_end="" if len(ends) > 1 else next(iter(ends)))
    columns, null_texts, notes = typed_texts(scratch, table, list(names.values()))
    has_quotes = " OR ".join(f"contains(c{place}, '\"')" for place in places.values())
    are_inside = bool(scratch.all(f"SELECT 1 FROM {table} WHERE {has_quotes} LIMIT 1"))
    if form.escape == '"':
        form = replace(form, quote=_quote(texts, form.separator, are_inside=are_inside))
        notes += [] if form.quote else [QUOTES_AS_TEXT]
    if len(names) == 1:
        if scratch.all(f"SELECT 1 FROM {table} WHERE c0 IS NULL LIMIT 1"):
            raise NotRecognised(EMPTY_LINE)
        notes += [OTHER_SEPARATOR.format(each) for each in _other_separators(first.head)]
    notes += [NO_HEADER] * (not form.has_header) + [GUESSED_HEADER] * form.is_guess
    notes += [GUESSED_CHARSET] * (form.encoding == "ISO-8859-1")
    if form.made_up:
        notes.append("its header has names that are empty or stand twice: Spark numbers them")
    return _Table(
        columns, table, form.options, is_one and not form.made_up, tuple(notes), null_texts
    )


def _other_separators(head: bytes) -> list[str]:
    """Characters that are not looked for, and stand as often in all of the first lines."""
    lines = [line for line in head.splitlines()[:_FIRST_LINES] if line]
    counts = {mark: {line.count(mark.encode()) for line in lines} for mark in " :^~\1"}
    return [repr(mark) for mark, some in counts.items()
            if len(lines) > 1 and len(some) == 1 and min(some) > (mark == " ")]  # fmt: skip


def _quote(texts: Sequence[_Text], separator: str, *, are_inside: bool) -> str:
    """The character that encloses values; empty where all quotes stand inside of values.

    `are_inside` is whether a value has a quote, as DuckDB reads them, which takes blanks between
    quotes and separators for nothing.

    Raises:
        NotRecognised: some values are enclosed, and others, or names, have quotes inside.
    """
    ends = re.escape(separator.encode())
    pattern = re.compile(
        rb'(?<![^\r\n%b])"[^"]*(?:""[^"]*)*"(?=[%b\r\n]|\Z)|(?P<inside>")' % (ends, ends)
    )
    odd = re.compile(rb'"(?<=[^\r\n%b]")(?=[^\r\n%b])' % (ends, ends))
    is_enclosed, place = False, ""
    for each in texts:
        content = each.path.read_bytes()
        for found in pattern.finditer(content) if are_inside or odd.search(content) else ():
            is_enclosed |= found["inside"] is None
            if not place and found["inside"]:
                line = content.count(b"\n", 0, found.start()) + 1
                place = f"{each.part.file.key.rpartition('/')[2]}, line {line:,}"
            if place and (is_enclosed or not are_inside):
                raise NotRecognised(
                    f"{place}: a quote stands inside a value that is not in quotes, or a blank "
                    "beside one that is: write it doubled, in quotes, without blanks around"
                )
    return "" if place else '"'


def _header_of(one: _Text, form: CsvFormat) -> tuple[str, ...]:
    """The names in the first line of a file."""
    line, end, _ = one.head.partition(b"\n")
    if line.count(b'"') % 2:  # a name goes over several lines
        line, end = one.head, b""
    is_whole = bool(end) or one.size <= len(line)
    parsed = csv_format(line, is_whole) if line.strip() else form
    has_names = parsed.has_header and (len(parsed.columns) > 1 or len(form.columns) == 1)
    return parsed.columns if has_names else form.columns


def _are_records(headers: Sequence[tuple[str, ...]]) -> bool:
    """Whether first lines are as different as records are, of which a header would be the same."""
    first = {name.casefold() for name in headers[0]}
    others = [{name.casefold() for name in header} for header in headers[1:]]
    return any(2 * len(first & other) < len(first) for other in others)


def _load_csv(
    scratch: Scratch, table: str, own: Sequence[str], texts: Sequence[_Text], form: CsvFormat
) -> None:
    columns = ", ".join(f"{name}: 'VARCHAR'" for name in own)
    errors, scans = scratch.name(), scratch.name()
    scratch.run(
        f"INSERT INTO {table} ({', '.join(own)}, {SNAPSHOT}, {FILE}) SELECT {', '.join(own)}, "
        f"{_NUMBERS} FROM read_csv({_paths(texts)}, columns = {{{columns}}}, "
        f"header = {str(form.has_header).lower()}, delim = {text(form.separator)}, quote = '\"', "
        f"escape = {text(form.escape)}, nullstr = '', allow_quoted_nulls = false, "
        f"auto_detect = false, filename = true, store_rejects = true, rejects_limit = 1, "
        f"rejects_table = '{errors}', rejects_scan = '{scans}', "
        f"max_line_size = {_LONGEST_LINE}, null_padding = false, strict_mode = true)"
    )
    wrong = scratch.all(
        f"SELECT s.file_path, e.line, e.error_type, e.csv_line FROM {errors} e "
        f"JOIN {scans} s USING (scan_id, file_id) ORDER BY ALL LIMIT 1"
    )
    for path, line, kind, content in wrong:
        (one,) = (each for each in texts if str(each.path) == str(path))
        place = f"{one.part.file.key.rpartition('/')[2]}, "
        values = str(content).count(form.separator) + 1
        raise NotRecognised(
            place + another_width(int(str(line)), values, len(own))
            if "COLUMNS" in str(kind) and values != len(own)
            else f"{place}line {line}: {_FAULTS.get(str(kind), str(kind).lower())}"
        )


# JSON: every key of every record, down to the last one.

_DEEPEST = 12
"""Objects and arrays in others that are declared: what is deeper is its text."""
_MOST_BRACKETS = 900
"""In such a text; Spark reads a thousand levels."""
_FEWEST_KEYS = 3
_OF_ALL = 0.5
"""Share of objects with the commonest key up to which keys differ, as those of maps do."""


def _json(scratch: Scratch, texts: Sequence[_Text]) -> _Table:
    form = min((json_format(each.head) for each in texts), key=lambda each: each.is_lines)
    for each in texts:
        if each.encoding != "UTF-8":
            raise NotRecognised(f"{each.part.file.key} is not UTF-8, as JSON is: convert it")
    if not form.is_lines and not all(each.is_whole for each in texts):
        raise NotRecognised("one document of JSON that is too large for init: write lines")
    groups: dict[str, list[_Text]] = {}
    for each in texts:
        is_array = not form.is_lines and each.head.lstrip().startswith(b"[")
        kind = "newline_delimited" if form.is_lines else "array" if is_array else "unstructured"
        groups.setdefault(kind, []).append(each)
    table = scratch.name()
    scratch.run(f"CREATE TABLE {table} (v JSON, {SNAPSHOT} UINTEGER, {FILE} UINTEGER)")
    for kind, group in groups.items():
        try:
            scratch.run(
                f"INSERT INTO {table} SELECT json, {_NUMBERS} FROM read_json_objects("
                f"{_paths(group)}, format = '{kind}', filename = true)"
            )
        except duckdb.InvalidInputException as error:
            raise NotRecognised(_not_json(str(error), texts)) from None
    if scratch.all(f"SELECT 1 FROM {table} WHERE json_type(v) <> 'OBJECT' LIMIT 1"):
        raise NotRecognised("JSON that has other things than objects")
    _refuse_keys_twice(scratch, f"FROM {table}", texts)
    many = {int(str(row[0])) for row in scratch.all(
        f"SELECT {FILE} FROM {table} GROUP BY {FILE} HAVING count(*) > 1")}  # fmt: skip
    for each in groups.get("unstructured", ()):
        if int(each.path.name.rpartition("-")[2]) in many:
            why = "has several documents of JSON, which are no lines in all files: write lines"
            raise NotRecognised(f"{each.part.file.key} {why}")
    names = [str(row[0]) for row in scratch.all(
        "SELECT k FROM (SELECT unnest(json_keys(v)) AS k, generate_subscripts(json_keys(v), 1) "
        f"AS n, rowid AS r FROM {table}) GROUP BY k ORDER BY min(ROW(r, n))"
    )]  # fmt: skip
    if not names:
        raise NotRecognised("no records")
    refuse_width(len(names))
    apart = _taken_apart(scratch, table, names)
    values = [f"SELECT '{n}' AS p, c{n} AS v, {FILE} FROM {apart}" for n in range(len(names))]
    types = _json_types(scratch, values, texts)
    columns = [
        (name, kind, _json_value(f"c{place}", name, kind))
        for place, name in enumerate(names)
        for kind in [types.get(str(place), STRING)]
    ]
    is_by_key = _has_records_by_key([kind.data_type for _, kind, _ in columns])
    is_one = is_by_key and scratch.number(f"SELECT count(*) FROM {table}") == len(texts)
    scratch.run(f"DROP TABLE {table}")
    return _Table(columns, apart, form.options, notes=(_BY_KEY.format(len(columns)),) * is_one)


_BY_KEY = "one row, whose {:,} keys have records: write a list of these, each with its key, to join"


def _has_records_by_key(types: Sequence[DataType]) -> bool:
    """Whether all columns have records, or lists of them, of about the same form."""
    records = [each.array.element_type if each.array else each for each in types]
    names = [field.name for each in records if each.struct for field in each.struct.fields_]
    is_like = len(names) >= _OF_ALL * len(types) * len(set(names))
    return all(each.struct for each in records) and len(types) > 1 and is_like


def _not_json(message: str, texts: Sequence[_Text]) -> str:
    """The message of DuckDB about a file, which it counts from the second record on."""
    found = re.search(r'in file "[^"]*-([0-9]+)", .*[ /](?:line|value) ([0-9]+): (.*)', message)
    if found is None:
        return f"not JSON: {message.partition(chr(10))[0][:200]}"
    name = next(each.part.file.key for each in texts if each.path.name.endswith(f"-{found[1]}"))
    return f"{name.rpartition('/')[2]}, record {int(found[2]) - 1:,} is not JSON: {found[3]}"


def _refuse_keys_twice(scratch: Scratch, values: str, texts: Sequence[_Text]) -> None:
    """Refuse objects among values `v` of which a run would read the last of equal keys only.

    Raises:
        NotRecognised: there is one.
    """
    for number, key in scratch.all(
        f"SELECT {FILE}, list_mode(json_keys(v)) FROM ({values}) "
        "WHERE len(json_keys(v)) > len(list_distinct(json_keys(v))) LIMIT 1"
    ):
        one = next(each for each in texts if each.path.name.endswith(f"-{number}"))
        shown = json.dumps(key, ensure_ascii=False)
        raise NotRecognised(
            f"{one.part.file.key} has an object with the key {shown} twice: write it once"
        )


def _taken_apart(scratch: Scratch, table: str, keys: Sequence[str]) -> str:
    """A table with a column for each key of records."""
    pointers = (text(f"/{_escaped(key)}") for key in keys)
    columns = ", ".join(f"nullif(found[{n + 1}], 'null') AS c{n}" for n in range(len(keys)))
    apart = scratch.name()
    scratch.run(
        f"CREATE TABLE {apart} AS SELECT {columns}, {SNAPSHOT}, {FILE} FROM (SELECT json_extract("
        f"v, [{', '.join(pointers)}]) AS found, {SNAPSHOT}, {FILE} FROM {table})"
    )
    return apart


_OF_JSON = {
    **dict.fromkeys((LONG, UNSIGNED, DOUBLE), "IN ('BIGINT', 'UBIGINT', 'HUGEINT', 'DOUBLE')"),
    **dict.fromkeys((DATE, TIMESTAMP), "= 'VARCHAR'"),
}
"""Types that are tried, the best first, each with the kinds of JSON that it is tried for."""
_INSIDE = "/~"
"""The end of the path of a list, or of a map, in that of its values: no key is written so."""


def _json_types(
    scratch: Scratch, queries: Sequence[str], texts: Sequence[_Text], depth: int = 0
) -> dict[str, ColumnType]:
    """The type of all values `v` of each path `p`, a level of nesting at a time.

    A path whose values are all NULL has none.
    """
    asked = ", ".join(
        f"count(*) FILTER (CASE WHEN k {which} THEN {FITS[kind].format('t')} END)"
        for kind, which in _OF_JSON.items()
    )
    types: dict[str, ColumnType] = {}
    objects: dict[str, int] = {}
    lists: list[str] = []
    for query in queries:
        for row in scratch.all(
            f"SELECT p, CASE WHEN min(k) = max(k) THEN min(k) END, count(*), {asked} FROM "
            "(SELECT p, json_type(v) AS k, CASE WHEN json_type(v) NOT IN ('ARRAY', 'OBJECT') "
            f"THEN v->>'$' END AS t FROM ({query}) WHERE v IS NOT NULL) GROUP BY p"
        ):
            path, only, (count, *fitting) = str(row[0]), row[1], map(str, row[2:])
            fits = (kind for kind, number in zip(_OF_JSON, fitting, strict=True) if number == count)
            types[path] = BOOLEAN if only == "BOOLEAN" else next(fits, STRING)
            if only == "ARRAY":
                lists.append(path)
            elif only == "OBJECT":
                objects[path] = int(count)
    _refuse_keys_twice(scratch, " UNION ALL ".join(queries), texts)
    if not objects and not lists:
        return types
    if depth == _DEEPEST:
        brackets = "coalesce(max(length(regexp_replace(v::VARCHAR, '[^{[]', '', 'g'))), 0)"
        if any(scratch.number(f"SELECT {brackets} FROM ({query})") > _MOST_BRACKETS
               for query in queries):  # fmt: skip
            raise NotRecognised("values are nested too deeply")
        return types
    nested = _nested_types(scratch, " UNION ALL ".join(queries), texts, objects, lists, depth + 1)
    return types | {path: ColumnType(kind, Family.OTHER) for path, kind in nested.items()}


def _nested_types(
    scratch: Scratch,
    values: str,
    texts: Sequence[_Text],
    objects: Mapping[str, int],
    lists: Sequence[str],
    depth: int,
) -> dict[str, DataType]:
    """The types at paths of objects, of each of which there are so many, and of lists."""
    inner = scratch.name()
    scratch.run(
        f"CREATE TABLE {inner} AS SELECT p, unnest(json_keys(v)) AS k, "
        f"unnest(json_extract(v, '$.*')) AS v, {FILE} FROM ({values}) WHERE p IN "
        f"{_listed(objects)} "
        f"UNION ALL SELECT p, NULL, unnest(json_extract(v, '$[*]')), {FILE} FROM ({values}) "
        f"WHERE p IN {_listed(lists)}"
    )
    keys: dict[str, dict[str, int]] = {path: {} for path in objects}
    for path, key, count in scratch.all(
        f"SELECT p, k, count(*) FROM {inner} WHERE k IS NOT NULL GROUP BY ALL ORDER BY min(rowid)"
    ):
        keys[str(path)][str(key)] = int(str(count))
    maps = {path for path, own in keys.items() if len(own) >= _FEWEST_KEYS
            and max(own.values()) <= _OF_ALL * objects[path]}  # fmt: skip
    structs = {path: own for path, own in keys.items() if path not in maps
               and 0 < len({key.casefold() for key in own}) == len(own)
               and all(0 < len(key) <= LONGEST_NAME for key in own)}  # fmt: skip
    refuse_width(max(map(len, structs.values()), default=0))
    query = (
        f"SELECT p || CASE WHEN p IN {_listed(structs)} THEN '/' || replace(replace(k, '~', '~0'), "
        f"'/', '~1') ELSE '{_INSIDE}' END AS p, nullif(v, 'null') AS v, {FILE} FROM {inner} "
        f"WHERE p IN {_listed([*lists, *maps, *structs])}"
    )
    found = _json_types(scratch, [query], texts, depth)
    scratch.run(f"DROP TABLE {inner}")

    def one(path: str) -> DataType:
        return found.get(path, STRING).data_type

    types = dict.fromkeys(objects, STRING.data_type)
    types |= {path: DataType(array=ArrayType(element_type=one(path + _INSIDE))) for path in lists}
    for path in maps:
        inside = one(path + _INSIDE)
        types[path] = DataType(map_=MapType(key_type=STRING.data_type, value_type=inside))
    for path, own in structs.items():
        fields = [SchemaField(name=key, data_type=one(f"{path}/{_escaped(key)}")) for key in own]
        types[path] = DataType(struct=StructType(fields_=tuple(fields)))
    return types


def _listed(paths: Iterable[str]) -> str:
    """Paths for IN, with one that nothing has: none would be an error."""
    return f"({', '.join(map(text, ['', *sorted(paths)]))})"


def _escaped(key: str) -> str:
    """A key as JSON Pointer has it."""
    return key.replace("~", "~0").replace("/", "~1")


def _json_value(value: str, name: str, kind: ColumnType) -> str:
    if kind.family is Family.OTHER and not may_be_whole(name, kind):
        return ""
    sql = "DOUBLE" if kind is DOUBLE else SQL_TYPES.get(kind, "VARCHAR")
    return f"CAST({value}->>'$' AS {sql})"
