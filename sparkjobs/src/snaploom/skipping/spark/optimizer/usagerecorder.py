"""Records the use of indexes by queries beside the indexes, for other sessions.

No query waits for it and none fails by it: what reads did is put into a queue, and a thread of its
own adds it up, and writes the sums now and then and when the session ends. A place that cannot be
written, such as one that may only be read, is tried once and then skipped. A process that is
killed loses what it did since its last write.
"""

from __future__ import annotations

import atexit
import logging
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from queue import SimpleQueue

from snaploom.models.times import EpochNanos, now
from snaploom.skipping.spark.optimizer.outcomes import IndexOutcome, RelationOutcome
from snaploom.skipping.stores.port import IndexStore
from snaploom.skipping.stores.usage import Usage, UsageLog, usage_log, with_reasons

INTERVAL_SECONDS = 60.0
"""Time between two writes of a session that goes on."""

PATIENCE_SECONDS = 5.0
"""So long the end of a session waits for the last write."""

MOST_WAITING = 5_000
"""Reads in the queue from which on they are added up at once."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Read:
    store: IndexStore
    index: IndexOutcome
    relation: RelationOutcome
    at: EpochNanos


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
        self._reads: SimpleQueue[_Read] = SimpleQueue()
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
        self._reads.put(_Read(store, index, relation, self._clock()))
        if self._thread is None:
            self._start()
        elif self._reads.qsize() > MOST_WAITING:
            self._awake.set()

    def flush(self) -> None:
        """Write pending counts; raises nothing."""
        with self._writing:
            while not self._reads.empty():
                self._count(self._reads.get())
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

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="snaploom-usage", daemon=True)
                thread.start()
                self._thread = thread
                atexit.register(self.close)

    def _count(self, read: _Read) -> None:
        store = read.store
        kept = self._kept.get(store.uri)
        log = usage_log(store) if kept is None else kept.log
        if log is not None:
            usage = _added(Usage() if kept is None else kept.usage, read)
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


def _added(before: Usage, done: _Read) -> Usage:
    index, relation = done.index, done.relation
    read = Usage(
        reads=1,
        served=int(bool(index.dropped)),
        files=relation.files,
        dropped_files=index.dropped,
        bytes=relation.bytes,
        dropped_bytes=index.dropped_bytes,
        seconds=index.seconds,
        first_used=done.at,
        last_used=done.at,
    )
    return with_reasons(before + read if index.is_used else before, index.unused)
