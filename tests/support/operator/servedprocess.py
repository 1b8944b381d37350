"""A process of the operator that serves: started until it is ready, looked at, and ended."""

import json
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from support.documentation.commands import DEADLINE, snaploom_command, wait_until
from support.operator.webhooks import HOST
from support.servers.ports import free_ports


class ServedProcess:
    """One process of `snaploom operator`, which may be ended and started again at the same ports.

    Args:
        command: of `snaploom operator`.
        folder: takes its settings and what it prints; new.
        kubeconfig: of the cluster.
        options: of the command, beside settings and kubeconfig.
    """

    def __init__(self, command: str, folder: Path, kubeconfig: Path, *options: str) -> None:
        self.port, self.health, self.ready, self.metrics = free_ports(4)
        self._folder = folder
        file = folder / "settings.yaml"
        where = ("--settings", str(file), "--kubeconfig", str(kubeconfig))
        self._command = ("operator", command, *where, *options)
        folder.mkdir()
        self.process: subprocess.Popen[str] | None = None

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Write its settings; ports and the form of its log are added."""
        usual = {
            "healthPort": self.health,
            "readinessPort": self.ready,
            "metricsPort": self.metrics,
            "logFormat": "text",
        }
        (self._folder / "settings.yaml").write_text(json.dumps({**usual, **settings}))

    def start(self) -> None:
        """Start it, and wait until it is ready."""
        self.process = snaploom_command(*self._command, folder=self._folder)
        self.until(lambda: self.readiness() == "ok")

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for something that it is to bring about."""
        assert self.process is not None
        wait_until(condition, self.process)

    def readiness(self) -> str:
        """Its answer about being ready; empty when it does not answer."""
        try:
            url = f"http://{HOST}:{self.ready}/readyz"
            with urllib.request.urlopen(url, timeout=5) as answer:
                return str(answer.read().decode().strip())
        except urllib.error.HTTPError as error:
            return error.read().decode().strip()
        except OSError:
            return ""

    def figures(self) -> str:
        with urllib.request.urlopen(f"http://{HOST}:{self.metrics}/metrics", timeout=5) as answer:
            return str(answer.read().decode())

    def log_text(self) -> str:
        return (self._folder / "err.txt").read_text()

    def end(self) -> int:
        """End it as Kubernetes does; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(DEADLINE)
        finally:
            self.kill()

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    @contextmanager
    def running(self) -> Iterator[Self]:
        """Ready at first, until the block ends."""
        try:
            self.start()
            yield self
        finally:
            self.kill()
