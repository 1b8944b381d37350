"""Reads a bounded part of each source, and keeps its profile.

Of Parquet and ORC footers give counts, and only rows of a sample are read, beside columns that may
be keys. Of text the beginning of the newest snapshots is read, and the beginning of some older files
for names and types of columns.
"""

from __future__ import annotations

import io
import json
import zlib
from bz2 import BZ2Decompressor
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.orc as paorc
import pyarrow.parquet as pq

from snaploom.discovery.columntypes import (
    DATE,
    STRING,
    TIMESTAMP,
    ColumnType,
    Family,
    type_of_arrow,
    type_of_json,
    type_of_texts,
)
from snaploom.discovery.fileformat import (
    CsvFormat,
    JsonFormat,
    NotRecognised,
    csv_format,
    encoding_of,
    json_format,
    text_of,
)
from snaploom.discovery.layout import Layout
from snaploom.discovery.listing import FoundFile, LeftOut
from snaploom.discovery.profiles import (
    ColumnProfile,
    Hashes,
    SourceProfile,
    profile_column,
)
from snaploom.discovery.thresholds import (
    ENOUGH_ROWS,
    HEAD_BYTES,
    KEY_ROWS,
    MOST_HEADS,
    MOST_SNAPSHOTS_READ,
    SAMPLE_ROWS,
    TEXT_BYTES,
)
from snaploom.errors import StorageError

_BATCH = 65_536
"""Rows that are decoded at once."""


@dataclass
class Meter:
    """Counts what was read."""

    bytes_read: int = 0
    files_opened: set[str] = field(default_factory=set)


def profiles_of(
    layouts: Sequence[Layout], meter: Meter
) -> tuple[tuple[SourceProfile, ...], tuple[LeftOut, ...]]:
    """Profiles of sources, and those that could not be read, with the reason.

    Args:
        layouts: the sources.
        meter: counts what is read.
    """
    anchor = anchor_of(layouts)
    profiles: list[SourceProfile] = []
    left_out: list[LeftOut] = []
    for layout in layouts:
        place = _place(layout)
        try:
            profiles.append(_profile(layout, anchor, meter))
        except NotRecognised as error:
            left_out.append(LeftOut(place, str(error)))
        except (pa.ArrowException, OSError, EOFError, zlib.error, ValueError) as error:
            first = str(error).split("\n", 1)[0][:200]
            left_out.append(LeftOut(place, f"not readable as {layout.data_format}: {first}"))
        except StorageError as error:
            left_out.append(LeftOut(place, error.message))
    return tuple(profiles), tuple(left_out)


def _place(layout: Layout) -> str:
    first = layout.files[-1].uri
    more = len(layout.files) - 1
    return first if not more else f"{first} and {more} more"


def anchor_of(layouts: Iterable[Layout]) -> datetime | None:
    """The time at which most sources have a snapshot, the newest of these; None without dates.

    Sources are compared as of one time: then keys of one day meet the register of that day.
    """
    times = Counter(time for layout in layouts for time in layout.snapshots)
    if not times:
        return None
    most = max(times.values())
    return max(time for time, count in times.items() if count == most)


def _chosen_times(layout: Layout, anchor: datetime | None) -> list[datetime | None]:
    """Snapshots to look at: the newest up to the anchor first."""
    times = layout.snapshots
    if not times or anchor is None:
        return [None]
    past = [time for time in times if time <= anchor]
    chosen = list(reversed(past or times[:1]))
    return list(chosen[:MOST_SNAPSHOTS_READ])


def _profile(layout: Layout, anchor: datetime | None, meter: Meter) -> SourceProfile:
    times = _chosen_times(layout, anchor)
    if layout.data_format in ("parquet", "orc"):
        return _columnar(layout, times, meter)
    return _text(layout, times, meter)


# Parquet and ORC.


class ObjectFile(io.RawIOBase):
    """A file of a store, read by ranges."""

    def __init__(self, file: FoundFile, meter: Meter) -> None:
        """Nothing is read yet."""
        self._file = file
        self._meter = meter
        self._at = 0
        meter.files_opened.add(file.uri)

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._file.size}[whence]
        self._at = start + offset
        return self._at

    def tell(self) -> int:
        """The place."""
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        """Bytes from the place on."""
        rest = max(0, self._file.size - self._at)
        wanted = rest if size is None or size < 0 else min(size, rest)
        if wanted == 0:
            return b""
        content = self._file.place.store.get_range(self._file.key, self._at, wanted)
        self._at += len(content)
        self._meter.bytes_read += len(content)
        return content


def _columnar(layout: Layout, times: Sequence[datetime | None], meter: Meter) -> SourceProfile:
    tables: list[pa.Table] = []
    ids: list[Hashes] = []
    files: list[tuple[int, FoundFile]] = []
    rows = read = 0
    for number, time in enumerate(times, start=1):
        for file in layout.files_at(time):
            opened = _Opened(layout.data_format, file, meter)
            rows += opened.rows
            files.append((number, file))
            if read < SAMPLE_ROWS:
                table = opened.table(None, SAMPLE_ROWS - read)
                tables.append(table)
                ids.append(np.full(len(table), number, dtype=np.uint64))
                read += len(table)
        if read >= ENOUGH_ROWS:
            break
    sample = _concatenated(tables)
    snapshot = np.concatenate(ids)[: len(sample)]
    columns = [
        profile_column(field.name, type_of_arrow(field.type), sample.column(field.name), snapshot, read)
        for field in sample.schema
        if field.name
    ]
    if read < rows:
        columns = _with_key_columns(columns, layout, files, read, meter)
    return SourceProfile(
        name=layout.name,
        layout=layout,
        columns=tuple(columns),
        rows=rows,
        rows_read=len(sample),
        snapshot=snapshot,
        snapshots_read=len({number for number, _ in files}),
        format_options={},
        has_one_schema=True,
    )


class _Opened:
    """An open Parquet or ORC file."""

    def __init__(self, data_format: str, file: FoundFile, meter: Meter) -> None:
        source = ObjectFile(file, meter)
        self._parquet = pq.ParquetFile(source) if data_format == "parquet" else None
        self._orc = None if self._parquet is not None else paorc.ORCFile(pa.PythonFile(source, "r"))

    @property
    def rows(self) -> int:
        """By the footer."""
        if self._parquet is not None:
            return int(self._parquet.metadata.num_rows)
        assert self._orc is not None
        return int(self._orc.nrows)

    def table(self, columns: Sequence[str] | None, limit: int) -> pa.Table:
        """The first rows, of some columns or of all."""
        if self._parquet is not None:
            names = None if columns is None else list(columns)
            schema = self._parquet.schema_arrow
            batches: Iterator[pa.RecordBatch] = self._parquet.iter_batches(_BATCH, columns=names)
        else:
            assert self._orc is not None
            schema = self._orc.schema
            names = None if columns is None else list(columns)
            batches = (self._orc.read_stripe(n, names) for n in range(self._orc.nstripes))
        taken: list[pa.RecordBatch] = []
        rows = 0
        for batch in batches:
            taken.append(batch)
            rows += batch.num_rows
            if rows >= limit:
                break
        if not taken:
            return schema.empty_table() if columns is None else schema.empty_table().select(columns)
        return pa.Table.from_batches(taken).slice(0, limit)


def _concatenated(tables: Sequence[pa.Table]) -> pa.Table:
    """Tables as one; the columns of the first where they do not agree."""
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException:
        return tables[0]


def _with_key_columns(
    columns: Sequence[ColumnProfile],
    layout: Layout,
    files: Sequence[tuple[int, FoundFile]],
    sample_rows: int,
    meter: Meter,
) -> list[ColumnProfile]:
    """Profiles of columns, those that may be keys by more rows than the sample has."""
    names = [column.name for column in columns if column.is_unique and column.may_be_key]
    if not names:
        return list(columns)
    tables: list[pa.Table] = []
    ids: list[Hashes] = []
    rows = 0
    for number, file in files:
        if rows >= KEY_ROWS:
            break
        table = _Opened(layout.data_format, file, meter).table(names, KEY_ROWS - rows)
        tables.append(table)
        ids.append(np.full(len(table), number, dtype=np.uint64))
        rows += len(table)
    table = _concatenated(tables)
    snapshot = np.concatenate(ids)[: len(table)]
    again = {
        name: profile_column(
            name, type_of_arrow(table.schema.field(name).type), table.column(name), snapshot,
            sample_rows,
        )
        for name in names
        if name in table.schema.names
    }  # fmt: skip
    return [again.get(column.name, column) for column in columns]


# Text.


def _text(layout: Layout, times: Sequence[datetime | None], meter: Meter) -> SourceProfile:
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
        layout=layout,
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

    Args:
        file: which one.
        limit: bytes, after unpacking.
        meter: counts what is read.

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
    """Members of gzip one after the other, up to a limit."""
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
    """What was read of a source of text."""

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
        tables.append(table)
        ids.append(np.full(len(table), number, dtype=np.uint64))
        skipped += bad
    others: list[pa.Table] = []
    for content, is_whole in heads:
        if content.strip():
            table, _ = _csv_rows(content, is_whole, form)
            headers.add(tuple(table.column_names))
            others.append(table)
    rows = sum(len(table) for table in tables)
    whole = pa.concat_tables([*tables, *others], promote_options="default")
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
    same = {tuple(n.casefold() for n in header) for header in headers}
    return _TextTable(
        tuple(columns), rows, np.concatenate(ids), options, len(same) == 1, tuple(notes)
    )


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
        parsed = csv_format((header + "\n").encode(), is_whole=True) if header.strip() else form
        own = replace(parsed, separator=form.separator) if parsed.has_header else form
    names = own.columns if len(own.columns) > 1 or len(form.columns) == 1 else form.columns
    table = pacsv.read_csv(
        io.BytesIO(encoded),
        read_options=pacsv.ReadOptions(
            column_names=list(names), skip_rows=int(form.has_header),
            block_size=max(1024, len(encoded) + 1),
        ),
        parse_options=pacsv.ParseOptions(
            delimiter=form.separator, newlines_in_values=True, invalid_row_handler=skip,
            double_quote=form.escape == '"',
            escape_char=False if form.escape == '"' else form.escape,
        ),
        convert_options=pacsv.ConvertOptions(
            column_types={name: pa.string() for name in names}, null_values=[""],
            strings_can_be_null=True, quoted_strings_can_be_null=False,
        ),
    ) if encoded.strip() else pa.table({name: pa.array([], pa.string()) for name in names})  # fmt: skip
    return table, skipped


def _json_table(
    contents: Sequence[tuple[int, FoundFile, bytes, bool]], heads: Sequence[tuple[bytes, bool]]
) -> _TextTable:
    form = json_format(contents[0][2][:HEAD_BYTES])
    records: list[dict[str, object]] = []
    ids: list[Hashes] = []
    for number, _, content, is_whole in contents:
        found = json_records(content, is_whole, form)
        records.extend(found)
        ids.append(np.full(len(found), number, dtype=np.uint64))
    others = [r for content, is_whole in heads for r in json_records(content, is_whole, form)]
    if not records:
        raise NotRecognised("no records")
    names = list(dict.fromkeys(name for record in (*records, *others) for name in record))
    columns: list[tuple[str, ColumnType, pa.Array]] = []
    for name in names:
        values = [record.get(name) for record in records]
        kind = type_of_json([*values, *(record.get(name) for record in others)])
        columns.append((name, kind, _json_values(values, kind)))
    return _TextTable(tuple(columns), len(records), np.concatenate(ids), form.options)


def json_records(content: bytes, is_whole: bool, form: JsonFormat) -> list[dict[str, object]]:
    """The records of a file.

    Args:
        content: its first bytes.
        is_whole: whether these are all.
        form: how it is written.

    Raises:
        NotRecognised: a line, or the document, is no record.
    """
    text = text_of(content, encoding_of(content))
    if not form.is_lines:
        if not is_whole:
            raise NotRecognised("one document of JSON that is too long to look at: write lines")
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
