"""What the webhook knows of a cluster: every resource of ours, listed once and watched since.

No review asks the API server anything, so that reviews are answered while it is slow, or away; how
old the view is stands in a metric, and decides in the end whether the webhook is ready.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass

from snaploom_operator.cluster.port import ApiResource, ChangeType, Cluster, Listing
from snaploom_operator.cluster.resources import OURS
from snaploom_operator.errors import ClusterError, ResourceUnknown, WatchExpired
from snaploom_operator.knowledge.references import ref_of, version_of
from snaploom_operator.knowledge.store import Store
from snaploom_operator.metadata import metadata_of, text_in
from snaploom_operator.objects import Ref

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 15.0
"""Seconds before a kind whose list or watch failed is listed again."""
PARSED_AT_ONCE = 50
"""Objects of a list that are taken in before others have their turn: some 20 milliseconds."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Place:
    """One kind, somewhere."""

    resource: ApiResource
    namespace: str | None


class View:
    """Feeds a store.

    Args:
        store: what is fed.
        cluster: where everything is listed and watched.
        namespaces: where to look; empty for everywhere.
        clock: seconds that never go back.
        pause: how to wait.
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
        self._heard_at: dict[_Place, float] = {}

    @property
    def is_synced(self) -> bool:
        """Whether everything was listed once."""
        return len(self._heard_at) == len(self._places)

    @property
    def age(self) -> float:
        """Seconds for which one kind or another may have changed unheard; 0 before the lists."""
        return self._clock() - min(self._heard_at.values(), default=self._clock())

    @property
    def size(self) -> int:
        """Resources that are known."""
        return len(self._store.refs())

    async def run(self) -> None:
        """List and watch, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for place in self._places:
                group.create_task(self._follow(place))

    async def _follow(self, place: _Place) -> None:
        pause = FIRST_PAUSE
        while True:
            began = self._clock()
            try:
                await self._list_and_watch(place)
            except WatchExpired:
                _log.info("%s are listed anew", place.resource.plural)
            except ClusterError as error:
                _log.warning("%s are not followed: %s", place.resource.plural, error.message)
            except Exception:  # noqa: BLE001 - one object that we fail at is no reason to go blind
                _log.exception("%s are not followed", place.resource.plural)
            if self._clock() - began > LONGEST_PAUSE:
                pause = FIRST_PAUSE
            await self._pause(pause * random.uniform(0.5, 1.0))
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _list_and_watch(self, place: _Place) -> None:
        listing = await self._listed(place)
        await self._take_in(place, listing)
        self._hear_of(place)
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
                self._hear_of(place)

    async def _listed(self, place: _Place) -> Listing:
        try:
            return await self._cluster.list(place.resource, namespace=place.namespace)
        except ResourceUnknown:
            # Of a kind that does not exist there is nothing to know; it may still be installed.
            await self._take_in(place, Listing((), ""))
            self._hear_of(place)
            raise

    async def _take_in(self, place: _Place, listing: Listing) -> None:
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

    def _hear_of(self, place: _Place) -> None:
        self._heard_at[place] = self._clock()
        self._store.is_synced = self.is_synced
