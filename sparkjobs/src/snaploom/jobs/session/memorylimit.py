"""The memory limit of this process's container, and the processes that the kernel killed for it.

Read from the files of control groups, of version 2 or 1. Without a container they are those of the
whole machine, or absent.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_FOLDER = Path("/sys/fs/cgroup")
_KILLS = ("memory.events", "memory/memory.oom_control")
"""Files with a line `oom_kill NUMBER`."""
_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")
_NO_LIMIT = 2**60
"""Version 1 writes a number near 2^63 for no limit, version 2 a word."""


@dataclass(frozen=True)
class MemoryLimit:
    """The kernel's limits for a container."""

    folder: Path = _FOLDER
    """Where control groups are mounted."""

    def kills(self) -> int:
        """Processes of the container that were killed because its memory was used up, so far."""
        lines = (line.split() for name in _KILLS for line in self._text(name).splitlines())
        return sum(int(words[1]) for words in lines if len(words) == 2 and words[0] == "oom_kill")

    def mebibytes(self) -> int | None:
        """The limit in MiB; None where there is none, or it is unknown."""
        for name in _LIMITS:
            text = self._text(name).strip()
            if text.isdecimal() and int(text) < _NO_LIMIT:
                return int(text) >> 20
        return None

    def _text(self, name: str) -> str:
        try:
            return (self.folder / name).read_text("ascii", "replace")
        except OSError:
            return ""
