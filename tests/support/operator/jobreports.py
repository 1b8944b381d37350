"""Reports for tests of the operator, and their ConfigMap exactly as a job writes it."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from kubernetes.client import ApiClient, ApiException, Configuration, V1ConfigMap

from snaploom.models.report import (
    IndexFacts,
    LatestSnapshot,
    ManifestPointer,
    Progress,
    PublishedSnapshot,
    Removed,
    Report,
    RunPhase,
    SeenSource,
    SnapshotReport,
)
from snaploom.models.skippingindex import IndexedFiles, IndexState
from snaploom.run.clusterobjects import ConfigMapPlace, ConfigMapReport
from snaploom.run.joblog import Owner, RunIdentity

Raw = dict[str, Any]
STARTED = "2024-05-01T00:00:00Z"
FINISHED = "2024-05-01T00:10:00Z"


def report(phase: RunPhase = RunPhase.SUCCEEDED, **facts: Any) -> Report:
    """A Report of no owner yet: that is filled in when it is written."""
    finished = None if phase is RunPhase.RUNNING else FINISHED
    return Report(
        **{"output": "", "run_id": "", "started_at": STARTED, "finished_at": finished} | facts,
        phase=phase,
    )


def published(*times: str, rows: int = 100, sequence: int = 1, **facts: Any) -> Report:
    """A run that published snapshots; without times, one of 2024-05-01."""
    moments = times or ("2024-05-01T00:00:00Z",)
    return report(
        **{
            "snapshots": tuple(
                SnapshotReport(
                    time=time,
                    partition=f"day={time[:10]}",
                    rows=rows,
                    files=1,
                    bytes=rows * 10,
                    seconds=1.5,
                    sequence=sequence + number,
                )
                for number, time in enumerate(moments)
            ),
            "newest": LatestSnapshot(
                time=moments[-1],
                published_at=FINISHED,
                partition=f"day={moments[-1][:10]}",
                rows=rows,
                files=1,
                bytes=rows * 10,
            ),
            "published": tuple(PublishedSnapshot(time=t, rows=rows) for t in reversed(moments)),
            "snapshot_count": len(moments),
            "manifest": ManifestPointer(uri="/out/", sequence=sequence + len(moments) - 1),
            "seen": (SeenSource(source="customers", latest_snapshot=moments[-1], snapshots=3),),
        }
        | facts
    )


def nothing_due() -> Report:
    """A run that found nothing to publish."""
    return report(snapshot_count=0)


def progressing(snapshot: int = 1, snapshots: int = 2, message: str = "") -> Report:
    """A run under way."""
    text = message or f"snapshot {snapshot} of {snapshots}"
    progress = Progress(snapshot=snapshot, snapshots=snapshots, message=text)
    return report(RunPhase.RUNNING, progress=progress)


def failed(
    message: str = "a source cannot be read",
    reason: str = "SourceNotReadable",
    retryable: bool = True,
) -> Report:
    """A run that failed."""
    return report(RunPhase.FAILED, message=message, reason=reason, retryable=retryable)


def indexed(state: IndexState = IndexState.ACTIVE, stale: int = 0) -> Report:
    """A run that refreshed an index."""
    files = IndexedFiles(indexed=4, stale=stale, missing=0)
    return report(index=IndexFacts(state=state, files=files, bytes=400, done=("refreshed",)))


def removed(files: int = 3) -> Report:
    """A run that deleted what was published."""
    return report(removed=Removed(files=files, bytes=files * 10), snapshot_count=0)


def report_manifest(written: Report, namespace: str, name: str, owner: Owner, run: str) -> Raw:
    """The ConfigMap that a job of this Snaploom writes; labels name the run, whatever is in it."""
    recorder = _Recorder()
    identity = RunIdentity(run, written.uid, written.attempt or 0)
    place = ConfigMapPlace(namespace, name)
    ConfigMapReport(place, owner, identity, lambda: recorder).write(written)  # type: ignore[arg-type,return-value]
    plain: Raw = ApiClient(Configuration()).sanitize_for_serialization(recorder.written)
    return plain


class _Recorder:
    """The two calls of a job's first Report, answered by a cluster without one."""

    written: V1ConfigMap | None = None

    def read_namespaced_config_map(self, *_: Any, **__: Any) -> V1ConfigMap:
        raise ApiException(status=HTTPStatus.NOT_FOUND)

    def create_namespaced_config_map(self, _: str, body: V1ConfigMap, **__: Any) -> V1ConfigMap:
        self.written = body
        return body
