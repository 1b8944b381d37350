"""Rows about files: from footers and partitions where they prove everything, else by a scan."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from snaploom.skipping.core.definition import IndexDefinition, Term, arrow_type
from snaploom.skipping.core.filetable import (
    IDENTITY_FIELDS,
    Int64s,
    Mask,
    field_column,
    last_changes,
    nulls_column,
    values_column,
    whole_column,
)
from snaploom.skipping.indexes.base import FooterColumn, index_type
from snaploom.skipping.indexes.columns import only_where
from snaploom.skipping.lifecycle.declaration import Progress
from snaploom.skipping.spark.builds.footers import DirectReader, FooterReader, Footers, FooterTerm
from snaploom.skipping.spark.builds.scan import Relation, Scanned, scan
from snaploom.skipping.spark.relations import hadoop
from snaploom.skipping.spark.relations.expressions import Literal

_LOG = logging.getLogger(__name__)


# Partition values of listed files as index rows, without opening the files.


@dataclass(frozen=True)
class PartitionRows:
    """Values of partition columns in each file of a listing."""

    names: tuple[str, ...]
    paths: pa.Array
    """All files of the listing."""
    runs: Sequence[tuple[int, tuple[Literal, ...]]]
    """Values of the partition columns, with how many files after each other have them."""

    def numbers(self, paths: pa.Array) -> Int64s:
        """For each file, the number of its run of equal values."""
        ends = np.cumsum([count for count, _ in self.runs], dtype=np.int64)
        found = pc.index_in(paths, value_set=self.paths).to_numpy(zero_copy_only=False)
        numbers: Int64s = np.searchsorted(ends, found, "right").astype(np.int64)
        return numbers

    def column(self, term: Term, numbers: Int64s) -> FooterColumn:
        """Facts as from a footer about a column that has one value per file.

        It stands for all rows of a file, however many: one is counted.
        """
        numbers_of_runs = pa.array(numbers)
        literals = self._literals(term)
        nulls = pa.array([None if each is None else int(each.is_null) for each in literals], _COUNT)
        values = pa.array(
            [None if each is None else each.value for each in literals], arrow_type(term.data_type)
        ).take(numbers_of_runs)
        nulls = nulls.take(numbers_of_runs)
        return FooterColumn(pc.subtract(1, nulls), nulls, values, values)

    def _literals(self, term: Term) -> list[Literal | None]:
        if term.names is None or term.names[0] not in self.names:
            return [None] * len(self.runs)
        place = self.names.index(term.names[0])
        found = (row[place] for _, row in self.runs)
        return [each if each.is_null or each.value is not None else None for each in found]


_COUNT = pa.int64()


# Rows about files: from footers where they prove everything, else from one pass over the rows.

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


@dataclass(frozen=True)
class BuildPlan:
    """Facts about the target that a build needs."""

    relation: Relation
    """Format and options by which Spark reads it."""
    file_count: int
    partitions: PartitionRows
    footer_terms: Mapping[str, FooterTerm] = field(default_factory=dict)
    """Terms that footers may prove, by key."""
    is_parquet: bool = False
    is_case_sensitive: bool = False


@dataclass
class Counters:
    """Counts of a build, for people and benchmarks."""

    footer_bytes: int = 0
    footer_files: int = 0
    direct_files: int = 0
    """Files whose rows were read without Spark."""
    scanned_files: int = 0
    """Files whose rows Spark read."""
    failures: dict[str, str] = field(default_factory=dict)
    """Files about which nothing could be found out, and why."""


@dataclass(frozen=True)
class _Files:
    """Files of one piece, with the facts known before their rows are read."""

    table: pa.Table
    footers: Footers | None
    """Of Parquet files, where an index may be proved by them."""
    partitions: Int64s | None
    """Numbers of their runs, where an index is about partitions."""

    @property
    def paths(self) -> list[str]:
        paths: list[str] = self.table.column("path").to_pylist()
        return paths

    def slice(self, start: int, count: int) -> _Files:
        return _Files(
            self.table.slice(start, count),
            None if self.footers is None else self.footers.slice(start, count),
            None if self.partitions is None else self.partitions[start : start + count],
        )

    def state(self, place: int) -> hadoop.FileState:
        length, modified, etag = (
            self.table.column(name)[place].as_py() for name, _ in IDENTITY_FIELDS[1:]
        )
        return hadoop.FileState(length, modified, etag)

    def has_as_many(self, place: int, scanned: Scanned) -> bool:
        """Whether the number of rows seen equals the footer's, if that can be read."""
        rows = None if self.footers is None else self.footers.rows[place].as_py()
        return rows is None or rows == scanned.values[0] + scanned.nulls[0]


def build_rows(
    plan: BuildPlan,
    indexes: Sequence[IndexDefinition],
    files: pa.Table,
    progress: Progress,
    counters: Counters,
) -> Iterator[pa.Table]:
    """Build rows in pieces of bounded size, in the form of `snaploom.skipping.core.filetable`."""
    total = files.num_rows
    progress(0, total)
    for start in range(0, total, _BLOCK_FILES):
        listed = files.slice(start, _BLOCK_FILES).combine_chunks()
        block = _looked_at(plan, indexes, _settled(listed, counters), counters)
        done = 0
        for count in piece_sizes(block.table.column("length").to_pylist()):
            yield _build_piece(plan, indexes, block.slice(done, count), counters)
            done += count
            progress(start + done, total)


def _settled(files: pa.Table, counters: Counters) -> pa.Table:
    """Files whose recent change is old enough that another would show."""
    paths, modified, tags = (
        whole_column(files.column(name)) for name in ("path", "modified", "etag")
    )  # fmt: skip
    changed, granularity = last_changes(modified, tags), hadoop.granularity_of(paths)
    hadoop.wait_until_settled(granularity, changed)
    is_future = changed > time.time() * 1000 - granularity
    for path in paths.filter(pa.array(is_future)).to_pylist():
        _leave_out(path, "was modified in the future, by this machine's clock", counters)
    return files.filter(pa.array(~is_future)).combine_chunks()


def _leave_out(path: str, why: str, counters: Counters) -> None:
    counters.failures[path] = why
    _LOG.warning("%s stays unknown to the index: %s", path, why)


def _looked_at(
    plan: BuildPlan, indexes: Sequence[IndexDefinition], files: pa.Table, counters: Counters
) -> _Files:
    types = {definition.type for definition in indexes}
    paths = whole_column(files.column("path"))
    partitions = plan.partitions.numbers(paths) if PARTITION in types else None
    footers = None
    if plan.is_parquet and types - {PARTITION}:
        reader = FooterReader(tuple(plan.footer_terms.values()), plan.is_case_sensitive)
        lengths = files.column("length").to_pylist()
        footers = reader.read(plan.relation.spark, paths.to_pylist(), lengths)
        counters.footer_bytes += pc.sum(footers.facts.column("length")).as_py() or 0
        counters.footer_files += footers.facts.num_rows
    return _Files(files, footers, partitions)


def piece_sizes(lengths: Sequence[int]) -> Iterator[int]:
    """Split files by their bytes into pieces; yields the number of files of each."""
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
    plan: BuildPlan, indexes: Sequence[IndexDefinition], files: _Files, counters: Counters
) -> pa.Table:
    built = {definition.index_id: _proved(plan, definition, files) for definition in indexes}
    failures = _read_the_rest(plan, indexes, files, built, counters)
    paths = files.paths
    is_same = hadoop.are_as_listed(files.table, hadoop.states_of(plan.relation.spark, paths))
    failures.update({paths[place]: _CHANGED for place in np.flatnonzero(~is_same).tolist()})
    for path, why in failures.items():
        _leave_out(path, why, counters)
    return _table(indexes, files, built, is_same)


_CHANGED = "changed while it was read"


@dataclass
class _Built:
    """Facts about one index, one entry per file; columns as the store has them."""

    known: Mask
    columns: Mapping[str, pa.Array]
    """By name in the store."""
    read: dict[int, Scanned] = field(default_factory=dict)
    """Rows of files without earlier facts, by their place."""

    @property
    def unknown(self) -> list[int]:
        places: list[int] = np.flatnonzero(~self.known).tolist()
        return places

    def take(self, place: int, scanned: Scanned) -> None:
        self.known[place] = True
        self.read[place] = scanned


def _proved(plan: BuildPlan, definition: IndexDefinition, files: _Files) -> _Built:
    proved = _proved_terms(plan, definition, files)
    kind = index_type(definition.type)
    if len(proved) < len(definition.terms):
        nothing = _no_columns(definition, files.table.num_rows)
        return _Built(np.zeros(files.table.num_rows, np.bool_), nothing)
    rows = kind.from_footers(definition, proved)
    columns: dict[str, pa.Array] = {}
    known = rows.files.copy()
    for position, column in enumerate(proved):
        known &= column.values.is_valid().to_numpy(zero_copy_only=False)
        columns[values_column(definition.index_id, position)] = column.values
        columns[nulls_column(definition.index_id, position)] = column.nulls
    for name, values in rows.fields.items():
        columns[field_column(definition.index_id, name)] = values
    return _Built(known, columns)


def _proved_terms(
    plan: BuildPlan, definition: IndexDefinition, files: _Files
) -> Sequence[FooterColumn]:
    if definition.type == PARTITION:
        if files.partitions is None:
            return ()
        return (plan.partitions.column(definition.term, files.partitions),)
    order = list(plan.footer_terms)
    keys = [term.key for term in definition.terms]
    if files.footers is None or not set(keys) <= set(order):
        return ()
    footers = files.footers
    return [footers.column(order.index(key)) for key in keys]


def _no_columns(definition: IndexDefinition, count: int) -> dict[str, pa.Array]:
    found: dict[str, pa.Array] = {}
    for position in range(len(definition.terms)):
        for counted in (values_column, nulls_column):
            found[counted(definition.index_id, position)] = pa.nulls(count, pa.int64())
    for name, kind in index_type(definition.type).fields(definition).items():
        found[field_column(definition.index_id, name)] = pa.nulls(count, kind)
    return found


def _read_the_rest(
    plan: BuildPlan,
    indexes: Sequence[IndexDefinition],
    files: _Files,
    built: Mapping[str, _Built],
    counters: Counters,
) -> dict[str, str]:
    read = [definition for definition in indexes if definition.type != PARTITION]
    failures: dict[str, str] = {}
    missing, unproved = _missing(read, built)
    if unproved:
        for place, scanned in _direct(plan, missing, files, unproved, counters):
            _take(files, place, missing, scanned, built)
        missing, unproved = _missing(read, built)
    if unproved:
        counters.scanned_files += len(unproved)
        paths = files.paths
        places = {paths[place]: place for place in unproved}
        is_everything = len(unproved) == plan.file_count
        rows, why = scan(plan.relation, missing, list(places), is_everything=is_everything)
        failures.update(why)
        for path, scanned in rows.items():
            _take(files, places[path], missing, scanned, built)
    failures.update(_forget_zoned(read, files, built))
    return failures


def _forget_zoned(
    indexes: Sequence[IndexDefinition], files: _Files, built: Mapping[str, _Built]
) -> dict[str, str]:
    concerned = [
        definition
        for definition in indexes
        if any(term.data_type == "timestamp" or term.names is None for term in definition.terms)
    ]
    if files.footers is None or not concerned:
        return {}
    zoned = files.footers.facts.column("zoned").to_numpy()
    for definition in concerned:
        built[definition.index_id].known &= ~zoned
    paths = files.table.column("path").filter(pa.array(zoned)).to_pylist()
    return dict.fromkeys(paths, "timestamps in it depend on the time zone of the reader")


def _missing(
    indexes: Sequence[IndexDefinition], built: Mapping[str, _Built]
) -> tuple[list[IndexDefinition], list[int]]:
    unknown = {definition.index_id: built[definition.index_id].unknown for definition in indexes}
    missing = [definition for definition in indexes if unknown[definition.index_id]]
    return missing, sorted(set().union(*unknown.values()))


def _take(
    files: _Files,
    place: int,
    indexes: Sequence[IndexDefinition],
    scanned: Sequence[Scanned],
    built: Mapping[str, _Built],
) -> None:
    for definition, each in zip(indexes, scanned, strict=True):
        one = built[definition.index_id]
        if not one.known[place] and files.has_as_many(place, each):
            one.take(place, each)


def _direct(
    plan: BuildPlan,
    indexes: Sequence[IndexDefinition],
    files: _Files,
    places: Sequence[int],
    counters: Counters,
) -> Iterator[tuple[int, tuple[Scanned, ...]]]:
    """Read files without Spark, in local mode only: a cluster has its executors."""
    paths = files.paths
    local = {hadoop.local_path(paths[place]): place for place in places}
    reader = DirectReader.of(indexes, plan.footer_terms, is_case_sensitive=plan.is_case_sensitive)
    is_local = _LOCAL_MASTER.match(str(plan.relation.spark.sparkContext.master))
    if reader is None or None in local or not is_local:
        return
    states = {name: files.state(place) for name, place in local.items() if name is not None}
    for name, scanned in reader.read_all(
        states, plan.relation.spark.sparkContext.defaultParallelism
    ):
        counters.direct_files += 1
        yield local[name], scanned


def _table(
    indexes: Sequence[IndexDefinition], files: _Files, built: Mapping[str, _Built], is_same: Mask
) -> pa.Table:
    kept = np.logical_or.reduce([each.known for each in built.values()]) & is_same
    table = files.table.select([name for name, _ in IDENTITY_FIELDS])
    for definition in indexes:
        for name, values in _columns(definition, built[definition.index_id]).items():
            table = table.append_column(name, values)
    return table if kept.all() else table.filter(pa.array(kept))


def _columns(definition: IndexDefinition, built: _Built) -> Mapping[str, pa.Array]:
    places = np.arange(len(built.known))
    places[list(built.read)] = len(places) + np.arange(len(built.read))
    read = _read_columns(definition, list(built.read.values()))
    taken = pa.array(places, mask=~built.known)
    return {
        name: only_where(built.known, values)
        if not built.read
        else pa.concat_arrays([values, pa.array(read[name], values.type)]).take(taken)
        for name, values in built.columns.items()
    }


def _read_columns(
    definition: IndexDefinition, found: Sequence[Scanned]
) -> Mapping[str, list[object]]:
    columns: dict[str, list[object]] = {}
    for position in range(len(definition.terms)):
        values = values_column(definition.index_id, position)
        columns[values] = [each.values[position] for each in found]
        nulls = nulls_column(definition.index_id, position)
        columns[nulls] = [each.nulls[position] for each in found]
    for name in index_type(definition.type).fields(definition):
        columns[field_column(definition.index_id, name)] = [each.fields[name] for each in found]
    return columns
