"""Asks the server of sessions for a JVM, for its state, or to end."""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from dataclasses import dataclass

from pydantic import JsonValue

from snaploom.jobs.sessionserver.launch import Launch, to_line
from snaploom.jobs.sessionserver.place import is_own_peer, socket_path

TAKE, STATE, STOP = b"take", b"state", b"stop"
"""First words of requests."""
ANSWER_SECONDS = 120.0
"""For the server to answer: a JVM that is being prepared is waited for."""
_READ = 65_536


@dataclass(frozen=True)
class Address:
    """Where a JVM is reached."""

    port: int
    secret: str


@dataclass(frozen=True)
class ServerState:
    """Of a server of sessions."""

    state: str
    """`idle`, `preparing`, `ready`, `in use` or `ending`."""
    folder: str
    """In which the command was that the JVM is prepared for; empty without one."""
    idle_minutes: float
    """After how long without a command it ends."""
    failure: str
    """Why the last JVM could not be prepared; empty if it could."""


_held: list[socket.socket] = []
"""Connections of this process: what was taken ends when they are closed."""


def is_server_there() -> bool:
    """Whether it is worth asking; the server may have died and left its socket."""
    with suppress(OSError):
        return socket_path().exists()
    return False


def taken(launch: Launch) -> Address | None:
    """A JVM that was prepared for this launch; None without. It ends with this process.

    Args:
        launch: what this process would start a JVM with.
    """
    with suppress(OSError, ValueError):
        connection = _connected()
        _held.append(connection)  # the server learns by it when this process has ended
        answer = _asked(connection, TAKE + b" " + to_line(launch))
        if {"port", "secret"} <= answer.keys():
            return Address(int(answer["port"]), str(answer["secret"]))
    return None


def server_state() -> ServerState | None:
    """Of the server of this user and installation; None where none is up."""
    return _state_after(STATE)


def ask_to_stop() -> ServerState | None:
    """End the server; its state before. A command that has a JVM of it goes on."""
    return _state_after(STOP)


def _state_after(request: bytes) -> ServerState | None:
    try:
        with _connected() as connection:
            answer = _asked(connection, request + b"\n")
    except (OSError, ValueError):
        return None
    return ServerState(
        str(answer.get("state")),
        str(answer.get("folder")),
        float(answer.get("idle_minutes", 0)),
        str(answer.get("failure")),
    )


def _connected() -> socket.socket:
    """A connection to the server.

    Raises:
        OSError: there is none, or it is another user's.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(ANSWER_SECONDS)
    try:
        connection.connect(str(socket_path()))
        if not is_own_peer(connection):
            raise PermissionError("the server of sessions is another user's")
    except OSError:
        connection.close()
        raise
    return connection


def _asked(connection: socket.socket, request: bytes) -> dict[str, int | float | str]:
    """The answer to a request.

    Raises:
        OSError: none came.
        ValueError: it is no answer.
    """
    connection.sendall(request)
    received = b""
    while not received.endswith(b"\n"):
        more = connection.recv(_READ)
        if not more:
            raise ConnectionResetError("the server of sessions has gone")
        received += more
    answer: JsonValue = json.loads(received)
    if not isinstance(answer, dict):
        raise ValueError("no answer")
    return {name: value for name, value in answer.items() if isinstance(value, int | float | str)}
