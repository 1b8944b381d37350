"""Logs that go on at a time, merged line by line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from heapq import heappop, heappush

from snaploom_operator.commands.loglines import Line

PATIENCE = 0.5
"""Seconds for which lines that are followed are held, so that earlier ones of others can come."""


async def merged(logs: Sequence[AsyncIterator[Line]], *, is_followed: bool) -> AsyncIterator[Line]:
    """The lines of all logs in the order of their time.

    Of logs that are followed that holds as far as their lines come within half a second.

    Raises:
        ClusterError: one of them broke off; what had come before was given.
    """
    waiting: list[Line] = []
    feeding = asyncio.gather(*(_feed(log, waiting) for log in logs))
    try:
        while not feeding.done():
            await asyncio.wait([feeding], timeout=PATIENCE if is_followed else None)
            while waiting:
                yield heappop(waiting)
        feeding.result()
    finally:
        feeding.cancel()
        await asyncio.wait([feeding])


async def _feed(log: AsyncIterator[Line], waiting: list[Line]) -> None:
    async for line in log:
        heappush(waiting, line)
