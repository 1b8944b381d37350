"""Kubernetes' own programs as processes of ours: built once, and gone when this process is."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

BUILD = Path(__file__).parents[3] / ".ci" / "cluster"
PATIENCE = 5.0
"""Seconds for a clean end; an API server waits for its clients' watches far longer."""
TAIL = 3000
"""Characters of a log that an error shows."""


@cache
def built(program: str = "kubebox") -> Path:
    """A Go program of `tests/cluster`; the project's own script builds it once.

    Raises:
        RuntimeError: it cannot be built here; the script has printed why.
    """
    done = subprocess.run([BUILD, program], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{program} cannot be built: see the output of {BUILD}")
    return Path(done.stdout.strip())


@dataclass
class Server:
    """One server, which is stopped and started again by the same command."""

    name: str
    command: Sequence[str | Path]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; its output is added to the log."""
        # It ends when its input does, which also happens when this process is killed.
        settings = {"KUBEBOX_ENDS_WITH_STDIN": "1", **self.environment}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=os.environ | settings,
                start_new_session=True,  # Ctrl-C is for this process, which then ends them
            )

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The running process."""
        assert self._process is not None, f"{self.name} was not started"
        return self._process

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def has_ended(self) -> bool:
        """Whether it was started, and ended on its own."""
        return self._process is not None and self._process.poll() is not None

    def stop(self) -> None:
        """Ask it to end, and end it when it takes too long."""
        if self.is_running:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.kill()
        self._forget()

    def kill(self) -> None:
        """End it at once, as a crash would."""
        if self.is_running:
            self.process.kill()
            self.process.wait()
        self._forget()

    def close_input(self) -> None:
        """End it as the end of this process would."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(PATIENCE)
        self._process = None

    def tail(self) -> str:
        """The end of its log."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return f"{self.name} ({self.log}):\n{text[-TAIL:]}"

    def _forget(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        self._process = None
