"""What is reported while a run goes on."""

from __future__ import annotations

import pytest

from snaploom.models.common import EpochNanos
from snaploom.models.report import (
    LatestSnapshot,
    ManifestPointer,
    PublishedSnapshot,
    Report,
    RunPhase,
    SnapshotReason,
    SnapshotReport,
    Unpublished,
)
from snaploom.run.reports.record import RunningReport
from snaploom.run.runevents import (
    Event,
    JoinPlanned,
    ManifestRead,
    RunPlanned,
    SnapshotLeftOut,
    SnapshotPublished,
    SnapshotStarted,
    TasksDone,
    Warned,
)

START = Report(
    output="wide",
    run_id="run",
    uid="uid",
    phase=RunPhase.RUNNING,
    started_at="2024-01-01T00:00:00Z",
)
PUBLISHED = SnapshotReport(
    time="2024-01-01T00:00:00Z", partition="day=1", rows=1, files=1, bytes=1, seconds=1, sequence=2
)
LEFT = Unpublished(
    time="2024-01-01T00:00:00Z", partition="day=1", reason=SnapshotReason.SNAPSHOT_MISSING
)
PLANNED = RunPlanned("wide", 12, 9)
THIRD = SnapshotStarted(3, 12, EpochNanos(0))


def report_after(*events: Event) -> Report:
    running = RunningReport(START)
    for event in events:
        running.take(event)
    return running.report


@pytest.mark.parametrize(
    ("events", "message"),
    [
        pytest.param([PLANNED], "12 snapshots due", id="planned"),
        pytest.param([PLANNED, THIRD], "snapshot 3 of 12", id="started"),
        pytest.param(
            [PLANNED, THIRD, JoinPlanned(4, 9, "f")], "snapshot 3 of 12, join 4 of 9", id="joined"
        ),
        pytest.param(
            [PLANNED, THIRD, JoinPlanned(9, 9, "f"), SnapshotStarted(4, 12, EpochNanos(0))],
            "snapshot 4 of 12",
            id="next",
        ),
    ],
)
def test_progress_counts_snapshots_and_joins(events: list[Event], message: str) -> None:
    progress = report_after(*events).progress
    assert progress is not None
    assert progress.message == message
    assert (progress.snapshots, progress.joins) == (12, 9)


def test_outcomes_so_far_are_in_the_report() -> None:
    report = report_after(
        PLANNED, SnapshotPublished(PUBLISHED), SnapshotLeftOut(LEFT, is_failure=False)
    )
    assert report.phase is RunPhase.RUNNING
    assert (report.snapshots, report.skipped, report.failed) == ((PUBLISHED,), (LEFT,), ())
    assert report_after(SnapshotLeftOut(LEFT, is_failure=True)).failed == (LEFT,)


def test_published_snapshots_so_far_are_in_the_report() -> None:
    newest = LatestSnapshot(
        time="2026-01-02T00:00:00Z", published_at="2026-01-03T00:00:00Z", partition="data/x",
        rows=3, files=1, bytes=10,
    )  # fmt: skip
    shown = (PublishedSnapshot(time="2026-01-02T00:00:00Z", rows=3),)
    pointer = ManifestPointer(uri="/out/", sequence=7)
    report = report_after(PLANNED, ManifestRead(pointer, newest, shown, 41))
    assert (report.phase, report.manifest, report.newest) == (RunPhase.RUNNING, pointer, newest)
    assert (report.published, report.snapshot_count) == (shown, 41)


@pytest.mark.parametrize("event", [TasksDone(1, 2), Warned("x"), RunPlanned("wide", 0, 9)])
def test_what_comes_often_or_means_little_changes_nothing(event: Event) -> None:
    assert report_after(event) == START


def test_files_of_an_index_are_progress() -> None:
    running = RunningReport(START)
    running.take_files(100, 2000)
    assert running.report.progress is not None
    assert running.report.progress.message == "file 100 of 2000"
