"""Folders that refuse writes, read-only or full; for root too, who heeds no permissions."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


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
