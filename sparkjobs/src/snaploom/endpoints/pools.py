"""The same gate for libraries that are built upon urllib3: pools of connections."""

from __future__ import annotations

import io
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from urllib3 import BaseHTTPResponse, HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import (
    ConnectTimeoutError,
    NameResolutionError,
    NewConnectionError,
    ReadTimeoutError,
)
from urllib3.response import HTTPResponse

from snaploom.endpoints.connecting import Deadline, bounded_body, connect
from snaploom.planning.addresses import EndpointRules


@dataclass(frozen=True)
class Pools:
    """Classes of pools that connect by rules, follow no redirect and read bounded answers."""

    plain: type[HTTPConnectionPool]
    secure: type[HTTPSConnectionPool]

    @property
    def by_scheme(self) -> dict[str, type[HTTPConnectionPool]]:
        """The classes as urllib3's `PoolManager` takes them."""
        return {"http": self.plain, "https": self.secure}


def pools_of(rules: EndpointRules, most: int) -> Pools:
    """Pools for servers.

    Args:
        rules: what may be connected to.
        most: bytes of the longest answer, unpacked.
    """

    class PlainConnection(HTTPConnection):
        def _new_conn(self) -> socket.socket:
            return _connected(self, rules)

        def getresponse(self) -> HTTPResponse:  # type: ignore[override] # as urllib3's own
            return _in_time(self, super().getresponse)

    class SecureConnection(HTTPSConnection):
        def _new_conn(self) -> socket.socket:
            return _connected(self, rules)

        def getresponse(self) -> HTTPResponse:  # type: ignore[override] # as urllib3's own
            return _in_time(self, super().getresponse)

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = PlainConnection

        def urlopen(  # type: ignore[override] # the rest is given by name, or not at all
            self,
            method: str,
            url: str,
            body: Any = None,
            headers: Any = None,
            retries: Any = None,
            redirect: bool = False,
            assert_same_host: bool = True,
            **options: Any,
        ) -> BaseHTTPResponse:
            options["preload_content"] = False
            answer = super().urlopen(
                method, url, body, headers, retries, False, assert_same_host, **options
            )
            return _whole(answer, self, most)

    class SecurePool(HTTPSConnectionPool):
        ConnectionCls = SecureConnection

        def urlopen(  # type: ignore[override] # the rest is given by name, or not at all
            self,
            method: str,
            url: str,
            body: Any = None,
            headers: Any = None,
            retries: Any = None,
            redirect: bool = False,
            assert_same_host: bool = True,
            **options: Any,
        ) -> BaseHTTPResponse:
            options["preload_content"] = False
            answer = super().urlopen(
                method, url, body, headers, retries, False, assert_same_host, **options
            )
            return _whole(answer, self, most)

    return Pools(PlainPool, SecurePool)


def _connected(connection: HTTPConnection, rules: EndpointRules) -> socket.socket:
    host, port = connection._dns_host, connection.port
    try:
        return connect(host, port, _seconds(connection.timeout), rules)
    except socket.gaierror as error:
        raise NameResolutionError(host, connection, error) from error
    except TimeoutError as error:
        raise ConnectTimeoutError(connection, f"no connection to {host}:{port}") from error
    except OSError as error:
        raise NewConnectionError(connection, f"no connection to {host}:{port}") from error


def _in_time(connection: HTTPConnection, answer: Callable[[], HTTPResponse]) -> HTTPResponse:
    seconds = _seconds(connection.timeout)
    if connection.sock is None or seconds is None:
        return answer()
    with Deadline(connection.sock).within(seconds):
        return answer()


def _whole(response: BaseHTTPResponse, pool: HTTPConnectionPool, most: int) -> BaseHTTPResponse:
    """The answer with its body in memory."""
    seconds = _seconds(pool.timeout.read_timeout)
    until = None if seconds is None else time.monotonic() + seconds
    place = f"{pool.host}:{pool.port}"

    def read(amount: int) -> bytes:
        if until is not None and time.monotonic() > until:
            raise ReadTimeoutError(pool, "", f"no whole answer in {seconds:g} seconds")
        return response.read1(amount, decode_content=True)

    try:
        body = bounded_body(read, most, place)
    except BaseException:
        response.close()  # what is left of it is nobody's answer
        raise
    response.release_conn()
    headers = response.headers.copy()
    headers.discard("content-encoding")
    return HTTPResponse(
        body=io.BytesIO(body),
        headers=headers,
        status=response.status,
        version=response.version,
        reason=response.reason,
        preload_content=False,
        decode_content=False,
    )


def _seconds(timeout: object) -> float | None:
    return float(timeout) if isinstance(timeout, int | float) else None
