"""Reflects the objects of one kind in the store: by a list, and by a watch from there on."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing

from snaploom_operator.cluster.port import Change, ChangeType, Cluster
from snaploom_operator.errors import ResourceUnknown
from snaploom_operator.objectmetadata import metadata_of, text_in
from snaploom_operator.objects import Ref
from snaploom_operator.store.references import ref_of, version_of
from snaploom_operator.store.store import Store
from snaploom_operator.watch.observer import WatchObserver
from snaploom_operator.watch.watchedkinds import Watched

TURN_SECONDS = 0.02
"""Seconds of parsing after which the event loop runs other tasks: some 50 objects, or a single one
that is hard to parse."""
WATCH_LAG_SECONDS = 2.0
"""Delay of a watch up to which a change found by a list does not count as missed."""

_log = logging.getLogger(__name__)


class Reflector:
    """One kind in one namespace, or in all.

    Args: watched: the kind. namespace: the namespace; None for all. store: the store to fill.
        cluster: the cluster. observer: notices starts and missed changes. clock: monotonic seconds.
    """

    def __init__(
        self,
        watched: Watched,
        namespace: str | None,
        store: Store,
        cluster: Cluster,
        observer: WatchObserver,
        clock: Callable[[], float],
    ) -> None:
        self.watched = watched
        self.namespace = namespace
        self.is_installed = False
        """Whether the last list found the kind."""
        self._store = store
        self._cluster = cluster
        self._observer = observer
        self._clock = clock
        self._since = ""
        self._heard_at: float | None = None
        self._changed_at = 0.0
        self._missed_at: float | None = None

    @property
    def is_heard(self) -> bool:
        """Whether the kind was listed once, or is not installed."""
        return self._heard_at is not None

    @property
    def age(self) -> float:
        """Seconds since the last list or event; 0 before the first list."""
        return 0.0 if self._heard_at is None else self._clock() - self._heard_at

    @property
    def is_listed(self) -> bool:
        """Whether there is a list from which to watch."""
        return bool(self._since)

    @property
    def has_missed(self) -> bool:
        """Whether a list found changes that the watch has not reported since."""
        return self._missed_at is not None and self._changed_at < self._missed_at

    def forget(self) -> None:
        """Forget the list, so that another one is needed before the next watch."""
        self._since = ""

    def end_check(self) -> None:
        """Forget what the watch has missed."""
        self._missed_at = None

    async def list(self) -> AsyncGenerator[frozenset[Ref], None]:
        """List all objects, page by page, since raw objects take much memory.

        An optional kind that is not installed has no objects.

        Yields: The resources to reconcile.

        Raises: ResourceUnknown: a kind is not installed that is not optional. ClusterError: a
            request failed.
        """
        try:
            async with aclosing(self._listed()) as batches:
                async for woken in batches:
                    yield woken
        except ResourceUnknown:
            self.is_installed = False
            self.forget()
            self._heard_at = self._clock()
            if self.watched.submitter is None:
                raise
            yield self._remove_all(ref for ref, _, _ in self._known())

    async def changes(self) -> AsyncGenerator[frozenset[Ref], None]:
        """Watch from the last list on, endlessly.

        Yields: The resources to reconcile, after each event.

        Raises: WatchExpired: the list is too old. ClusterError: the watch failed.
        """
        self._observer.watch_began(self.watched.key, sum(1 for _ in self._known()))
        events = self._cluster.watch(
            self.watched.resource,
            namespace=self.namespace,
            since=self._since,
            selector=self.watched.selector,
        )
        async with aclosing(events):
            async for event in events:
                yield self.take(event)

    def take(self, event: Change) -> frozenset[Ref]:
        """Take in an event of the watch; the resources to reconcile."""
        self._heard_at = self._clock()
        if event.type is ChangeType.BOOKMARK:
            return frozenset()
        self._changed_at = self._heard_at
        if event.type is ChangeType.DELETED:
            uid = text_in(metadata_of(event.object), "uid")
            return self._store.remove(ref_of(event.object), uid)
        return self._store.put(event.object)

    async def _listed(self) -> AsyncGenerator[frozenset[Ref], None]:
        listed: set[Ref] = set()
        version = ""
        missed = 0
        turn = time.perf_counter()
        pages = self._cluster.pages(
            self.watched.resource, namespace=self.namespace, selector=self.watched.selector
        )
        async with aclosing(pages):
            async for page in pages:
                version = page.resource_version
                if page.is_first:
                    listed.clear()
                for stored in page.items:
                    listed.add(ref_of(stored))
                    missed += not self._store.is_known(stored)
                    yield self._store.put(stored)
                    if time.perf_counter() - turn > TURN_SECONDS:
                        await asyncio.sleep(0)
                        turn = time.perf_counter()
        vanished = self._vanished(listed, version)
        yield self._remove_all(vanished)
        self._note_missed(missed + len(vanished))
        self.is_installed = True
        self._since = version
        self._heard_at = self._clock()

    def _vanished(self, listed: set[Ref], version: str) -> tuple[Ref, ...]:
        """Known objects that are missing in the list, though older than it."""
        newest = version_of({"metadata": {"resourceVersion": version}})
        return tuple(
            ref for ref, known, _ in self._known() if ref not in listed and known <= newest
        )

    def _note_missed(self, changes: int) -> None:
        if self._store.is_synced and changes and self.age > WATCH_LAG_SECONDS:
            self._observer.watch_missed(self.watched.key, changes)
            self._missed_at = self._clock()
            _log.info("a list of %s found %d missed changes", self.watched.key, changes)

    def _remove_all(self, refs: Iterable[Ref]) -> frozenset[Ref]:
        return frozenset().union(*(self._store.remove(ref) for ref in tuple(refs)))

    def _known(self) -> Iterable[tuple[Ref, int, str]]:
        return (
            known
            for known in self._store.known_refs(self.watched.key)
            if self.namespace in (None, known[0].namespace)
        )
