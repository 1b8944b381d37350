"""Rows about files: from footers where they prove everything, else from one pass over the rows.

A row is given only about a file that did not change while it was read: what the file system reports
about it before and after must equal the listing (rule S21).
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import SparkSession

from snaploom.skipping.core.definition import IndexDefinition
from snaploom.skipping.core.filetable import (
    IDENTITY_FIELDS,
    field_column,
    nulls_column,
    values_column,
)
from snaploom.skipping.core.terms import arrow_type
from snaploom.skipping.indexes.registry import index_type
from snaploom.skipping.lifecycle.target import Progress
from snaploom.skipping.spark.builds.directreader import DirectReader
from snaploom.skipping.spark.builds.footers import Footer, FooterReader, FooterTerm
from snaploom.skipping.spark.builds.scan import Relation, scan
from snaploom.skipping.spark.builds.statecollector import Scanned
from snaploom.skipping.spark.relations.expressions import Literal
from snaploom.skipping.spark.relations.hadoop import (
    FileState,
    granularity_of,
    local_path,
    states_of,
    wait_until_settled,
)

PARTITION = "PARTITION"
"""The type whose rows come from only the listing."""

_BLOCK_FILES = 50_000
"""Files whose footers are read before the first of their rows are made."""
_PIECE_FILES = 1000
_PIECE_BYTES = 512 << 20
_MOST_KEPT = 8 << 20
"""Files that are built at once, and the bytes of them that may be held in the driver: of one file
as much as it has, but not more than a million hashes."""

_LOCAL_MASTER = re.compile(r"local(\[|$)")

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class BuildPlan:
    """What a build needs to know about the target."""

    relation: Relation
    """How Spark reads it."""
    file_count: int
    """Files that the relation has."""
    partition_names: tuple[str, ...]
    """Partition columns, in order."""
    partitions: Mapping[str, tuple[Literal, ...]]
    """Partition values by path."""
    footer_terms: Mapping[str, FooterTerm] = field(default_factory=dict)
    """Terms that footers may prove, by key."""
    is_parquet: bool = False
    """Whether the files have footers."""
    is_case_sensitive: bool = False
    """Whether names differ by case."""


@dataclass
class Counters:
    """What a build did, for people and benchmarks."""

    footer_bytes: int = 0
    """Bytes of footers that were read."""
    footer_files: int = 0
    """Files whose footers were read."""
    direct_files: int = 0
    """Files whose rows were read without Spark."""
    scanned_files: int = 0
    """Files whose rows Spark read."""
    failures: dict[str, str] = field(default_factory=dict)
    """Files about which nothing could be found out, and why."""


_Row = dict[str, Scanned]
"""What is known about one file, by `index_id`."""


def build_rows(
    plan: BuildPlan,
    indexes: Sequence[IndexDefinition],
    files: pa.Table,
    progress: Progress,
    counters: Counters,
) -> Iterator[pa.Table]:
    """Rows in pieces of bounded size, in the form of `snaploom.skipping.core.filetable`.

    Args:
        plan: the target.
        indexes: what is built.
        files: identity columns, as they were listed.
        progress: called after each piece.
        counters: where this build counts.
    """
    total = files.num_rows
    progress(0, total)
    for start in range(0, total, _BLOCK_FILES):
        block = files.slice(start, _BLOCK_FILES)
        listed = _settled(block, counters)
        footers = _footers(plan, indexes, listed, counters)
        done = 0
        for count in piece_sizes(block.column("length").to_pylist()):
            yield _build_piece(plan, indexes, block.slice(done, count), listed, footers, counters)
            done += count
            progress(start + done, total)


def _settled(files: pa.Table, counters: Counters) -> dict[str, FileState]:
    """Files as they were listed, without those of which it is unknown whether they change."""
    names, *facts = (files.column(name).to_pylist() for name, _ in IDENTITY_FIELDS)
    listed = dict(zip(names, map(FileState, *facts), strict=True))
    paths = list(listed)
    changed = [state.changed for state in listed.values()]
    wait_until_settled(paths, changed)
    now = time.time() * 1000 - granularity_of(paths)
    for path in [path for path, at in zip(paths, changed, strict=True) if at > now]:
        _leave_out(path, "was modified in the future, by this machine's clock", counters)
        del listed[path]
    return listed


def _leave_out(path: str, why: str, counters: Counters) -> None:
    counters.failures[path] = why
    _LOG.warning("%s stays unknown to the index: %s", path, why)


def piece_sizes(lengths: Sequence[int]) -> Iterator[int]:
    """How many files are built at once, one number a piece, from their bytes."""
    count = held = 0
    for length in lengths:
        kept = min(length, _MOST_KEPT)
        if count == _PIECE_FILES or (count and held + kept > _PIECE_BYTES):
            yield count
            count = held = 0
        count += 1
        held += kept
    if count:
        yield count


def _build_piece(
    plan: BuildPlan,
    indexes: Sequence[IndexDefinition],
    files: pa.Table,
    listed: Mapping[str, FileState],
    footers: Mapping[str, Footer],
    counters: Counters,
) -> pa.Table:
    paths = [path for path in files.column("path").to_pylist() if path in listed]
    states = {path: listed[path] for path in paths}
    some = {path: footers[path] for path in paths if path in footers}
    found = _rows(plan, indexes, states, some, counters)
    rows: dict[str, _Row] = {}
    for path, state in zip(paths, states_of(plan.relation.spark, paths), strict=True):
        if not states[path].agrees(state):
            found.failures[path] = "changed while it was read"
        elif path in found.rows:
            rows[path] = found.rows[path]
    for path, why in found.failures.items():
        _leave_out(path, why, counters)
    return _table(indexes, files, rows)


@dataclass(frozen=True)
class _Found:
    """What was found out about the files of a piece."""

    rows: Mapping[str, _Row]
    """By path; files about which nothing was found out are not in it."""
    failures: dict[str, str]
    """Why something was not found out, by path."""


def _rows(
    plan: BuildPlan,
    indexes: Sequence[IndexDefinition],
    listed: Mapping[str, FileState],
    footers: Mapping[str, Footer],
    counters: Counters,
) -> _Found:
    rows: dict[str, _Row] = {path: {} for path in listed}
    failures: dict[str, str] = {}
    read = [definition for definition in indexes if definition.type != PARTITION]
    for definition in indexes:
        if definition.type == PARTITION:
            for path, row in rows.items():
                _add(row, definition, _partition_row(plan, definition, path))
    for definition in read:
        for path, found_by_footer in _footer_rows(plan, definition, footers):
            rows[path][definition.index_id] = found_by_footer
    missing, unproved = _missing(read, rows)
    if unproved:
        some = {path: listed[path] for path in unproved}
        for path, scanned in _direct(plan, missing, some, counters):
            _take(rows[path], missing, scanned, footers.get(path))
        missing, unproved = _missing(read, rows)
    if unproved:
        counters.scanned_files += len(unproved)
        is_everything = len(unproved) == plan.file_count
        found = scan(plan.relation, missing, unproved, is_everything=is_everything)
        failures.update(found.failures)
        for path, scanned in found.rows.items():
            _take(rows[path], missing, scanned, footers.get(path))
    for path in (path for path, footer in footers.items() if footer.depends_on_zone):
        for definition in (each for each in read if _may_read_timestamps(each)):
            rows[path].pop(definition.index_id, None)
            failures[path] = "timestamps in it depend on the time zone of the reader"
    return _Found({path: row for path, row in rows.items() if row}, failures)


def _may_read_timestamps(definition: IndexDefinition) -> bool:
    return any(term.data_type == "timestamp" or term.names is None for term in definition.terms)


def _missing(
    indexes: Sequence[IndexDefinition], rows: Mapping[str, _Row]
) -> tuple[list[IndexDefinition], list[str]]:
    """Indexes that do not know every file yet, and the files that one of them does not know."""
    missing = [d for d in indexes if any(d.index_id not in row for row in rows.values())]
    unproved = [p for p, row in rows.items() if any(d.index_id not in row for d in missing)]
    return missing, unproved


def _take(
    row: _Row,
    indexes: Sequence[IndexDefinition],
    scanned: Sequence[Scanned],
    footer: Footer | None,
) -> None:
    for definition, each in zip(indexes, scanned, strict=True):
        if definition.index_id not in row and _agrees(each, footer):
            row[definition.index_id] = each


def _direct(
    plan: BuildPlan,
    indexes: Sequence[IndexDefinition],
    listed: Mapping[str, FileState],
    counters: Counters,
) -> Iterator[tuple[str, tuple[Scanned, ...]]]:
    """What files hold that need no Spark to be read.

    Only in local mode, where the driver's threads are all there is: a cluster has its executors.
    """
    local = {local_path(path): path for path in listed}
    reader = DirectReader.of(indexes, plan.footer_terms, is_case_sensitive=plan.is_case_sensitive)
    if reader is None or None in local or not _is_local(plan.relation.spark):
        return
    files = {name: listed[path] for name, path in local.items() if name is not None}
    for name, scanned in reader.read_all(
        files, plan.relation.spark.sparkContext.defaultParallelism
    ):
        counters.direct_files += 1
        yield local[name], scanned


def _is_local(spark: SparkSession) -> bool:
    return _LOCAL_MASTER.match(str(spark.sparkContext.master)) is not None


def _add(row: _Row, definition: IndexDefinition, found: Scanned | None) -> None:
    if found is not None:
        row[definition.index_id] = found


def _footers(
    plan: BuildPlan,
    indexes: Sequence[IndexDefinition],
    listed: Mapping[str, FileState],
    counters: Counters,
) -> dict[str, Footer]:
    """Footers by path, of Parquet files."""
    if not plan.is_parquet or all(definition.type == PARTITION for definition in indexes):
        return {}
    reader = FooterReader(tuple(plan.footer_terms.values()), plan.is_case_sensitive)
    found = reader.read(plan.relation.spark, {path: each.length for path, each in listed.items()})
    counters.footer_bytes += sum(footer.length for footer in found.values())
    counters.footer_files += len(found)
    return found


def _footer_rows(
    plan: BuildPlan, definition: IndexDefinition, footers: Mapping[str, Footer]
) -> Iterator[tuple[str, Scanned]]:
    """What footers prove for an index, by path; files about which they do not are left out."""
    order = list(plan.footer_terms)
    if any(term.key not in plan.footer_terms for term in definition.terms):
        return
    places = [order.index(term.key) for term in definition.terms]
    from_footer = index_type(definition.type).from_footer
    for path, footer in footers.items():
        if footer.rows is None:
            continue
        columns = [column for place in places if (column := footer.columns[place]) is not None]
        if len(columns) != len(places):
            continue
        fields = from_footer(definition, columns)
        if fields is not None:
            values = tuple([column.values for column in columns])
            yield path, Scanned(values, tuple([column.nulls for column in columns]), fields)


def _partition_row(plan: BuildPlan, definition: IndexDefinition, path: str) -> Scanned | None:
    """The row of a file's partition value. It stands for all rows, however many: one is counted."""
    names = definition.term.names
    values = plan.partitions.get(path)
    if names is None or values is None or names[0] not in plan.partition_names:
        return None
    value = values[plan.partition_names.index(names[0])]
    if value.value is None and not value.is_null:
        return None
    builder = index_type(definition.type).builder(definition)
    builder.add([pa.array([value.value], arrow_type(definition.term.data_type))])
    nulls = int(value.is_null)
    return Scanned((1 - nulls,), (nulls,), builder.finish())


def _agrees(scanned: Scanned, footer: Footer | None) -> bool:
    """Whether the scan saw as many rows as the footer counts."""
    if footer is None or footer.rows is None:
        return True
    return scanned.values[0] + scanned.nulls[0] == footer.rows


def _table(
    indexes: Sequence[IndexDefinition], files: pa.Table, rows: Mapping[str, _Row]
) -> pa.Table:
    names = [name for name, _ in IDENTITY_FIELDS]
    kept = [path in rows for path in files.column("path").to_pylist()]
    table = files.select(names).filter(pa.array(kept, pa.bool_()))
    ordered = [rows[path] for path in table.column("path").to_pylist()]
    for definition in indexes:
        found = [row.get(definition.index_id) for row in ordered]
        for name, kind, values in _columns(definition, found):
            table = table.append_column(name, pa.array(values, kind))
    return table


def _columns(
    definition: IndexDefinition, found: Sequence[Scanned | None]
) -> Iterator[tuple[str, pa.DataType, list[object]]]:
    for position in range(len(definition.terms)):
        values = [each and each.values[position] for each in found]
        nulls = [each and each.nulls[position] for each in found]
        yield values_column(definition.index_id, position), pa.int64(), [*values]
        yield nulls_column(definition.index_id, position), pa.int64(), [*nulls]
    for name, kind in index_type(definition.type).fields(definition).items():
        fields = [None if each is None else each.fields[name] for each in found]
        yield field_column(definition.index_id, name), kind, fields
