"""A file of a store as Arrow reads it, and the meter of bytes read."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from snaploom.discovery.foundfiles import FoundFile

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


@dataclass
class Meter:
    """Counts bytes read."""

    bytes_read: int = 0
    files_opened: set[str] = field(default_factory=set)


class ObjectFile(io.RawIOBase):
    """A file of a store, read by ranges."""

    def __init__(self, file: FoundFile, meter: Meter) -> None:
        """Nothing is read yet."""
        self._file = file
        self._meter = meter
        self._at = 0
        meter.files_opened.add(file.uri)

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._file.size}[whence]
        self._at = start + offset
        return self._at

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Fill a buffer with bytes from the place on; how many there were."""
        with memoryview(buffer) as view, view.cast("B") as target:
            content = self.read(len(target))
            target[: len(content)] = content
        return len(content)

    def read(self, size: int | None = -1) -> bytes:
        """Bytes from the place on."""
        rest = max(0, self._file.size - self._at)
        wanted = rest if size is None or size < 0 else min(size, rest)
        if wanted == 0:
            return b""
        content = self._file.place.store.get_range(self._file.key, self._at, wanted)
        self._at += len(content)
        self._meter.bytes_read += len(content)
        return content
