"""The snapshots to read of one folder, as plain data that clients of Spark Connect import too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class PublishedSnapshots:
    """Snapshots of one folder, to be read under one schema."""

    data: str
    """URI of the folder of their folders; ends in `/`."""
    folders: Sequence[str]
    """Name of each one's folder: the partition column, `=`, and the time."""
    files: Callable[[int], Sequence[tuple[str, int]]]
    """From the position of a snapshot to name and bytes of each of its files; from any thread."""
    identity: str
    """A text that is another one for other versions of snapshots."""
    size: int | None
    """Bytes of all files; None where finding out would take reading the whole log."""
