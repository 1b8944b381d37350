"""Reads a bounded part of each source, and keeps its profile.

Of Parquet and ORC footers give counts, and only rows of a sample are read, beside columns that may
be keys. Of text the beginning of the newest snapshots is read, and that of some older files for
names and types of columns.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.orc as paorc
import pyarrow.parquet as pq

from snaploom.discovery.columntypes import type_of_arrow
from snaploom.discovery.fileformat import NotRecognised
from snaploom.discovery.foundfiles import FoundFile, LeftOut
from snaploom.discovery.layout import Layout
from snaploom.discovery.objectfile import Meter, ObjectFile
from snaploom.discovery.profiles import ColumnProfile, Hashes, SourceProfile, profile_column
from snaploom.discovery.textsamples import profile_text
from snaploom.discovery.thresholds import (
    ENOUGH_ROWS,
    KEY_ROWS,
    MOST_SNAPSHOTS_READ,
    SAMPLE_ROWS,
)
from snaploom.errors import StorageError

MOST_COLUMNS, LONGEST_NAME, LONGEST_URI = 2000, 512, 1900
"""Bounds of declarations (`models.datasource`); a glob is longer than the path by a few."""
_BATCH = 65_536
"""Rows that are decoded at once."""


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
            profile = _profile(layout, anchor, meter)
            refuse_undeclarable(profile)
            profiles.append(profile)
        except NotRecognised as error:
            left_out.append(LeftOut(place, str(error)))
        except RecursionError:
            left_out.append(LeftOut(place, "values are nested too deeply"))
        except (pa.ArrowException, OSError, EOFError, zlib.error, ValueError) as error:
            first = str(error).split("\n", 1)[0][:200]
            left_out.append(LeftOut(place, f"not readable as {layout.data_format}: {first}"))
        except StorageError as error:
            left_out.append(LeftOut(place, error.message))
    return tuple(profiles), tuple(left_out)


def refuse_undeclarable(profile: SourceProfile) -> None:
    """Refuse what declarations cannot hold.

    Raises:
        NotRecognised: with the reason.
    """
    names = [column.name for column in profile.columns]
    if not names or len(names) > MOST_COLUMNS:
        raise NotRecognised(f"{len(names):,} columns, and a source has 1 to {MOST_COLUMNS:,}")
    if not all(0 < len(name) <= LONGEST_NAME for name in names):
        raise NotRecognised(f"a column whose name is empty or longer than {LONGEST_NAME}")
    if len({name.casefold() for name in names}) < len(names):
        raise NotRecognised("columns whose names are equal but for capitals")
    if len(profile.layout.files[0].uri) > LONGEST_URI:
        raise NotRecognised(f"paths longer than {LONGEST_URI:,} characters")


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
    return profile_text(layout, times, meter)


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
        profile_column(
            field.name, type_of_arrow(field.type), sample.column(field.name), snapshot, read
        )
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
