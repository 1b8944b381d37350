"""Outcomes of queries, counted in the session and recorded beside indexes."""

import atexit
import logging
import secrets
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from queue import SimpleQueue

import numpy as np

from snaploom.models.common import EpochNanos, now
from snaploom.skipping.core.predicates import And, Constant, Not, Or, Predicate, Unknown, conjuncts
from snaploom.skipping.indexes.base import ClauseReport, Evaluation, evaluate
from snaploom.skipping.spark.optimizer.requests import Known
from snaploom.skipping.spark.optimizer.translation.conditions import hint_of
from snaploom.skipping.stores.port import NEVER, IndexStore
from snaploom.skipping.stores.usage import Usage, UsageLog, usage_log, with_reasons

_log = logging.getLogger(__name__)


# Outcomes of one request and of each part of its condition, for statistics and people.


@dataclass(frozen=True)
class ClauseOutcome:
    """Effect of one part of the condition on the files of this query."""

    text: str
    """The part, as people write it."""
    report: ClauseReport
    """Indexes that served it, and reasons why others did not."""
    dropped: int
    """Files of the listing that only it would drop."""
    hints: tuple[str, ...] = ()
    """A change that would let an index serve it."""


@dataclass(frozen=True)
class IndexOutcome:
    """Outcome of one skipping index."""

    uri: str
    target: str
    labels: tuple[str, ...] = ()
    """Its indexes: `MIN_MAX(price)`."""
    unused: tuple[str, ...] = ()
    """Reason why it, or a part of it, was not used."""
    is_used: bool = False
    stale: int = 0
    """Files that it knows otherwise than they are: read."""
    missing: int = 0
    """Files that it does not know: read."""
    dropped: int = 0
    """Files that it proves are not needed."""
    dropped_bytes: int = 0
    seconds: float = 0.0
    clauses: tuple[ClauseOutcome, ...] = ()
    """Part by part; only when explaining."""


@dataclass(frozen=True)
class RelationOutcome:
    """Decision about one relation of files."""

    name: str
    """The table, or where the files are."""
    mode: str
    """`estimate` while the plan is optimised, `list` when it is run."""
    files: int = 0
    """Files that would be read without skipping."""
    bytes: int = 0
    """Their size."""
    kept_files: int = 0
    kept_bytes: int = 0
    seconds: float = 0.0
    condition: str = ""
    """Condition on each row; only when explaining."""
    indexes: tuple[IndexOutcome, ...] = ()
    reasons: tuple[str, ...] = ()
    """Reason why no index was asked."""
    is_evaluated_only: bool = False

    @property
    def dropped_files(self) -> int:
        return self.files - self.kept_files

    @property
    def dropped_bytes(self) -> int:
        return self.bytes - self.kept_bytes


def labels_of(evaluation: Evaluation) -> tuple[str, ...]:
    """Indexes that proved something, or else those that were asked."""
    clauses = [clause for clause in evaluation.clauses if clause.dropped] or evaluation.clauses
    return tuple(dict.fromkeys(label for clause in clauses for label in clause.served_by))


def clauses_of(predicate: Predicate, known: Known) -> tuple[ClauseOutcome, ...]:
    """Separate effect of each part of a condition; evaluates each anew."""
    outcomes = []
    for part in conjuncts(predicate):
        evaluation = evaluate(part, known.definition, known.files)
        keep = known.keep(evaluation)
        dropped = int(len(keep) - np.count_nonzero(keep))
        (report,) = evaluation.clauses
        hints = () if report.served_by else tuple(dict.fromkeys(_hints(part)))
        outcomes.append(ClauseOutcome(report.text, report, dropped, hints))
    return tuple(outcomes)


def _hints(predicate: Predicate) -> Iterator[str]:
    match predicate:
        case And(parts) | Or(parts):
            for part in parts:
                yield from _hints(part)
        case Constant() | Not() | Unknown():
            return
        case leaf:
            yield hint_of(leaf.term)


# Statistics of skipping in a session: counted as queries are planned, written nowhere.

RECENT = 200
"""Decisions that are remembered one by one."""


@dataclass(frozen=True)
class IndexUse:
    """Usage of one skipping index."""

    target: str
    times: int = 0
    dropped_files: int = 0
    """Files that it proved are not needed, summed over its uses."""
    last_used: EpochNanos = NEVER


@dataclass(frozen=True)
class Statistics:
    """Sums since the session was enabled, or since they were reset.

    A relation is asked about while its query is optimised, and again when it runs if filters or
    files are others by then: that counts twice.
    """

    relations: int = 0
    """Requests that an index could answer or not."""
    served: int = 0
    """Requests of which an index dropped at least one file."""
    files: int = 0
    bytes: int = 0
    """Listed, before skipping."""
    kept_files: int = 0
    kept_bytes: int = 0
    stale: int = 0
    """Files that indexes knew otherwise than they were."""
    missing: int = 0
    """Files that indexes did not know."""
    seconds: float = 0.0
    """Spent on deciding."""
    errors: int = 0
    """Requests that failed: every file was read."""
    last_error: str = ""
    indexes: Mapping[str, IndexUse] = field(default_factory=dict)
    """By where an index is kept."""
    recent: tuple[RelationOutcome, ...] = ()
    """The last decisions, oldest first."""

    @property
    def dropped_files(self) -> int:
        """Files that were not read."""
        return self.files - self.kept_files

    @property
    def dropped_bytes(self) -> int:
        """Bytes that were not read."""
        return self.bytes - self.kept_bytes


class Counting:
    """Counts decisions; safe to use from several threads."""

    def __init__(self, clock: Callable[[], EpochNanos] = now) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._sums = Statistics()
        self._recent: deque[RelationOutcome] = deque(maxlen=RECENT)

    def add(self, outcome: RelationOutcome) -> None:
        with self._lock:
            self._recent.append(outcome)
            self._sums = _added(self._sums, outcome, self._clock())

    def fail(self, message: str) -> None:
        with self._lock:
            sums = self._sums
            self._sums = replace(sums, errors=sums.errors + 1, last_error=message)

    def read(self) -> Statistics:
        with self._lock:
            return replace(self._sums, recent=tuple(self._recent))

    def reset(self) -> None:
        """Reset to zero; the times of last use are kept."""
        with self._lock:
            uses = {
                uri: IndexUse(use.target, last_used=use.last_used)
                for uri, use in self._sums.indexes.items()
            }
            self._sums = Statistics(indexes=uses)
            self._recent.clear()


def _added(sums: Statistics, outcome: RelationOutcome, at: EpochNanos) -> Statistics:
    used = [index for index in outcome.indexes if index.is_used]
    uses = dict(sums.indexes)
    for index in used:
        before = uses.get(index.uri)
        times, dropped = (before.times, before.dropped_files) if before is not None else (0, 0)
        uses[index.uri] = IndexUse(index.target, times + 1, dropped + index.dropped, at)
    return replace(
        sums,
        relations=sums.relations + 1,
        served=sums.served + bool(outcome.dropped_files),
        files=sums.files + outcome.files,
        bytes=sums.bytes + outcome.bytes,
        kept_files=sums.kept_files + outcome.kept_files,
        kept_bytes=sums.kept_bytes + outcome.kept_bytes,
        stale=sums.stale + sum(index.stale for index in used),
        missing=sums.missing + sum(index.missing for index in used),
        seconds=sums.seconds + outcome.seconds,
        indexes=uses,
    )


# Records the use of indexes by queries beside the indexes, for other sessions.

INTERVAL_SECONDS = 60.0
"""Time between two writes of a session that goes on."""

PATIENCE_SECONDS = 5.0
"""So long the end of a session waits for the last write."""

MOST_WAITING = 5_000
"""Reads in the queue from which on they are added up at once."""


@dataclass(frozen=True)
class _Kept:
    store: IndexStore
    log: UsageLog
    usage: Usage
    is_written: bool = False
    is_refused: bool = False


class UsageRecorder:
    """Adds up and writes for one Spark application; safe to use from several threads."""

    def __init__(
        self,
        interval_seconds: float = INTERVAL_SECONDS,
        clock: Callable[[], EpochNanos] = now,
    ) -> None:
        self._session = secrets.token_hex(8)
        self._interval = interval_seconds
        self._clock = clock
        self._reads: SimpleQueue[tuple[IndexStore, Usage]] = SimpleQueue()
        self._starting = threading.Lock()
        self._writing = threading.Lock()
        self._kept: dict[str, _Kept] = {}
        self._thread: threading.Thread | None = None
        self._awake = threading.Event()
        self._is_closed = False

    def add(self, store: IndexStore, index: IndexOutcome, relation: RelationOutcome) -> None:
        """Count an index's outcome for a read; returns at once, and raises nothing."""
        if relation.is_evaluated_only or self._is_closed:
            return
        self._reads.put((store, _usage_of(index, relation, self._clock())))
        if self._thread is None:
            with self._starting:
                if self._thread is None:
                    thread = threading.Thread(target=self._run, name="snaploom-usage", daemon=True)
                    thread.start()
                    self._thread = thread
                    atexit.register(self.close)
        elif self._reads.qsize() > MOST_WAITING:
            self._awake.set()

    def flush(self) -> None:
        """Write pending counts; raises nothing."""
        with self._writing:
            while not self._reads.empty():
                self._count(*self._reads.get())
            for uri, kept in self._kept.items():
                if not (kept.is_written or kept.is_refused):
                    is_refused = self._refused(kept)
                    self._kept[uri] = replace(kept, is_written=True, is_refused=is_refused)

    def close(self) -> None:
        """Write a last time and wait briefly for it; later counts are dropped."""
        self._is_closed = True
        self._awake.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(PATIENCE_SECONDS)
        atexit.unregister(self.close)

    def _count(self, store: IndexStore, read: Usage) -> None:
        kept = self._kept.get(store.uri)
        log = usage_log(store) if kept is None else kept.log
        if log is not None:
            usage = read if kept is None else kept.usage + read
            is_refused = kept is not None and kept.is_refused
            self._kept[store.uri] = _Kept(store, log, usage, is_refused=is_refused)

    def _run(self) -> None:
        while not self._is_closed:
            self._awake.wait(self._interval)
            self._awake.clear()
            self.flush()
        self.flush()

    def _refused(self, kept: _Kept) -> bool:
        """Write one document; True if it cannot be written."""
        try:
            # What was dropped or removed meanwhile is not made again by a note about it.
            if kept.store.read().exists:
                kept.log.write(self._session, kept.usage)
        except Exception as error:  # noqa: BLE001 -- a note that cannot be written stops nothing
            _log.info("the usage of %s is not recorded: %s", kept.store.uri, error)
            return True
        return False


def _usage_of(index: IndexOutcome, relation: RelationOutcome, at: EpochNanos) -> Usage:
    read = Usage(
        reads=1,
        served=int(bool(index.dropped)),
        files=relation.files,
        dropped_files=index.dropped,
        bytes=relation.bytes,
        dropped_bytes=index.dropped_bytes,
        seconds=index.seconds,
        first_used=at,
        last_used=at,
    )
    return with_reasons(read if index.is_used else Usage(), index.unused)
