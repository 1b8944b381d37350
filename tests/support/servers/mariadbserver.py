"""A real MariaDB of our own: started once, on a free port, with its data in a folder of its own.

Its sessions begin in another zone than UTC, so that zones that are mixed up are seen.
"""

import getpass
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.servers.ports import free_port
from support.servers.postgresserver import PASSWORD, USER

SERVER = Path(__file__).parents[3] / ".ci" / "mariadb"
DEADLINE = 60.0
"""Seconds until it must answer; it takes one."""
DATABASE = "shop"


@dataclass(frozen=True)
class MariaDb:
    """A running server."""

    socket: Path
    port: int

    def run(self, sql: str, database: str = DATABASE) -> str:
        """Carry out statements as its administrator; what they return, one row a line."""
        command = ["mariadb", "--no-defaults", f"--socket={self.socket}", "--user=root", "-N", "-B"]
        done = subprocess.run(
            [*command, "--default-character-set=utf8mb4", database],
            input=sql, check=True, capture_output=True, text=True,
        )  # fmt: skip
        return done.stdout.strip()


@contextmanager
def running_mariadb() -> Iterator[MariaDb]:
    """A server with a database without tables, and a user with a password."""
    server = subprocess.run([SERVER], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    folder = Path(tempfile.mkdtemp(prefix="snaploom-mariadb-"))
    data, running = folder / "data", MariaDb(folder / "socket", free_port())
    as_user = f"--user={getpass.getuser()}"
    log = (folder / "log").open("w", encoding="utf-8")
    try:
        subprocess.run(
            ["mariadb-install-db", "--no-defaults", f"--datadir={data}", as_user,
             "--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"],
            check=True, stdout=log, stderr=log,
        )  # fmt: skip
        process = subprocess.Popen(
            [server, "--no-defaults", f"--datadir={data}", as_user, f"--socket={running.socket}",
             f"--port={running.port}", "--bind-address=127.0.0.1", "--skip-name-resolve",
             "--default-time-zone=+05:30", "--innodb-flush-log-at-trx-commit=0",
             f"--pid-file={folder / 'pid'}", "--innodb-buffer-pool-size=32M"],
            stdout=log, stderr=log,
        )  # fmt: skip
        try:
            _wait(running, process)
            running.run(
                f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4; "
                f"CREATE USER {USER} IDENTIFIED BY '{PASSWORD}'; "
                f"GRANT ALL ON {DATABASE}.* TO {USER}",
                "mysql",
            )
            yield running
        finally:
            process.kill()  # nothing of it is kept
            process.wait()
    finally:
        log.close()
        shutil.rmtree(folder, ignore_errors=True)


def _wait(server: MariaDb, process: subprocess.Popen[bytes]) -> None:
    """Wait until it answers.

    Raises:
        RuntimeError: it ended, or takes too long.
    """
    until = time.monotonic() + DEADLINE
    while process.poll() is None and time.monotonic() < until:
        try:
            server.run("SELECT 1", "mysql")
            return
        except subprocess.CalledProcessError:
            time.sleep(0.05)
    raise RuntimeError(f"MariaDB does not answer: {(server.socket.parent / 'log').read_text()}")
