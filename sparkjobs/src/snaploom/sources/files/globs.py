"""Files that a glob matches, listed once and in one order; local ones without Hadoop."""

import logging
import os
import re
import stat
from calendar import month_abbr, month_name
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase, translate
from functools import lru_cache, partial
from itertools import islice

from snaploom.confidential import visible
from snaploom.files.listed import ListedFile, OtherFiles, local_tag, with_local_tag
from snaploom.policy.fileformats import known_formats
from snaploom.sources.prefix import normal_uri

_log = logging.getLogger(__name__)


# Local files that a glob matches, without Hadoop's client, which takes ten times as long for each.

_PLACE = re.compile(r"file:(?://)?(/(?!/).*)", re.DOTALL)
_ONLY_HADOOP = re.compile(r"[{}\[\]\\]")
_KNOWN = re.compile(r"\\([{}\[\]*?])|\[0-9\]")
"""Of these what `init` writes: digits, and escaped letters, here as classes of one letter."""
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
    steps = _steps(f"file:/{step}")
    if steps is None:
        return None
    try:
        return list(_matches(folder.removeprefix("file:"), steps))
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
    if place is None or _ONLY_HADOOP.search(_KNOWN.sub("", glob)):
        return None
    plain = _KNOWN.sub(lambda known: f"[{known[1] or '0-9'}]", place[1])
    steps = [step for step in plain.split("/") if step]
    return None if not steps or any(step in (".", "..") for step in steps) else steps


def _is_wild(step: str) -> bool:
    return any(letter in step for letter in "*?[")


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


# Files of a source that its globs match, listed once and in one order.

FOLDER_MARK = "_$folder$"
"""Suffixes by which clients of buckets (s3n, EMRFS, older ones of GCS) end the name of an object
that marks a folder; S3A lists none of these but by their names."""
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


MOST_BESIDE = 10_000
"""Files of the folders of a glob among which those are looked for that no glob matches."""
_PACKED = re.compile(r"\.(?:gz|bz2|zst|deflate|snappy|lz4)$")
_MONTHS = "|".join(filter(None, (*month_name, *month_abbr))).casefold()
_BETWEEN = re.compile(rf"(?:[\W\d_]|(?<![a-z])(?:{_MONTHS})(?![a-z]))+")


def names_beside(
    globs: Iterable[str],
    every: Iterable[str],
    others: OtherFiles,
    listed: dict[str, list[ListedFile]],
) -> tuple[str, tuple[str, ...]]:
    """A file that some globs match, and those beside it that are named alike and none matches.

    `every` has the globs of all sources, and `listed` keeps the files of their folders. A file that
    is there in another format as well is none. Nothing is found where there is any doubt, or where
    a store would have to be asked about more than one folder.
    """
    known = [_reversed_steps(glob) for glob in every]
    read, rest = dict[tuple[str, str], str](), dict[tuple[str, str], ListedFile]()
    for glob in globs:
        wide = f"{glob.rstrip('/').rpartition('/')[0]}/*"
        own, steps = _reversed_steps(glob), _steps(wide)
        if not all((own, *known)) or (steps is None and _SPECIAL.search(wide[:-1])):
            return "", ()
        if wide not in listed:
            found = _matches("", steps) if steps else others.matches(wide, "")
            files = (each for each in found if not each.folder and not is_no_data(each.name))
            try:
                listed[wide] = list(islice(files, MOST_BESIDE))
            except _InDoubtError:
                return "", ()
        for file in listed[wide]:
            stem, _, ending = _PACKED.sub("", file.uri.casefold()).rpartition(".")
            if _is_matched(file, own):
                read[stem, ending] = file.name
            else:
                rest[stem, ending] = file
    endings = {ending for _, ending in read} | {e for each in known_formats() for e in each.endings}
    copied = {stem for stem, _ in read}
    forms = {_form(stem) for stem in copied}
    letters = {form.replace("#", "") for form in forms}
    numbered = tuple(form for form in forms if "#" in form)
    # A name differs from one of them in separators, or has more behind the number.
    alike = (
        visible(file.name)[:255] for (stem, ending), file in rest.items()
        if stem not in copied and ending in endings
        and (_form(stem).replace("#", "") in letters or _form(stem).startswith(numbered))
        and not any(_is_matched(file, each) for each in known)
    )  # fmt: skip
    return visible(max(read.values(), default=""))[:255], tuple(sorted(alike))


def _reversed_steps(glob: str) -> list[str]:
    """Patterns of the steps of a glob, the last one first; empty if only Hadoop can read it."""
    plain = _KNOWN.sub(lambda known: f"[{known[1] or '0-9'}]", normal_uri(glob.rstrip("/")))
    return [] if _ONLY_HADOOP.search(_KNOWN.sub("", glob)) else plain.split("/")[::-1]


def _is_matched(file: ListedFile, steps: Sequence[str]) -> bool:
    names = normal_uri(file.uri).split("/")[::-1]
    return len(names) == len(steps) and all(map(fnmatchcase, names, steps))


@lru_cache(maxsize=MOST_BESIDE)
def _form(stem: str) -> str:
    """The letters of a name, with # for numbers and dates."""
    name = stem.rpartition("/")[2]
    return _BETWEEN.sub(lambda run: "#" * bool(re.search(r"\d", run[0])), name)


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
