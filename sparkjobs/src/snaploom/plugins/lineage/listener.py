"""Listens to runs and sends their lineage in a thread of its own."""

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any
from uuid import UUID

from openlineage.client.event_v2 import RunEvent
from openlineage.client.transport.file import FileConfig, FileTransport
from openlineage.client.transport.http import ApiKeyTokenProvider, HttpConfig, HttpTransport
from openlineage.client.transport.transport import Transport
from openlineage.client.uuid import generate_new_uuid
from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter
from urllib3 import PoolManager
from urllib3.util import Retry

from snaploom.endpoints import EndpointRefused, pools_of
from snaploom.models.common import EpochNanos, format_instant
from snaploom.models.report import Report
from snaploom.plan.bundle import Bundle
from snaploom.plugins.lineage.activation import LineageSettings
from snaploom.plugins.lineage.events import LineageRun, end_of, events_of, fault_of, start_of
from snaploom.policy.addresses import OF_ADMINISTRATOR
from snaploom.run.runevents import Event, SnapshotLeftOut, SnapshotPublished, SnapshotStarted

# Sends events in a thread of its own: a server that is slow, or away, holds up nobody.

SECONDS_A_TRY = 5.0
"""Seconds that one attempt to send an event may take."""
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
    """Sends to one place."""

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


# Listens to runs and sends their lineage: the only part of lineage with effects.

Warn = Callable[[str], None]


class RunListener:
    """Sends events of one run of one output."""

    def __init__(
        self,
        run: LineageRun,
        clock: Callable[[], EpochNanos],
        send: Callable[[RunEvent], None],
        warn: Warn,
    ) -> None:
        self._run = run
        self._clock = clock
        self._send = send
        self._warn = warn
        self._begun = ""
        self._send_events(lambda: (start_of(run, clock()),))

    def take(self, event: Event) -> None:
        self._send_events(lambda: events_of(self._run, self._begun, event, self._clock()))
        match event:
            case SnapshotStarted(_, _, time):
                self._begun = format_instant(time)
            case SnapshotPublished() | SnapshotLeftOut():
                self._begun = ""

    def ended(self, report: Report) -> None:
        self._send_events(lambda: (end_of(self._run, report, self._clock()),))

    def broke_off(self) -> None:
        self._send_events(lambda: (fault_of(self._run, self._clock()),))

    def _send_events(self, events: Callable[[], tuple[RunEvent, ...]]) -> None:
        try:
            for event in events():
                self._send(event)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with it, the run goes on
            self._warn(f"lineage of an event is not sent: {type(error).__name__}: {error}")


class LineageListener:
    """Sends events of the runs of one process."""

    def __init__(
        self,
        settings: LineageSettings,
        clock: Callable[[], EpochNanos],
        warn: Warn,
        new_id: Callable[[], UUID] = generate_new_uuid,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._new_id = new_id
        self._warn = warn
        self._sender = Sender(open_transport(settings), settings.place, warn)

    def begin(self, bundle: Bundle) -> RunListener:
        run = LineageRun(bundle, self._new_id(), self._settings.namespace)
        return RunListener(run, self._clock, self._sender.send, self._warn)

    def close(self, *, is_hurried: bool) -> None:
        """Wait a while until everything is sent; shorter when the process is to end."""
        self._sender.close(HURRIED if is_hurried else PATIENCE)
