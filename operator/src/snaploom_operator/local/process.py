"""A job as a process of this machine: started behind a gate, known by its start, ended in order."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from asyncio.subprocess import DEVNULL, Process
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from snaploom_operator.local import gate as gate_program

LOOK = 0.1
"""Seconds between two looks at whether a process that is no child of ours has ended."""
_LINES = 20
"""Lines of standard error that are kept; the last ones tell why a job ended."""
_LONGEST_LINE = 2000
_CHUNK = 65_536
_LAST_WORDS = 1.0
"""Seconds to wait for the end of standard error after that of the process."""
_STAT_START = 19
"""Place of the start time in `/proc/PID/stat`, counted behind the program's name."""


@dataclass(frozen=True)
class ProcessName:
    """A process of this machine, now and for ever: numbers come again, with another start."""

    pid: int
    start: str
    """When it started, in the words of the system."""

    def __str__(self) -> str:
        return f"{self.pid} {self.start}"

    @classmethod
    def parse(cls, text: str) -> ProcessName | None:
        """What `str` wrote; None for anything else."""
        pid, _, start = text.partition(" ")
        return cls(int(pid), start) if pid.isdecimal() and start else None

    @classmethod
    def of_this(cls) -> ProcessName:
        """The process that asks."""
        return cls(os.getpid(), _start_of(os.getpid()))

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return _start_of(self.pid) == self.start

    @property
    def leads_a_session(self) -> bool:
        """Whether it leads a session of its own, as every job does."""
        try:
            return os.getsid(self.pid) == self.pid
        except OSError:
            return False


class LocalProcess:
    """A process of ours, and what it says.

    Args:
        process: a child that leads a session of its own.
        gate: where it reads its permission from; ours to write to.
        said: takes what it writes to standard error.
    """

    def __init__(self, process: Process, gate: int, said: _Said) -> None:
        self._process = process
        self._gate: int | None = gate
        self._said = said
        self.name = ProcessName(process.pid, _start_of(process.pid))

    def permit(self) -> None:
        """Let it begin."""
        if self._gate is not None:
            with suppress(BrokenPipeError):
                os.write(self._gate, b"\n")
            self._shut()

    async def wait(self) -> int:
        """Wait for its end; the exit code, negative for a signal."""
        code = await self._process.wait()
        self._shut()
        _signal_group(self._process.pid, signal.SIGKILL)  # whom it started, it left behind
        await self._said.wait()
        return code

    async def stop(self, grace: float) -> None:
        """Ask it to end, and end it when it takes too long, with all that it started."""
        self._shut()
        with suppress(ProcessLookupError):
            self._process.terminate()
        try:
            await asyncio.wait_for(self.wait(), grace)
        except TimeoutError:
            _signal_group(self._process.pid, signal.SIGKILL)
            await self.wait()

    @property
    def said(self) -> str:
        """The last lines that it wrote to standard error."""
        return "\n".join(self._said.lines)

    def _shut(self) -> None:
        if self._gate is not None:
            os.close(self._gate)
            self._gate = None


class _Said:
    """Standard error of a process, by lines; the last ones are kept."""

    def __init__(self, stream: asyncio.StreamReader, hear: Callable[[str], None]) -> None:
        self.lines: deque[str] = deque(maxlen=_LINES)
        self._stream = stream
        self._hear = hear
        self._reading = asyncio.create_task(self._read())

    async def wait(self) -> None:
        """Wait for its end, which does not come while somebody holds it open."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._reading, _LAST_WORDS)

    async def _read(self) -> None:
        rest = b""
        while chunk := await self._stream.read(_CHUNK):
            *lines, rest = (rest + chunk).replace(b"\r", b"\n").split(b"\n")
            for line in lines:
                self._take(line)
            rest = rest[-_LONGEST_LINE:]
        self._take(rest)

    def _take(self, raw: bytes) -> None:
        line = raw[-_LONGEST_LINE:].decode(errors="replace").strip()
        if line:
            self.lines.append(line)
            self._hear(line)


async def start_process(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    hear: Callable[[str], None],
) -> LocalProcess:
    """Start a program that waits until it is permitted to begin.

    Args:
        arguments: the program, by its path, and its arguments; no shell reads them.
        environment: its environment, whole.
        folder: where it works.
        hear: takes every line that it writes to standard error.
    """
    # Pipes of our own: asyncio's would make its end wait for everybody who holds one of them.
    gate_end, gate = os.pipe()
    ear, mouth = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", gate_program.__file__, *arguments,
            stdin=gate_end, stdout=DEVNULL, stderr=mouth, env=dict(environment), cwd=folder,
            start_new_session=True,  # Ctrl-C is for the operator, which then ends its jobs
        )  # fmt: skip
    except BaseException:
        os.close(gate)
        os.close(ear)
        raise
    finally:
        os.close(gate_end)
        os.close(mouth)
    stream = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(ear, "rb", 0)
    )
    return LocalProcess(process, gate, _Said(stream, hear))


async def stop_stranger(name: ProcessName, grace: float) -> None:
    """End a job that an earlier operator started, with all that it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(name.pid, signal.SIGTERM)
    for _ in range(int(grace / LOOK)):
        if not name.is_alive:
            break
        await asyncio.sleep(LOOK)
    _signal_group(name.pid, signal.SIGKILL)


def _signal_group(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _start_of(pid: int) -> str:
    """When a process started; empty when there is none. The end of a child counts when we know."""
    stat = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            return ""
        return "" if fields[0] == "Z" else fields[_STAT_START]
    found = subprocess.run(
        ["/bin/ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return " ".join(found.stdout.split())
