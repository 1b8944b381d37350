"""Posts events beside the passes, so that statuses do not wait for them.

One event is posted at a time, in the order of the passes: where much happens at once the API server
gets the statuses first. Where it takes no events for long the queue is full, and passes wait.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from snaploom.models.times import EpochNanos, now
from snaploom_operator.apply.eventrecorder import EventRecorder
from snaploom_operator.decision import Note
from snaploom_operator.objects import Ref

QUEUED = 2_000
"""Events that may wait: two of each of a thousand runs, a megabyte."""
STOP_SECONDS = 5.0
"""Seconds in which those that wait are posted at the end of the process."""

_log = logging.getLogger(__name__)


class _Waiting(NamedTuple):
    resource: Ref
    uid: str
    note: Note
    at: EpochNanos


class EventQueue:
    """A recorder that does not wait until its events are posted; made by `queued_events`."""

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder
        self._waiting: asyncio.Queue[_Waiting] = asyncio.Queue(QUEUED)

    async def record(self, resource: Ref, uid: str, note: Note) -> None:
        """Have one event posted; its time is now."""
        await self._waiting.put(_Waiting(resource, uid, note, now()))

    async def run(self) -> None:
        """Post events until cancelled."""
        while True:
            resource, uid, note, at = await self._waiting.get()
            try:
                await self._recorder.post(resource, uid, note, at)
            except Exception:  # noqa: BLE001 - one event that crashes us must not end the others
                _log.exception("cannot post event %s about %s", note.reason, resource)
            finally:
                self._waiting.task_done()

    async def posted(self) -> None:
        """Wait until none is left."""
        await self._waiting.join()


@asynccontextmanager
async def queued_events(recorder: EventRecorder) -> AsyncIterator[EventQueue]:
    """Post events during the context, and those that are left at its end."""
    queue = EventQueue(recorder)
    poster = asyncio.create_task(queue.run(), name="events")
    try:
        yield queue
        try:
            await asyncio.wait_for(queue.posted(), STOP_SECONDS)
        except TimeoutError:
            _log.warning("some events were not posted before the end")
    finally:
        poster.cancel()
        await asyncio.gather(poster, return_exceptions=True)
