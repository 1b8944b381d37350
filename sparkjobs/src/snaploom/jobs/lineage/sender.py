"""Sends events in a thread of its own: a server that is slow, or away, holds up nobody.

Events are sent in order. What cannot be sent is warned about once and lost: nothing depends on
lineage. A server that the administrator names may be private or on this machine, but no metadata
service; its redirects are not followed, and of its answers no more than a little is read.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from openlineage.client.event_v2 import RunEvent
from openlineage.client.transport.file import FileConfig, FileTransport
from openlineage.client.transport.http import ApiKeyTokenProvider, HttpConfig, HttpTransport
from openlineage.client.transport.transport import Transport
from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter
from urllib3 import PoolManager
from urllib3.util import Retry

from snaploom.endpoints.connections import EndpointRefused
from snaploom.endpoints.pools import pools_of
from snaploom.jobs.lineage.lineagesettings import LineageSettings
from snaploom.planning.addresses import OF_ADMINISTRATOR

SECONDS_A_TRY = 5.0
"""How long one try of one event may take."""
TRIES = Retry(
    total=2, backoff_factor=0.3, status_forcelist=[502, 503, 504], allowed_methods=["POST"]
)
"""Tries after the first: a server may be starting anew."""
PATIENCE = 10.0
"""Seconds that the end of a job waits for what is not sent yet: longer than one event may take."""
HURRIED = 3.0
"""The same for a job that is to end: a pod has 30 seconds for everything."""
MOST_FAILURES = 3
"""Events in a row that could not be sent, after which no other is tried."""


LONGEST_ANSWER = 1024 * 1024
"""Bytes of the longest answer to an event, of which nothing is used."""


class _Adapter(HTTPAdapter):
    """Requests' own, through pools that judge addresses and bound answers."""

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **options)
        self.poolmanager.pool_classes_by_scheme = _POOLS.by_scheme

    def proxy_manager_for(self, proxy: str, **options: Any) -> PoolManager:
        manager: PoolManager = super().proxy_manager_for(proxy, **options)
        manager.pool_classes_by_scheme = _POOLS.by_scheme
        return manager

    def send(self, request: PreparedRequest, *arguments: Any, **options: Any) -> Response:
        response = super().send(request, *arguments, **options)
        if response.is_redirect:
            response.close()
            raise EndpointRefused(
                "a redirect is not followed",
                found=str(response.status_code),
                expected="an answer of the server itself",
                hint="set the address to the one that it redirects to",
            )
        return response


_POOLS = pools_of(OF_ADMINISTRATOR, LONGEST_ANSWER)


class Sender:
    """Sends to one place.

    Args:
        transport: takes events, and raises what it likes.
        place: the same for people.
        warn: takes what a person should know.
    """

    def __init__(self, transport: Transport, place: str, warn: Callable[[str], None]) -> None:
        self._transport = transport
        self._place = place
        self._warn = warn
        self._waiting: SimpleQueue[RunEvent | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="snaploom-lineage", daemon=True)
        self._thread.start()

    def send(self, event: RunEvent) -> None:
        """Have an event sent; returns at once, and never raises."""
        self._waiting.put(event)

    def close(self, patience: float) -> None:
        """Wait so many seconds at most until everything is sent."""
        self._waiting.put(None)
        self._thread.join(patience)
        if self._thread.is_alive():
            self._warn(f"lineage is not sent in full: {self._place} takes too long")

    def _work(self) -> None:
        failures = 0
        while (event := self._waiting.get()) is not None:
            if failures == MOST_FAILURES:
                continue
            try:
                self._transport.emit(event)
            except Exception as error:  # noqa: BLE001 - libraries of others; a run must not notice
                failures += 1
                if failures == 1:
                    self._warn(f"lineage cannot be sent to {self._place}: {_cause(error)}")
            else:
                failures = 0


def open_transport(settings: LineageSettings) -> Transport:
    """The transport of events to a place; nothing is sent yet."""
    if settings.file:
        return FileTransport(FileConfig(log_file_path=settings.file, append=True))
    config = HttpConfig(
        url=settings.server,
        endpoint=settings.endpoint,
        timeout=SECONDS_A_TRY,
        adapter=_Adapter(max_retries=TRIES),
    )
    if settings.key:
        config.auth = ApiKeyTokenProvider({"api_key": settings.key})
    return HttpTransport(config)


def _cause(error: Exception) -> str:
    """Kind of a failure and code of its answer, without content that the answer may hold."""
    response = getattr(error, "response", None)
    code = getattr(response, "status_code", None)
    return type(error).__name__ if code is None else f"{type(error).__name__}, status {code}"
