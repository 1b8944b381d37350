"""Parses `TIME`, `TIME@NUMBER` and `TIME@dry-run`, which choose a version of a snapshot."""

from __future__ import annotations

from dataclasses import dataclass

from snaploom.errors import ArgumentInvalid, ObjectNotFound
from snaploom.models.times import EpochNanos, format_instant
from snaploom.storage.entries import SnapshotRecord
from snaploom.storage.folder import Folder
from snaploom.storage.readchoice import Time, instant_of
from snaploom.storage.state import FolderState

DRY_RUN = "dry-run"
"""Text after the `@` of a snapshot that is woven and not published."""
_LISTED = "'snaploom snapshots' lists the times of snapshots, and numbers of manifests"


@dataclass(frozen=True, slots=True)
class VersionChoice:
    """One version of a snapshot."""

    time: EpochNanos
    """Snapshot time."""
    manifest: int | None = None
    """Sequence number as of which it is read; None for the newest."""
    is_dry_run: bool = False
    """Whether it is woven from the sources as they are now, and not read."""

    @classmethod
    def parse(cls, version: Time, argument: str) -> VersionChoice:
        """Parse a version, else `ArgumentInvalid` for `argument`."""
        if not isinstance(version, str) or "@" not in version:
            return cls(instant_of(version, argument))
        text, _, suffix = version.rpartition("@")
        if suffix == DRY_RUN:
            return cls(instant_of(text, argument), is_dry_run=True)
        if not (suffix.isascii() and suffix.isdigit() and 0 < len(suffix) < 19):
            raise ArgumentInvalid(
                "this is not a version of a snapshot",
                path=argument,
                found=version,
                expected=f"TIME, TIME@NUMBER with the number of a manifest, or TIME@{DRY_RUN}",
                hint=_LISTED,
            )
        return cls(instant_of(text, argument), int(suffix))

    def record(self, folder: Folder, newest: FolderState, argument: str) -> SnapshotRecord:
        """Return the record of a published version whose files exist.

        Raises:
            ArgumentInvalid: no snapshot of this time was live then.
            ObjectNotFound: there is no such manifest, or files of the version are removed.
        """
        state = newest if self.manifest is None else folder.log.read(self.manifest)
        if self.time not in state.versions:
            at = "" if self.manifest is None else f" at manifest {self.manifest}"
            raise ArgumentInvalid(
                f"no live snapshot has this time{at}",
                path=argument,
                found=format_instant(self.time),
                expected="the time of a published snapshot",
                hint=_LISTED,
            )
        record = state.live[self.time]
        live = newest.versions.get(self.time)
        if live is None or live.seq != record.seq:
            _refuse_removed(folder, record)
        return record


def _refuse_removed(folder: Folder, record: SnapshotRecord) -> None:
    for file in record.files:
        if folder.store.head(file.path) is None:
            raise ObjectNotFound(
                f"files of this version of {format_instant(record.time)} are removed",
                found=f"no {file.path}",
                expected="a version that is live, or ended less than `readerGrace` ago",
                hint="compare other versions; 'snaploom snapshots' shows which have ended",
            )
