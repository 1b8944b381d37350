"""Profiles of CSV and JSON, by the beginning of their newest files."""

from __future__ import annotations

import io
import json
import zlib
from bz2 import BZ2Decompressor
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from snaploom.plugins.discovery.dates import (
    DATE,
    STRING,
    TIMESTAMP,
    ColumnType,
    Family,
    type_of_json,
    type_of_texts,
)
from snaploom.plugins.discovery.foundfiles import (
    ENOUGH_ROWS,
    HEAD_BYTES,
    LONGEST_NAME,
    MOST_COLUMNS,
    MOST_HEADS,
    SAMPLE_ROWS,
    TEXT_BYTES,
    CsvFormat,
    FoundFile,
    JsonFormat,
    NotRecognised,
    csv_format,
    encoding_of,
    json_format,
    refuse_width,
    text_of,
)
from snaploom.plugins.discovery.layout import Layout
from snaploom.plugins.discovery.profiles import Hashes, SourceProfile, profile_column
from snaploom.plugins.discovery.typedfiles import Meter


def profile_text(layout: Layout, times: Sequence[datetime | None], meter: Meter) -> SourceProfile:
    """The profile of a source of text.

    `times` are the snapshots to read, in this order.

    Raises:
        NotRecognised: the files are not what their names mean.
    """
    contents: list[tuple[int, FoundFile, bytes, bool]] = []
    budget = TEXT_BYTES
    rows_seen = 0
    for number, time in enumerate(times, start=1):
        for file in layout.files_at(time):
            if budget <= 0:
                break
            content, is_whole = read_text(file, budget, meter)
            budget -= len(content)
            contents.append((number, file, content, is_whole))
            rows_seen += content.count(b"\n")
        if budget <= 0 or rows_seen >= ENOUGH_ROWS:
            break
    read = {file.uri for _, file, _, _ in contents}
    heads = [
        read_text(file, HEAD_BYTES, meter)
        for file in _spread([f for f in layout.files if f.uri not in read], MOST_HEADS)
    ]
    if layout.data_format == "json":
        table = _json_table(contents, heads)
    else:
        table = _csv_table(contents, heads)
    sample = min(table.rows, SAMPLE_ROWS)
    columns = tuple(
        profile_column(name, kind, values, table.snapshot, sample)
        for name, kind, values in table.columns
    )
    share = sum(len(content) for _, _, content, _ in contents)
    size = max(share, sum(file.size for n, file, _, _ in contents if not _compressed(file)))
    return SourceProfile(
        name=layout.name,
        origin=layout,
        columns=columns,
        rows=table.rows if size <= share else round(table.rows * size / max(1, share)),
        rows_read=table.rows,
        snapshot=table.snapshot[:sample],
        snapshots_read=len({number for number, _, _, _ in contents}),
        format_options=table.options,
        has_one_schema=table.has_one_schema,
        notes=table.notes,
    )


def _compressed(file: FoundFile) -> bool:
    return file.key.lower().endswith((".gz", ".bz2", ".zst", ".deflate", ".snappy", ".lz4"))


def _spread(files: Sequence[FoundFile], number: int) -> list[FoundFile]:
    """So many of the files, at equal distances, the first and the last among them."""
    if len(files) <= number:
        return list(files)
    return [files[round(i * (len(files) - 1) / (number - 1))] for i in range(number)]


def read_text(file: FoundFile, limit: int, meter: Meter) -> tuple[bytes, bool]:
    """The first bytes of a file, unpacked, and whether these are all.

    `limit` is in bytes after unpacking.

    Raises:
        NotRecognised: it is compressed in a way that cannot be read here.
    """
    name = file.key.lower()
    stored = min(file.size, limit)
    content = file.place.store.get_range(file.key, 0, stored)
    meter.bytes_read += len(content)
    meter.files_opened.add(file.uri)
    is_whole = stored == file.size
    if name.endswith(".gz"):
        unpacked = _gunzipped(content, limit)
    elif name.endswith(".bz2"):
        unpacked = BZ2Decompressor().decompress(content, limit)
    elif _compressed(file):
        ending = name.rpartition(".")[2]
        raise NotRecognised(f"text compressed as {ending}, which only Spark reads")
    else:
        return content, is_whole
    return unpacked, is_whole and len(unpacked) < limit


def _gunzipped(content: bytes, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while content and size < limit:
        member = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        part = member.decompress(content, limit - size)
        parts.append(part)
        size += len(part)
        content = member.unused_data
    return b"".join(parts)


@dataclass(frozen=True)
class _TextTable:
    """The contents read of a source of text."""

    columns: tuple[tuple[str, ColumnType, pa.Array], ...]
    rows: int
    snapshot: Hashes
    options: Mapping[str, str]
    has_one_schema: bool = True
    notes: tuple[str, ...] = ()


def _csv_table(
    contents: Sequence[tuple[int, FoundFile, bytes, bool]], heads: Sequence[tuple[bytes, bool]]
) -> _TextTable:
    first_content, first_whole = contents[0][2], contents[0][3]
    form = csv_format(first_content[:HEAD_BYTES], first_whole and len(first_content) <= HEAD_BYTES)
    if len(form.columns) == 1 and ".txt" in contents[0][1].key.lower():
        raise NotRecognised("text that no separator divides into columns")
    tables: list[pa.Table] = []
    ids: list[Hashes] = []
    skipped = 0
    headers = {form.columns}
    for number, _, content, is_whole in contents:
        table, bad = _csv_rows(content, is_whole, form)
        headers.add(tuple(table.column_names))
        tables.append(_spelled(table, tables))
        ids.append(np.full(len(table), number, dtype=np.uint64))
        skipped += bad
    others: list[pa.Table] = []
    for content, is_whole in heads:
        if content.strip():
            table, _ = _csv_rows(content, is_whole, form)
            headers.add(tuple(table.column_names))
            others.append(_spelled(table, [*tables, *others]))
    rows = sum(len(table) for table in tables)
    whole = pa.concat_tables([*tables, *others], promote_options="default")
    refuse_width(len(whole.column_names))
    options = dict(form.options)
    columns: list[tuple[str, ColumnType, pa.Array]] = []
    nulls: set[str] = set()
    for name in whole.column_names:
        typed = type_of_texts(whole.column(name).combine_chunks())
        if typed.null_text is not None and (not nulls or typed.null_text in nulls):
            nulls.add(typed.null_text)
            columns.append((name, typed.type, _as_values(typed.values[:rows], typed.type)))
        elif typed.null_text is not None:
            columns.append((name, STRING, whole.column(name).combine_chunks()[:rows]))
        else:
            columns.append((name, typed.type, _as_values(typed.values[:rows], typed.type)))
    if nulls:
        options["nullValue"] = nulls.pop()
    notes = [f"{skipped} records have another number of values than the header"] if skipped else []
    if not form.has_header:
        notes.append("there is no header: names of columns are numbers, give them their own")
    is_one = len({tuple(n.casefold() for n in header) for header in headers}) == 1
    if form.made_up:
        notes.append("its header has names that are empty or stand twice: Spark numbers them")
    return _TextTable(
        tuple(columns), rows, np.concatenate(ids), options, is_one and not form.made_up,
        tuple(notes),
    )  # fmt: skip


def _spelled(table: pa.Table, others: Sequence[pa.Table]) -> pa.Table:
    """A table with its columns in the capitals that those before it have."""
    known = {name.casefold(): name for other in reversed(others) for name in other.column_names}
    return table.rename_columns([known.get(n.casefold(), n) for n in table.column_names])


def _csv_rows(content: bytes, is_whole: bool, form: CsvFormat) -> tuple[pa.Table, int]:
    """The records of a file, every value as text, and how many were passed over."""
    text = text_of(content, form.encoding)
    if not is_whole:
        text = text[: text.rfind("\n") + 1]
    encoded = text.encode()
    skipped = 0

    def skip(_row: object) -> str:
        nonlocal skipped
        skipped += 1
        return "skip"

    own = form
    if form.has_header:
        end = text.find("\n")
        header = text[: end if end >= 0 else len(text)].rstrip("\r")
        if len(header) > MOST_COLUMNS * LONGEST_NAME:
            raise NotRecognised(
                f"a header of {len(header):,} characters; at most {MOST_COLUMNS * LONGEST_NAME:,}"
            )
        parsed = csv_format((header + "\n").encode(), is_whole=True) if header.strip() else form
        own = replace(parsed, separator=form.separator) if parsed.has_header else form
    names = own.columns if len(own.columns) > 1 or len(form.columns) == 1 else form.columns
    if not encoded.strip():
        return pa.table({name: pa.array([], pa.string()) for name in names}), 0
    table = pacsv.read_csv(
        io.BytesIO(encoded),
        read_options=pacsv.ReadOptions(
            column_names=list(names),
            skip_rows=int(form.has_header),
            block_size=max(1024, len(encoded) + 1),
        ),
        parse_options=pacsv.ParseOptions(
            delimiter=form.separator,
            newlines_in_values=True,
            invalid_row_handler=skip,
            double_quote=form.escape == '"',
            escape_char=False if form.escape == '"' else form.escape,
        ),
        convert_options=pacsv.ConvertOptions(
            column_types={name: pa.string() for name in names},
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    return table, skipped


def _json_table(
    contents: Sequence[tuple[int, FoundFile, bytes, bool]], heads: Sequence[tuple[bytes, bool]]
) -> _TextTable:
    form = json_format(contents[0][2][:HEAD_BYTES])
    records: list[dict[str, object]] = []
    ids: list[Hashes] = []
    names: dict[str, None] = {}

    def read(content: bytes, is_whole: bool) -> list[dict[str, object]]:
        found = json_records(content, is_whole, form)
        for record in found:
            names.update(dict.fromkeys(record))
            refuse_width(len(names))
        return found

    for number, _, content, is_whole in contents:
        found = read(content, is_whole)
        records.extend(found)
        ids.append(np.full(len(found), number, dtype=np.uint64))
    others = [record for content, is_whole in heads for record in read(content, is_whole)]
    if not records:
        raise NotRecognised("no records")
    columns: list[tuple[str, ColumnType, pa.Array]] = []
    for name in names:
        values = [record.get(name) for record in records]
        kind = type_of_json([*values, *(record.get(name) for record in others)])
        columns.append((name, kind, _json_values(values, kind)))
    return _TextTable(tuple(columns), len(records), np.concatenate(ids), form.options)


def json_records(content: bytes, is_whole: bool, form: JsonFormat) -> list[dict[str, object]]:
    """The records of a file.

    `is_whole` is whether the first bytes are all.

    Raises:
        NotRecognised: a line, or the document, is no record.
    """
    text = text_of(content, encoding_of(content))
    if not form.is_lines:
        if not is_whole:
            raise NotRecognised(
                f"one document of JSON that has more than {TEXT_BYTES:,} bytes: write lines"
            )
        whole = _parsed(text, "the document")
        found = whole if isinstance(whole, list) else [whole]
    else:
        lines = text.split("\n")
        if not is_whole:
            lines.pop()
        found = [_parsed(line, f"line {n}") for n, line in enumerate(lines, 1) if line.strip()]
    if not all(isinstance(record, dict) for record in found):
        raise NotRecognised("JSON that has other things than objects")
    return [record for record in found if isinstance(record, dict)]


def _parsed(text: str, place: str) -> object:
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        raise NotRecognised(f"{place} is not JSON") from None
    return found


def _json_values(values: Sequence[object], kind: ColumnType) -> pa.Array:
    if kind.family is Family.WHOLE:
        return pa.array(values, pa.int64())
    if kind in (STRING, DATE, TIMESTAMP):
        texts = [None if value is None else value if isinstance(value, str) else json.dumps(value)
                 for value in values]  # fmt: skip
        return _as_values(pa.array(texts, pa.string()), kind)
    return pa.array([None if value is None else True for value in values], pa.bool_())


def _as_values(texts: pa.Array, kind: ColumnType) -> pa.Array:
    """Texts as values that are hashed like those of other formats."""
    if kind.family is Family.WHOLE:
        return pc.cast(texts, pa.int64())
    if kind.family is Family.TIME:
        plain = pc.replace_substring(texts, "T", " ")
        for found in (pa.timestamp("us", "UTC"), pa.timestamp("us")):
            try:
                return pc.cast(plain, found)
            except pa.ArrowInvalid:
                continue
    return texts
