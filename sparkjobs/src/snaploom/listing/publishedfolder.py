"""Folders that Snaploom publishes, read as a source: committed files only (rule W21).

Their files lie at `<folder>/data/<partition>/<file>` beside files of runs that crashed, lost a race
or were deleted by name only; the manifest lists the live ones. It is read when the source's files
are listed, which happens once, so that a run sees one committed state.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence, Set

from snaploom.listing.listedfile import ListedFile
from snaploom.listing.otherfiles import OtherFiles
from snaploom.storage import layout
from snaploom.storage.folder import open_folder
from snaploom.storage.objectstore import refuse_links
from snaploom.storage.stores import open_store

_LOCAL = "file:"
_PUBLISHED = re.compile(rf"(?P<folder>.*/)(?P<key>{layout.DATA}[^/]+/[^/]+)")


def only_live(files: Sequence[ListedFile], others: OtherFiles) -> tuple[ListedFile, ...]:
    """Drop files of a Snaploom folder that its manifest does not list as live.

    Raises:
        StorageError: the manifest cannot be read.
        NotAPlainFile: a live file, or a folder on its way, is a link (local disks only).
    """
    keys: dict[str, set[str]] = {}
    for match in _published(files):
        keys.setdefault(match["folder"], set()).add(match["key"])
    live = {
        folder: _live_keys(others, folder, found)
        for folder, found in keys.items()
        if _is_ours(others, folder)
    }
    return tuple(file for file in files if _is_live(file, live))


def is_any_published(folders: Iterable[str], others: OtherFiles) -> bool:
    """Whether an output has its files in one of some folders."""
    found = (_PUBLISHED.fullmatch(f"{folder}/-") for folder in folders)
    outputs = {match["folder"] for match in found if match is not None}
    return any(_is_ours(others, output) for output in outputs)


def _published(files: Iterable[ListedFile]) -> list[re.Match[str]]:
    return [match for file in files if (match := _PUBLISHED.fullmatch(file.uri))]


def _is_ours(others: OtherFiles, folder: str) -> bool:
    marker = folder + layout.MARKER
    if marker.startswith(_LOCAL):
        return os.path.exists(marker.removeprefix(_LOCAL))
    return others.exists(marker)


def _live_keys(others: OtherFiles, folder: str, found: Set[str]) -> frozenset[str]:
    store = open_store(folder, create=False, others=others.store)
    live = open_folder(store).log.read().live_files
    refuse_links(store, sorted(live & found))
    return live


def _is_live(file: ListedFile, live: dict[str, frozenset[str]]) -> bool:
    match = _PUBLISHED.fullmatch(file.uri)
    if match is None or match["folder"] not in live:
        return True
    return match["key"] in live[match["folder"]]
