"""Synchronizes the store with the cluster: a full list at the start, then watches and resyncs.

A resync finds what watches miss: changes while a watch was disconnected, and above all objects that
were deleted then. Known versions requeue nothing, so that a restart among thousands of unchanged
resources writes nothing.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable
from contextlib import suppress

from snaploom.models.run import Submitter
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.errors import ClusterError, ResourceUnknown
from snaploom_operator.objectmetadata import metadata_of, text_in
from snaploom_operator.objects import JsonObject, Ref
from snaploom_operator.operatormetrics import Metrics
from snaploom_operator.store.references import ref_of, version_of
from snaploom_operator.store.store import Store
from snaploom_operator.watch.watchedkinds import Watched
from snaploom_operator.workqueue import WorkQueue

DELETED = "DELETED"
BATCH = 100
"""Objects that are parsed before the event loop runs other tasks: some 50 ms."""
RELIST_PAUSE = 5.0
"""Seconds after the last object of a restarted watch's initial list, whose end is not reported."""
WATCH_LAG_SECONDS = 2.0
"""Delay of a watch up to which a change found by a list does not count as missed."""
JITTER = 0.2
"""Random share of the resync interval, so that operators do not resync simultaneously."""

_log = logging.getLogger(__name__)


class Synchroniser:
    """Lists everything, and adds events of watches.

    Args: store: the store to fill. cluster: the cluster. queue: the work queue. kinds: the watched
        kinds. submitters: the allowed submitters. namespaces: watched namespaces; empty for all.
        metrics: the operator's metrics. clock: monotonic seconds.
    """

    def __init__(
        self,
        store: Store,
        cluster: Cluster,
        queue: WorkQueue[Ref],
        kinds: Iterable[Watched],
        submitters: Iterable[Submitter],
        namespaces: Iterable[str],
        metrics: Metrics,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._cluster = cluster
        self._queue = queue
        self._kinds = {watched.key: watched for watched in kinds}
        self._submitters = frozenset(submitters)
        self._places: tuple[str | None, ...] = tuple(namespaces) or (None,)
        self._metrics = metrics
        self._clock = clock
        self._present: frozenset[str] = frozenset()
        self._last_event_at: dict[str, float] = {}
        self._fed_at: dict[str, float] = {}
        self._missed_at: dict[str, float] = {}
        self._relisted: dict[str, set[Ref]] = {}
        self._has_relisted = asyncio.Event()

    @property
    def present(self) -> tuple[Watched, ...]:
        """The installed kinds."""
        return tuple(watched for key, watched in self._kinds.items() if key in self._present)

    def ages(self) -> dict[str, float]:
        """Seconds since the last event or list of each kind."""
        now = self._clock()
        return {
            key: now - self._last_event_at[key]
            for key in self._present
            if key in self._last_event_at
        }

    def feed(self, type_: str | None, stored: JsonObject) -> None:
        """Add an event of a watch.

        Args: type_: `ADDED`, `MODIFIED` or `DELETED`; None for the initial list of a watch. stored:
            the object.
        """
        ref = ref_of(stored)
        self._last_event_at[ref.kind] = self._fed_at[ref.kind] = self._clock()
        if type_ == DELETED:
            woken = self._store.remove(ref, text_in(metadata_of(stored), "uid"))
        else:
            woken = self._store.put(stored)
        if type_ is None and self._store.is_synced:
            self._note_relisted(ref)
        if self._store.is_synced:
            self._queue.add_all(woken)

    async def list_all(self) -> bool:
        """List everything.

        The first time every resource is requeued; later changed ones, and those with a run.

        Returns:
            Whether the installed kinds changed.

        Raises: ClusterError: a list failed, or our kinds are not installed.
        """
        is_first = not self._store.is_synced
        present: set[str] = set()
        woken: set[Ref] = set()
        for key, watched in self._kinds.items():
            listed = await self._list(watched)
            if listed is not None:
                present.add(key)
                woken |= listed
        woken |= self._store.set_available(self._available(present))
        self._store.is_synced = True
        has_changed = present != self._present
        self._present = frozenset(present)
        self._queue.add_all(self._store.refs() if is_first else woken | self._store.queue.all)
        return has_changed

    async def run(self, interval: float, restart_watches: Callable[[], None]) -> None:
        """Resync periodically, until cancelled.

        Args: interval: seconds between two resyncs. restart_watches: called if the installed kinds
            changed or a watch is broken.
        """
        while True:
            pause = interval * (1 + JITTER * random.uniform(-1, 1))
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    while True:
                        await self.relist_restarted_watches()
            if await self._resync() or await self.is_a_watch_dead():
                restart_watches()

    def _note_relisted(self, ref: Ref) -> None:
        """Record an object of a watch's initial list, in which each is listed once."""
        relisted = self._relisted.setdefault(ref.kind, set())
        if ref in relisted:  # the watch restarted again
            relisted.clear()
        relisted.add(ref)
        self._has_relisted.set()

    async def relist_restarted_watches(self) -> None:
        """Wait for a restarted watch, and list its kind if known objects were missing."""
        await self._has_relisted.wait()
        while self._has_relisted.is_set():
            self._has_relisted.clear()
            await asyncio.sleep(RELIST_PAUSE)
        by_kind, self._relisted = self._relisted, {}
        for key, relisted in sorted(by_kind.items()):
            self._metrics.recoveries.watch_began(key, len(relisted))
            if key not in self._kinds or self._is_complete(key, relisted):
                continue
            try:
                woken = await self._list(self._kinds[key])
            except ClusterError as error:
                _log.warning("cannot list %s: %s", key, error.message)
            else:
                self._queue.add_all(woken or ())

    def _is_complete(self, key: str, relisted: set[Ref]) -> bool:
        return all(ref in relisted for ref, _, _ in self._store.known_refs(key))

    async def is_a_watch_dead(self) -> bool:
        """Whether a watch did not report changes that a list found, after a delay."""
        missed, self._missed_at = self._missed_at, {}
        if missed:
            await asyncio.sleep(WATCH_LAG_SECONDS)
        dead = [key for key, at in missed.items() if self._fed_at.get(key, 0.0) < at]
        for key in sorted(dead):
            self._metrics.recoveries.watch_died(key)
        return bool(dead)

    async def _resync(self) -> bool:
        try:
            return await self.list_all()
        except ClusterError as error:
            _log.warning("resync failed: %s", error.message)
            return False

    async def _list(self, watched: Watched) -> set[Ref] | None:
        """List one kind; the resources to requeue, or None if it is not installed."""
        woken: set[Ref] = set()
        for place in self._places:
            namespace = None if watched.resource.kind == "Namespace" else place
            try:
                woken |= await self._take_in(watched, namespace)
            except ResourceUnknown:
                if watched.submitter is None:
                    raise
                self._drop_all(watched)
                return None
        self._last_event_at[watched.key] = self._clock()
        return woken

    async def _take_in(self, watched: Watched, namespace: str | None) -> set[Ref]:
        """List one kind in one namespace, page by page, since raw objects take much memory."""
        woken: set[Ref] = set()
        listed: set[Ref] = set()
        version = ""
        news = 0
        pages = self._cluster.pages(
            watched.resource, namespace=namespace, selector=watched.selector
        )
        async for page in pages:
            version = page.resource_version
            if page.is_first:
                listed.clear()
            for number, stored in enumerate(page.items, start=1):
                listed.add(ref_of(stored))
                news += not self._store.is_known(stored)
                woken |= self._store.put(stored)
                if number % BATCH == 0:
                    await asyncio.sleep(0)
        gone = self._vanished(watched, namespace, listed, _number(version))
        for ref in gone:
            woken |= self._store.remove(ref)
        behind = self._clock() - self._last_event_at.get(watched.key, self._clock())
        if self._store.is_synced and behind > WATCH_LAG_SECONDS and news + len(gone):
            self._metrics.missed(watched.key, news + len(gone))
            self._missed_at[watched.key] = self._clock()
            _log.info("a list of %s found %d missed changes", watched.key, news + len(gone))
        return woken

    def _vanished(
        self, watched: Watched, namespace: str | None, listed: set[Ref], version: int
    ) -> list[Ref]:
        """Known objects that are missing in the list, though older than it."""
        return [
            ref
            for ref, known, _ in self._store.known_refs(watched.key)
            if ref not in listed and namespace in (None, ref.namespace) and known <= version
        ]

    def _drop_all(self, watched: Watched) -> None:
        for ref, _, _ in list(self._store.known_refs(watched.key)):
            self._queue.add_all(self._store.remove(ref))

    def _available(self, present: set[str]) -> frozenset[Submitter]:
        """The submitters whose kinds are installed; local runs need none."""
        absent = {watched.submitter for key, watched in self._kinds.items() if key not in present}
        return self._submitters - absent


def _number(resource_version: str) -> int:
    return version_of({"metadata": {"resourceVersion": resource_version}})
