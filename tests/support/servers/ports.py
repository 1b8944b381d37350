"""Ports of this machine for the servers that tests start."""

import random
import socket


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
