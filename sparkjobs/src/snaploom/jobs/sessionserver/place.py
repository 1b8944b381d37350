"""Where the server of sessions of this user listens, and who may be at its ends."""

from __future__ import annotations

import fcntl
import hashlib
import os
import socket
import struct
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from snaploom.jobs.cachefolder import cache_folder, is_own_folder
from snaploom.version import VERSION

LONGEST_PATH = 100
"""Bytes of a socket's path: Linux takes 107, macOS 103."""
_LOCK = "lock"


def socket_path(environment: Mapping[str, str] = os.environ) -> Path:
    """Of the server of this installation, whether it is up or not; nothing is looked at.

    Args:
        environment: the process's.

    Raises:
        FileNotFoundError: the user has no folder of caches.
    """
    installation = f"{sys.prefix} {VERSION}"
    name = hashlib.sha256(installation.encode()).hexdigest()[:12]
    return cache_folder(environment) / "sessions" / f"{name}.sock"


def own_socket() -> Path:
    """The same path, in a folder that is there, and in which only this user can write.

    Raises:
        FileNotFoundError: the user has no folder of caches.
        PermissionError: others can change what is in it.
        OSError: its path is too long for a socket.
    """
    path = socket_path()
    if not is_own_folder(path.parent, 2):
        raise PermissionError(f"others can write into {path.parent}")
    if len(os.fsencode(path)) > LONGEST_PATH:
        raise OSError(f"{path} is longer than the {LONGEST_PATH} bytes that a socket may have")
    return path


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Nobody else makes or removes the socket meanwhile."""
    with (path.parent / _LOCK).open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def is_own_peer(connection: socket.socket) -> bool:
    """Whether the other end is a process of this user, where the system shows that.

    Where it does not, the folder of the socket keeps others out.
    """
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    size = struct.calcsize("3i")
    _, user, _ = struct.unpack(
        "3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    )
    return bool(user == os.geteuid())
