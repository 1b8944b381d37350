"""Folders that refuse writes, for root too, who heeds no permissions; and files that were cut."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from snaploom.files.typedfiles import FAULTS, Reader


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A file system in memory of `size`; skips the test where mounting is not allowed."""
    with _mounted(folder, f"size={size}"):
        yield folder


@contextmanager
def read_only(folder: Path) -> Iterator[Path]:
    """An empty folder that nothing can be written to."""
    folder.mkdir(parents=True)
    if os.geteuid() != 0:
        folder.chmod(0o555)
        yield folder
        folder.chmod(0o755)
        return
    with _mounted(folder, "ro"):
        yield folder


@contextmanager
def _mounted(folder: Path, options: str) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no `mount` here")
    if done.returncode:
        pytest.skip(f"a file system cannot be mounted here: {done.stderr.strip()}")
    try:
        yield
    finally:
        # Lazily: Spark's JVM keeps a file open when closing it failed for want of room.
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def cuts_that_pass(reader: Reader, whole: bytes) -> list[int]:
    """Bytes after which a file can end without an error of its reader; it must be read whole."""
    for batch in reader(pa.BufferReader(whole)):
        batch.validate(full=True)
    passed = []
    for end in range(len(whole)):
        with contextlib.suppress(*FAULTS):
            list(reader(pa.BufferReader(whole[:end])))
            passed.append(end)
    return passed
