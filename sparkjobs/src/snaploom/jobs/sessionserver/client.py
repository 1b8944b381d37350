"""Asks the server of sessions for a JVM, for its state, or to end."""

from __future__ import annotations

import socket
from contextlib import suppress

from snaploom.jobs.sessionserver.launch import Launch, to_line
from snaploom.jobs.sessionserver.messages import (
    STATE,
    STOP,
    TAKE,
    Address,
    Message,
    ServerState,
    message_in,
)
from snaploom.jobs.sessionserver.place import is_own_peer, own_socket, socket_path

ANSWER_SECONDS = 120.0
"""For the server to answer: a JVM that is being prepared is waited for."""
_READ = 65_536

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
        return _asked(connection, TAKE + b" " + to_line(launch), Address)
    return None


def server_state() -> ServerState | None:
    """Of the server of this user and installation; None where none is up."""
    return _state_after(STATE)


def ask_to_stop() -> ServerState | None:
    """End the server; its state before. A command that has a JVM of it goes on."""
    return _state_after(STOP)


def _state_after(request: bytes) -> ServerState | None:
    with suppress(OSError, ValueError), _connected() as connection:
        return _asked(connection, request + b"\n", ServerState)
    return None


def _connected() -> socket.socket:
    """A connection to the server.

    Raises:
        OSError: there is none, or it is another user's.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(ANSWER_SECONDS)
    try:
        connection.connect(str(own_socket()))
        if not is_own_peer(connection):
            raise PermissionError("the server of sessions is another user's")
    except OSError:
        connection.close()
        raise
    return connection


def _asked(connection: socket.socket, request: bytes, kind: type[Message]) -> Message:
    """The answer to a request.

    Raises:
        OSError: none came.
        ValueError: it is of another kind, as where there is no JVM.
    """
    connection.sendall(request)
    received = b""
    while not received.endswith(b"\n"):
        more = connection.recv(_READ)
        if not more:
            raise ConnectionResetError("the server of sessions has gone")
        received += more
    return message_in(received, kind)
