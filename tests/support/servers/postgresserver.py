"""A real PostgreSQL of our own: started once, on a free port, with its data in a folder of its own.

It refuses to run as root, so that root starts it as the user `postgres`.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.servers.ports import free_port

PROGRAMS = Path(__file__).parents[3] / ".ci" / "postgresql"
USER, PASSWORD = "weaver", "to be shown nowhere"


@dataclass(frozen=True)
class Postgres:
    """A running server."""

    programs: Path
    port: int

    def run(self, sql: str) -> str:
        """Carry out statements; what the last one returns, one row a line."""
        command = [self.programs / "psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", USER]
        done = subprocess.run(
            [*command, "-d", "postgres", "-qAt", "-v", "ON_ERROR_STOP=1", "-c", sql],
            env={**os.environ, "PGPASSWORD": PASSWORD},
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    found = subprocess.run([PROGRAMS], check=True, stdout=subprocess.PIPE, text=True)
    programs = Path(found.stdout.strip())
    folder = Path(tempfile.mkdtemp(prefix="snaploom-postgres-"))
    data, password, port = folder / "data", folder / "password", free_port()
    password.write_text(PASSWORD)
    if os.geteuid() == 0:
        for path in (folder, password):
            shutil.chown(path, "postgres")
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c fsync=off -k {folder}"
    try:
        _carry_out(
            [programs / "initdb", "-D", data, "-A", "scram-sha-256", "-U", USER,
             f"--pwfile={password}"]
        )  # fmt: skip
        _carry_out(
            [programs / "pg_ctl", "-D", data, "-o", options, "-l", folder / "log", "-w", "start"]
        )
        yield Postgres(programs, port)
    finally:
        if (data / "postmaster.pid").exists():
            _carry_out([programs / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop"])
        shutil.rmtree(folder, ignore_errors=True)


def _carry_out(command: Sequence[str | Path]) -> None:
    as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    # Files rather than pipes: the server would keep a pipe open, and its reader waiting.
    with tempfile.TemporaryFile("w+") as printed:
        done = subprocess.run(
            [*as_user, *command], cwd="/", stdin=subprocess.DEVNULL, stdout=printed, stderr=printed
        )
        if done.returncode:
            printed.seek(0)
            raise RuntimeError(f"{command[0]} failed: {printed.read()[-2000:]}")
