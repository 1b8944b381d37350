"""Reports of other versions, and what they share with statuses."""

from __future__ import annotations

from snaploom.models.outputdataset import OutputDatasetStatus
from snaploom.models.report import LatestSnapshot, PublishedSnapshot, Report

FIRST_VERSION = {
    "format": 1,
    "output": "wide",
    "uid": "",
    "runId": "20240315T000000000Z-5be2a84c07d1",
    "phase": "SUCCEEDED",
    "startedAt": "2024-03-15T00:00:00Z",
    "finishedAt": "2024-03-15T00:00:12Z",
    "planHash": "4ce5",
    "manifest": {"uri": "file:///tmp/wide/", "sequence": 2},
    "snapshots": [],
    "skipped": [],
    "failed": [],
    "findings": [],
    "message": "",
    "toolVersion": "0.1.0",
    "sparkVersion": "4.3.0",
    "session": {},
}


def test_report_of_the_first_version_is_read() -> None:
    report = Report.parse(FIRST_VERSION)
    assert (report.reason, report.retryable, report.snapshot_count) == ("", None, None)
    assert Report.parse(report.dump()) == report


def test_snapshots_of_a_report_are_those_of_a_status() -> None:
    newest = LatestSnapshot(
        time="2024-01-01T00:00:00Z", published_at="2024-01-01T00:00:00Z", partition="day=1",
        rows=1, files=1, bytes=1,
    )  # fmt: skip
    short = (PublishedSnapshot(time=newest.time, rows=newest.rows),)
    facts = {"newest": newest.dump(), "published": [one.dump() for one in short]}
    report = Report.parse({**FIRST_VERSION, "snapshotCount": 1, **facts})
    status = OutputDatasetStatus(
        latest_snapshot=report.newest,
        snapshots=report.published,
        snapshot_count=report.snapshot_count,
    )
    assert (status.latest_snapshot, status.snapshots) == (newest, short)
