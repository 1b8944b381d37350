"""Starts the server of sessions, once for each user and installation."""

from __future__ import annotations

import socket
import subprocess
import sys

from snaploom.jobs.sessionserver.client import server_state
from snaploom.jobs.sessionserver.place import locked, own_socket

SERVER = "snaploom.jobs.sessionserver.server"
_BACKLOG = 16


def start_server(idle_seconds: float) -> bool:
    """Start the server in the background; false where one is up.

    Args:
        idle_seconds: without a command, after which it ends.

    Raises:
        OSError: there can be no socket in the user's folder of caches, or the server ended at once.
    """
    path = own_socket()
    with locked(path):
        if server_state() is not None:
            return False
        path.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(str(path))
            path.chmod(0o600)
            listener.listen(_BACKLOG)
            subprocess.Popen(
                [sys.executable, "-P", "-m", SERVER, str(listener.fileno()), str(idle_seconds)],
                pass_fds=[listener.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
    if server_state() is None:
        raise ChildProcessError(f"the process of the server ({SERVER}) ended at once")
    return True
