"""Snapshots that differ in the rows of their root only, woven by one Spark job ahead of their turn.

In a backlog most sources change rarely. Then the job that weaves a snapshot weaves those that come
after it too: their rows are one root, with the number of its snapshot in every row, so that what
they share is read, moved and sorted once. The proof is the same (`snaploom.engine.rowcounts`), and
each snapshot is counted for itself. Its files wait in staging until it has its turn; publication,
checks, history and retention do not know of it.

Any obstacle or failure leads to snapshots that are woven one by one, where the error is that of one
snapshot.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import ceil
from time import monotonic

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, MapType, StructType, VariantType

from snaploom.engine import latecounts
from snaploom.engine.fold import DATA, NUMBER, JoinListener
from snaploom.engine.rowcounts import TASK_PATIENCE, RowCounts, Weaving, await_tasks
from snaploom.engine.write import Folders, WrittenFiles, write_frame
from snaploom.errors import Interrupted, ObjectNotFound, RunRevoked, SnaploomError
from snaploom.files.objectstore import refuse_links
from snaploom.models.common import ROOT_FIELD, EpochNanos, format_instant
from snaploom.models.outputdataset import DataCompression
from snaploom.output import layout
from snaploom.output.folder import Folder
from snaploom.output.publication import refuse_revoked, remove_staged
from snaploom.plan.plan import PlannedSnapshot
from snaploom.plan.steps import Taken
from snaploom.run.session.spark import SparkStopped, translated
from snaploom.run.weaving.inputs import Sharing, SnapshotInputs
from snaploom.run.weaving.preparation import OutputRun

_log = logging.getLogger(__name__)

MOST_ROOT_BYTES = 4 << 30
"""Bytes of the roots of one job, as Spark estimates them: what two cores weave in some minutes, so
that little is lost with a job that fails, and the first snapshot is not kept waiting for long."""
MOST_COUNTERS = 240
"""Counts of one observation: twelve snapshots with nineteen joins to the root. Each costs every row
some nanoseconds, while the joins cost it microseconds."""

_ROOT_BYTES, _LEAST_ROOT_BYTES = 32 << 20, 4 << 20
"""Bytes of the root for one file of the output, where an accelerator writes."""

RUN_ENDS = (Interrupted, SparkStopped, RunRevoked)
"""Errors that end a run rather than a snapshot."""


@dataclass(frozen=True)
class WovenAhead:
    """A snapshot whose files wait in staging."""

    keys: tuple[str, ...]
    """Of its files."""
    woven_schema: StructType
    """Of the rows as they were woven."""
    schema: StructType
    """Of its files."""
    counts: RowCounts
    """Counts from while they were written."""


@dataclass(frozen=True)
class _Member:
    planned: PlannedSnapshot
    inputs: SnapshotInputs

    @property
    def root(self) -> DataFrame:
        return self.inputs.used[ROOT_FIELD].frame


class SnapshotsAhead:
    """The snapshots of one run that are woven together."""

    def __init__(
        self,
        run: OutputRun,
        folder: Folder,
        sharing: Sharing,
        due: Sequence[PlannedSnapshot],
        read: Callable[[PlannedSnapshot], SnapshotInputs],
    ) -> None:
        self._run = run
        self._folder = folder
        self._sharing = sharing
        self._due = due
        self._read = read
        self._inputs: dict[EpochNanos, SnapshotInputs] = {}
        self._woven: dict[EpochNanos, WovenAhead] = {}
        self._seconds: dict[EpochNanos, float] = {}
        self._one_by_one: set[EpochNanos] = set()
        self._staging: list[str] = []

    def inputs(self, planned: PlannedSnapshot) -> SnapshotInputs:
        """The sources of a snapshot, also where they were read ahead of its turn."""
        known = self._inputs.pop(planned.time, None)
        return self._read(planned) if known is None else known

    def find(
        self,
        planned: PlannedSnapshot,
        inputs: SnapshotInputs,
        compression: DataCompression,
        on_join: JoinListener,
    ) -> WovenAhead | None:
        """The files of a snapshot that was, or is now, woven together with others.

        Returns:
            None where the snapshot is to be woven by itself.

        Raises:
            RunRevoked: another run took this one for dead.
        """
        if planned.time not in self._woven and planned.time not in self._one_by_one:
            members = self._members(planned, inputs)
            if len(members) > 1:
                self._weave(members, compression, on_join)
        return self._woven.pop(planned.time, None)

    def move(self, woven: WovenAhead, uri: str) -> None:
        """Let the files of a snapshot lie where its publication expects them.

        Raises:
            RunRevoked: they were taken away.
        """
        store = self._folder.store
        target = uri.removeprefix(store.uri)
        for key in woven.keys:
            try:
                store.move_if_absent(key, f"{target}{key.rpartition('/')[2]}")
            except ObjectNotFound:
                refuse_revoked(self._folder.log.read(), self._run.writer)
                raise

    def seconds(self, time: EpochNanos) -> float:
        """Return the time to add to that of a snapshot: its share of a common job."""
        return self._seconds.pop(time, 0.0)

    def forget(self) -> None:
        """Forget what was read and woven ahead of its turn, and remove its files."""
        self._inputs.clear()
        self._woven.clear()
        while self._staging:
            remove_staged(self._folder.store, self._run.writer, self._staging.pop())

    def _members(self, first: PlannedSnapshot, inputs: SnapshotInputs) -> list[_Member]:
        members = [_Member(first, inputs)]
        most = self._most(members[0])
        if most == 1:
            return members
        size = 0
        start = 1 + next(n for n, one in enumerate(self._due) if one.time == first.time)
        for planned in self._due[start : start + most - 1]:
            if planned.time in self._one_by_one or _others(planned) != _others(first):
                break
            try:
                size = size or _estimated_bytes(members[0].root)
                member = _Member(planned, self.inputs(planned))
                self._inputs[planned.time] = member.inputs
                size += _estimated_bytes(member.root) if member.inputs.used else 0
            except RUN_ENDS:
                raise
            except SnaploomError:
                break  # it is reported when the snapshot has its turn
            if not _differ_in_rows_only(inputs, member.inputs) or size > MOST_ROOT_BYTES:
                break
            members.append(member)
        return members

    def _most(self, first: _Member) -> int:
        fields = {name.lower() for name in (*first.inputs.used, *first.root.columns)}
        session = self._run.spark.conf
        if not self._due or NUMBER in fields or session.get("spark.sql.adaptive.enabled") != "true":
            return 1
        children = sum(node.parent_number == 0 for node in self._run.prepared.plan.tree.joins)
        allowed = self._run.output.spec.run.snapshots_per_job
        return max(1, min(allowed, MOST_COUNTERS // (children + 1)))

    def _weave(
        self, members: Sequence[_Member], compression: DataCompression, on_join: JoinListener
    ) -> None:
        started, first = monotonic(), members[0].planned
        group = self._run.job.group.name
        prefix = layout.staging_prefix(self._run.writer.run_id, layout.new_attempt())
        self._staging.append(prefix)
        try:
            with translated():
                self._weave_into(prefix, members, compression, on_join)
        except SnaploomError as error:
            await_tasks(self._run.spark, TASK_PATIENCE)
            if isinstance(error, RUN_ENDS) or self._run.job.interruption.cause is not None:
                raise
            _log.info("snapshots are woven one by one, since together: %s", error)
            self._one_by_one |= {member.planned.time for member in members}
            remove_staged(self._folder.store, self._run.writer, self._staging.pop())
        else:
            share = (monotonic() - started) / len(members)
            self._seconds |= {member.planned.time: share for member in members}
            self._seconds[first.time] = share * (1 - len(members))
        # What follows is judged by jobs of its own: none of them ran twice.
        name = f"{self._run.output.identity}: snapshot {format_instant(first.time)}"
        self._run.job.group.enter(self._run.spark, group, name)

    def _weave_into(
        self,
        prefix: str,
        members: Sequence[_Member],
        compression: DataCompression,
        on_join: JoinListener,
    ) -> None:
        run, store = self._run, self._folder.store
        run.job.interruption.check()
        refuse_links(store, [prefix.removesuffix("/")])
        uri, folder = f"{store.uri}{prefix}", run.output.spec.output_folder
        first, last = members[0], members[-1]
        names = f"{format_instant(first.planned.time)} to {format_instant(last.planned.time)}"
        run.job.group.enter(
            run.spark,
            f"{run.job.group.name}-together",
            f"{run.output.identity}: {len(members)} snapshots, {names}",
        )
        _log.info("%d snapshots, %s, are woven in one job", len(members), names)
        frames = {name: source.frame for name, source in members[0].inputs.used.items()}
        numbered = (
            member.root.withColumn(NUMBER, sf.lit(number)) for number, member in enumerate(members)
        )
        frames[ROOT_FIELD] = reduce(DataFrame.unionAll, numbered)
        weave = run.weave(frames, len(members))
        subtrees = self._sharing.subtrees(
            first.planned.time, weave, first.inputs.used, until=last.planned.time
        )
        is_late = latecounts.counts_are_late(run.spark, folder.data_format)
        weaving = Weaving(weave, on_join, subtrees, counts_late=is_late)
        folders = Folders(NUMBER, len(members), self._tasks(members))
        try:
            # Else every task would leave a file of every snapshot.
            together = (
                folders.brought_together(weaving.frame, _spread(weaving.frame))
                if weaving.is_late
                else weaving.frame.hint("rebalance", NUMBER)
            )
            schema = write_frame(
                together,
                uri,
                folder.data_format,
                compression,
                column_metadata=folder.column_metadata,
                folders_by=None if weaving.is_late else NUMBER,
            )
            for info in store.list(prefix) if weaving.is_late else ():
                name = info.key.removeprefix(prefix)
                if layout.is_data_file(name):
                    store.move_if_absent(info.key, f"{prefix}{folders.folder_of(name)}/{name}")
            counts = weaving.settle(
                run.spark,
                run.job.group.name,
                WrittenFiles(run.spark, uri, folder.data_format, schema),
            )
        except BaseException:
            weaving.drop()
            raise
        woven = StructType([each for each in weaving.frame.schema if each.name != NUMBER])
        self._keep(prefix, members, (woven, schema), counts)

    def _tasks(self, members: Sequence[_Member]) -> int:
        """Tasks that write one snapshot: files of a size, and where they are few all cores."""
        size = sum(_estimated_bytes(member.root) for member in members) / len(members)
        cores = self._run.spark.sparkContext.defaultParallelism
        wanted = max(size / _ROOT_BYTES, min(cores / len(members), size / _LEAST_ROOT_BYTES))
        return max(1, ceil(wanted))

    def _keep(
        self,
        prefix: str,
        members: Sequence[_Member],
        schemas: tuple[StructType, StructType],
        counts: Sequence[RowCounts],
    ) -> None:
        """Remember the files of each; one without rows has none, and is woven by itself."""
        store, found = self._folder.store, dict[EpochNanos, WovenAhead]()
        for number, (member, counted) in enumerate(zip(members, counts, strict=True)):
            listed = store.list(f"{prefix}{NUMBER}={number}/")
            keys = [info.key for info in listed if layout.is_data_file(info.key.rpartition("/")[2])]
            if not keys:
                self._one_by_one.add(member.planned.time)
                continue
            own = counted if number == 0 else replace(counted, remembered={})
            found[member.planned.time] = WovenAhead(tuple(sorted(keys)), *schemas, own)
        self._woven |= found


def _others(planned: PlannedSnapshot) -> tuple[Taken, ...]:
    return tuple(sorted(one for one in planned.sources if one[0] != ROOT_FIELD))


def _differ_in_rows_only(first: SnapshotInputs, other: SnapshotInputs) -> bool:
    """Whether two snapshots have the same columns, and the same rows of every source but the root.

    A source has the same rows where time and fingerprint are the same, as for shared subtrees.
    """
    if other.outcome.stop is not None or first.used.keys() != other.used.keys():
        return False
    return all(
        one.frame.schema == other.used[name].frame.schema
        and (
            name == ROOT_FIELD
            or (one.time, one.fingerprint) == (other.used[name].time, other.used[name].fingerprint)
        )
        for name, one in first.used.items()
    )


def _spread(woven: DataFrame) -> list[Column]:
    """Columns by whose values rows of one snapshot are spread over tasks."""
    own = woven.schema[DATA].dataType
    assert isinstance(own, StructType)
    nested = ArrayType | MapType | StructType | VariantType
    return [sf.col(DATA)[f.name] for f in own.fields if not isinstance(f.dataType, nested)]


def _estimated_bytes(frame: DataFrame) -> int:
    """Bytes of a frame as Spark's optimizer estimates them: of files their size."""
    with translated():
        return int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
