"""The command line as a process of its own, to be looked at, stopped and killed."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

DEADLINE = 240
"""Seconds that a process may take on a busy machine."""
PROGRAM = (sys.executable, "-m", "snaploom.cli.main")


def start(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """Start a command with what it prints in `out.txt` and `err.txt` of a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    working = folder / "cwd"
    working.mkdir(exist_ok=True)
    with (folder / "out.txt").open("w") as out, (folder / "err.txt").open("w") as err:
        return subprocess.Popen(
            list(arguments),
            cwd=working,
            env={**os.environ, "NO_COLOR": "1", **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            text=True,
        )


def snaploom_command(
    *arguments: str, folder: Path, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    return start([*PROGRAM, *arguments], folder, environment)


def end(process: subprocess.Popen[str], folder: Path) -> tuple[int, str, str]:
    """Wait for the end; exit code, standard output, standard error."""
    try:
        code = process.wait(DEADLINE)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return code, (folder / "out.txt").read_text(), (folder / "err.txt").read_text()


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[str] | None = None) -> None:
    """Wait for something that a process is to bring about, or anybody."""
    deadline = time.monotonic() + DEADLINE
    while not condition():
        if process is not None:
            assert process.poll() is None, f"it ended with {process.returncode}"
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.05)
