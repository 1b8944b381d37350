"""Files that have types of their own: their rows, or evenly spread parts of them."""

import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as paorc
import pyarrow.parquet as pq

from snaploom.files.measured import LARGE, FileTable
from snaploom.files.typedfiles import LocalFile, RangedFile, conform, reader_at
from snaploom.parquet.footers import FooterInvalid, footer_bytes, parse_footer
from snaploom.plugins.discovery import profiles
from snaploom.plugins.discovery.avro import avro_batches
from snaploom.plugins.discovery.dates import ColumnType, Family, type_of_arrow
from snaploom.plugins.discovery.foundfiles import (
    FILE_VALUES,
    MOST_VALUES,
    FoundFile,
    NotRecognised,
    refuse_width,
)
from snaploom.plugins.discovery.layout import Layout, TableFolder
from snaploom.plugins.discovery.scratch import FILE, SNAPSHOT, AskedTable, Rows, Scratch
from snaploom.policy.fileformats import format_of, known_formats
from snaploom.sources.databases.declared import table_parts
from snaploom.sources.databases.drivers import DATABASES
from snaploom.sources.files.footers import times_in_nanoseconds
from snaploom.types.arrow import plain, spark_type
from snaploom.types.schemas import Simple

# A file of a store as Arrow reads it, and the meter of bytes read.


@dataclass
class Meter:
    """Counts bytes read."""

    bytes_read: int = 0
    files_opened: set[str] = field(default_factory=set)


def object_file(file: FoundFile, meter: Meter) -> RangedFile:
    """A file of a store, read by ranges."""

    def read(start: int, length: int) -> bytes:
        content = file.place.store.get_range(file.key, start, length)
        meter.bytes_read += len(content)
        return content

    meter.files_opened.add(file.uri)
    return RangedFile(file.size, read)


def local_path(file: FoundFile) -> str:
    """The path of a file of this machine, whose URI is literal; empty for a file of a store."""
    path = file.uri.removeprefix("file://")
    return "" if path == file.uri else path


def opened_file(file: FoundFile, meter: Meter) -> pa.NativeFile:
    """A file as readers of formats take it."""
    path = local_path(file)
    if path:
        meter.bytes_read += 0 if file.uri in meter.files_opened else file.size
        meter.files_opened.add(file.uri)
        return LocalFile(path)
    return pa.PythonFile(io.BufferedReader(object_file(file, meter), BUFFER), "r")


# Files that have types of their own: their rows, or a part, as batches of Arrow.

BUFFER = 1024 * 1024
"""Bytes of a file that are asked for at once."""
_BATCH = 65_536
"""Rows that are decoded at once."""
_T = TypeVar("_T")


@dataclass(frozen=True)
class Part:
    """A file, or a part of it, with rows of a source."""

    snapshot: int
    """Number of the snapshot it belongs to, from 1."""
    file: FoundFile
    limit: int
    """Bytes of it that are read."""
    data_format: str


Shape = Callable[[pa.Table, Part], pa.Table]
"""Makes the columns of a source of those of one file."""


@dataclass(frozen=True)
class _OpenFile:
    """A file whose schema is known."""

    schema: pa.Schema
    rows: int | None
    """In all of it; None where only reading shows that."""
    batches: Callable[[Sequence[str], float], Iterable[pa.RecordBatch]]
    """Some columns of its rows, or of about a share of them."""
    kinds: Mapping[str, str] = field(default_factory=dict)
    """Of columns of Parquet their logical types."""
    remarks: set[str] = field(default_factory=set)
    """About its columns, as far as these were read."""


def _parquet(source: RangedFile) -> _OpenFile:
    opened = pq.ParquetFile(source)

    def batches(columns: Sequence[str], share: float) -> Iterator[pa.RecordBatch]:
        groups = spread(range(opened.num_row_groups), share)
        yield from opened.iter_batches(_BATCH, row_groups=groups, columns=list(columns))

    kinds = {column.path: column.logical_type.to_json()
             for column in map(opened.schema.column, range(len(opened.schema)))}  # fmt: skip
    kinds |= {path: "" for path, is_own in times_in_nanoseconds(opened.schema) if is_own}
    with suppress(FooterInvalid):  # asked about an encrypted column Arrow ends the process
        metadata = parse_footer(footer_bytes(partial(_end_of, source), source.seek(0, io.SEEK_END)))
        first = metadata.row_group(0) if metadata.num_row_groups else None
        for column in map(first.column, range(first.num_columns)) if first else ():
            kinds[column.path_in_schema] += column.compression
    return _OpenFile(opened.schema_arrow, int(opened.metadata.num_rows), batches, kinds)


def _end_of(source: RangedFile, count: int) -> bytes:
    source.seek(-count, io.SEEK_END)
    return source.read(count)


_REMEDIES = {
    '"nanoseconds"': "no type for nested times in nanoseconds: write microseconds "
    "(coerce_timestamps='us')",
    '"Time"': "no type for times of day: write texts", '"UUID"': "no type for UUIDs: write texts",
    '"Float16"': "no type for fractions of two bytes: write float32",
    '"precision":(39|[4-9][0-9])': "no type for more than 38 digits: write texts",
    "(BROTLI|LZO)$": "no codec for BROTLI and LZO: write ZSTD or SNAPPY",
}  # fmt: skip
"""Types and codecs of Parquet that Spark has not, each with its remedy."""


def _orc(source: RangedFile) -> _OpenFile:
    opened = paorc.ORCFile(pa.PythonFile(source, "r"))
    for one in opened.schema:
        if "`" in str(one):
            raise NotRecognised(f"column {one.name}: Spark cuts names in ORC at a `: rename it")
    is_shifted = opened.writer == "ORC_CPP"  # PyArrow, for one, names no calendar
    times = {one.name for one in opened.schema if pa.types.is_timestamp(one.type)}
    remarks: set[str] = set()

    def stripe(number: int, columns: Sequence[str]) -> pa.RecordBatch:
        try:
            found = opened.read_stripe(number, list(columns))
        except pa.ArrowInvalid:  # times such as 9999-12-31, which Arrow takes for nanoseconds
            if not times.intersection(columns):
                raise
            remarks.update(
                f"{name} has times before 1677 or after 2262, which were not looked at"
                f"{_SHIFTED * is_shifted}" for name in times.intersection(columns)
            )  # fmt: skip
            return stripe(number, [name for name in columns if name not in times])
        days = (one.name for one in found.schema if is_shifted and pa.types.is_date(one.type))
        remarks.update(
            f"{name} has days before 1582{_SHIFTED}" for name in days
            if pc.any(pc.less(found.column(name), _GREGORIAN)).as_py()
        )  # fmt: skip
        return found

    def batches(columns: Sequence[str], share: float) -> Iterable[pa.RecordBatch]:
        stripes = spread(range(opened.nstripes), share)
        return (stripe(number, columns) for number in stripes)

    return _OpenFile(opened.schema, int(opened.nrows), batches, remarks=remarks)


_GREGORIAN = pa.scalar(-141_427, pa.date32())
"""1582-10-15, from which on calendars agree."""
_SHIFTED = ": a run shifts those before 1582, for want of a calendar in the file: write Parquet"


def _of_stream(
    open_file: Callable[[pa.NativeFile], pa.RecordBatchReader], source: RangedFile
) -> _OpenFile:
    file = pa.PythonFile(io.BufferedReader(source, BUFFER), "r")
    size = file.size()
    opened = open_file(file)

    def batches(columns: Sequence[str], share: float) -> Iterator[pa.RecordBatch]:
        for batch in opened:
            yield batch.select(list(columns))
            if source.tell() > size * share:
                return

    return _OpenFile(opened.schema, None, batches)


def _of_table(part: Part, table: FileTable, meter: Meter) -> _OpenFile:
    """A table of a file, by its first values."""
    asked = format_of(part.data_format)
    arguments = asked.arguments(table.options, most=FILE_VALUES)
    opened = reader_at(asked.reader, arguments)(opened_file(part.file, meter))

    def batches(columns: Sequence[str], _: float) -> Iterator[pa.RecordBatch]:
        for batch in opened:
            yield batch.select(list(columns))

    return _OpenFile(opened.schema, table.rows, batches)


_READERS: dict[str, Callable[[RangedFile], _OpenFile]] = {
    "parquet": _parquet, "orc": _orc, "avro": partial(_of_stream, avro_batches),
    **{each.name: partial(_of_stream, reader_at(each.reader))
       for each in known_formats() if each.reader and not each.tables},
}  # fmt: skip
TYPED_FORMATS = frozenset({*_READERS, *(each.name for each in known_formats() if each.tables)})
"""Formats of files whose columns have types."""


def spread(members: Sequence[_T], share: float) -> list[_T]:
    """A share of the members at equal distances, at least one; of two and more both ends."""
    number = min(len(members), max(1, int(len(members) * share)))
    if number < 2:
        return list(members[:number])
    return [members[round(place * (len(members) - 1) / (number - 1))] for place in range(number)]


def profile_typed(
    name: str,
    origin: Layout | TableFolder,
    parts: Sequence[Part],
    scratch: Scratch,
    meter: Meter,
    shape: Shape = lambda table, _: table,
) -> profiles.SourceProfile:
    """The profile of a source by the rows of its files, or of parts of them.

    `shape` makes the source's columns from those of a file.

    Raises:
        NotRecognised: there is nothing, or a file is not of its format.
    """
    table = origin.table if isinstance(origin, Layout) else None
    opened: list[tuple[Part, _OpenFile]] = []
    schemas: list[pa.Schema] = []
    for part in parts:
        if table is None:
            found = _READERS[part.data_format](object_file(part.file, meter))
        else:
            found = _of_table(part, table, meter)
        for column, kind in found.kinds.items() if isinstance(origin, Layout) else ():
            for remedy in (each for mark, each in _REMEDIES.items() if re.search(mark, kind)):
                place = f"{part.file.key}, column {column}"
                raise NotRecognised(f"{place}: Spark has {remedy}")
        refuse_width(len(found.schema))
        opened.append((part, found))
        schemas.append(shape(found.schema.empty_table(), part).schema)
    if not opened:
        raise NotRecognised("no files with rows")
    loading = _Loading(scratch, schemas if table is None else [_common(schemas)])
    counted = [found.rows for _, found in opened if found.rows is not None]
    share = min(1.0, loading.most / max(1, sum(counted)))
    for number, (part, found) in enumerate(opened):
        wanted = share * min(1.0, part.limit / max(1, part.file.size))
        kept = [one.name for one in found.schema if one.name and _is_kept(one)]
        for batch in found.batches(kept, wanted):
            loading.add(shape(pa.Table.from_batches([batch]), part), part.snapshot, number)
            if loading.rows * len(opened) >= loading.most * (number + 1):
                break
    files = tuple(part.file for part in parts)
    # Of a table its file's bytes are no measure.
    read = sum(part.file.size if table else min(part.limit, part.file.size) for part in parts)
    stored = sum(file.size for file in origin.files) if isinstance(origin, Layout) else read
    known = sum(counted) if len(counted) == len(opened) else loading.rows
    if table is not None and loading.rows * len(loading.columns) > FILE_VALUES - len(
        loading.columns
    ):
        known = max(known, loading.rows + 1)  # how many there are is not known
    in_all = round(known * max(1.0, stored / max(1, read)))
    are_files = isinstance(origin, Layout) and table is None
    mixed = _mixed(schemas, [part for part, _ in opened]) if are_files else frozenset[str]()
    notes = [f"{each} has several types in its files: it is read as one" for each in mixed]
    notes += [f"{each} has times finer than microseconds, which are cut" for each in loading.cut]
    notes += sorted(set[str]().union(*(found.remarks for _, found in opened)))
    every = schemas if parts[0].data_format == "parquet" else []
    lengths = {each.name: each.type.unit for each in chain.from_iterable(every)
               if pa.types.is_duration(each.type)}  # fmt: skip
    notes += [f"{each} is a length of time: its number of {unit}" for each, unit in lengths.items()]
    profile = loading.profile(name, origin, in_all, files)
    return replace(profile, mixed=mixed, notes=tuple(sorted(notes)))


def _mixed(schemas: Sequence[pa.Schema], parts: Sequence[Part]) -> frozenset[str]:
    """Columns that have types in some snapshots to which those in others do not widen.

    Raises:
        NotRecognised: no type holds the values of one, or Spark reads two types at once.
    """
    kinds: dict[str, dict[object, list[int]]] = {}
    for place, one in ((n, each) for n, schema in enumerate(schemas) for each in schema):
        kind = spark_type(pa.int32() if pa.types.is_null(one.type) else one.type)
        if kind is None:
            file = f"{parts[place].file.key}, column {one.name}"
            raise NotRecognised(f"{file}: Spark has no type for {one.type}: write another one")
        known = kind.name if isinstance(kind, Simple) else type(kind)
        places = kinds.setdefault(one.name, {}).setdefault(_WIDENED.get(known, known), [])
        places.append(place)
    found = {name: list(some.values()) for name, some in kinds.items() if len(some) > 1}
    for name, some in found.items():
        times = [{parts[at].snapshot for at in places} for places in some]
        is_plain = all(isinstance(kind, str) and kind != "binary" for kind in kinds[name])
        if not is_plain or sum(map(len, times)) > len(set().union(*times)):
            given = (f"{schemas[at].field(name).type} in {parts[at].file.key}" for at, *_ in some)
            raise NotRecognised(f"column {name} is {', '.join(given)}: write one type")
    return frozenset(found)


_WIDENED: dict[object, object] = {
    **dict.fromkeys(("byte", "short", "integer"), "long"), "float": "double"
}  # fmt: skip


def _common(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """Columns with types that hold all values of files, whose values have types of their own.

    Metadata of one show that it has whole numbers of which fractions do not hold all digits.
    """
    types: dict[str, pa.DataType] = {}
    for one in chain.from_iterable(schemas):
        before, kind = types.get(one.name, pa.null()), one.type
        if before == kind or pa.types.is_null(kind):
            kind = before
        elif not pa.types.is_null(before):
            both = {before, kind}
            kind = next((wide for some, wide in _WIDER if both <= some), pa.string())
        types[one.name] = kind
    large = {one.name for one in chain.from_iterable(schemas) if LARGE in (one.metadata or {})}
    for name, kind in types.items():
        if pa.types.is_null(kind) or (kind == pa.float64() and name in large):
            types[name] = pa.string()
    return pa.schema(list(types.items()))


_WIDER = (
    ({pa.int64(), pa.float64()}, pa.float64()),
    ({pa.date32(), pa.timestamp("us")}, pa.timestamp("us")),
)


def profile_rows(
    name: str, origin: profiles.DatabaseTable, read: profiles.ReadTable, scratch: Scratch
) -> profiles.SourceProfile:
    """The profile of a table of a database by its first rows, and by what its database answers."""
    loading = _Loading(scratch, [read.sample.schema])
    loading.add(read.sample, 1, 0)
    asked = None
    if read.ask is not None:
        quoted = DATABASES[origin.address.driver].quoted
        table = ".".join(quoted(part) for part in table_parts(read.reference))
        columns = {own: quoted(column) for column, _, own in loading.columns if own}
        asked = AskedTable(read.ask, table, columns)
    times = [one.name for one in read.sample.schema if pa.types.is_time(one.type)]
    notes = tuple(f"{each} is a time of day: it is read as one of 1970-01-01" for each in times)
    return replace(loading.profile(name, origin, read.rows, asked=asked), notes=notes)


def _is_kept(found: pa.Field) -> bool:
    kind = type_of_arrow(found.type)
    return kind.family is not Family.OTHER or profiles.may_be_whole(found.name, kind)


def _comparable(found: pa.DataType) -> pa.DataType:
    """The type as which values of files with different types are compared."""
    found = plain(found)
    if pa.types.is_timestamp(found):
        return pa.timestamp("us")
    is_text = not pa.types.is_integer(found) and type_of_arrow(found).family is Family.TEXT
    return pa.string() if is_text else found


class _Loading:
    """A table of a source's rows, as they are added."""

    def __init__(self, scratch: Scratch, schemas: Sequence[pa.Schema]) -> None:
        try:
            found = pa.unify_schemas(list(schemas), promote_options="permissive")
        except pa.ArrowException:
            found = _common(schemas)
        self.columns: list[tuple[str, ColumnType, str]] = [
            (one.name, type_of_arrow(one.type), f"c{place}" if _is_kept(one) else "")
            for place, one in enumerate(found)
            if one.name
        ]
        kept = [(name, own) for name, _, own in self.columns if own]
        self._wanted = [(name, own, _comparable(found.field(name).type)) for name, own in kept]
        numbers = [(FILE, pa.uint32()), (SNAPSHOT, pa.uint32())]
        self._schema = pa.schema([*((own, kind) for _, own, kind in self._wanted), *numbers])
        self._scratch = scratch
        self._table = scratch.create(self._schema.empty_table())
        self._snapshots: set[int] = set()
        self.cut: set[str] = set()
        self.rows = 0
        self.most = MOST_VALUES // max(1, len(kept))

    def add(self, batch: pa.Table, snapshot: int, file: int) -> None:
        """Add rows of a file."""
        self.cut.update(one.name for one in batch.schema if _is_finer(batch.column(one.name)))
        arrays = [
            _conformed(batch.column(name), kind)
            if name in batch.schema.names
            else pa.nulls(len(batch), kind)
            for name, _, kind in self._wanted
        ]
        arrays += [pa.array([number] * len(batch), pa.uint32()) for number in (file, snapshot)]
        self._scratch.insert(self._table, pa.Table.from_arrays(arrays, schema=self._schema))
        self._snapshots.add(snapshot)
        self.rows += len(batch)

    def profile(
        self,
        name: str,
        origin: Layout | TableFolder | profiles.DatabaseTable,
        in_all: int,
        files: Sequence[FoundFile] = (),
        asked: AskedTable | None = None,
    ) -> profiles.SourceProfile:
        """The profile of the source, which has so many rows in all."""
        rows = Rows(
            self._scratch, self._table, self.rows, max(self.rows, in_all), len(self._snapshots),
            tuple(file.uri for file in files), asked,
        )  # fmt: skip
        return profiles.SourceProfile(
            name, origin, profiles.column_profiles(rows, self.columns), rows.values((SNAPSHOT,))
        )


def _is_finer(column: pa.ChunkedArray) -> bool:
    """Whether times have digits beyond those of Spark's."""
    if not pa.types.is_timestamp(column.type) or column.type.unit != "ns":
        return False
    zone = column.type.tz
    whole = column.cast(pa.timestamp("us", zone), safe=False).cast(column.type)
    return bool(pc.any(pc.not_equal(column, whole)).as_py())


def _conformed(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    values = column.combine_chunks()
    if pa.types.is_timestamp(values.type):
        return values.cast(kind, safe=False)  # nanoseconds are cut, as Spark does
    return conform(values, kind)
