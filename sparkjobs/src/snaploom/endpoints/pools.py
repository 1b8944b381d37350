"""The same gate for libraries that are built upon urllib3: pools of connections."""

from __future__ import annotations

import io
import socket
from dataclasses import dataclass
from typing import Any

from urllib3 import BaseHTTPResponse, HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError
from urllib3.response import HTTPResponse

from snaploom.endpoints.connections import Deadline, bounded_body, connect
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
    """Pools for servers that rules allow, with answers of at most `most` unpacked bytes."""

    class PlainConnection(_JudgedConnection):
        judged_by, longest = rules, most

    class SecureConnection(_JudgedConnection, HTTPSConnection):
        judged_by, longest = rules, most

    class PlainPool(_ReadingPool):
        ConnectionCls = PlainConnection

    class SecurePool(_ReadingPool, HTTPSConnectionPool):
        ConnectionCls = SecureConnection

    return Pools(PlainPool, SecurePool)


class _JudgedConnection(HTTPConnection):
    """Connection by rules, whose answers are read whole, in a bounded time."""

    judged_by: EndpointRules
    longest: int
    """Bytes of the longest answer, unpacked."""

    def _new_conn(self) -> socket.socket:
        return _connected(self, self.judged_by)

    def getresponse(self) -> HTTPResponse:  # type: ignore[override] # as urllib3's own
        deadline = Deadline()
        if self.sock is not None:
            deadline.watch(self.sock)
        with deadline.within(_seconds(self.timeout)):
            return _whole(super().getresponse(), f"{self.host}:{self.port}", self.longest)


class _ReadingPool(HTTPConnectionPool):
    """A pool that follows no redirect, and leaves reading to its connections."""

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
        answer.release_conn()
        return answer


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


def _whole(response: HTTPResponse, place: str, most: int) -> HTTPResponse:
    try:
        body = bounded_body(lambda amount: response.read1(amount, decode_content=True), most, place)
    except BaseException:
        response.close()  # what is left of it is nobody's answer
        raise
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
        original_response=response._original_response,
    )


def _seconds(timeout: object) -> float | None:
    return float(timeout) if isinstance(timeout, int | float) else None
