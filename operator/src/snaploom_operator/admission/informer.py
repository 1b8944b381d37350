"""The webhook's cache of all Snaploom resources, filled by lists and watches.

Reviews make no requests to the API server, so that they are answered while it is slow or
unreachable. The age of the cache is a metric and decides about readiness.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass

from snaploom_operator.cluster.apiresources import OURS
from snaploom_operator.cluster.port import ApiResource, ChangeType, Cluster, Listing
from snaploom_operator.errors import ClusterError, ResourceUnknown, WatchExpired
from snaploom_operator.objectmetadata import metadata_of, text_in
from snaploom_operator.objects import Ref
from snaploom_operator.store.references import ref_of, version_of
from snaploom_operator.store.store import Store

FIRST_RETRY_SECONDS = 0.5
LONGEST_RETRY_SECONDS = 15.0
"""Seconds before a failed list or watch is retried."""
PARSED_AT_ONCE = 50
"""Objects of a list that are parsed before the event loop runs other tasks: some 20 ms."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Place:
    """One kind in one namespace, or in all."""

    resource: ApiResource
    namespace: str | None


class Informer:
    """Lists and watches all Snaploom kinds into a store.

    Args: store: the store to fill. cluster: the cluster. namespaces: namespaces to watch; empty for
        all. clock: monotonic seconds. pause: sleeps.
    """

    def __init__(
        self,
        store: Store,
        cluster: Cluster,
        namespaces: Iterable[str],
        clock: Callable[[], float],
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._store = store
        self._cluster = cluster
        self._clock = clock
        self._pause = pause
        somewhere: tuple[str | None, ...] = tuple(namespaces) or (None,)
        self._places = [_Place(kind, place) for kind in OURS.values() for place in somewhere]
        self._contact_at: dict[_Place, float] = {}

    @property
    def is_synced(self) -> bool:
        """Whether every kind was listed once."""
        return len(self._contact_at) == len(self._places)

    @property
    def age(self) -> float:
        """Seconds since the last event of the slowest watch; 0 before the first list."""
        return self._clock() - min(self._contact_at.values(), default=self._clock())

    @property
    def size(self) -> int:
        """Number of cached resources."""
        return len(self._store.refs())

    async def run(self) -> None:
        """List and watch, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for place in self._places:
                group.create_task(self._follow(place))

    async def _follow(self, place: _Place) -> None:
        pause = FIRST_RETRY_SECONDS
        while True:
            began = self._clock()
            try:
                await self._list_and_watch(place)
            except WatchExpired:
                _log.info("listing %s again: the watch expired", place.resource.plural)
            except ClusterError as error:
                _log.warning("cannot watch %s: %s", place.resource.plural, error.message)
            except Exception:  # noqa: BLE001 - one object that crashes us must not end the watch
                _log.exception("cannot watch %s", place.resource.plural)
            if self._clock() - began > LONGEST_RETRY_SECONDS:
                pause = FIRST_RETRY_SECONDS
            await self._pause(pause * random.uniform(0.5, 1.0))
            pause = min(pause * 2, LONGEST_RETRY_SECONDS)

    async def _list_and_watch(self, place: _Place) -> None:
        listing = await self._listed(place)
        await self._store_listing(place, listing)
        self._note_contact(place)
        changes = self._cluster.watch(
            place.resource, namespace=place.namespace, since=listing.resource_version
        )
        async with aclosing(changes):
            async for change in changes:
                if change.type is ChangeType.DELETED:
                    uid = text_in(metadata_of(change.object), "uid")
                    self._store.remove(ref_of(change.object), uid)
                elif change.type is not ChangeType.BOOKMARK:
                    self._store.put(change.object)
                self._note_contact(place)

    async def _listed(self, place: _Place) -> Listing:
        try:
            return await self._cluster.list(place.resource, namespace=place.namespace)
        except ResourceUnknown:
            # A kind that is not installed has no objects; it may be installed later.
            await self._store_listing(place, Listing((), ""))
            self._note_contact(place)
            raise

    async def _store_listing(self, place: _Place, listing: Listing) -> None:
        listed: set[Ref] = set()
        for number, stored in enumerate(listing.items, start=1):
            listed.add(ref_of(stored))
            self._store.put(stored)
            if number % PARSED_AT_ONCE == 0:
                await asyncio.sleep(0)
        newest = version_of({"metadata": {"resourceVersion": listing.resource_version}})
        for ref, version, _ in tuple(self._store.known_refs(place.resource.kind)):
            is_here = place.namespace in (None, ref.namespace)
            if is_here and ref not in listed and (newest < 0 or version <= newest):
                self._store.remove(ref)

    def _note_contact(self, place: _Place) -> None:
        self._contact_at[place] = self._clock()
        self._store.is_synced = self.is_synced
