"""A thread pool with a limit per name, for work that cannot be cancelled.

A caller can stop waiting, but its thread continues. A slot is held until the work has really ended,
so that abandoned work cannot fill the pool.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TypeVar

_Result = TypeVar("_Result")


@dataclass
class _Share:
    turns: asyncio.Semaphore
    users: int = 0
    """Tasks that run or wait."""


class SharedThreads:
    """Runs work in threads, of which each name has at most a share."""

    def __init__(self, threads: Executor, share: int) -> None:
        self._threads = threads
        self._share = share
        self._shares: dict[str, _Share] = {}

    async def run(self, name: str, work: Callable[[], _Result]) -> _Result:
        """Run work as soon as the name has a free slot; its result, or its error."""
        share = self._shares.setdefault(name, _Share(asyncio.Semaphore(self._share)))
        share.users += 1
        try:
            await share.turns.acquire()
        except asyncio.CancelledError:
            self._leave(name)
            raise
        loop = asyncio.get_running_loop()
        future = self._threads.submit(work)
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(self._ended, name))
        return await asyncio.wrap_future(future)

    def _ended(self, name: str) -> None:
        self._shares[name].turns.release()
        self._leave(name)

    def _leave(self, name: str) -> None:
        share = self._shares[name]
        share.users -= 1
        if not share.users:
            del self._shares[name]
