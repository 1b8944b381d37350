"""Third-party programs, each in a process and an environment of its own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any


class Peer:
    """A program that answers each line of JSON with one."""

    def __init__(self, command: list[str], log: Path, environment: Mapping[str, str]) -> None:
        self._log = log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment,
            )
        self.ready = self._read()["ready"]

    def ask(self, do: str, /, **question: object) -> Any:
        """What it answers; its error is an AssertionError here."""
        assert self._process.stdin is not None
        print(json.dumps({"do": do, **question}), file=self._process.stdin, flush=True)
        answer = self._read()
        assert "answer" in answer, answer["error"]
        return answer["answer"]

    def __enter__(self) -> Peer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.stdin.close()
        self._process.wait(60)

    def _read(self) -> dict[str, Any]:
        line = self._process.stdout.readline()
        assert line, f"the peer ended: {self._log.read_text()[-3000:]}"
        answer: dict[str, Any] = json.loads(line)
        return answer
