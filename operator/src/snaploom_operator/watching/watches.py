"""kopf's watches, in a thread and a loop of their own.

kopf takes its loop for its own: when it ends it cancels every task that began after it, and it
sets signal handlers. In a thread it does neither to us, and can be begun anew: when the cluster has
got another kind, and when it gave up, as it does after an error that it takes for fatal.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress

import kopf

from snaploom_operator.metrics import Metrics
from snaploom_operator.objects import JsonObject
from snaploom_operator.watching.handlers import Feed, Login, registry_of
from snaploom_operator.watching.kinds import Watched
from snaploom_operator.watching.settings import kopf_settings

PATIENCE = 15.0
"""Seconds for watches to end; kopf itself gives its tasks some five."""
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
"""Seconds before watches that gave up are begun anew."""

_log = logging.getLogger(__name__)


class _WithoutSignals(logging.Filter):
    """Leaves out that kopf hears no signals in a thread: that is why it is in one."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "OS signals are ignored" not in record.getMessage()


logging.getLogger("kopf._core.reactor.running").addFilter(_WithoutSignals())


class Watches:
    """The watches of all kinds.

    Args:
        kinds: tells what is watched, when it begins.
        namespaces: where; empty for everywhere.
        feed: takes events in, in the loop of the caller.
        login: tells how to reach the API server.
        metrics: what is counted.
    """

    def __init__(
        self,
        kinds: Callable[[], Iterable[Watched]],
        namespaces: Iterable[str],
        feed: Feed,
        login: Login,
        metrics: Metrics,
    ) -> None:
        self._kinds = kinds
        self._namespaces = tuple(namespaces)
        self._feed = feed
        self._login = login
        self._metrics = metrics
        self._anew = asyncio.Event()

    def begin_anew(self) -> None:
        """End all watches and begin them again."""
        self._anew.set()

    async def run(self) -> None:
        """Watch, until cancelled."""
        pause = FIRST_PAUSE
        while True:
            self._anew.clear()
            thread = _WatchThread(self._operator())
            thread.start()
            try:
                asked = await self._until_over(thread)
            finally:
                await thread.end()
            self._metrics.restarted()
            if asked:
                pause = FIRST_PAUSE
                continue
            _log.warning("the watches gave up; again in %.0f s: %s", pause, thread.failure)
            await asyncio.sleep(pause)
            pause = min(LONGEST_PAUSE, 2 * pause)

    async def _until_over(self, thread: _WatchThread) -> bool:
        """Wait until the watches are to begin anew, or ended; whether they were asked to."""
        tasks = [
            asyncio.create_task(self._anew.wait()),
            asyncio.create_task(thread.ended.wait()),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            return self._anew.is_set()
        finally:
            for task in tasks:
                task.cancel()

    def _operator(self) -> Callable[[threading.Event], None]:
        """What the thread runs."""
        loop = asyncio.get_running_loop()
        kinds = tuple(self._kinds())

        def feed(type_: str | None, stored: JsonObject) -> None:
            loop.call_soon_threadsafe(self._feed, type_, stored)

        registry = registry_of(kinds, feed, self._login)
        settings = kopf_settings(kinds)

        async def watch(stop: threading.Event) -> None:
            _silence_once_stopped(stop)
            await kopf.operator(
                registry=registry,
                settings=settings,
                clusterwide=not self._namespaces,
                namespaces=self._namespaces,
                standalone=True,
                # Otherwise kopf asks who its user is, and a pod's may have a number only.
                identity=socket.gethostname(),  # type: ignore[arg-type]  # a kind of text
                stop_flag=stop,
            )

        return lambda stop: asyncio.run(watch(stop))


def _silence_once_stopped(stop: threading.Event) -> None:
    """Log nothing of what fails in this loop after it was told to end.

    kopf asks the API server for its kinds in several requests at once. Told to end, it closes their
    connections and does not wait for them, so that each fails with nobody to hear of it.
    """

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        if not stop.is_set():
            loop.default_exception_handler(context)

    asyncio.get_running_loop().set_exception_handler(handle)


class _WatchThread:
    """One life of the watches."""

    def __init__(self, operate: Callable[[threading.Event], None]) -> None:
        self._operate = operate
        self._stop = threading.Event()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="watches", daemon=True)
        self.ended = asyncio.Event()
        self.failure = "they ended"

    def start(self) -> None:
        self._thread.start()

    async def end(self) -> None:
        """Stop, and wait until it is over; a thread that does not end dies with the process."""
        self._stop.set()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.ended.wait(), PATIENCE)

    def _run(self) -> None:
        try:
            self._operate(self._stop)
        except Exception as error:  # noqa: BLE001 - kopf may give up for any reason
            self.failure = f"{type(error).__name__}: {error}"
        finally:
            with suppress(RuntimeError):  # the loop that waited for it is closed already
                self._loop.call_soon_threadsafe(self.ended.set)
