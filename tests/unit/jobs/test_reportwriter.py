"""Writing of Reports beside a run: the newest wins, failures are retried and logged."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
from snaploom.run.reports.writer import (
    FileReport,
    Patience,
    ReportNotOurs,
    ReportNotWritten,
    ReportWriter,
)
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

QUICK = Patience(
    between_writes=0.01, first_pause=0.01, longest_pause=0.05, at_the_end=10, when_interrupted=10
)
DEADLINE = 20.0


def a_report(name: str, phase: RunPhase = RunPhase.RUNNING) -> Report:
    return Report(output=name, run_id="run", phase=phase, started_at="2024-01-01T00:00:00Z")


class Sink:
    """Keeps what is written; fails first, as given."""

    def __init__(self, *failures: ReportNotWritten) -> None:
        self.written: list[Report] = []
        self.failures = list(failures)
        self.attempts = 0
        self.gate = threading.Event()
        self.gate.set()

    def write(self, report: Report) -> None:
        assert self.gate.wait(DEADLINE)
        self.attempts += 1
        if self.failures:
            raise self.failures.pop(0)
        self.written.append(report)

    @contextmanager
    def held(self) -> Iterator[None]:
        self.gate.clear()
        yield
        self.gate.set()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_last_report_is_written_when_the_run_ends() -> None:
    sink = Sink()
    writer = ReportWriter(sink, print, QUICK)
    writer.offer(a_report("first"))
    wait_until(lambda: bool(sink.written))
    last = a_report("last", RunPhase.SUCCEEDED)
    assert writer.finish(last)
    assert sink.written == [a_report("first"), last]


def test_reports_that_come_faster_than_they_are_written_are_left_out() -> None:
    sink = Sink()
    writer = ReportWriter(sink, print, QUICK)
    with sink.held():
        for number in range(100):
            writer.offer(a_report(str(number)))
    assert writer.finish(a_report("last"))
    assert len(sink.written) <= 3
    assert sink.written[-1] == a_report("last")


def test_equal_reports_are_written_once() -> None:
    sink = Sink()
    writer = ReportWriter(sink, print, QUICK)
    for _ in range(20):
        writer.offer(a_report("same"))
        wait_until(lambda: bool(sink.written))
    assert writer.finish(a_report("same"))
    assert sink.written == [a_report("same")]


def test_writes_keep_their_distance() -> None:
    sink = Sink()
    writer = ReportWriter(sink, print, Patience(between_writes=3600))
    writer.offer(a_report("first"))
    wait_until(lambda: bool(sink.written))
    writer.offer(a_report("second"))
    # The end does not wait for the hour to pass.
    assert writer.finish(a_report("last"))
    assert sink.written == [a_report("first"), a_report("last")]


def test_failure_is_logged_once_and_retried() -> None:
    logged: list[str] = []
    sink = Sink(*(ReportNotWritten("no answer") for _ in range(3)))
    writer = ReportWriter(sink, logged.append, QUICK)
    assert writer.finish(a_report("last"))
    assert sink.attempts == 4
    assert [line.partition("\n")[0] for line in logged] == ["warning no answer"]


@pytest.mark.parametrize("phase", [RunPhase.FAILED, RunPhase.INTERRUPTED])
def test_patience_ends(phase: RunPhase) -> None:
    logged: list[str] = []
    sink = Sink(*(ReportNotWritten("no answer") for _ in range(10_000)))
    impatient = Patience(first_pause=0.01, longest_pause=0.01, at_the_end=0.1, when_interrupted=0.1)
    assert not ReportWriter(sink, logged.append, impatient).finish(a_report("last", phase))
    assert logged[-1] == "the last Report is not written; what the run did stands in the manifest"


def test_what_belongs_to_another_run_is_not_tried_again() -> None:
    logged: list[str] = []
    sink = Sink(ReportNotOurs("it belongs to another run"))
    writer = ReportWriter(sink, logged.append, Patience(at_the_end=3600))
    writer.offer(a_report("first"))
    assert not writer.finish(a_report("last"))
    assert sink.attempts == 1
    assert logged[0].startswith("warning it belongs to another run")


def test_file_holds_the_newest_report(tmp_path) -> None:
    path = tmp_path / "report.json"
    writer = ReportWriter(FileReport(path), print, QUICK)
    last = a_report("last", RunPhase.SUCCEEDED)
    assert writer.finish(last)
    assert Report.model_validate_json(path.read_text("utf-8")) == last
    assert list(tmp_path.iterdir()) == [path]


def test_file_that_cannot_be_written_is_an_error(tmp_path) -> None:
    with pytest.raises(ReportNotWritten, match="No such file"):
        FileReport(tmp_path / "absent" / "report.json").write(a_report("x"))


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
