"""The files of all sources of one run, each listed once."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain

from pydantic import JsonValue

from snaploom import sources
from snaploom.files.listed import ListedFile, OtherFiles, SparkNeeded, fingerprint
from snaploom.files.objectstore import STORE_FAILURES, ObjectStore
from snaploom.files.stores import open_store
from snaploom.installed import PackageMissing
from snaploom.models.common import NANOS_PER_MILLISECOND, EpochNanos, format_instant
from snaploom.models.fieldtransformer import FieldTransformer, MetadataApplicator
from snaploom.output.documents import HINT, TABLE_VERSION, get_bounded, parse_object
from snaploom.plan.bundle import Bundle
from snaploom.plan.intervals import READ_TIME, SourceSnapshots
from snaploom.sources.declared import DeclaredSource
from snaploom.sources.files.declared import FileSource
from snaploom.sources.files.globs import list_files
from snaploom.sources.files.snapshots import (
    CapturedFile,
    FileListing,
    only_live,
    path_snapshots,
    shown,
)
from snaploom.sources.registry import declared
from snaploom.sources.tables.declared import TableSource

# Checks whether an Iceberg table has a version, by the metadata document in its folder.

_PLACE = re.compile(r"[a-z][a-z0-9+.-]*:/.*[^/]/*", re.DOTALL)
_LOCAL = "file:"
_VERSION = "metadata/v{}.metadata.json"
_COMPRESSED = ("metadata/v{}.gz.metadata.json", "metadata/v{}.metadata.json.gz")
_HINTED = re.compile(rb"([1-9][0-9]{0,17})\s*")
_NONE = -1
"""Iceberg's snapshot id for "no snapshot"."""


def iceberg_snapshots(source: TableSource, others: OtherFiles) -> SourceSnapshots | None:
    """Snapshots of a table; None, or `SparkNeeded`, where only Spark can enumerate them."""
    place = source.place
    if source.format != "iceberg" or not source.is_read_now or not _PLACE.fullmatch(place):
        return None
    try:
        is_local = place.startswith(_LOCAL)
        store = open_store(place, create=False) if is_local else others.store(place, False)
        return READ_TIME if _has_snapshot(_newest(store)) else SourceSnapshots()
    except (ValueError, *STORE_FAILURES) as error:
        raise SparkNeeded(f"{place}: {error}") from error


def _newest(store: ObjectStore) -> Mapping[str, JsonValue]:
    hint = _HINTED.fullmatch(get_bounded(store, "metadata/version-hint.text", HINT))
    if hint is None:
        raise ValueError("the hint is no number")
    number = int(hint[1])
    while store.head(_VERSION.format(number + 1)) is not None:
        number += 1
    for version in (number, number + 1):
        if any(store.head(form.format(version)) is not None for form in _COMPRESSED):
            raise ValueError("a version is compressed")
    key = _VERSION.format(number)
    document = get_bounded(store, key, TABLE_VERSION)
    return parse_object(document, f"{store.uri}{key}", TABLE_VERSION)


def _has_snapshot(document: Mapping[str, JsonValue]) -> bool:
    refs, current = document.get("refs"), document.get("current-snapshot-id", _NONE)
    if "format-version" not in document or not isinstance(current, int | None):
        raise ValueError("no metadata of a table")
    has_current = current not in (None, _NONE)
    if refs is None:
        return has_current
    if not isinstance(refs, dict) or ("main" in refs) is not has_current:
        raise ValueError("the branches of the table contradict its current snapshot")
    return has_current


# Files of all sources of one run, each listed once.


class SourceFiles:
    """The files of sources."""

    def __init__(self, others: OtherFiles) -> None:
        self.others = others
        self._listings: dict[str, FileListing] = {}

    def of(self, source: FileSource) -> FileListing:
        """Files of a source; listed on demand."""
        return self.like(FileListing(source.source.identity, source.declared, self.others))

    def like(self, listing: FileListing) -> FileListing:
        """Files of a listing's source; listed on demand."""
        return self._listings.setdefault(listing.resource, listing.asking_anew(self.others))

    def asking(self, others: OtherFiles) -> SourceFiles:
        """The same files, with others to list the rest."""
        files = SourceFiles(others)
        files._listings.update(
            (resource, listing.asking(others))
            for resource, listing in self._listings.items()
            if listing.is_enumerated
        )
        return files


@dataclass(frozen=True)
class Change:
    """Difference between a source and its listing."""

    resource: str
    path: str
    """Field that gives its place."""
    found: str
    """State now."""
    expected: str
    """State when it was listed."""
    is_of_read: bool
    """Whether what was read is no longer there; otherwise there is only more beside it."""


@dataclass(frozen=True)
class ReadFiles:
    """Files of snapshots, as they were listed before one of them was opened."""

    listing: FileListing
    read: tuple[CapturedFile, ...]
    snapshots: tuple[EpochNanos, ...] = ()
    """Times, where paths hold them; empty where each file of the source may have rows of them."""
    notes: tuple[str, ...] = ()
    """Remarks about their columns."""

    @property
    def resource(self) -> str:
        return self.listing.resource

    @property
    def fingerprint(self) -> str:
        """Changes with any of the files."""
        return fingerprint(each.file for each in self.read)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Warnings about columns, and files without a byte: the writer may not have finished."""
        empty = [each.file.uri for each in self.read if not each.file.length]
        count = f"{len(empty)} of {len(self.read)} files"
        zero = f"{count} have zero bytes, and no rows: {shown(empty)}"
        return tuple(f"{self.resource}: {note}" for note in (*[zero][: len(empty)], *self.notes))

    def change(self, now: SourceFiles) -> Change | None:
        """List once more and return the difference, if any; `SourceError` if listing fails."""
        listed = self.read if self.snapshots else self.listing.files
        known = {each.file.uri: each.file for each in listed}
        found = {file.uri: file for file in self._listed(now)}
        if found == known:
            return None
        lost = [each.file for each in self.read if found.get(each.file.uri) != each.file]
        others = [file for file in found.values() if known.get(file.uri) != file]
        gone = [file for file in known.values() if file.uri not in found]
        return Change(
            self.resource,
            "spec.hdfsLike.sourceUriGlobs",
            shown([*map(_described, others), *(f"{file.uri} is gone" for file in gone)]),
            shown([_described(file) for file in lost] or ["no more files than were listed"]),
            bool(lost),
        )

    def _listed(self, now: SourceFiles) -> Iterable[ListedFile]:
        listing = now.like(self.listing)
        by_path = path_snapshots(listing) if self.snapshots else None
        if by_path is None:
            return (each.file for each in listing.files)
        globs = by_path.globs_of(self.read)
        if globs:
            return only_live(list_files(globs, self.resource, now.others), now.others)
        found = (each for time in self.snapshots for each in by_path.files_of(time))
        return (each.file for each in found)


def _described(file: ListedFile) -> str:
    when = format_instant(EpochNanos(file.modified * NANOS_PER_MILLISECOND))
    return f"{file.uri}: {file.length} bytes of {when}{', tag ' * bool(file.etag)}{file.etag}"


def file_snapshots(listing: FileListing) -> SourceSnapshots | None:
    """Snapshots of files that need not be opened; None where a column holds the snapshots.

    Raises:
        SnapshotValueInvalid: a path has none.
        SparkNeeded: only Spark can list them.
    """
    if listing.declared.snapshot.from_field_value is None:
        return listing.at_read_time
    snapshots = path_snapshots(listing)
    return None if snapshots is None else snapshots.listed


def enumerated_source(bundle: Bundle, name: str) -> DeclaredSource:
    """The source whose snapshots a source has: itself, or the one that it is a query over."""
    source = declared(bundle.source(name))
    while source.snapshots_of is not None:
        source = declared(bundle.source(source.snapshots_of))
    return source


def listed_without_spark(bundle: Bundle, name: str, files: SourceFiles) -> SourceSnapshots | None:
    """Snapshots of a source; None if only Spark can enumerate them. Raises as `file_snapshots`."""
    source = enumerated_source(bundle, name)
    if isinstance(source, TableSource):
        return iceberg_snapshots(source, files.others)
    if not isinstance(source, FileSource):
        return None
    listing = files.of(source)
    found = file_snapshots(listing)
    return _of_column(listing) if found is None else found


def _of_column(listing: FileListing) -> SourceSnapshots | None:
    try:
        found = sources.column_snapshots
    except PackageMissing:
        return None  # nor is Spark there, whose absence is what people should learn of
    return found(listing)


# Size of a snapshot's files, before anything is read.


def snapshot_bytes(
    bundle: Bundle, name: str, snapshots: Iterable[EpochNanos], files: SourceFiles
) -> int | None:
    """Bytes of the files of snapshots; None where they are not read from files only.

    Where a column holds the snapshots these are the bytes of all files, each of which may have
    some of its rows.

    Raises:
        SparkNeeded: only Spark can list them.
    """
    source = enumerated_source(bundle, name)
    if not isinstance(source, FileSource):
        return None
    listing = files.of(source)
    by_path = path_snapshots(listing)
    if by_path is None:
        return sum(each.file.length for each in listing.files)
    return sum(each.file.length for time in snapshots for each in by_path.files_of(time))


# Fingerprints of snapshots, as runs record them: compared with what is there now.


def shaped_fingerprint(read: str, shapes: Iterable[FieldTransformer | MetadataApplicator]) -> str:
    """The fingerprint of a source's data in its final shape, from that of what is read."""
    specs = [shape.spec.model_dump_json() for shape in shapes]
    return _digest("\n".join([read, *specs])) if specs else read


def shapes_of(
    bundle: Bundle, name: str
) -> tuple[tuple[FieldTransformer, ...], tuple[MetadataApplicator, ...]]:
    """The transformers and the applicators of a source, in their order."""
    variant = bundle.source(name).spec.variant
    transformers = {one.name: one for one in bundle.field_transformers}
    applicators = {one.name: one for one in bundle.metadata_applicators}
    return (
        tuple(transformers[used] for used in variant.field_transformers),
        tuple(applicators[used] for used in variant.metadata_applicators),
    )


def queried_fingerprint(below: str, query: str) -> str:
    """The fingerprint of a query over a snapshot of another source."""
    return _digest(f"{below}\n{query}")


def joint_fingerprint(prints: Iterable[tuple[EpochNanos, str]]) -> str:
    """The fingerprint of snapshots that are read together, from time and fingerprint of each."""
    return _digest("\n".join(f"{time} {text}" for time, text in prints))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def snapshot_fingerprint(
    bundle: Bundle, name: str, snapshot: EpochNanos, files: SourceFiles
) -> str | None:
    """The fingerprint that a run would record of a snapshot now.

    None where there is nothing to compare: its files are gone, or are not its own, since a column
    or the time of reading makes the snapshots.

    Raises:
        SparkNeeded: only Spark can list them.
    """
    source = declared(bundle.source(name))
    if source.snapshots_of is not None:
        below = snapshot_fingerprint(bundle, source.snapshots_of, snapshot, files)
        query = source.query(snapshot)
        read = None if below is None or query is None else queried_fingerprint(below, query.text)
    elif isinstance(source, FileSource):
        by_path = path_snapshots(files.of(source))
        found = () if by_path is None else by_path.files_of(snapshot)
        read = fingerprint(each.file for each in found) if found else None
    else:
        read = None
    return None if read is None else shaped_fingerprint(read, chain(*shapes_of(bundle, name)))
