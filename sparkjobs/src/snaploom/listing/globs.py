"""Files of a source: what its globs match, listed once and in one order.

Files are listed here rather than by Spark, because a file belongs to one snapshot: a snapshot is
read from exactly its files. What Spark would not read is not listed either: folders, and names
that begin with `_` (without `=`) or `.`. The same holds for folders that a wildcard reaches, so
that nobody reads what another job is still writing into `_temporary` or `.staging`; a glob that
spells such a folder out reads it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from functools import lru_cache

from snaploom.listing.listedfile import ListedFile, with_local_tag
from snaploom.listing.localfiles import LocalFolder, local_folders, local_matches
from snaploom.listing.otherfiles import OtherFiles

_log = logging.getLogger(__name__)

_SPECIAL = re.compile(r"[{}\[\]*?\\]")


def list_files(globs: Iterable[str], resource: str, others: OtherFiles) -> tuple[ListedFile, ...]:
    """The files that match any of the globs, each once, sorted by URI; none is no fault.

    Args:
        globs: as Hadoop reads them.
        resource: `Kind/name` of the source.
        others: lists what is not on a local disk.

    Raises:
        SourceNotReadable: a glob is malformed, or its file system cannot be asked.
    """
    found: dict[str, ListedFile] = {}
    of_folders: list[str] = []
    for glob in globs:
        local = local_matches(glob)
        statuses = others.matches(glob, resource) if local is None else local
        found.update((s.uri, s) for s in statuses if not s.folder and not is_hidden(s.uri, glob))
        if statuses and all(status.folder for status in statuses):
            of_folders.append(glob)
    # Not before all were listed: what needs Spark after all is listed again.
    for glob in of_folders:
        _log.warning(
            "%s: %s matches folders only, which are passed over; add /* for their files",
            resource,
            glob,
        )
    # By only the URI, which no two share: comparing whole records takes twenty times as long.
    return tuple(with_local_tag(found[uri]) for uri in sorted(found))


def folders_with_files(globs: Iterable[str]) -> tuple[LocalFolder, ...] | None:
    """The folders that have a file which one of the globs matches; None where that is in doubt.

    A folder of several globs is there once for each.

    Args:
        globs: as Hadoop reads them.
    """
    found: list[LocalFolder] = []
    for glob in globs:
        folders = local_folders(glob)
        if folders is None:
            return None
        for folder in folders:
            if is_hidden(f"{folder.uri}/-", glob):
                continue
            has_file = folder.has_file(_is_hidden_name)
            if has_file is None:
                return None
            if has_file:
                found.append(folder)
    return tuple(found)


def files_of_folders(folders: Iterable[LocalFolder]) -> tuple[ListedFile, ...] | None:
    """Their files, each once, sorted by URI; None where only Hadoop can list them.

    Args:
        folders: of `folders_with_files`.
    """
    found: dict[str, ListedFile] = {}
    for folder in folders:
        files = folder.files()
        if files is None:
            return None
        found.update((f.uri, f) for f in files if not f.folder and not _is_hidden_name(f.name))
    return tuple(found[uri] for uri in sorted(found))


def escape_glob(uri: str) -> str:
    """The glob that matches this very file, for Spark's reader, which expands globs itself."""
    return _SPECIAL.sub(lambda special: "\\" + special[0], uri)


def is_hidden(uri: str, glob: str) -> bool:
    """Whether Spark's rule for names hides a file, or a folder that the glob's wildcards reach."""
    *folders, name = uri.split("/")
    if _is_hidden_name(name):
        return True
    reached, spelled = _reach(glob)
    return any(
        _is_hidden_name(folder) and folder[0] not in spelled
        for folder in folders[max(0, len(folders) - reached) :]
    )


@lru_cache(maxsize=64)  # asked for every file, of a few globs
def _reach(glob: str) -> tuple[int, frozenset[str]]:
    """How many folders wildcards reach, and with which marks hidden ones are spelled out."""
    fixed = re.split(r"[{}\[\]*?]", glob, maxsplit=1)[0]
    reached = glob[fixed.rfind("/") + 1 :].count("/")
    return reached, frozenset(
        part[0] for part in re.split(r"[/{,]", glob) if part[:1] in ("_", ".")
    )


def _is_hidden_name(name: str) -> bool:
    return (
        name.startswith(".")
        or (name.startswith("_") and "=" not in name)
        or name.endswith("._COPYING_")
    )


def split_glob(glob: str) -> tuple[str, str] | None:
    """A glob up to its first wildcard's folder, and the rest of it; None where it has no two."""
    steps = glob.split("/")
    if any(
        step.count("{") != step.count("}") or step.count("[") != step.count("]") for step in steps
    ):
        return None  # a choice that goes over several folders
    wild = [index for index, step in enumerate(steps) if _SPECIAL.search(step)]
    if len(wild) < 2:
        return None
    return "/".join(steps[: wild[0] + 1]), "/".join(steps[wild[0] + 1 :])
