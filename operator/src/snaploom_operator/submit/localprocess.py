"""A job as a local process: started behind a gate, identified by its start time, and stopped."""

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

from snaploom_operator.objects import number_of
from snaploom_operator.submit import localgate as gate_program

POLL_SECONDS = 0.1
"""Interval of checking whether a process that is not our child has ended."""
_LINES = 20
"""Last lines of standard error that are kept."""
_LONGEST_LINE = 2000
_CHUNK = 65_536
_STDERR_SECONDS = 1.0
"""Timeout of reading the rest of standard error after the process ended."""
_STAT_START = 19
"""Index of the start time in `/proc/PID/stat`, after the program's name."""


@dataclass(frozen=True)
class ProcessName:
    """A unique process of this machine: PIDs are reused, with another start time."""

    pid: int
    start: str
    """Its start time, as the system writes it."""

    def __str__(self) -> str:
        return f"{self.pid} {self.start}"

    @classmethod
    def parse(cls, text: str) -> ProcessName | None:
        """Parse the output of `str`; None for anything else."""
        pid, _, start = text.partition(" ")
        number = number_of(pid)
        return cls(number, start) if number >= 0 and start else None

    @classmethod
    def of_this(cls) -> ProcessName:
        return cls(os.getpid(), _start_of(os.getpid()))

    @property
    def is_alive(self) -> bool:
        return _start_of(self.pid) == self.start

    @property
    def is_session_leader(self) -> bool:
        try:
            return os.getsid(self.pid) == self.pid
        except OSError:
            return False


class LocalProcess:
    """A child process, which is a session leader, its gate, and the end of its standard error."""

    def __init__(self, process: Process, gate: int, stderr: _StderrTail) -> None:
        self._process = process
        self._gate: int | None = gate
        self._stderr = stderr
        self.name = ProcessName(process.pid, _start_of(process.pid))

    def permit(self) -> None:
        if self._gate is not None:
            with suppress(BrokenPipeError):
                os.write(self._gate, b"\n")
            self._shut()

    async def wait(self) -> int:
        """Wait for its end; the exit code, negative for a signal."""
        code = await self._process.wait()
        self._shut()
        _signal_group(self._process.pid, signal.SIGKILL)  # processes that it left behind
        await self._stderr.wait()
        return code

    async def stop(self, grace: float) -> None:
        """Terminate it, and kill its process group after a grace period."""
        self._shut()
        with suppress(ProcessLookupError):
            self._process.terminate()
        try:
            await asyncio.wait_for(self.wait(), grace)
        except TimeoutError:
            _signal_group(self._process.pid, signal.SIGKILL)
            await self.wait()

    @property
    def stderr_tail(self) -> str:
        """The last lines that it wrote to standard error."""
        return "\n".join(self._stderr.lines)

    def _shut(self) -> None:
        if self._gate is not None:
            os.close(self._gate)
            self._gate = None


class _StderrTail:
    def __init__(self, stream: asyncio.StreamReader, on_line: Callable[[str], None]) -> None:
        self.lines: deque[str] = deque(maxlen=_LINES)
        self._stream = stream
        self._on_line = on_line
        self._reading = asyncio.create_task(self._read())

    async def wait(self) -> None:
        """Wait for its end, which does not come while another process holds it open."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._reading, _STDERR_SECONDS)

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
            self._on_line(line)


async def start_process(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    on_line: Callable[[str], None],
) -> LocalProcess:
    """Start a program, by its path, behind a closed gate.

    `on_line` takes every line that it writes to standard error.
    """
    # Own pipes: with asyncio's, waiting for its end would wait for all that hold them open.
    gate_read_end, gate = os.pipe()
    read_end, write_end = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", gate_program.__file__, *arguments,
            stdin=gate_read_end, stdout=DEVNULL, stderr=write_end,
            env=dict(environment), cwd=folder,
            start_new_session=True,  # Ctrl-C is for the operator, which then ends its jobs
        )  # fmt: skip
    except BaseException:
        os.close(gate)
        os.close(read_end)
        raise
    finally:
        os.close(gate_read_end)
        os.close(write_end)
    stream = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(read_end, "rb", 0)
    )
    return LocalProcess(process, gate, _StderrTail(stream, on_line))


async def stop_orphan(name: ProcessName, grace: float) -> None:
    """Stop a job that an earlier operator started, with its process group."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(name.pid, signal.SIGTERM)
    for _ in range(int(grace / POLL_SECONDS)):
        if not name.is_alive:
            break
        await asyncio.sleep(POLL_SECONDS)
    _signal_group(name.pid, signal.SIGKILL)


def _signal_group(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _start_of(pid: int) -> str:
    """The start time of a process; empty if it has ended, zombies included."""
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
