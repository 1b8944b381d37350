"""The files of a local folder as Spark reads them as one relation, listed without its JVM.

Spark makes several Java objects of each file, and asks for its tag once more. The listing is
exactly Spark's, or absent: anything odd (links to folders, files beside folders, folders that are
no partitions, names that Hadoop refuses or treats specially) is left to Spark.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from snaploom.skipping.core.filetable import FileFacts
from snaploom.sources.files.globs import is_hidden_name

_PLACE = re.compile(r"file:(?P<folder>(?:/[^/]+)+)")
_PARTITION = re.compile(r"(?P<column>[^=]+)=.+", re.DOTALL)
_ODD = re.compile("[:\n\ud800-\udfff]")
"""Names that Hadoop refuses, that cannot be passed line by line, or that are not text."""
_SPECIAL = ("_metadata", "_common_metadata", "_spark_metadata")
"""Names that Spark hides otherwise than others, and one that makes a folder that of a stream."""


class _InDoubtError(Exception): ...


@dataclass(frozen=True)
class RelationFolder:
    """A folder with files of a relation; a partition if there are partition columns."""

    uri: str
    """Without a final `/`."""
    files: int
    sample: str
    """URI of one file there, of one that is not empty where there is one."""


@dataclass(frozen=True)
class RelationFiles:
    """The files of a relation; at least one."""

    folders: tuple[RelationFolder, ...]
    paths: pa.Array
    """As Hadoop's `Path` prints them (large_string)."""
    lengths: pa.Array
    """Bytes (int64), never 0: Spark reads no empty file."""
    modified: pa.Array
    """Milliseconds since 1970 (int64)."""
    tags: pa.Array
    """`local_tag` of each (large_string)."""


def relation_files(uri: str) -> RelationFiles | None:
    """Files that Spark reads as one relation from a `file:/...` folder; None if unsure."""
    try:
        return _described(_levels(_folder_of(uri)))
    except (OSError, _InDoubtError):
        return None


def first_files(uri: str) -> tuple[str, ...] | None:
    """URIs of each folder's first file by name; None if unsure, or the first is empty.

    Where Spark looks into the first of all files, it is one of these; it finds the same partitions
    in them as in all files.
    """
    try:
        return tuple(_first_file(folder) for folder in _levels(_folder_of(uri)))
    except (OSError, _InDoubtError):
        return None


def _folder_of(uri: str) -> str:
    place = _PLACE.fullmatch(uri)
    if place is None or _ODD.search(place["folder"]) or os.name != "posix":
        raise _InDoubtError
    return place["folder"]


def _first_file(folder: _Folder) -> str:
    if not folder.is_plain:
        raise _InDoubtError
    # Java compares names by their UTF-16 units.
    name = min(folder.files, key=lambda each: each.encode("utf-16-be"))
    if not os.stat(f"{folder.path}/{name}").st_size:
        raise _InDoubtError
    return f"file:{folder.path}/{name}"


@dataclass(frozen=True)
class _Folder:
    path: str
    files: Sequence[str]
    folders: Sequence[str]
    is_plain: bool


def _levels(root: str) -> list[_Folder]:
    """The folders with files: all of them equally deep, each below folders of the same columns.

    Raises `OSError`, or `_InDoubtError` where the folders are not such a tree.
    """
    level = [root]
    while level:
        found = [_listed(path) for path in level]
        with_files = [each for each in found if each.files]
        below = [(each.path, name) for each in found for name in each.folders]
        if with_files and below:
            raise _InDoubtError
        if with_files:
            return with_files
        partitions = [_PARTITION.fullmatch(name) for _, name in below]
        columns = {match["column"] for match in partitions if match is not None}
        if None in partitions or len(columns) > 1:
            raise _InDoubtError
        level = [f"{path}/{name}" for path, name in below]
    raise _InDoubtError


def _listed(path: str) -> _Folder:
    files: list[str] = []
    folders: list[str] = []
    is_plain = True
    with os.scandir(path) as entries:
        for entry in entries:
            name = entry.name
            if name.startswith(_SPECIAL):
                raise _InDoubtError
            if is_hidden_name(name):
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append(name)
            else:
                files.append(name)
                is_plain = is_plain and entry.is_file(follow_symlinks=False)
    if _ODD.search("/".join([*files, *folders])):
        raise _InDoubtError
    return _Folder(path, sorted(files), sorted(folders), is_plain)


def _described(folders: Iterable[_Folder]) -> RelationFiles:
    """The files of some folders, without empty ones.

    Raises `OSError`, or `_InDoubtError` for anything but files or where all files are empty.
    """
    facts, described = FileFacts(), []
    paths: list[str] = []
    for folder in folders:
        before = len(paths)
        empty = _look(folder, paths, facts)
        count = len(paths) - before
        if count or empty:
            sample = paths[before] if count else empty
            described.append(RelationFolder(f"file:{folder.path}", count, sample))
    if not paths:
        raise _InDoubtError
    uris = pa.array(paths, pa.large_string())
    return RelationFiles(tuple(described), uris, facts.lengths, facts.modified, facts.tags)


def _look(folder: _Folder, paths: list[str], facts: FileFacts) -> str:
    empty = ""
    prefix = f"file:{folder.path}/"
    opened = os.open(folder.path, os.O_RDONLY)
    try:
        for name in folder.files:
            try:
                status = os.stat(name, dir_fd=opened)
            except FileNotFoundError:
                continue  # a link to nothing, or gone meanwhile
            if not stat.S_ISREG(status.st_mode):
                raise _InDoubtError
            if not status.st_size:
                empty = prefix + name
                continue
            paths.append(prefix + name)
            facts.add(status)
    finally:
        os.close(opened)
    return empty
