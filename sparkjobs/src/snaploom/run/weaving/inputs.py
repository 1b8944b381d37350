"""Inputs of one snapshot, and subtrees that several snapshots of a run share (rule W29)."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, reduce
from itertools import chain

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from snaploom.engine.fold import Point, Weave
from snaploom.engine.schemachecks import SchemaOutcome, check_schemas, schema_faults
from snaploom.engine.subtrees import FoldedSubtree, SnapshotSubtrees, SubtreeMemory, unpersist
from snaploom.engine.write import read_files, under_schema, write_frame
from snaploom.errors import Interrupted, SnaploomError
from snaploom.installed import VERSION
from snaploom.models.common import EpochNanos, format_instant
from snaploom.models.outputdataset import DataCompression, DataFormat
from snaploom.output.caches import SubtreeStore
from snaploom.output.layout import content_hash
from snaploom.output.state import FolderState
from snaploom.plan.plan import PlannedSnapshot
from snaploom.plan.steps import ReadSource, Visit, recurring_subtrees
from snaploom.policy.fileformats import format_of
from snaploom.run.session.spark import open_place, result_settings, translated
from snaploom.run.weaving.filelayout import ValuelessColumns
from snaploom.run.weaving.history import SchemaHistory
from snaploom.run.weaving.preparation import Prepared, Reading
from snaploom.sources.port import SourceFrame, SourceReader
from snaploom.sources.sourcefiles import ReadFiles
from snaploom.spark.types import as_nullable, struct_from

# Inputs of one snapshot: its sources as they were read, without those left out.


@dataclass(frozen=True)
class SnapshotInputs:
    """The sources of one snapshot, and what their schemas lead to."""

    outcome: SchemaOutcome
    """Whether a field is missing, what is left out, and warnings."""
    used: Mapping[str, SourceFrame]
    """By field name, the sources that take part; empty where the outcome stops the snapshot."""


class InputReader:
    """Reads the sources of the snapshots of one run."""

    def __init__(
        self,
        prepared: Prepared,
        history: SchemaHistory,
        state: Callable[[], FolderState],
        read: Callable[[ReadSource], SourceFrame],
    ) -> None:
        bundle, self._tree = prepared.bundle, prepared.plan.tree
        self._state = state
        self._read = read
        self._valueless = ValuelessColumns(bundle, self._tree, history)
        others = bundle.output.spec.data_model.other_data_sources
        self._others = {other.field_name: other for other in others}
        self._relationships = {one.name: one for one in bundle.data_relationships}

    @property
    def looks_at_published(self) -> bool:
        """Whether what is read may depend on what is published by then."""
        return bool(self._valueless.sources)

    def inputs(self, planned: PlannedSnapshot) -> SnapshotInputs:
        """Read the sources of a snapshot, as far as they take part."""

        @cache
        def published_rows() -> StructType | None:
            return self._valueless.published(self._state(), planned.time)

        def read(step: ReadSource) -> SourceFrame:
            with translated(f"DataSource/{step.source}"):
                return self._valueless.typed(step.field_name, self._read(step), published_rows)

        reading = Reading(planned.reads, read)
        outcome = check_schemas(
            self._tree, reading, self._others, self._relationships, self._valueless.sources
        )
        if outcome.stop is not None:
            return SnapshotInputs(outcome, {})
        left_out = {exclusion.field_name for exclusion in outcome.excluded}
        used = {name: reading.source(name) for name in reading if name not in left_out}
        return SnapshotInputs(outcome, used)


# What several snapshots of one run share: subtrees, folded once (rule W29), and days of text.


_Day = tuple[str, EpochNanos]
"""A snapshot of a source, as one of a history."""


class Sharing:
    """Sources and subtrees that snapshots of one run have in common."""

    def __init__(
        self,
        spark: SparkSession,
        prepared: Prepared,
        due: Sequence[PlannedSnapshot],
        run_id: str,
        warn: Callable[[str], None],
    ) -> None:
        self._spark = spark
        self._run_id = run_id
        self._warn = warn
        self._store = self._open(prepared)
        self._has_used_store = False
        visits: list[Visit] = [dict(planned.sources) for planned in due]
        before = _newest_visit(prepared) if self._store is not None else []
        kept = recurring_subtrees(prepared.plan.tree, [*before, *visits])[len(before) :]
        self._kept = {planned.time: names for planned, names in zip(due, kept, strict=True)}
        self._later = _names_after(due, kept)
        facts = json.dumps(result_settings(spark), sort_keys=True)
        facts_hash = content_hash(f"{prepared.plan.hash} {facts}".encode())
        self._memory = SubtreeMemory(facts_hash, self._recall if self._store else None)
        self._sources: dict[str, SourceFrame] = {}
        self._takes = {planned.time: _days_taken(planned) for planned in due}
        self._left = Counter(chain.from_iterable(self._takes.values()))
        self._days: dict[_Day, DataFrame] = {}

    def source(self, step: ReadSource, reader: SourceReader) -> SourceFrame:
        """Snapshots of a source: the frame that the last snapshot had, where it is the same."""
        found = self._sources.get(step.source)
        if found is None or tuple(found.snapshots) != step.times:
            found = reader.read(*step.times)
            if _is_parsed_by_day(found):
                found = replace(found, frame=self._by_day(step, reader, found.frame))
            self._sources[step.source] = found
        return found

    def _by_day(self, step: ReadSource, reader: SourceReader, together: DataFrame) -> DataFrame:
        """The rows of a history; Spark keeps those of each snapshot that a later one takes too."""
        days = [(step.source, time) for time in step.times]
        if not any(day in self._days or self._left[day] > 1 for day in days):
            return together
        found = {day: self._days.get(day) or reader.read(day[1]).frame for day in days}
        schemas = [as_nullable(frame.schema) for frame in (together, *found.values())]
        if schemas.count(schemas[0]) < len(schemas):
            return together
        for day in found.keys() - self._days.keys():
            if self._left[day] > 1:
                self._days[day] = found[day].persist(StorageLevel.MEMORY_AND_DISK)
        return reduce(DataFrame.unionAll, found.values())

    def subtrees(
        self,
        time: EpochNanos,
        weave: Weave,
        used: Mapping[str, SourceFrame],
        until: EpochNanos | None = None,
    ) -> SnapshotSubtrees:
        """Subtrees that the snapshot of a time shares with others.

        What snapshots up to `until` share only with each other is not kept.
        """
        fingerprints = {
            name: f"{format_instant(item.time)} {item.fingerprint}" for name, item in used.items()
        }
        kept = self._kept[time]
        if until is not None and self._store is None:
            others = self._later[until]
            kept = {
                number: name
                for number, name in kept.items()
                if name in others or self._memory.knows(name)
            }
        return self._memory.for_snapshot(weave, kept, fingerprints)

    def is_ready(self, time: EpochNanos, others: Iterable[EpochNanos]) -> bool:
        """Whether a snapshot finds what it shares, or no other one folds it."""
        folded = {name for other in others for name in self._kept[other].values()}
        return all(self._memory.knows(name) for name in folded & {*self._kept[time].values()})

    def leave(self, remembered: Mapping[str, FoldedSubtree]) -> None:
        """Leave subtrees that were folded just now for the next run, where that is asked for."""
        if self._store is None:
            return
        for signature, subtree in remembered.items():
            try:
                with translated():
                    self._write(self._store, signature, subtree)
            except Interrupted:
                raise
            except SnaploomError as error:
                self._warn(f"nothing is left at {self._store.uri}: {error.message}")

    def done(self, time: EpochNanos) -> None:
        """The snapshot of a time has ended: release what no later one shares."""
        self._memory.forget_all_but(self._later[time])
        self._left -= Counter(self._takes.pop(time, ()))
        self._release(day for day in list(self._days) if not self._left[day])

    def forget(self) -> None:
        """Release everything: the run ends, or sources have changed since."""
        self._sources.clear()
        self._release(list(self._days))
        self._memory.forget_all_but(())

    def close(self) -> None:
        """Delete checkpoints that are no longer used."""
        if self._store is not None and self._has_used_store:
            try:
                self._store.remove_unused()
            except SnaploomError as error:
                self._warn(f"old checkpoints stay at {self._store.uri}: {error.message}")

    def _release(self, days: Iterable[_Day]) -> None:
        for day in days:
            frame = self._days.pop(day, None)
            if frame is not None:
                unpersist(frame)

    def _open(self, prepared: Prepared) -> SubtreeStore | None:
        uri = prepared.bundle.output.spec.run.checkpoint_uri
        if uri is None:
            return None
        try:
            store = open_place(uri if uri.endswith("/") else f"{uri}/", create=True)
        except SnaploomError as error:
            self._warn(f"there are no checkpoints at {uri}: {error.message}")
            return None
        return SubtreeStore(store, (VERSION, self._spark.version))

    def _recall(self, signature: str) -> FoldedSubtree | None:
        if self._store is None:
            return None
        try:
            found = self._store.find(signature)
        except SnaploomError as error:
            self._warn(f"checkpoints at {self._store.uri} cannot be read: {error.message}")
            return None
        if found is None:
            return None
        self._has_used_store = True
        try:
            schema = struct_from(found.columns)
        except SnaploomError as error:
            self._warn(f"a checkpoint at {self._store.uri} is not used: {error.message}")
            return None
        uris = [f"{self._store.uri}{file.path}" for file in found.files]
        frame = read_files(self._spark, uris, DataFormat.PARQUET, schema)
        counts = {Point(each.number, each.is_out): each.counts for each in found.counts}
        return FoldedSubtree(under_schema(frame, schema), counts)

    def _write(self, store: SubtreeStore, signature: str, subtree: FoldedSubtree) -> None:
        schema = subtree.frame.schema
        if schema_faults(schema, DataFormat.PARQUET):
            return  # what Parquet cannot hold is folded each time
        uri = store.folder(signature, self._run_id)
        write_frame(subtree.frame, uri, DataFormat.PARQUET, DataCompression.ZSTD)
        counts = {(point.number, point.is_out): found for point, found in subtree.counts.items()}
        store.commit(signature, uri, schema.json(), counts)
        self._has_used_store = True


def _days_taken(planned: PlannedSnapshot) -> set[_Day]:
    histories = (one for one in planned.reads if len(one.times) > 1)
    return {(one.source, time) for one in histories for time in one.times}


def _is_parsed_by_day(read: SourceFrame) -> bool:
    """Whether a history is of text with declared types, each of its snapshots in own files.

    Keeping its rows costs less than parsing them again.
    """
    listed = read.listed
    if not isinstance(listed, ReadFiles) or len(listed.snapshots) < 2:
        return False
    declared = listed.listing.declared
    return declared.schema_fields is not None and format_of(declared.format).has_corrupt_records


def _newest_visit(prepared: Prepared) -> list[Visit]:
    state = prepared.state
    return [
        {source.field_name: tuple(source.fingerprints) for source in record.sources}
        for record in map(state.records.live, state.timeline[-1:])
    ]


def _names_after(
    due: Sequence[PlannedSnapshot], kept: Sequence[Mapping[int, int]]
) -> Mapping[EpochNanos, frozenset[int]]:
    later: frozenset[int] = frozenset()
    found: dict[EpochNanos, frozenset[int]] = {}
    for planned, names in zip(reversed(due), reversed(kept), strict=True):
        found[planned.time] = later
        later |= set(names.values())
    return found
