"""A listener on the network that records connections, and answers none."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

_FIRST_BYTES = 400


@dataclass
class Listener:
    """An open port."""

    port: int
    heard: list[bytes] = field(default_factory=list)
    """The first bytes of each connection."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/canary"


@contextmanager
def listening() -> Iterator[Listener]:
    """A listener; each connection is closed at once."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        listener = Listener(server.getsockname()[1])
        thread = threading.Thread(target=_hear, args=(server, listener), daemon=True)
        thread.start()
        yield listener
        server.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def _hear(server: socket.socket, listener: Listener) -> None:
    with suppress(OSError):
        while True:
            connection, _ = server.accept()
            with connection:
                connection.settimeout(1)
                with suppress(OSError):
                    listener.heard.append(connection.recv(_FIRST_BYTES))
