"""Files of a source that its globs match, listed once and in one order.

Files are listed here rather than by Spark, because a file belongs to one snapshot: a snapshot is
read from exactly its files. What Spark would not read is not listed either: folders, and names
that begin with `_` (without `=`) or `.`. The same holds for folders that a wildcard reaches, so
that nobody reads what another job is still writing into `_temporary` or `.staging`; a glob that
spells such a folder out reads it. Nor are objects that only mark folders of a store without any:
those called `<folder>_$folder$`, and empty ones of a folder's own name. Any other file of zero
bytes is a file.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache, partial

from snaploom.listing.listedfile import ListedFile, with_local_tag
from snaploom.listing.localfiles import local_files, local_folders, local_matches
from snaploom.listing.otherfiles import OtherFiles
from snaploom.planning.prefix import normal_uri

_log = logging.getLogger(__name__)

FOLDER_MARK = "_$folder$"
"""How clients of buckets (s3n, EMRFS, older ones of GCS) end the name of an object that marks a
folder; S3A lists none of these but by their names."""
_SPECIAL = re.compile(r"[{}\[\]*?\\]")
_CHOICES = re.compile(r"[{}\[\]\\]")


def list_files(globs: Iterable[str], resource: str, others: OtherFiles) -> tuple[ListedFile, ...]:
    """Files of the globs, each once, sorted by URI, possibly none; else `SourceNotReadable`."""
    found: dict[str, ListedFile] = {}
    of_folders: list[str] = []
    for glob in globs:
        local = local_matches(glob)
        statuses = others.matches(glob, resource) if local is None else local
        found.update((s.uri, s) for s in _files(statuses) if not is_hidden(s.uri, glob))
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


@dataclass(frozen=True, slots=True)
class FileFolder:
    """A folder with a file that the last step of a glob matches."""

    uri: str
    """Without a final `/`."""
    step: str
    """The last step of the glob."""


def folders_with_files(globs: Iterable[str], others: OtherFiles) -> tuple[FileFolder, ...] | None:
    """Folders with a file that one of the globs matches; None if in doubt.

    A folder of several globs is there once for each.
    """
    found: list[FileFolder] = []
    for glob in globs:
        hidden = partial(is_hidden, glob=glob)
        local = local_folders(glob, hidden)
        folders = others.folders(glob, hidden) if local is None else local
        if folders is None:
            return None
        found += (FileFolder(folder, glob.rstrip("/").rpartition("/")[2]) for folder in folders)
    return tuple(found)


def files_of_folders(
    folders: Iterable[FileFolder], resource: str, others: OtherFiles
) -> tuple[ListedFile, ...]:
    """Files of `folders_with_files`, sorted by URI; `SourceNotReadable` if they are gone."""
    found: dict[str, ListedFile] = {}
    for folder in folders:
        glob = f"{escape_glob(folder.uri)}/{folder.step}"
        local = local_files(folder.uri, folder.step)
        statuses = others.matches(glob, resource) if local is None else local
        found.update((s.uri, s) for s in _files(statuses) if not is_no_data(s.name))
    return tuple(with_local_tag(found[uri]) for uri in sorted(found))


def _files(statuses: Sequence[ListedFile]) -> Iterator[ListedFile]:
    """Files among the statuses, without the empty objects by which stores mark folders."""
    folders = {status.uri for status in statuses if status.folder}
    for status in statuses:
        if not status.folder and (status.length or status.uri not in folders):
            yield status


def escape_glob(uri: str) -> str:
    """The glob that matches this very file, for Spark's reader, which expands globs itself."""
    return _SPECIAL.sub(lambda special: "\\" + special[0], uri)


def is_hidden(uri: str, glob: str) -> bool:
    """Whether Spark's rule for names hides a file, or a folder that the glob's wildcards reach."""
    *folders, name = uri.split("/")
    if is_no_data(name):
        return True
    reached, spelled = _reach(glob)
    return any(
        is_hidden_name(folder) and folder[0] not in spelled
        for folder in folders[max(0, len(folders) - reached) :]
    )


@lru_cache(maxsize=64)  # asked for every file, of a few globs
def _reach(glob: str) -> tuple[int, frozenset[str]]:
    """Number of folders that wildcards reach, and the marks of hidden ones that are spelled out."""
    fixed = re.split(r"[{}\[\]*?]", glob, maxsplit=1)[0]
    reached = glob[fixed.rfind("/") + 1 :].count("/")
    return reached, frozenset(
        part[0] for part in re.split(r"[/{,]", glob) if part[:1] in ("_", ".")
    )


def is_hidden_name(name: str) -> bool:
    """Whether Spark passes over files and folders of a name, wherever it meets them."""
    return (
        name.startswith(".")
        or (name.startswith("_") and "=" not in name)
        or name.endswith("._COPYING_")
    )


def is_no_data(name: str) -> bool:
    """Whether a name is not a source's file: hidden, or the mark of a folder."""
    return is_hidden_name(name) or name.endswith(FOLDER_MARK)


def glob_below(glob: str, folder: str) -> str | None:
    """A glob for the matches below a folder: empty for none, None where in doubt."""
    place = normal_uri(folder)
    steps, names = normal_uri(glob).split("/"), place.split("/")
    if _CHOICES.search(glob) or {"", ".", ".."} & {*steps[2:]}:
        return None
    if len(steps) <= len(names) or not all(map(fnmatchcase, names, steps)):
        return ""
    start = "file:" if place.startswith("/") else ""
    return "/".join([start + escape_glob(place), *steps[len(names) :]])


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
