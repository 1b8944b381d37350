"""Local files that a glob matches, without Hadoop's client, which takes ten times as long for each.

Only globs that surely mean the same are answered here: of a `file:` URI, with no wildcards but `*`
and `?`. All others, and every name or answer of the disk that is in any way odd, are Hadoop's.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from fnmatch import translate

from snaploom.listing.listedfile import ListedFile, local_tag

_PLACE = re.compile(r"file:(?://)?(/(?!/).*)", re.DOTALL)
_ONLY_HADOOP = re.compile(r"[{}\[\]\\]")
_NANOS_PER_MILLI = 1_000_000


class _InDoubtError(Exception):
    """Hadoop may see it otherwise."""


def local_matches(glob: str) -> list[ListedFile] | None:
    """The files and folders that a glob matches; None where Hadoop has to list them."""
    place = _PLACE.fullmatch(glob)
    if place is None or _ONLY_HADOOP.search(glob):
        return None
    steps = [step for step in place[1].split("/") if step]
    if not steps or any(step in (".", "..") for step in steps):
        return None
    try:
        return list(_matches("", steps))
    except (OSError, _InDoubtError):
        return None


def _matches(folder: str, steps: Sequence[str]) -> Iterator[ListedFile]:
    step, *rest = steps
    is_wild = "*" in step or "?" in step
    if rest:
        for name in _folders(folder, step) if is_wild else [step]:
            yield from _matches(f"{folder}/{name}", rest)
        return
    for path in _members(folder, step) if is_wild else [f"{folder}/{step}"]:
        try:
            yield _described(path, os.stat(path))
        except (FileNotFoundError, NotADirectoryError):
            continue  # a link to nothing, or gone meanwhile


def _folders(folder: str, step: str) -> list[str]:
    return [entry.name for entry in _entries(folder, step) if entry.is_dir()]


def _members(folder: str, step: str) -> list[str]:
    return [entry.path for entry in _entries(folder, step)]


def _entries(folder: str, step: str) -> list[os.DirEntry[str]]:
    # What stands before a `*` is never tried again, so that no number of them takes long.
    pattern = re.compile(translate(step))
    try:
        with os.scandir(folder or "/") as found:
            entries = [entry for entry in found if pattern.fullmatch(entry.name)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    if any(":" in entry.name or not _is_text(entry.name) for entry in entries):
        raise _InDoubtError  # Hadoop refuses these names
    return entries


def _is_text(name: str) -> bool:
    """Whether a name is text rather than bytes of another encoding, kept as surrogates."""
    return name.isascii() or not any("\ud800" <= character <= "\udfff" for character in name)


def _described(path: str, status: os.stat_result) -> ListedFile:
    modified = status.st_mtime_ns // _NANOS_PER_MILLI
    if stat.S_ISDIR(status.st_mode):
        return ListedFile(f"file:{path}", 0, modified, folder=True)
    if not stat.S_ISREG(status.st_mode):
        raise _InDoubtError
    return ListedFile(f"file:{path}", status.st_size, modified, etag=local_tag(status))
