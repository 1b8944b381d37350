"""A proxy before a server of any protocol, which cuts connections at chosen messages."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Cut = Callable[[], str | None]
"""Asked at each message of a client: `answer` (it is passed on, and the connection breaks before
the answer), another text (it breaks at once), or None."""


@contextmanager
def cut_connections(behind: int, cut: Cut) -> Iterator[int]:
    """The port of a proxy before a port of this machine."""
    server = socket.create_server(("127.0.0.1", 0))
    opened: list[socket.socket] = []

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = server.accept()
                opened.append(client)
                threading.Thread(target=_serve, args=(client, behind, cut), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield server.getsockname()[1]
    finally:
        server.close()
        for client in opened:
            _close(client)


def _serve(client: socket.socket, behind: int, cut: Cut) -> None:
    with suppress(OSError):
        target = socket.create_connection(("127.0.0.1", behind))
        threading.Thread(target=_answers, args=(target, client), daemon=True).start()
        while message := client.recv(1 << 20):
            what = cut()
            if what == "answer":
                client.shutdown(socket.SHUT_RD)
                _silence(client)
                target.sendall(message)
                # The server does what it was asked for before it sees the end.
                target.shutdown(socket.SHUT_WR)
                return
            if what is not None:
                _close(target)
                break
            target.sendall(message)
    _close(client)


def _answers(target: socket.socket, client: socket.socket) -> None:
    with suppress(OSError):
        while answer := target.recv(1 << 20):
            client.sendall(answer)
    _close(target)
    _close(client)


def _silence(client: socket.socket) -> None:
    """Let nothing more reach the client."""
    with suppress(OSError):
        client.shutdown(socket.SHUT_RDWR)


def _close(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
