"""Keeps the store true: everything is listed at the start, and again from time to time.

Between lists the watches tell of changes. What they can miss, a later list finds: changes while a
watch was away, and above all objects that vanished then, of which no watch ever tells. A change
that is known already wakes nobody, so that a restart among thousands of resources that are as they
should be writes nothing.
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
from snaploom_operator.knowledge.references import ref_of, version_of
from snaploom_operator.knowledge.store import Store
from snaploom_operator.metadata import metadata_of, text_in
from snaploom_operator.metrics import Metrics
from snaploom_operator.objects import JsonObject, Ref
from snaploom_operator.watching.kinds import Watched
from snaploom_operator.workqueue import WorkQueue

DELETED = "DELETED"
AT_ONCE = 100
"""Objects that are taken in before others get their turn: parsing them takes some 50 ms."""
RELISTED_PAUSE = 5.0
"""Seconds after a watch that began anew told its last object: it says nothing of their end."""
LATE = 2.0
"""Seconds that a watch may be behind before what it has not told of counts as missed."""
JITTER = 0.2
"""Share of the time between two lists that is random, so that operators do not keep step."""

_log = logging.getLogger(__name__)


class Synchroniser:
    """Lists, and takes in what watches tell.

    Args:
        store: what was last seen of the cluster.
        cluster: where it is listed.
        queue: keys to look at again.
        kinds: what is looked at.
        submitters: who may start jobs here.
        namespaces: where; empty for everywhere.
        metrics: what is counted.
        clock: seconds that never go back.
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
        self._told_at: dict[str, float] = {}
        self._fed_at: dict[str, float] = {}
        self._missed_at: dict[str, float] = {}
        self._told_anew: dict[str, set[Ref]] = {}
        self._relisted = asyncio.Event()

    @property
    def present(self) -> tuple[Watched, ...]:
        """The kinds that the cluster has."""
        return tuple(watched for key, watched in self._kinds.items() if key in self._present)

    def ages(self) -> dict[str, float]:
        """Seconds since each watch, or a list, last told anything, by kind."""
        now = self._clock()
        return {key: now - self._told_at[key] for key in self._present if key in self._told_at}

    def feed(self, type_: str | None, stored: JsonObject) -> None:
        """Take in what a watch tells.

        Args:
            type_: `ADDED`, `MODIFIED` or `DELETED`; None for what a watch tells when it begins.
            stored: the object.
        """
        ref = ref_of(stored)
        self._told_at[ref.kind] = self._fed_at[ref.kind] = self._clock()
        if type_ == DELETED:
            woken = self._store.remove(ref, text_in(metadata_of(stored), "uid"))
        else:
            woken = self._store.put(stored)
        if type_ is None and self._store.is_synced:
            self._note_told(ref)
        if self._store.is_synced:
            self._queue.add_all(woken)

    async def synchronise(self) -> bool:
        """List everything.

        The first time every resource is looked at; later those that changed, and those with a run.

        Returns:
            Whether the cluster has other kinds than it had.

        Raises:
            ClusterError: the cluster does not answer, lacks our kinds, or refuses a list.
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

    async def run(self, interval: float, begin_watches_anew: Callable[[], None]) -> None:
        """List again and again, until cancelled.

        Args:
            interval: seconds between two lists of everything.
            begin_watches_anew: called when the cluster has other kinds than it had.
        """
        while True:
            pause = interval * (1 + JITTER * random.uniform(-1, 1))
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    while True:
                        await self.list_what_began_anew()
            if await self._resynchronise() or await self.is_a_watch_dead():
                begin_watches_anew()

    def _note_told(self, ref: Ref) -> None:
        """Remember what a watch tells when it begins; it tells of nothing twice."""
        told = self._told_anew.setdefault(ref.kind, set())
        if ref in told:  # it began once more
            told.clear()
        told.add(ref)
        self._relisted.set()

    async def list_what_began_anew(self) -> None:
        """Wait until a watch began anew, and list its kind if it left out what we know."""
        await self._relisted.wait()
        while self._relisted.is_set():
            self._relisted.clear()
            await asyncio.sleep(RELISTED_PAUSE)
        anew, self._told_anew = self._told_anew, {}
        for key, told in sorted(anew.items()):
            self._metrics.recoveries.watch_began(key, len(told))
            if key not in self._kinds or self._is_all_told(key, told):
                continue
            try:
                woken = await self._list(self._kinds[key])
            except ClusterError as error:
                _log.warning("%s is not listed: %s", key, error.message)
            else:
                self._queue.add_all(woken or ())

    def _is_all_told(self, key: str, told: set[Ref]) -> bool:
        return all(ref in told for ref, _, _ in self._store.known_refs(key))

    async def is_a_watch_dead(self) -> bool:
        """Whether a watch says nothing of changes that a list found, though it was given time."""
        missed, self._missed_at = self._missed_at, {}
        if missed:
            await asyncio.sleep(LATE)
        dead = [key for key, at in missed.items() if self._fed_at.get(key, 0.0) < at]
        for key in sorted(dead):
            self._metrics.recoveries.watch_died(key)
        return bool(dead)

    async def _resynchronise(self) -> bool:
        try:
            return await self.synchronise()
        except ClusterError as error:
            _log.warning("not everything could be listed: %s", error.message)
            return False

    async def _list(self, watched: Watched) -> set[Ref] | None:
        """List one kind; who has to look again, or None where the cluster has no such kind."""
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
        self._told_at[watched.key] = self._clock()
        return woken

    async def _take_in(self, watched: Watched, namespace: str | None) -> set[Ref]:
        """List one kind in one place, page by page: raw objects take much memory."""
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
                if number % AT_ONCE == 0:
                    await asyncio.sleep(0)
        gone = self._vanished(watched, namespace, listed, _number(version))
        for ref in gone:
            woken |= self._store.remove(ref)
        behind = self._clock() - self._told_at.get(watched.key, self._clock())
        if self._store.is_synced and behind > LATE and news + len(gone):
            self._metrics.missed(watched.key, news + len(gone))
            self._missed_at[watched.key] = self._clock()
            _log.info("a list of %s told of %d changes", watched.key, news + len(gone))
        return woken

    def _vanished(
        self, watched: Watched, namespace: str | None, listed: set[Ref], version: int
    ) -> list[Ref]:
        """What the store holds and the list does not, although it would be old enough for it."""
        return [
            ref
            for ref, known, _ in self._store.known_refs(watched.key)
            if ref not in listed and namespace in (None, ref.namespace) and known <= version
        ]

    def _drop_all(self, watched: Watched) -> None:
        for ref, _, _ in list(self._store.known_refs(watched.key)):
            self._queue.add_all(self._store.remove(ref))

    def _available(self, present: set[str]) -> frozenset[Submitter]:
        """Who may start jobs; the operator's own runs need no kind of their own."""
        absent = {watched.submitter for key, watched in self._kinds.items() if key not in present}
        return self._submitters - absent


def _number(resource_version: str) -> int:
    return version_of({"metadata": {"resourceVersion": resource_version}})
