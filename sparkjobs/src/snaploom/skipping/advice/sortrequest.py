"""Request and result of sorting, without Spark."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import JsonValue

from snaploom.skipping.advice.curves import Curve

TARGET_FILE_SIZE = 128 << 20
"""Bytes of a file, about, unless something else is asked for."""


@dataclass(frozen=True)
class SortRequest:
    """Order and size of rewritten files."""

    columns: tuple[str, ...]
    """By which columns, the most important one first."""
    curve: Curve = Curve.HILBERT
    """In which order."""
    target_file_size: int = TARGET_FILE_SIZE
    """Bytes of a file, about, as they are in the files that are read."""
    seed: int = 0
    """Of the sample from which quantiles are taken."""


@dataclass(frozen=True)
class Checksum:
    """Checksum of a set of rows, independent of their order."""

    rows: int
    """How many there are."""
    total: int
    """Sum of the hashes of the rows."""
    mixed: int
    """Exclusive or of other hashes of the rows."""

    def __str__(self) -> str:
        return f"{self.rows:,} rows, checksum {self.text}"

    @property
    def text(self) -> str:
        """Both hashes as text."""
        return f"{self.total:x}-{self.mixed & (2**64 - 1):x}"


@dataclass(frozen=True)
class Rewritten:
    """Rows that were written once more, and proved to be the same."""

    checksum: Checksum
    """Of the rows that were read, and of those that were written."""
    files_before: int
    """Files that were read."""
    files: int
    """Files that were written."""
    bytes_before: int
    """Bytes of the files that were read."""
    bytes: int
    """Bytes of the files that were written."""

    @property
    def document(self) -> dict[str, JsonValue]:
        """Return a JSON value for programs."""
        return {
            "rows": self.checksum.rows,
            "checksum": self.checksum.text,
            "filesBefore": self.files_before,
            "files": self.files,
            "bytesBefore": self.bytes_before,
            "bytes": self.bytes,
        }

    def __str__(self) -> str:
        files = "1 file" if self.files_before == 1 else f"{self.files_before:,} files"
        return f"{files} of {self.bytes_before:,} bytes became {self.files:,} of {self.bytes:,}."


@dataclass(frozen=True)
class SortResult:
    """Result of sorting."""

    uri: str
    """Where the files are."""
    rewritten: Rewritten
    """The files."""
    notes: tuple[str, ...] = ()
    """Warnings for people."""

    @property
    def document(self) -> JsonValue:
        """Return a JSON value for programs."""
        return {"uri": self.uri, **self.rewritten.document, "notes": list(self.notes)}

    def __str__(self) -> str:
        done = self.rewritten
        lines = [
            f"{self.uri}: sorted.",
            f"  {done.checksum}: the same as before.",
            f"  {done}",
        ]
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])
