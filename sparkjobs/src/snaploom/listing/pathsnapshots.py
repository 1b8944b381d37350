"""Snapshots in paths of files: enumerated by names, without opening one.

Where paths of folders hold them, only folders are enumerated, and the files of a snapshot are
listed when they are read: in a source of a million files most are of days that no run reads again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

from snaploom.errors import SnapshotValueInvalid
from snaploom.listing.capturedfiles import CapturedFile, CapturedFolder, FileListing, shown
from snaploom.listing.globs import glob_below
from snaploom.listing.instants import (
    EXPECTED,
    NotAnInstant,
    instant_of,
    instant_of_date_time,
    month_hint,
)
from snaploom.models.datasource import FromFieldValue, TimeFormat
from snaploom.models.times import EpochNanos
from snaploom.planning.intervals import SourceSnapshots
from snaploom.planning.prefix import Capture, CapturedValue, normal_uri


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
        globs = self.listing.declared.source_uri_globs
        found = [glob_below(glob, folder) for glob in globs for folder in folders]
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
        """Files of each snapshot.

        Raises:
            SnapshotValueInvalid: a path has none.
            SourceError: the files cannot be listed.
        """
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
                hint=month_hint(wrong, in_paths=True)
                or "correct timeFormat or the names, or make sourceUriGlobs leave them out",
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
