"""The row-count rule: a left join that returns more rows than it received fails the snapshot."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from time import monotonic, sleep

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

from snaploom.engine.asof import AsOfJoin
from snaploom.engine.fold import (
    ROWS,
    SPELLINGS,
    Counts,
    JoinListener,
    Observing,
    Point,
    Recording,
    Side,
    Weave,
    counts_of_snapshot,
    fold,
)
from snaploom.engine.latecounts import TOP, LateCounts
from snaploom.engine.subtrees import FoldedSubtree, SnapshotSubtrees
from snaploom.engine.write import WrittenFiles
from snaploom.errors import RowsMultiplied, SourceNotReadable
from snaploom.models.report import JoinMeasure
from snaploom.plan.tree import JoinNode
from snaploom.sources.files.checks import choose_batch, choose_spreading

# Did everything in a job group run exactly once?

TASK_PATIENCE = 10.0
"""Seconds to wait for cancelled tasks to end: Spark's own interrupt at the next row or batch,
an expression that takes longer is left behind, and its file to `snaploom gc`."""
POLL_SECONDS = 0.05
"""Time between two looks at running tasks: they end within milliseconds of the request."""


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """Progress of the running jobs of a group."""

    done: int
    total: int
    rows: Mapping[int, int] = field(default_factory=dict)
    """Rows that stages at work have read so far, by stage."""


def await_listeners(spark: SparkSession, seconds: float) -> bool:
    """Wait until Spark's listeners have seen all events so far; whether they have, in time.

    Listeners fill both the status store and observations, some time after an action returns.
    """
    try:
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(int(seconds * 1000))
    except Py4JError:
        return False
    return True


def ran_exactly_once(spark: SparkSession, job_group: str) -> bool:
    """Whether no task or stage of a job group failed, was killed, or ran a second time."""
    context = spark.sparkContext._jsc.sc()
    store = context.statusStore()
    try:
        for job_id in context.statusTracker().getJobIdsForGroup(job_group):
            job = store.job(job_id)
            if job.numFailedTasks() or job.numKilledTasks() or job.numFailedStages():
                return False
            stages = job.stageIds()
            for index in range(stages.size()):
                if store.lastStageAttempt(stages.apply(index)).attemptId() > 0:
                    return False
    except Py4JError:
        return False
    return True


def await_tasks(spark: SparkSession, seconds: float) -> bool:
    """Wait until no task runs on any executor; whether that came about in time.

    A job that failed or was cancelled is over before its tasks are.
    """
    deadline = monotonic() + seconds
    try:
        store = spark.sparkContext._jsc.sc().statusStore()
        while monotonic() < deadline:
            executors = store.executorList(True)
            if not any(executors.apply(i).activeTasks() for i in range(executors.size())):
                return True
            sleep(POLL_SECONDS)
    except (Py4JError, OSError):
        return False
    return False


def task_progress(spark: SparkSession, job_group: str) -> TaskProgress:
    """Tasks done and in all, over the stages of a group's jobs that Spark knows of by now."""
    tracker = spark.sparkContext.statusTracker()
    store = spark.sparkContext._jsc.sc().statusStore()
    done = total = 0
    rows: dict[int, int] = {}
    for job_id in tracker.getJobIdsForGroup(job_group):
        job = tracker.getJobInfo(job_id)
        for stage_id in job.stageIds if job is not None else ():
            stage = tracker.getStageInfo(stage_id)
            if stage is not None:
                done += stage.numCompletedTasks
                total += stage.numTasks
                if stage.numActiveTasks:
                    rows[stage_id] = store.lastStageAttempt(stage_id).inputRecords()
    return TaskProgress(done, total, rows)


# The row-count rule: a left join that returns more rows than it received fails the snapshot.

SAMPLES = 20
"""Keys that an error shows; the first few nearly always show the cause."""
LISTENER_PATIENCE = 30.0
"""Seconds to wait for Spark's listeners; they need milliseconds, a stalled driver perhaps more."""
MOST_COUNTED_LEAVES = 8
"""Sources without joins of their own whose NULL keys are counted. The proof needs none of them, and
each such observation costs Spark 0.2 s and more of analysis and scheduling, however small a source:
measured with 20 small ones, a snapshot takes 4.0 s with all of them and 1.5 s without."""
VALUE_LENGTH = 80
"""Characters of a sample key that an error shows."""


@dataclass(frozen=True, slots=True)
class RowCounts:
    """The counts taken while one snapshot was woven."""

    rows: int
    joins: tuple[JoinMeasure, ...]
    """One a join, in breadth-first order."""
    confirmed: bool
    """Whether exact queries had a part in it."""
    remembered: Mapping[str, FoldedSubtree] = field(default_factory=dict)
    """Subtrees that later snapshots may take from memory, by signature."""


class Weaving:
    """A snapshot in the making: the frame to write, and the counts that come with writing it."""

    def __init__(
        self,
        weave: Weave,
        on_join: JoinListener | None = None,
        subtrees: SnapshotSubtrees | None = None,
        *,
        counts_late: bool = False,
    ) -> None:
        """Fold the snapshot; `counts_late` needs an output of Parquet.

        How joins by time came out is in no file, so that these are observed with all else.
        """
        self.weave = weave
        uncounted = _too_many_leaves(weave)
        self._late = LateCounts(weave, uncounted) if counts_late and not weave.timed else None
        late = self._late.points if self._late else frozenset[Point]()
        self._observing = Observing(uncounted | late)
        self._subtrees = subtrees
        self.frame = fold(weave, self._observing, on_join, subtrees)
        choose_spreading(self.frame.sparkSession, _left_keys(weave))
        if counts_late:
            # The length of arrays is not known.
            has_arrays = bool(weave.timed) or any(node.group_by for node in weave.nodes)
            choose_batch(self.frame.sparkSession, None if has_arrays else weave.frames.values())

    @property
    def is_late(self) -> bool:
        """Whether its rows are counted in their files."""
        return self._late is not None

    def settle(
        self, spark: SparkSession, job_group: str, files: WrittenFiles
    ) -> tuple[RowCounts, ...]:
        """The counts of each snapshot, once `frame` was written; call it before publishing.

        A left join loses no row, so that as many rows after it as before, of all snapshots
        together, are as many of each. `job_group` is that of the jobs that wrote the `files`.

        Raises:
            RowsMultiplied: a join multiplied rows; the message names it and up to 20 keys.
        """
        exact = _Exact(self.weave)
        counts, is_suspect = self._observed(spark, job_group)
        late = self._late.count(self._observing.passed, files) if self._late else {}
        counts = self._believed(counts | late, files)
        for point in (*self._observing.observations, *late):
            if point not in counts:
                counts[point] = exact.count(point)
        if self._subtrees is not None:
            counts |= self._subtrees.counts
        mismatches = self._mismatches(counts)
        if mismatches and mismatches[0].number:  # late counts do not have what hangs on the child
            counts |= {point: exact.count(point) for point in late if point.number}
            mismatches = self._mismatches(counts)
        for node in mismatches:
            exact.refuse_multiplied(node)
            for point in (Point(node.number, is_out=False), Point(node.number, is_out=True)):
                counts[point] = exact.count(point)
            if not _is_even(counts, node):
                raise _uneven(counts, node)
        for child in self.weave.joins:
            join, met = self.weave.timed.get(child.number), Point(child.parent_number, is_out=True)
            if isinstance(join, AsOfJoin) and _met(counts[met], f"tied_{child.number}"):
                exact.refuse_tied(child, join)
        rows = counts[TOP][ROWS]
        if (is_suspect or mismatches) and files.rows() != rows:
            raise SourceNotReadable(
                "the rows written are not those that a second look at the sources gives",
                resource=f"DataSource/{self.weave.root.source}",
                found=f"{files.rows()} rows in the files, {rows} in the sources",
                expected="sources that stay as they are while a snapshot is woven",
                hint="run again",
            )
        fresh = {} if self._subtrees is None else self._subtrees.remember(counts)
        return tuple(
            RowCounts(one[TOP][ROWS], self._measures(one), bool(exact.queries), fresh)
            for one in self._of_each(counts)
        )

    def _observed(self, spark: SparkSession, job_group: str) -> tuple[dict[Point, Counts], bool]:
        """The observed counts, none where they are suspect, and whether they are."""
        if not self._observing.observations:
            return {}, False
        heard = await_listeners(spark, LISTENER_PATIENCE)
        if not (heard and ran_exactly_once(spark, job_group)):
            return {}, True
        return self._observing.read(patience=0.0), False

    def _mismatches(self, counts: Mapping[Point, Counts]) -> list[JoinNode]:
        return [
            node
            for node in self.weave.nodes
            if self.weave.children(node.number) and not _is_even(counts, node)
        ]

    def _believed(self, counts: Mapping[Point, Counts], files: WrittenFiles) -> dict[Point, Counts]:
        """The counts without those of no rows at all where there were some.

        An observation that saw nothing is 0 before a join and 0 after it, which would prove every
        join. Rows in the files passed the root, and partners of a join its child.
        """
        found = {point: of for point, of in counts.items() if ROWS in of}
        if TOP in found and not found[TOP][ROWS] and files.rows():
            return {}
        for node in self.weave.joins:
            parent = found.get(Point(node.parent_number, is_out=True))
            if parent is not None and not _met(parent, f"matched_{node.number}"):
                continue
            for point in (Point(node.number, is_out=out) for out in (False, True)):
                if point in found and not found[point][ROWS]:
                    del found[point]
        return found

    def _of_each(self, counts: Mapping[Point, Counts]) -> Iterable[Mapping[Point, Counts]]:
        """The counts as they would be, were each snapshot woven by itself."""
        if self.weave.snapshots == 1:
            return [counts]
        of_root = [point for point in counts if point.number == 0]
        return [
            {**counts, **{point: counts_of_snapshot(counts[point], n) for point in of_root}}
            for n in range(self.weave.snapshots)
        ]

    def drop(self) -> None:
        """Release the subtrees kept for other snapshots, since this one is not published."""
        if self._subtrees is not None:
            self._subtrees.drop()

    def _measures(self, counts: Mapping[Point, Counts]) -> tuple[JoinMeasure, ...]:
        measures = []
        for child in self.weave.joins:
            before = counts[Point(child.parent_number, is_out=False)]
            after = counts[Point(child.parent_number, is_out=True)]
            own = counts.get(Point(child.number, is_out=True))
            measures.append(
                JoinMeasure(
                    child=child.field_name,
                    in_=before[ROWS],
                    out=after[ROWS],
                    matched=after[f"matched_{child.number}"],
                    null_keys=before[f"null_{child.number}"],
                    null_times=before.get(f"timeless_{child.number}"),
                    beyond_tolerance=after.get(f"beyond_{child.number}"),
                    child_null_keys=None if own is None else own[f"null_{child.number}"],
                    left=self.weave.tree.by_number[child.parent_number].source
                    if child.parent_number
                    else "",
                    rows=counts[TOP].get(f"rows_{child.number}"),
                )
            )
        return tuple(measures)


def _left_keys(weave: Weave) -> Iterator[tuple[DataFrame, frozenset[str] | None]]:
    """The frames that others are joined to, and the columns of their keys, if they are columns."""
    for node in weave.nodes:
        children = weave.children(node.number)
        parts = [part for child in children for part in weave.keys[child.number].left]
        fields = [part.field for part in parts if part.is_bare and part.field is not None]
        names = frozenset(field.parts[0] for field in fields if len(field.parts) == 1)
        is_plain = len(fields) == len(parts) and all(len(field.parts) == 1 for field in fields)
        if children:
            yield weave.frames[node.field_name], names if is_plain else None


def _too_many_leaves(weave: Weave) -> frozenset[Point]:
    """The leaves, where there are too many to count the NULL keys of each; else nothing."""
    parents = {node.parent_number for node in weave.joins}
    leaves = [node for node in weave.joins if node.number not in parents]
    if len(leaves) <= MOST_COUNTED_LEAVES:
        return frozenset()
    return frozenset(Point(node.number, is_out=True) for node in leaves)


def null_key_warnings(
    joins: Iterable[JoinMeasure], ratios: Mapping[str, float | None]
) -> tuple[str, ...]:
    """Warnings about joins whose share of left rows with a NULL key reaches the declared ratio."""
    warnings = []
    for join in joins:
        ratio = ratios.get(join.child)
        if ratio is not None and join.null_keys and join.null_keys >= ratio * join.in_:
            warnings.append(
                f"`{join.child}`: {join.null_keys} of {join.in_} rows have a NULL join key "
                f"({join.null_keys / join.in_:.1%}; warnNullKeyRatio is {ratio:g})"
            )
    return tuple(warnings)


def _met(parent: Counts, name: str) -> bool:
    """Whether a count, such as that of matches, is more than 0 in one of the snapshots."""
    return any(count for each, count in parent.items() if each.split("@")[0] == name)


def _is_even(counts: Mapping[Point, Counts], node: JoinNode) -> bool:
    before, after = (counts[Point(node.number, is_out=out)][ROWS] for out in (False, True))
    return before == after


def _uneven(counts: Mapping[Point, Counts], node: JoinNode) -> RowsMultiplied:
    before, after = (counts[Point(node.number, is_out=out)][ROWS] for out in (False, True))
    return RowsMultiplied(
        f"the joins of DataSource/{node.source} changed the number of rows from {before} to "
        f"{after}, but no key that does so could be found",
        expected="sources and key expressions that give the same rows whenever they are read",
        hint="look for rand(), current_timestamp() and the like, and for sources in motion",
    )


class _Exact:
    """Counts by queries of their own over a second, unobserved fold; built when first needed."""

    def __init__(self, weave: Weave) -> None:
        self._weave = weave
        self._recording: Recording | None = None
        self.queries = 0

    def count(self, point: Point) -> Counts:
        self.queries += 1
        return self._frames().count(point)

    def refuse_multiplied(self, node: JoinNode) -> None:
        """Find the join of a node that multiplies rows, if one does."""
        side = Side(self._weave, node)
        left = self._frames().frame(Point(node.number, is_out=False))
        for child in side.children:
            if child.group_by or child.number in self._weave.timed:
                continue  # one row by construction
            right_side = Side(self._weave, child)
            right = self._frames().frame(Point(child.number, is_out=True))
            condition = side.condition(child, right_side)
            self.queries += 1
            samples = (
                right_side.spelled_keys(right)
                .join(left.select(*dict.fromkeys(side.left_keys(child))), condition, "left_semi")
                .groupBy(*right_side.own_keys)
                .agg(
                    sf.min(SPELLINGS).alias("first"),
                    sf.max(SPELLINGS).alias("last"),
                    sf.count(sf.lit(1)).alias("rows"),
                )
                .where(sf.col("rows") > 1)
                .orderBy(sf.desc("rows"), *right_side.own_keys)
                .limit(SAMPLES)
                .collect()
            )
            if samples:
                raise self._multiplied(node, child, left, right, samples)

    def _multiplied(
        self, node: JoinNode, child: JoinNode, left: DataFrame, right: DataFrame, samples: list[Row]
    ) -> RowsMultiplied:
        side, right_side = Side(self._weave, node), Side(self._weave, child)
        before = left.count()
        after = (
            left.select(*dict.fromkeys(side.left_keys(child)))
            .join(right.select(*right_side.own_keys), side.condition(child, right_side), "left")
            .count()
        )
        names = [part.expression.replace("`", "") for part in self._weave.keys[child.number].right]
        return RowsMultiplied(
            f"DataSource/{node.source} --> DataRelationship/{child.relationship} --> "
            f"DataSource/{child.source} is one-to-many: the number of rows increased from "
            f"{before} to {after}",
            found=f"rows of `{child.field_name}` that share a key: "
            + "; ".join(_describe(names, row) for row in samples),
            expected=f"at most one row of `{child.field_name}` for every row it is joined to",
        )

    def refuse_tied(self, child: JoinNode, join: AsOfJoin) -> None:
        """Refuse an as-of join in which rows met several rows that hold at their time."""
        rule, parent = join.rule, self._weave.tree.node(child.parent)
        side, right_side = Side(self._weave, parent), Side(self._weave, child)
        left = self._frames().frame(Point(parent.number, is_out=False))
        right = self._frames().frame(Point(child.number, is_out=True))
        pairs = side.key_pairs(child, right_side)
        self.queries += 1
        samples = join.tied(left, right, pairs, right_side.packed_name, SAMPLES).collect()
        keys = [part.expression.replace("`", "") for part in self._weave.keys[child.number].right]
        names = [*keys, rule.child_field]
        found = (f"{_named(names, row[:-1])} (met by {row.rows} rows)" for row in samples)
        until = rule.child_until_field
        column = "COLUMN" if rule.ties is None else "ANOTHER_COLUMN"
        raise RowsMultiplied(
            f"DataSource/{parent.source} --> DataRelationship/{child.relationship} --> "
            f"DataSource/{child.source}: several rows of `{child.field_name}` hold at one time",
            path=rule.child_field,
            found="; ".join(found) or "none any more: the sources have changed",
            expected=f"at most one row a key at every {rule.child_field}"
            + (f", and intervals up to {until} that do not overlap" if until else ""),
            hint="correct the source"
            + ("" if until else f", or choose by `ties: {{newestBy: {column}}}` of asOf"),
        )

    def _frames(self) -> Recording:
        if self._recording is None:
            self._recording = Recording()
            fold(self._weave, self._recording)
        return self._recording


def _named(names: Iterable[str], values: Iterable[object]) -> str:
    pairs = zip(names, values, strict=True)
    return ", ".join(f"{name} = {str(value)[:VALUE_LENGTH]}" for name, value in pairs)


def _describe(names: list[str], row: Row) -> str:
    *values, first, last, rows = row
    shown = _named(names, values)
    if first == last:
        return f"{shown} ({rows} rows)"
    written = (", ".join(f"'{text[:VALUE_LENGTH]}'" for text in one) for one in (first, last))
    return f"{shown}, written {' and '.join(written)} ({rows} rows)"
