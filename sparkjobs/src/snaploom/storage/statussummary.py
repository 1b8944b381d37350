"""Summary of an output's manifest for its status: number of snapshots, and the newest."""

from __future__ import annotations

from itertools import islice

from snaploom.models.report import LatestSnapshot, ManifestPointer, PublishedSnapshot
from snaploom.models.times import format_instant
from snaploom.storage.entries import SnapshotRecord
from snaploom.storage.fixedsettings import fixed_in
from snaploom.storage.state import FolderState

SHOWN = 50
"""Snapshots, sources and joins in a status (rule R13)."""
LONGEST_WARNING = 1024
"""Characters that a status takes of one warning."""


def newest_snapshot(state: FolderState) -> LatestSnapshot | None:
    """Return the newest published snapshot in a status's size; None when there is none."""
    return _latest(state.snapshots[-1]) if state.snapshots else None


def published_snapshots(state: FolderState) -> tuple[PublishedSnapshot, ...]:
    """Return the newest published snapshots in short, newest first."""
    return tuple(
        PublishedSnapshot(time=format_instant(record.time), rows=record.rows)
        for record in islice(reversed(state.snapshots), SHOWN)
    )


def manifest_pointer(uri: str, state: FolderState) -> ManifestPointer:
    """Return the manifest's place and the newest entry that changed what readers see.

    Others, such as claims, are left out: outputs that read this one would run for nothing.
    """
    return ManifestPointer(uri=uri, sequence=state.changed_at, fixed=fixed_in(state))


def _latest(record: SnapshotRecord) -> LatestSnapshot:
    return LatestSnapshot(
        time=format_instant(record.time),
        published_at=format_instant(record.created_at),
        partition=record.partition,
        rows=record.rows,
        files=len(record.files),
        bytes=sum(file.bytes for file in record.files),
        sources=record.sources[:SHOWN],
        excluded=record.excluded[:SHOWN],
        joins=record.joins[:SHOWN],
        checks=record.checks[:SHOWN],
        warnings=tuple(warning[:LONGEST_WARNING] for warning in record.warnings[:SHOWN]),
    )
