"""Threads of which nobody has more than a share, for work that cannot be ended.

Whoever waits for a thread can give up; the thread goes on all the same. A share is taken until the
work has really ended, so that work nobody waits for cannot fill all threads either.
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
    """Pieces of work that have a thread or wait for one."""


class SharedThreads:
    """Runs work in threads, and shares them by name.

    Args:
        threads: runs the work.
        share: threads that one name may have at a time.
    """

    def __init__(self, threads: Executor, share: int) -> None:
        self._threads = threads
        self._share = share
        self._shares: dict[str, _Share] = {}

    async def run(self, name: str, work: Callable[[], _Result]) -> _Result:
        """What some work returns, once the name has a thread for it.

        Raises:
            Exception: whatever the work raises.
        """
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
