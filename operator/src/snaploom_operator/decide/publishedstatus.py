"""Merges the published snapshots of a report into a status.

A report that is older than the status is ignored, since runs can be evaluated again.
"""

from __future__ import annotations

from snaploom.models.outputdataset import OutputDatasetStatus
from snaploom.models.report import Exclusion, LatestSnapshot, ManifestPointer, Report, RunPhase
from snaploom_operator.statuslimits import fit_items, fit_text, fit_texts

_SOURCES_BYTES = 3_000
_JOINS_BYTES = 2_000
_EXCLUDED_BYTES = 1_000
_WARNINGS_BYTES = 1_000
_SNAPSHOTS_BYTES = 3_200
_MESSAGE_BYTES = 100
_TEXT_BYTES = 300
_MOST = 50
"""Entries of a list in a status (rule R13)."""


def with_published(
    status: OutputDatasetStatus, report: Report, *, is_over: bool
) -> OutputDatasetStatus:
    """The status with the snapshots of a report; unchanged if the report is older.

    Until the run is over the pointer to the manifest stays: outputs that read this one run when it
    is done, and not after each of its snapshots.
    """
    if report.removed is not None and report.phase is RunPhase.SUCCEEDED:
        gone = ("latest_snapshot", "snapshot_count", "manifest")
        return status.model_copy(update={**dict.fromkeys(gone), "snapshots": ()})
    pointer, kept = report.manifest, status.manifest
    if pointer is None:
        return status
    if kept is not None and pointer.uri == kept.uri and pointer.sequence < kept.sequence:
        return status
    known = report.snapshot_count is not None
    latest = _bounded(report.newest) if report.newest is not None else None
    return status.model_copy(
        update={
            "latest_snapshot": latest if known or latest else status.latest_snapshot,
            "snapshots": fit_items(report.published[:_MOST], _SNAPSHOTS_BYTES)
            if known
            else status.snapshots,
            "snapshot_count": report.snapshot_count if known else status.snapshot_count,
            "manifest": _pointer(pointer) if is_over else kept,
        }
    )


def _bounded(newest: LatestSnapshot) -> LatestSnapshot:
    return newest.model_copy(
        update={
            "partition": fit_text(newest.partition, _TEXT_BYTES),
            "sources": fit_items(newest.sources[:_MOST], _SOURCES_BYTES),
            "excluded": fit_items(map(_shortened, newest.excluded[:_MOST]), _EXCLUDED_BYTES),
            "joins": fit_items(newest.joins[:_MOST], _JOINS_BYTES),
            "warnings": fit_texts(newest.warnings[:_MOST], _WARNINGS_BYTES, _TEXT_BYTES),
        }
    )


def _shortened(exclusion: Exclusion) -> Exclusion:
    return exclusion.model_copy(update={"message": fit_text(exclusion.message, _MESSAGE_BYTES)})


def _pointer(manifest: ManifestPointer) -> ManifestPointer:
    fixed = {key: text for key, text in manifest.fixed.items() if len(key) + len(text) <= 100}
    kept = dict(list(fixed.items())[:10])
    return manifest.model_copy(update={"fixed": kept})
