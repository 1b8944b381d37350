"""Local files that a glob matches, without Hadoop's client, which takes ten times as long for each.

Only globs that surely mean the same are answered here: of a `file:` URI, with no wildcards but `*`
and `?`. All others, and every name or answer of the disk that is in any way odd, are Hadoop's.

Where folders hold the snapshots, a source is enumerated from only the folders that have a file: of
a million files in a thousand folders a thousand are looked at, and nothing has to be remembered
from run to run. The files of a folder are listed when it is read.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from fnmatch import translate

from snaploom.listing.listedfile import ListedFile, local_tag

_PLACE = re.compile(r"file:(?://)?(/(?!/).*)", re.DOTALL)
_ONLY_HADOOP = re.compile(r"[{}\[\]\\]")
_NANOS_PER_MILLI = 1_000_000


class _InDoubtError(Exception): ...


def local_matches(glob: str) -> list[ListedFile] | None:
    """Files and folders that a glob matches; None where Hadoop has to list them."""
    steps = _steps(glob)
    if steps is None:
        return None
    try:
        return list(_matches("", steps))
    except (OSError, _InDoubtError):
        return None


def local_folders(glob: str, is_hidden: Callable[[str], bool]) -> list[str] | None:
    """URIs of folders with a file that a glob matches; None where Hadoop has to list them."""
    steps = _steps(glob)
    if steps is None:
        return None
    *above, last = steps
    folders = [""]
    try:
        for step in above:
            folders = [
                f"{folder}/{name}"
                for folder in folders
                for name in (_folders(folder, step) if _is_wild(step) else [step])
            ]
        return [f"file:{folder}" for folder in folders if _has_file(folder, last, is_hidden)]
    except (OSError, _InDoubtError):
        return None


def local_files(folder: str, step: str) -> list[ListedFile] | None:
    """Files and folders whose names a step of a glob matches; None if only Hadoop can decide."""
    if not folder.startswith("file:"):
        return None
    try:
        return list(_matches(folder.removeprefix("file:"), [step]))
    except (OSError, _InDoubtError):
        return None


def _has_file(folder: str, step: str, is_hidden: Callable[[str], bool]) -> bool:
    """Whether a folder has a file; stops at the first: later names are not judged."""
    if not _is_wild(step):
        path = f"{folder}/{step}"
        return os.path.isfile(path) and not is_hidden(f"file:{path}")
    pattern = re.compile(translate(step))
    try:
        with os.scandir(folder or "/") as found:
            for entry in found:
                if pattern.fullmatch(entry.name) and not is_hidden(f"file:{folder}/{entry.name}"):
                    if _is_odd(entry.name):
                        raise _InDoubtError
                    if entry.is_file():
                        return True
    except (FileNotFoundError, NotADirectoryError):
        return False  # gone meanwhile
    return False


def _steps(glob: str) -> list[str] | None:
    """Names and patterns of a glob from the root on; None if only Hadoop can read it."""
    place = _PLACE.fullmatch(glob)
    if place is None or _ONLY_HADOOP.search(glob):
        return None
    steps = [step for step in place[1].split("/") if step]
    return None if not steps or any(step in (".", "..") for step in steps) else steps


def _is_wild(step: str) -> bool:
    return "*" in step or "?" in step


def _matches(folder: str, steps: Sequence[str]) -> Iterator[ListedFile]:
    step, *rest = steps
    is_wild = _is_wild(step)
    if rest:
        for name in _folders(folder, step) if is_wild else [step]:
            yield from _matches(f"{folder}/{name}", rest)
        return
    for path in (
        [entry.path for entry in _entries(folder, step)] if is_wild else [f"{folder}/{step}"]
    ):
        try:
            yield _described(path, os.stat(path))
        except (FileNotFoundError, NotADirectoryError):
            continue  # a link to nothing, or gone meanwhile


def _folders(folder: str, step: str) -> list[str]:
    return [entry.name for entry in _entries(folder, step) if entry.is_dir()]


def _entries(folder: str, step: str) -> list[os.DirEntry[str]]:
    # What stands before a `*` is never tried again, so that no number of them takes long.
    pattern = re.compile(translate(step))
    try:
        with os.scandir(folder or "/") as found:
            entries = [entry for entry in found if pattern.fullmatch(entry.name)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    if any(_is_odd(entry.name) for entry in entries):
        raise _InDoubtError
    return entries


def _is_odd(name: str) -> bool:
    return ":" in name or not _is_text(name)


def _is_text(name: str) -> bool:
    return name.isascii() or not any("\ud800" <= character <= "\udfff" for character in name)


def _described(path: str, status: os.stat_result) -> ListedFile:
    modified = status.st_mtime_ns // _NANOS_PER_MILLI
    if stat.S_ISDIR(status.st_mode):
        return ListedFile(f"file:{path}", 0, modified, folder=True)
    if not stat.S_ISREG(status.st_mode):
        raise _InDoubtError
    return ListedFile(f"file:{path}", status.st_size, modified, etag=local_tag(status))
