"""Files of one source, with the values captured from their paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from snaploom.errors import SnapshotValueInvalid, SourceFileUnmatched, SourceNotReadable
from snaploom.listing.globs import FileFolder, files_of_folders, folders_with_files, list_files
from snaploom.listing.listedfile import ListedFile
from snaploom.listing.otherfiles import OtherFiles
from snaploom.listing.publishedfolder import is_any_published, only_live
from snaploom.models.datasource import HdfsLike
from snaploom.planning.intervals import READ_TIME, SourceSnapshots
from snaploom.planning.prefix import CapturedValue, CapturedValueInvalid, UriPrefix

SHOWN = 20
"""Files that one message names; with more, the rest is only counted."""
_LISTED = ("files", "folders", "_of_folders")
"""Properties of a listing that are kept once they are known."""
NEVER_EMPTY = frozenset(["parquet", "avro"])
"""Formats of which a file of zero bytes is no file. (Hive writes ORC files of zero bytes.)"""


@dataclass(frozen=True, slots=True)
class CapturedFile:
    """A file with the values captured from its path."""

    file: ListedFile
    values: Mapping[str, CapturedValue]


@dataclass(frozen=True, slots=True)
class CapturedFolder:
    """A folder that has a file, with the values captured from its path."""

    folder: FileFolder
    values: Mapping[str, CapturedValue]


@dataclass(frozen=True)
class FileListing:
    """Files of one `hdfsLike` source; listed once, on first access."""

    resource: str
    """`Kind/name` of the source."""
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
            SourceNotReadable: listing fails, or a file is empty where its format has no such files.
            SourceFileUnmatched: a file does not begin with `sourceUriPrefix`.
            SnapshotValueInvalid: a captured value is NULL or not of its type.
            SparkNeeded: only Spark can list them, and `others` has none.
        """
        listed = list_files(self.declared.source_uri_globs, self.resource, self.others)
        files = only_live(listed, self.others)
        self._refuse_empty(files)
        if self.prefix is None:
            return tuple(CapturedFile(file, {}) for file in files)
        return self._captured(self.prefix, files)

    @cached_property
    def folders(self) -> tuple[CapturedFolder, ...] | None:
        """Folders that have files, if their paths capture every value of the prefix.

        None where that is in any doubt, or wrong: `files` then has the answer, or an error.

        Raises:
            SparkNeeded: as `files`.
        """
        if self.is_listed or self.prefix is None or not self.prefix.text.endswith("/"):
            return None
        folders = folders_with_files(self.declared.source_uri_globs, self.others)
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
            listed = files_of_folders(key, self.resource, self.others)
            self._refuse_empty(listed)
            by_folder = {each.folder.uri: each.values for each in folders}
            self._of_folders[key] = tuple(
                CapturedFile(file, by_folder[file.uri.rpartition("/")[0]]) for file in listed
            )
        return self._of_folders[key]

    @cached_property
    def _of_folders(self) -> dict[tuple[FileFolder, ...], tuple[CapturedFile, ...]]:
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
                hint="make sourceUriGlobs match fewer files, or the prefix more",
            )
        if invalid:
            raise SnapshotValueInvalid(
                f"{len(invalid)} of {len(files)} files have a path with a value that cannot be "
                "read",
                resource=self.resource,
                path="spec.hdfsLike.sourceUriPrefix",
                found=shown(invalid),
                expected=prefix.text,
                hint="rename the folders, or make sourceUriGlobs leave them out",
            )
        return tuple(captured)

    def _refuse_empty(self, files: Sequence[ListedFile]) -> None:
        if self.declared.format.lower() not in NEVER_EMPTY:
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
                hint="write them again, or remove them",
            )


def shown(items: Sequence[str]) -> str:
    """The first items, one a line, and the number of further ones."""
    more = [f"… and {len(items) - SHOWN} more"] if len(items) > SHOWN else []
    return "\n            ".join([*items[:SHOWN], *more])
