"""Writing down what queries make of indexes, beside the indexes, for other sessions to see.

No query waits for it and none fails by it: reads are added up in memory, and a thread of its own
writes the sums now and then and when the session ends. A place that cannot be written, such as one
that may only be read, is tried once and then left alone. A process that is killed loses what it
did since its last write.
"""

from __future__ import annotations

import atexit
import logging
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass

from snaploom.models.times import EpochNanos, now
from snaploom.skipping.spark.outcomes import IndexOutcome, RelationOutcome
from snaploom.skipping.stores.port import IndexStore
from snaploom.skipping.stores.usage import Usage, UsageLog, usage_log, with_reasons

INTERVAL_SECONDS = 60.0
"""Time between two writes of a session that goes on."""

PATIENCE_SECONDS = 5.0
"""So long the end of a session waits for the last write."""

_log = logging.getLogger(__name__)


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
        """Nothing runs before something is counted.

        Args:
            interval_seconds: time between two writes.
            clock: the time now.
        """
        self._session = secrets.token_hex(8)
        self._interval = interval_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._kept: dict[str, _Kept] = {}
        self._thread: threading.Thread | None = None
        self._ending = threading.Event()

    def add(self, store: IndexStore, index: IndexOutcome, relation: RelationOutcome) -> None:
        """Count what an index did for a read; returns at once, and raises nothing.

        Args:
            store: where the index is.
            index: what it did.
            relation: the read; one that is evaluated only is not counted, for it read everything.
        """
        log = usage_log(store)
        if log is None or relation.is_evaluated_only:
            return
        with self._lock:
            kept = self._kept.get(store.uri) or _Kept(store, log, Usage())
            usage = _added(kept.usage, index, relation, self._clock())
            self._kept[store.uri] = _Kept(store, log, usage, False, kept.is_refused)
            if self._thread is None and not self._ending.is_set():
                self._thread = threading.Thread(
                    target=self._run, name="snaploom-usage", daemon=True
                )
                self._thread.start()
                atexit.register(self.close)

    def flush(self) -> None:
        """Write what was not written yet; raises nothing."""
        with self._writing:
            with self._lock:
                waiting = [
                    (uri, kept)
                    for uri, kept in self._kept.items()
                    if not (kept.is_written or kept.is_refused)
                ]
            for uri, kept in waiting:
                refused = self._refused(kept)
                with self._lock:
                    newest = self._kept[uri]
                    self._kept[uri] = _Kept(
                        newest.store, newest.log, newest.usage, newest.usage is kept.usage, refused
                    )

    def close(self) -> None:
        """Write a last time, and wait a little for it; nothing is written any more after that."""
        self._ending.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(PATIENCE_SECONDS)
        atexit.unregister(self.close)

    def _run(self) -> None:
        while not self._ending.wait(self._interval):
            self.flush()
        self.flush()

    def _refused(self, kept: _Kept) -> bool:
        """Write one document; whether that cannot be done."""
        try:
            # What was dropped or removed meanwhile is not made again by a note about it.
            if kept.store.read().exists:
                kept.log.write(self._session, kept.usage)
        except Exception as error:  # noqa: BLE001 -- a note that cannot be written stops nothing
            _log.info("the usage of %s is not recorded: %s", kept.store.uri, error)
            return True
        return False


def _added(before: Usage, index: IndexOutcome, relation: RelationOutcome, at: EpochNanos) -> Usage:
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
    return with_reasons(before + read if index.is_used else before, index.unused)
