"""Files of one source with the values of their paths, and the snapshots that these hold."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

from snaploom.errors import (
    SnapshotValueInvalid,
    SourceFileUnmatched,
    SourceNotReadable,
    SourceSchemaInvalid,
)
from snaploom.files.listed import ListedFile, OtherFiles
from snaploom.files.objectstore import refuse_links
from snaploom.files.stores import open_store
from snaploom.models.common import EpochNanos
from snaploom.models.datasource import FromFieldValue, HdfsLike, TimeFormat
from snaploom.output import layout
from snaploom.output.folder import open_folder
from snaploom.plan.intervals import READ_TIME, SourceSnapshots
from snaploom.policy.fileformats import format_of
from snaploom.sources.files import globs
from snaploom.sources.prefix import (
    EXPECTED,
    Capture,
    CapturedValue,
    CapturedValueInvalid,
    NotAnInstant,
    UriPrefix,
    instant_of,
    instant_of_date_time,
    month_hint,
    normal_uri,
)

# Folders that Snaploom publishes, read as a source: committed files only (rule W21).

_LOCAL = "file:"
_PUBLISHED = re.compile(rf"(?P<folder>.*/)(?P<key>{layout.DATA}[^/]+/[^/]+)", re.DOTALL)


def only_live(files: Sequence[ListedFile], others: OtherFiles) -> tuple[ListedFile, ...]:
    """Drop files of a Snaploom folder that its manifest does not list as live.

    Raises:
        NotAPlainFile: a live file, or a folder on its way, is a link (local disks only).
    """
    keys: dict[str, set[str]] = {}
    for match in filter(None, (_PUBLISHED.fullmatch(file.uri) for file in files)):
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


# Files of one source, with the values captured from their paths.

SHOWN = 20
"""Files that one message names; with more, the rest is only counted."""
_LISTED = ("files", "folders", "_of_folders")
"""Properties of a listing that are kept once they are known."""


@dataclass(frozen=True, slots=True)
class CapturedFile:
    """A file with the values captured from its path."""

    file: ListedFile
    values: Mapping[str, CapturedValue]


@dataclass(frozen=True, slots=True)
class CapturedFolder:
    """A folder that has a file, with the values captured from its path."""

    folder: globs.FileFolder
    values: Mapping[str, CapturedValue]


@dataclass(frozen=True)
class FileListing:
    """Files of one `hdfsLike` source; listed once, on first access."""

    resource: str
    declared: HdfsLike
    others: OtherFiles
    """Lists what is not on a local disk."""

    @cached_property
    def prefix(self) -> UriPrefix | None:
        """The parsed `sourceUriPrefix`; validation has proved that it parses."""
        text = self.declared.source_uri_prefix
        return None if text is None else UriPrefix.parse(text)

    @cached_property
    def files(self) -> tuple[CapturedFile, ...]:
        """Every file of the source, by URI.

        Raises:
            SourceFileUnmatched: a file does not begin with `sourceUriPrefix`.
            SnapshotValueInvalid: a captured value is NULL or not of its type.
            SparkNeeded: only Spark can list them, and `others` has none.
        """
        listed = globs.list_files(self.declared.globs, self.resource, self.others)
        files = only_live(listed, self.others)
        self._refuse_empty(files)
        if self.prefix is None:
            return tuple(CapturedFile(file, {}) for file in files)
        return self._captured(self.prefix, files)

    @cached_property
    def folders(self) -> tuple[CapturedFolder, ...] | None:
        """Folders that have files, if their paths capture every value of the prefix.

        None where that is in any doubt, or wrong: `files` then has the answer, or an error.
        """
        if self.is_listed or self.prefix is None or not self.prefix.text.endswith("/"):
            return None
        folders = globs.folders_with_files(self.declared.globs, self.others)
        if not folders or is_any_published((each.uri for each in folders), self.others):
            return None
        found: list[CapturedFolder] = []
        for folder in folders:
            try:
                values = self.prefix.match(f"{folder.uri}/-")
            except CapturedValueInvalid:
                return None
            if values is None:
                return None
            found.append(CapturedFolder(folder, values))
        return tuple(found)

    def files_of(self, folders: Sequence[CapturedFolder]) -> tuple[CapturedFile, ...]:
        """Files of some `folders`, by URI; listed once."""
        key = tuple(each.folder for each in folders)
        if key not in self._of_folders:
            listed = globs.files_of_folders(key, self.resource, self.others)
            self._refuse_empty(listed)
            by_folder = {each.folder.uri: each.values for each in folders}
            self._of_folders[key] = tuple(
                CapturedFile(file, by_folder[file.uri.rpartition("/")[0]]) for file in listed
            )
        return self._of_folders[key]

    @cached_property
    def _of_folders(self) -> dict[tuple[globs.FileFolder, ...], tuple[CapturedFile, ...]]:
        return {}

    @property
    def at_read_time(self) -> SourceSnapshots:
        """All files as one snapshot, at the instant of the run; empty without files."""
        return READ_TIME if self.files else SourceSnapshots()

    @property
    def is_listed(self) -> bool:
        """Whether the files are known already."""
        return "files" in vars(self)

    @property
    def is_enumerated(self) -> bool:
        """Whether the files, or the folders that have some, are known already."""
        return self.is_listed or vars(self).get("folders") is not None

    def asking_anew(self, others: OtherFiles) -> FileListing:
        """The same source, without any known files."""
        return FileListing(self.resource, self.declared, others)

    def asking(self, others: OtherFiles) -> FileListing:
        """The same listing, with others to list what is not known yet."""
        listing = self.asking_anew(others)
        vars(listing).update((name, vars(self)[name]) for name in _LISTED if name in vars(self))
        return listing

    def _captured(self, prefix: UriPrefix, files: Sequence[ListedFile]) -> tuple[CapturedFile, ...]:
        captured: list[CapturedFile] = []
        unmatched: list[str] = []
        invalid: list[str] = []
        # A prefix that ends with a folder captures the same of all files in one: it is matched once
        # for them, and a million files do not have a million mappings.
        by_folder: dict[str, Mapping[str, CapturedValue]] = {}
        for file in files:
            folder = file.uri.rpartition("/")[0] if prefix.text.endswith("/") else file.uri
            values = by_folder.get(folder)
            if values is None:
                try:
                    values = prefix.match(file.uri)
                except CapturedValueInvalid as error:
                    invalid.append(f"{file.uri}: {error}")
                    continue
            if values is None:
                unmatched.append(file.uri)
            else:
                by_folder[folder] = values
                captured.append(CapturedFile(file, values))
        if unmatched:
            raise SourceFileUnmatched(
                f"{len(unmatched)} of {len(files)} files do not begin with the prefix",
                resource=self.resource,
                path="spec.hdfsLike.sourceUriPrefix",
                found=shown(unmatched),
                expected=prefix.text,
            )
        if invalid:
            raise SnapshotValueInvalid(
                f"{len(invalid)} of {len(files)} files have a path with a value that cannot be "
                "read",
                resource=self.resource,
                path="spec.hdfsLike.sourceUriPrefix",
                found=shown(invalid),
                expected=prefix.text,
            )
        return tuple(captured)

    def _refuse_empty(self, files: Sequence[ListedFile]) -> None:
        if not format_of(self.declared.format).is_never_empty:
            return
        empty = [file.uri for file in files if file.length == 0]
        if empty:
            raise SourceNotReadable(
                f"{len(empty)} of {len(files)} files have zero bytes, which is not "
                f"{self.declared.format}: they were cut short",
                resource=self.resource,
                path="spec.hdfsLike.sourceUriGlobs",
                found=shown(empty),
                expected=f"whole {self.declared.format} files",
            )


def shown(items: Sequence[str]) -> str:
    """The first items, one a line, and the number of further ones."""
    more = [f"… and {len(items) - SHOWN} more"] if len(items) > SHOWN else []
    return "\n            ".join([*items[:SHOWN], *more])


MOST_NAMED = 200
"""Files whose columns are compared with those that are read."""
READ_AT_ONCE = 16
"""Files whose ends or beginnings are read at the same time: on stores all of it is waiting."""


def columns_of(
    files: Sequence[ListedFile], names: Callable[[ListedFile], Sequence[str]]
) -> Mapping[str, Sequence[str]]:
    """The names of columns of files, the last `MOST_NAMED` of them, by URI; of none without any."""
    some = files[-MOST_NAMED:]
    with ThreadPoolExecutor(READ_AT_ONCE) as pool:
        found = zip(some, pool.map(names, some), strict=True)
        return {file.uri: each for file, each in found if each}


def none_of_columns(
    resource: str, place: str, header: Sequence[str], wanted: Sequence[str], or_else: str = ""
) -> SourceSchemaInvalid:
    """The error of a file all of whose rows would be NULL."""
    return SourceSchemaInvalid(
        "a file has none of the columns",
        resource=resource,
        path="spec.hdfsLike.schemaFields",
        found=f"{', '.join(header)} in {place}",
        expected=f"a header with some of {', '.join(wanted)}",
        hint=f"write the header there, or move the file away; or declare its columns{or_else}",
    )


# Snapshots in paths of files: enumerated by names, without opening one.


@dataclass(frozen=True)
class PathSnapshots:
    """Snapshots of one source whose paths hold them."""

    listing: FileListing
    settings: FromFieldValue
    capture: Capture
    """The part of the path that holds the snapshot."""

    @property
    def listed(self) -> SourceSnapshots:
        """Instants in paths; no file is opened. Raises as `by_instant`."""
        return SourceSnapshots.of(self.by_instant if self._folders is None else self._folders)

    def files_of(self, snapshot: EpochNanos) -> tuple[CapturedFile, ...]:
        """Files of one snapshot, listed once, possibly none; `SourceError` if listing fails."""
        if self._folders is None:
            return self.by_instant.get(snapshot, ())
        return self.listing.files_of(self._folders.get(snapshot, ()))

    def globs_of(self, files: Sequence[CapturedFile]) -> tuple[str, ...]:
        """Globs that match a snapshot's files and few others; empty where all are to be listed."""
        prefix = self.listing.prefix
        assert prefix is not None  # it has the capture
        before = takewhile(lambda part: part != self.capture, prefix.parts)
        depth = sum(part.count("/") for part in before if isinstance(part, str)) + 1
        paths = {tuple(normal_uri(file.file.uri).split("/")) for file in files}
        if any(len(path) <= depth for path in paths):
            return ()  # names of files hold it
        folders = sorted({"/".join(path[:depth]) for path in paths})
        found = [
            globs.glob_below(glob, folder)
            for glob in self.listing.declared.globs
            for folder in folders
        ]
        return () if None in found else tuple(glob for glob in found if glob)

    @cached_property
    def _folders(self) -> Mapping[EpochNanos, Sequence[CapturedFolder]] | None:
        found: dict[EpochNanos, list[CapturedFolder]] = defaultdict(list)
        try:
            for each in self.listing.folders or ():
                found[self._instant(each.values[self.capture.name])].append(each)
        except NotAnInstant:
            return None
        return found or None

    @cached_property
    def by_instant(self) -> Mapping[EpochNanos, tuple[CapturedFile, ...]]:
        """Files of each snapshot."""
        by_value: dict[CapturedValue, list[CapturedFile]] = defaultdict(list)
        for file in self.listing.files:
            by_value[file.values[self.capture.name]].append(file)
        by_instant: dict[EpochNanos, list[CapturedFile]] = defaultdict(list)
        invalid: list[str] = []
        wrong: list[CapturedValue] = []
        for value, files in by_value.items():
            try:
                by_instant[self._instant(value)] += files
            except NotAnInstant:
                wrong.append(value)
                invalid += [f"{value!r} in {file.file.uri}" for file in files]
        if invalid:
            raise SnapshotValueInvalid(
                f"{len(invalid)} of {len(self.listing.files)} files have a path whose "
                f"{self.capture.name} is no snapshot time",
                resource=self.listing.resource,
                path="spec.hdfsLike.snapshot.fromFieldValue.timeFormat",
                found=shown(invalid),
                expected=f"{EXPECTED[self.settings.time_format]} ({self.settings.time_format})",
                hint=month_hint(wrong, in_paths=True),
            )
        return {instant: tuple(files) for instant, files in by_instant.items()}

    def _instant(self, value: CapturedValue) -> EpochNanos:
        if self.settings.time_format is TimeFormat.TIMESTAMP:
            # The one capture that is a timestamp is the one of an ISO 8601 text.
            return instant_of_date_time(str(value), self.settings.default_timezone)
        return instant_of(value, self.settings)


def path_snapshots(listing: FileListing) -> PathSnapshots | None:
    """Snapshots of a source whose paths hold them; None for all others."""
    settings = listing.declared.snapshot.from_field_value
    if settings is None or listing.prefix is None:
        return None
    capture = listing.prefix.capture(settings.field_name)
    return None if capture is None else PathSnapshots(listing, settings, capture)
