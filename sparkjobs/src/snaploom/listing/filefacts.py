"""Facts that a file system reports about many files, collected as columns."""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_NANOS_PER_MILLI = 1_000_000
_NANO_DIGITS = 6
"""Digits by which nanoseconds are longer than milliseconds."""
_TAG = r"^[0-9]{1,20}\.[0-9]{1,20}\z"
"""The form of `local_tag`, as Arrow's expressions have it."""


class FileFacts:
    """Length, times and inode of local files.

    One list for each fact: a hundred thousand objects would keep the collector busy.
    """

    def __init__(self) -> None:
        self._lengths: list[int] = []
        self._modified: list[int] = []
        self._changed: list[int] = []
        self._inodes: list[int] = []

    def add(self, status: os.stat_result) -> None:
        """Add the facts about the next file."""
        self._lengths.append(status.st_size)
        self._modified.append(status.st_mtime_ns)
        self._changed.append(status.st_ctime_ns)
        self._inodes.append(status.st_ino)

    @property
    def lengths(self) -> pa.Array:
        """Bytes (int64)."""
        return pa.array(self._lengths, pa.int64())

    @property
    def modified(self) -> pa.Array:
        """Milliseconds since 1970 (int64)."""
        return pa.array(np.array(self._modified, np.int64) // _NANOS_PER_MILLI)

    @property
    def tags(self) -> pa.Array:
        """`local_tag` of each (large_string); null where the system has none."""
        if os.name != "posix":
            return pa.nulls(len(self._lengths), pa.large_string())
        times = pa.array(self._changed, pa.int64()).cast(pa.large_string())
        inodes = pa.array(self._inodes, pa.uint64()).cast(pa.large_string())
        return pc.binary_join_element_wise(times, inodes, pa.scalar(".", pa.large_string()))


def last_changes(modified: pa.Array, tags: pa.Array) -> npt.NDArray[np.int64]:
    """`last_change` of many files, from modification times in milliseconds and tags."""
    is_local = pc.match_substring_regex(tags, _TAG)
    heads = pc.list_element(pc.split_pattern(pc.if_else(is_local, tags, "."), "."), 0)
    millis = pc.utf8_slice_codeunits(heads, 0, -_NANO_DIGITS)
    millis = pc.if_else(pc.greater(pc.utf8_length(millis), 0), millis, "0").cast(pa.int64())
    times: npt.NDArray[np.int64] = modified.to_numpy(zero_copy_only=False)
    changed: npt.NDArray[np.int64] = pc.fill_null(millis, 0).to_numpy(zero_copy_only=False)
    newest: npt.NDArray[np.int64] = np.maximum(times, changed)
    return newest
