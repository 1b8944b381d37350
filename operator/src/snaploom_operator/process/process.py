"""One process of the operator: the memo of its handlers, of which kopf makes no copies."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Generic, Protocol, Self, TypeVar

from snaploom_operator.store.feed import Feed

_log = logging.getLogger(__name__)


class Parts(Protocol):
    """The parts that handlers of every process need."""

    @property
    def feed(self) -> Feed:
        """Takes what watches report."""

    @property
    def trouble(self) -> str:
        """The reason to restart the process; empty if it works."""


AnyParts = TypeVar("AnyParts", bound=Parts)


class Process(Generic[AnyParts]):
    """A process from its start to its end; `opened` opens its parts, and closes them at the end."""

    def __init__(
        self, opened: Callable[[Process[AnyParts]], AbstractAsyncContextManager[AnyParts]]
    ) -> None:
        self._opened = opened
        self._stack = AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []
        self.parts: AnyParts
        """Its parts, between `begin` and `end`."""
        self.ending = asyncio.Event()
        """Set when the process is to end."""
        self.failure: Exception | None = None
        """Reason why it ended, if it failed."""

    def __copy__(self) -> Self:
        return self

    async def begin(self) -> None:
        """Open its parts; returns where they failed too, with `failure` set."""
        try:
            self.parts = await self._stack.enter_async_context(self._opened(self))
        except Exception as error:  # noqa: BLE001 - what runs the process raises it
            self.fail(error)

    async def end(self) -> None:
        """Close its parts, after what runs beside them."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._stack.aclose()

    def spawn(self, name: str, work: Coroutine[None, None, None]) -> None:
        """Run something until the process ends; if it fails, so does the process."""

        def ended(task: asyncio.Task[None]) -> None:
            error = None if task.cancelled() else task.exception()
            if isinstance(error, Exception):
                _log.error("task %s failed: %s", name, error)
                self.fail(error)

        task = asyncio.create_task(work, name=name)
        task.add_done_callback(ended)
        self._tasks.append(task)

    def fail(self, error: Exception) -> None:
        """End the process because of an error."""
        self.failure = self.failure or error
        self.ending.set()
