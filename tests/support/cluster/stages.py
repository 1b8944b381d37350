"""How long the stages of something long took."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Stages:
    """Seconds by stage, in the order of their ends."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure what is done within; nothing is noted of what fails."""
        started = time.monotonic()
        yield
        self.seconds[name] = time.monotonic() - started

    def table(self) -> str:
        """One line a stage."""
        return "\n".join(f"{taken:7.1f} s  {name}" for name, taken in self.seconds.items())
