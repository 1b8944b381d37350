"""`snaploom operator run` as a process of its own, to be stopped, killed and read."""

import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import yaml
from support.operator.operatorharness import DEADLINE, real_settings

WORKS = "the operator is running"


class OperatorProcess:
    """The process, and what it wrote.

    Args:
        folder: where settings and output are kept.
        arguments: of the command.
        environment: on top of the test's own.
        python: the interpreter of another version; None for this one.
    """

    def __init__(
        self,
        folder: Path,
        arguments: Sequence[str],
        environment: dict[str, str] | None = None,
        python: str | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / "output.txt"
        program = [python or sys.executable, "-m", "snaploom.cli.main"]
        with self._file.open("w") as output:
            self.process = subprocess.Popen(
                [*program, "operator", "run", *arguments],
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
            )

    @property
    def output(self) -> str:
        """All that it wrote so far."""
        return self._file.read_text()

    def await_output(self, text: str, times: int = 1) -> None:
        """Wait until it wrote a text so many times."""
        deadline = time.monotonic() + DEADLINE
        while self.output.count(text) < times:
            assert self.process.poll() is None, self.output
            assert time.monotonic() < deadline, self.output
            time.sleep(0.05)

    def ended(self) -> int:
        """Wait until it ends; its exit code."""
        return self.process.wait(DEADLINE)

    def port(self, name: str) -> int:
        """The port of an endpoint, as it was logged."""
        found = re.search(rf"{name} (?:on port |at http://\S+:)(\d+)", self.output)
        assert found is not None, self.output
        return int(found[1])

    def get(self, name: str, path: str) -> str:
        url = f"http://127.0.0.1:{self.port(name)}{path}"
        with urllib.request.urlopen(url, timeout=DEADLINE) as answer:
            return str(answer.read().decode())

    def status(self, name: str, path: str) -> int:
        """The code of an endpoint's answer; 0 without one."""
        try:
            self.get(name, path)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0
        return 200


@contextmanager
def operator_process(
    folder: Path, kubeconfig: Path, namespace: str, *arguments: str, **changes: object
) -> Iterator[OperatorProcess]:
    """An operator that looks after one namespace, killed at the end if it still runs."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = folder / "settings.yaml"
    settings.write_text(yaml.safe_dump(real_settings(namespace, **changes).dump()))
    started = OperatorProcess(
        folder, ["--settings", str(settings), "--kubeconfig", str(kubeconfig), *arguments]
    )
    try:
        yield started
    finally:
        started.process.kill()
        started.process.wait()
