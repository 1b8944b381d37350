"""States of declared skipping indexes, and statistics of columns in footers.

Needs Arrow, so that it is imported only where that is installed (`site.index_states`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from snaploom.errors import SkippingError, SnaploomError
from snaploom.files.objectstore import STORE_FAILURES, ObjectStore
from snaploom.models.common import EpochNanos
from snaploom.models.skippingindex import SkippingIndex
from snaploom.output.entries import FileRecord, SnapshotRecord
from snaploom.parquet.footers import FooterInvalid, bare_footer, footer_bytes, parse_footer
from snaploom.parquet.statistics import Value, column_statistics
from snaploom.parquet.thrift import StructInvalid, refuse_long_paths
from snaploom.plugins.site.pagedata import ColumnFacts, IndexState, shortened
from snaploom.plugins.site.pages import unread_index
from snaploom.run.declarations import Declarations
from snaploom.run.indexes import indexrequests
from snaploom.run.weaving.datafindings import is_confidential
from snaploom.skipping.core.definition import IndexDefinition
from snaploom.skipping.core.filetable import FileTable, field_column
from snaploom.skipping.indexes.valueset import FIELD, VALUE_SET
from snaploom.skipping.lifecycle.description import describe, describe_usage
from snaploom.skipping.stores.port import NEVER, IndexStore, StoredState
from snaploom.types import schemas
from snaploom.types.schemas import Decimal, Field, Simple, Struct


def index_states(
    declarations: Declarations, names: Sequence[str], files: Sequence[str] = ()
) -> tuple[IndexState, ...]:
    """The state of each named SkippingIndex, which includes a failure to read it.

    `files` are URIs of those of the newest snapshot.
    """
    resources = {
        resource.name: resource
        for resource in declarations.resources
        if isinstance(resource, SkippingIndex)
    }
    found = []
    for name in names:
        unread = unread_index(resources[name], "")
        try:
            found.append(_state(unread, indexrequests.place_of_resource(declarations, name), files))
        except SnaploomError as error:
            found.append(replace(unread, problem=error.message))
    return tuple(found)


def _state(
    index: IndexState, place: indexrequests.IndexedPlace, files: Sequence[str]
) -> IndexState:
    store = indexrequests.find_index(place)
    described, used = describe(store), describe_usage(store)
    refreshed = described.state.refreshed_at
    state = replace(
        index,
        phase=described.condition,
        refreshed=None if refreshed == NEVER else EpochNanos(refreshed),
        files=described.rows,
        bytes=described.bytes,
        coverage=tuple((one.definition.label, one.known, one.unknown) for one in described.indexes),
        distinct=_distinct_in(store, described.state, files),
        problem=described.problem,
    )
    if used.recorded is None:
        return state
    usage = used.recorded.total
    return replace(
        state,
        reads=usage.reads,
        files_considered=usage.files,
        files_dropped=usage.dropped_files,
        bytes_considered=usage.bytes,
        bytes_dropped=usage.dropped_bytes,
    )


def _distinct_in(store: IndexStore, state: StoredState, files: Sequence[str]) -> Mapping[str, int]:
    if state.definition is None or not files:
        return {}
    try:
        return distinct_counts(state.definition.indexes, store.open(state), files)
    except (SkippingError, *STORE_FAILURES):
        return {}  # what is wrong with the index is shown by its description


def distinct_counts(
    indexes: Iterable[IndexDefinition], rows: FileTable, files: Sequence[str]
) -> Mapping[str, int]:
    """By column, the number of values in some files, where sets of values have them all."""
    paths = pa.array([indexrequests.hadoop_path(uri) for uri in files], pa.large_string())
    there = pc.is_in(rows.column("path"), value_set=paths)
    if pc.sum(there).as_py() != len(paths):
        return {}
    found = {}
    for index in indexes:
        if index.type == VALUE_SET.name and index.term.names and not index.key_label:
            sets = rows.column(field_column(index.index_id, FIELD)).filter(there)
            if not sets.null_count:
                found[".".join(index.term.names)] = pc.count_distinct(sets.flatten()).as_py()
    return found


# Statistics of the newest snapshot's columns: footers are read, and no row.

MOST_FILES = 32
"""Files of a snapshot whose footers are read, two requests each; of more, none is."""
MOST_COLUMNS = 500
"""Columns whose statistics are listed."""
LONGEST_VALUE = 60
"""Characters of a value."""


def column_facts(
    store: ObjectStore, record: SnapshotRecord, schema: Struct
) -> tuple[ColumnFacts, ...]:
    """Facts that footers prove about the columns of a snapshot outside arrays and maps.

    Values of columns whose metadata has `confidential` are not shown. Nothing is proved where a
    footer cannot be read.
    """
    if not record.files or len(record.files) > MOST_FILES:
        return ()
    try:
        footers = [_footer(store, file) for file in record.files]
    except (FooterInvalid, StructInvalid, *STORE_FAILURES):
        return ()
    found = (
        _facts(footers, names, field) for names, field in islice(_leaves(schema, ()), MOST_COLUMNS)
    )
    return tuple(one for one in found if one is not None)


def _footer(store: ObjectStore, file: FileRecord) -> pq.FileMetaData:
    def read_last(count: int) -> bytes:
        return store.get_range(file.path, file.bytes - count, count)

    content = footer_bytes(read_last, file.bytes)
    refuse_long_paths(bare_footer(content))
    return parse_footer(content)


def _leaves(struct: Struct, above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Field]]:
    for field in struct.fields:
        if isinstance(field.type, Struct):
            yield from _leaves(field.type, (*above, field.name))
        elif isinstance(field.type, Simple | Decimal):
            yield (*above, field.name), field


def _facts(
    footers: Sequence[pq.FileMetaData], names: tuple[str, ...], field: Field
) -> ColumnFacts | None:
    described = schemas.describe(field.type)
    type_ = schemas.SQL_NAMES.get(described, described)
    known = [column_statistics(each, names, type_, is_case_sensitive=True) for each in footers]
    proved = [one for one in known if one is not None]
    if len(proved) < len(footers):
        return None
    bounds = [pair for one in proved for pair in one.bounds or ()]
    is_bounded = (
        bounds and not is_confidential(field) and all(one.bounds is not None for one in proved)
    )
    return ColumnFacts(
        ".".join(names),
        type_,
        sum(one.values for one in proved),
        sum(one.nulls for one in proved),
        _written(min(low for low, _ in bounds), type_) if is_bounded else "",
        _written(max(high for _, high in bounds), type_) if is_bounded else "",
    )


def _written(value: Value, type_: str) -> str:
    if isinstance(value, bytes):
        text = value.decode(errors="replace")
        return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"
    if type_ == "date" and isinstance(value, int):
        return str(date(1970, 1, 1) + timedelta(days=value))
    if type_.startswith("timestamp") and isinstance(value, int):
        return shortened(EpochNanos(value * 1000))
    return str(value)
