"""Ports of this machine for the servers that tests start, and such servers."""

import os
import random
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

READY_SECONDS = 120.0
"""They take seconds on their own; a machine full of other tests takes longer."""


def free_ports(count: int) -> list[int]:
    """Unused ports, outside the range from which clients' own ports are taken.

    A client's own port could otherwise take that of a server between its end and its next start.
    """
    found: list[int] = []
    while len(found) < count:
        port = random.SystemRandom().randrange(10_000, 30_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in found:
            found.append(port)
    return found


def free_port() -> int:
    return free_ports(1)[0]


@contextmanager
def running_server(
    command: Sequence[str], log: Path, is_ready: Callable[[], bool], **environment: str
) -> Iterator[None]:
    """A server from when it is ready on, which writes to a log; some end with their input."""
    with log.open("wb") as out:
        server = subprocess.Popen(
            command, env=os.environ | environment, stdin=subprocess.PIPE, stdout=out, stderr=out
        )
    assert server.stdin is not None
    try:
        deadline = time.monotonic() + READY_SECONDS
        while not is_ready():
            if server.poll() is not None:
                raise RuntimeError(f"the server ended at once: {log.read_text()[-2000:]}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"the server is not ready: {log.read_text()[-2000:]}")
            time.sleep(0.1)
        yield
    finally:
        server.stdin.close()
        server.terminate()
        try:
            server.wait(timeout=30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
