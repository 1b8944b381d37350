"""Connections to judged addresses, and requests whose answers are bounded."""

import http.client
import io
import os
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from urllib3 import BaseHTTPResponse, HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError
from urllib3.response import HTTPResponse

from snaploom.errors import SnaploomError
from snaploom.policy.addresses import EndpointRules, refusal_of_address, refusal_of_host

# Connections to judged addresses, and requests whose answers are bounded.

_CHUNK = 65_536
MOST_TRIES = 8
"""Addresses of one host that are tried: a name may have thousands, of which none answers."""
_Found = tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[Any, ...]]


class EndpointRefused(SnaploomError):
    """A server that this process does not connect to, or an answer that it refuses."""


class AnswerTooLong(EndpointRefused):
    """An answer that is longer, or takes longer, than one may."""


def refuse_host(host: str, port: int, rules: EndpointRules) -> None:
    """Raise `EndpointRefused` for a host that may not be connected to, by its text."""
    why = refusal_of_host(host, port, rules)
    if why:
        raise _refused(host, port, why)


def connect(host: str, port: int, timeout: float | None, rules: EndpointRules) -> socket.socket:
    """Connect to a host at an allowed address, each try within `timeout` seconds.

    Raises:
        EndpointRefused: it may not be connected to, at any of its addresses.
        OSError: it cannot be resolved, or does not answer.
    """
    refuse_host(host, port, rules)
    name = host.removeprefix("[").removesuffix("]")
    refusals: list[str] = []
    failure: OSError | None = None
    tries = 0
    for family, kind, protocol, _, place in _addresses(name, port):
        why = refusal_of_address(ip_address(str(place[0]).partition("%")[0]), rules, name, port)
        if why:
            refusals.append(why)
            continue
        tries += 1
        if tries > MOST_TRIES:
            break
        connection = socket.socket(family, kind, protocol)
        try:
            connection.settimeout(timeout)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.connect(place)
        except OSError as error:
            connection.close()
            failure = error
        else:
            return connection
    if failure is not None:
        raise failure
    raise _refused(host, port, refusals[0] if refusals else "it has no address")


def _addresses(name: str, port: int) -> Sequence[_Found]:
    try:
        return socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    except UnicodeError:  # of Python, which encodes a name before it asks
        raise _refused(name, port, "a part of this name is empty or too long") from None


class Deadline:
    """Ends a connection that takes too long altogether.

    A timeout of each read does not bound a server that sends a byte now and then.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watched: socket.socket | None = None
        self._is_over = False

    def watch(self, connection: socket.socket) -> None:
        """Set the connection to end; at once if the time is over."""
        # A second handle: whatever becomes of the first, TLS around it for one, this one ends it.
        own = socket.socket(fileno=os.dup(connection.fileno()))
        with self._lock:
            if self._watched is not None:
                self._watched.close()
            self._watched = own
        if self._is_over:
            self._end()

    @contextmanager
    def within(self, seconds: float | None) -> Iterator[None]:
        """End the connection unless the block ends in so many seconds; None for any number."""
        timer = None if seconds is None else threading.Timer(seconds, self._end)
        if timer is not None:
            timer.daemon = True
            timer.start()
        try:
            yield
        except (OSError, http.client.HTTPException, ValueError) as error:
            if self._is_over:
                raise TimeoutError(f"no whole answer in {seconds:g} seconds") from error
            raise
        finally:
            if timer is not None:
                timer.cancel()
            with self._lock:
                if self._watched is not None:
                    self._watched.close()
                self._watched = None
        if self._is_over:
            raise TimeoutError(f"no whole answer in {seconds:g} seconds")

    def _end(self) -> None:
        self._is_over = True
        with self._lock, suppress(OSError):  # it is closed already
            if self._watched is not None:
                self._watched.shutdown(socket.SHUT_RDWR)


def bounded_body(read: Callable[[int], bytes], most: int, place: str) -> bytes:
    """Read at most `most` bytes of a body, unpacked as it comes in, else `AnswerTooLong`."""
    found = bytearray()
    while piece := read(_CHUNK):
        found += piece
        if len(found) > most:
            raise AnswerTooLong(
                f"the answer of {place} is too long",
                found=f"more than {most:,} bytes",
                expected="an answer of the server that was meant",
            )
    return bytes(found)


def origin_of(url: str) -> tuple[str, int, bool]:
    """Host and port of a URL, and whether it is HTTPS; else `EndpointRefused`."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise _not_http() from None
    if parts.scheme not in ("http", "https") or not host or parts.username is not None:
        raise _not_http()
    is_secure = parts.scheme == "https"
    return host, port or (443 if is_secure else 80), is_secure


def _not_http() -> EndpointRefused:
    return EndpointRefused(
        "this is no address of a server",
        found="another scheme, no host, no number as port, or a user",
        expected="http://host:port/path or https://host:port/path, without a user",
    )


def _refused(host: str, port: int, why: str) -> EndpointRefused:
    is_listed = "'endpoints'" in why
    return EndpointRefused(
        f"{host}:{port} is not connected to",
        found=why,
        expected="a server that declarations may name" if is_listed else "a server",
        hint=f"have '{host}:{port}' added to the list 'endpoints' (chart value allow.endpoints, "
        f"or --allow endpoints={host}:{port})"
        if is_listed
        else None,
    )


# The same gate for libraries that are built upon urllib3: pools of connections.


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

    def connect(self) -> None:
        with ExitStack() as self._until_secure:
            super().connect()

    def _new_conn(self) -> socket.socket:
        connection, deadline = _connected(self, self.judged_by), Deadline()
        self._until_secure.enter_context(deadline.within(_seconds(self.timeout)))
        deadline.watch(connection)  # a handshake of TLS may come byte by byte, too
        return connection

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
