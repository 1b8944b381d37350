"""Keeps the store in step with the cluster: lists and watches all kinds, and resyncs periodically.

A watch is continued from its last event; after any error its kind is listed again, which also finds
objects that vanished meanwhile. A resync lists everything while the watches go on: it finds what a
watch misses that delivers no events, and all watches are restarted then. Known versions requeue
nothing, so that a restart among thousands of unchanged resources writes nothing.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing

from snaploom.models.run import Submitter
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.errors import ClusterError, WatchExpired
from snaploom_operator.objects import Ref
from snaploom_operator.store.store import Store
from snaploom_operator.watch.observer import Unobserved, WatchObserver
from snaploom_operator.watch.reflector import WATCH_LAG_SECONDS, Reflector
from snaploom_operator.watch.watchedkinds import Watched

FIRST_RETRY_SECONDS = 0.5
LONGEST_RETRY_SECONDS = 15.0
"""Seconds before a failed list or watch is retried, and a kind that is not installed looked for."""
JITTER = 0.2
"""Random share of the resync interval, so that processes do not resync simultaneously."""

_log = logging.getLogger(__name__)


class Informer:
    """Lists and watches kinds.

    Args: store: the store to fill. cluster: the cluster. kinds: the watched kinds. namespaces:
        watched namespaces; empty for all. clock: monotonic seconds. on_change: receives the
        resources to reconcile, when everything was listed once. submitters: the allowed
        submitters. observer: notices what happens to watches. pause: sleeps before a retry.
    """

    def __init__(
        self,
        store: Store,
        cluster: Cluster,
        kinds: Iterable[Watched],
        namespaces: Iterable[str],
        clock: Callable[[], float],
        *,
        on_change: Callable[[Iterable[Ref]], None] = lambda woken: None,
        submitters: Iterable[Submitter] = (),
        observer: WatchObserver | None = None,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._store = store
        self._clock = clock
        self._on_change = on_change
        self._submitters = frozenset(submitters)
        self._observer = observer or Unobserved()
        self._pause = pause
        places: tuple[str | None, ...] = tuple(namespaces) or (None,)
        self.reflectors = tuple(
            Reflector(watched, place, store, cluster, self._observer, clock)
            for watched in kinds
            for place in places
        )
        self._restart_requested = asyncio.Event()

    @property
    def is_synced(self) -> bool:
        """Whether every kind was listed once."""
        return all(reflector.is_heard for reflector in self.reflectors)

    @property
    def age(self) -> float:
        """Seconds since the last event of the slowest watch; 0 before the first list."""
        return max((reflector.age for reflector in self.reflectors), default=0.0)

    @property
    def size(self) -> int:
        """Number of cached resources."""
        return len(self._store.refs())

    def ages(self) -> dict[str, float]:
        """Seconds since the last event or list of each installed kind."""
        ages: defaultdict[str, float] = defaultdict(float)
        for reflector in self.reflectors:
            if reflector.is_installed:
                key = reflector.watched.key
                ages[key] = max(ages[key], reflector.age)
        return ages

    async def list_all(self) -> None:
        """List everything.

        The first time every resource is requeued; later changed ones, and those with a run.

        Raises: ClusterError: a list failed, or our kinds are not installed.
        """
        for reflector in self.reflectors:
            await self._list(reflector)
        self._on_change(self._store.queue.all)

    async def run(self, interval: float) -> None:
        """Watch, and resync periodically, until cancelled.

        Args: interval: seconds between two resyncs.
        """
        async with asyncio.TaskGroup() as group:
            group.create_task(self._resync(interval))
            while True:
                self._restart_requested.clear()
                watches = [group.create_task(self._follow(each)) for each in self.reflectors]
                await self._restart_requested.wait()
                for watch in watches:
                    watch.cancel()
                await asyncio.gather(*watches, return_exceptions=True)
                self._observer.watches_restarted()

    def restart(self) -> None:
        """Restart all watches."""
        self._restart_requested.set()

    async def is_a_watch_dead(self) -> bool:
        """Whether a watch did not report changes that a list found, after a delay."""
        if any(reflector.has_missed for reflector in self.reflectors):
            await asyncio.sleep(WATCH_LAG_SECONDS)
        dead = {each.watched.key for each in self.reflectors if each.has_missed}
        for reflector in self.reflectors:
            reflector.end_check()
        for key in sorted(dead):
            self._observer.watch_died(key)
        return bool(dead)

    async def _resync(self, interval: float) -> None:
        while True:
            await asyncio.sleep(interval * (1 + JITTER * random.uniform(-1, 1)))
            try:
                await self.list_all()
            except ClusterError as error:
                _log.warning("resync failed: %s", error.message)
            if await self.is_a_watch_dead():
                self.restart()

    async def _follow(self, reflector: Reflector) -> None:
        """List and watch one kind; errors are retried with backoff."""
        plural = reflector.watched.resource.plural
        pause = FIRST_RETRY_SECONDS
        while True:
            began = self._clock()
            try:
                await self._list_and_watch(reflector)
            except WatchExpired:
                _log.info("listing %s again: the watch expired", plural)
            except ClusterError as error:
                _log.warning("cannot watch %s: %s", plural, error.message)
            except Exception:  # noqa: BLE001 - one object that crashes us must not end the watch
                _log.exception("cannot watch %s", plural)
            if self._clock() - began > LONGEST_RETRY_SECONDS:
                pause = FIRST_RETRY_SECONDS
            await self._pause(pause * random.uniform(0.5, 1.0))
            pause = min(pause * 2, LONGEST_RETRY_SECONDS)

    async def _list_and_watch(self, reflector: Reflector) -> None:
        """List one kind, unless it was just listed, and watch it until an error."""
        try:
            if not reflector.is_listed:
                await self._list(reflector)
            if reflector.is_listed:
                async with aclosing(reflector.changes()) as changes:
                    async for woken in changes:
                        self._wake(woken)
        finally:
            reflector.forget()

    async def _list(self, reflector: Reflector) -> None:
        try:
            async with aclosing(reflector.list()) as batches:
                async for woken in batches:
                    self._wake(woken)
        finally:
            self._wake(self._store.set_available(self._available()))
            if self.is_synced and not self._store.is_synced:
                self._store.is_synced = True
                self._wake(self._store.refs())

    def _wake(self, woken: Iterable[Ref]) -> None:
        if self._store.is_synced:
            self._on_change(woken)

    def _available(self) -> frozenset[Submitter]:
        """The submitters whose kinds are installed; local runs need none."""
        optional = [each for each in self.reflectors if each.watched.submitter is not None]
        installed = {each.watched.submitter for each in optional if each.is_installed}
        return self._submitters - {
            each.watched.submitter for each in optional if each.watched.submitter not in installed
        }
