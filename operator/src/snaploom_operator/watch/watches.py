"""kopf's watches, in a thread with its own event loop.

kopf assumes that it owns its loop: when it ends it cancels every task that was started after it,
and it sets signal handlers. In a thread it affects nothing else, and can be restarted: when a kind
was installed, and after an error that kopf considers fatal.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress

import kopf

from snaploom_operator.objects import JsonObject
from snaploom_operator.operatormetrics import Metrics
from snaploom_operator.watch.handlers import Feed, Login, registry_of
from snaploom_operator.watch.kopfsettings import kopf_settings
from snaploom_operator.watch.watchedkinds import Watched

STOP_SECONDS = 15.0
"""Time limit of stopping the watches; kopf gives its tasks some five seconds."""
FIRST_RETRY_SECONDS = 1.0
LONGEST_RETRY_SECONDS = 60.0
"""Seconds before failed watches are restarted."""

_log = logging.getLogger(__name__)


class _WithoutSignals(logging.Filter):
    """Drops kopf's warning that it ignores signals in a thread, which is intended."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "OS signals are ignored" not in record.getMessage()


logging.getLogger("kopf._core.reactor.running").addFilter(_WithoutSignals())


class Watches:
    """The watches of all kinds.

    Args: kinds: returns the kinds to watch, at each start. namespaces: watched namespaces; empty
        for all. feed: receives events, in the caller's event loop. login: returns the connection.
        metrics: the operator's metrics.
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
        self._restart_requested = asyncio.Event()

    def restart(self) -> None:
        """Restart all watches."""
        self._restart_requested.set()

    async def run(self) -> None:
        """Watch, until cancelled."""
        pause = FIRST_RETRY_SECONDS
        while True:
            self._restart_requested.clear()
            thread = _WatchThread(self._operator())
            thread.start()
            try:
                asked = await self._until_over(thread)
            finally:
                await thread.end()
            self._metrics.restarted()
            if asked:
                pause = FIRST_RETRY_SECONDS
                continue
            _log.warning("the watches failed; restarting in %.0f s: %s", pause, thread.failure)
            await asyncio.sleep(pause)
            pause = min(LONGEST_RETRY_SECONDS, 2 * pause)

    async def _until_over(self, thread: _WatchThread) -> bool:
        """Wait for a restart request or the end of the watches; whether it was a request."""
        tasks = [
            asyncio.create_task(self._restart_requested.wait()),
            asyncio.create_task(thread.ended.wait()),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            return self._restart_requested.is_set()
        finally:
            for task in tasks:
                task.cancel()

    def _operator(self) -> Callable[[threading.Event], None]:
        """The function of the thread."""
        loop = asyncio.get_running_loop()
        kinds = tuple(self._kinds())

        def feed(type_: str | None, stored: JsonObject) -> None:
            loop.call_soon_threadsafe(self._feed, type_, stored)

        registry = registry_of(kinds, feed, self._login)
        settings = kopf_settings(kinds)

        async def watch(stop: threading.Event) -> None:
            _ignore_errors_after_stop(stop)
            await kopf.operator(
                registry=registry,
                settings=settings,
                clusterwide=not self._namespaces,
                namespaces=self._namespaces,
                standalone=True,
                # Otherwise kopf looks up its user name, which a pod's user may not have.
                identity=socket.gethostname(),  # type: ignore[arg-type]  # a kind of text
                stop_flag=stop,
            )

        return lambda stop: asyncio.run(watch(stop))


def _ignore_errors_after_stop(stop: threading.Event) -> None:
    """Do not log errors of this loop after the watches were stopped.

    kopf requests the kinds of the API server concurrently. When it is stopped, it closes the
    connections without awaiting the requests, so that each of them fails.
    """

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        if not stop.is_set():
            loop.default_exception_handler(context)

    asyncio.get_running_loop().set_exception_handler(handle)


class _WatchThread:
    """The thread of one start of the watches."""

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
        """Stop, and wait for the end; a thread that does not end is a daemon."""
        self._stop.set()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.ended.wait(), STOP_SECONDS)

    def _run(self) -> None:
        try:
            self._operate(self._stop)
        except Exception as error:  # noqa: BLE001 - kopf may fail for any reason
            self.failure = f"{type(error).__name__}: {error}"
        finally:
            with suppress(RuntimeError):  # the caller's loop is closed already
                self._loop.call_soon_threadsafe(self.ended.set)
