"""Writing of Reports beside a run: the newest wins, failures are retried and logged."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.runner.quick import examples

from snaploom.models.common import EpochNanos
from snaploom.models.findings import make_finding
from snaploom.models.report import (
    IndexFacts,
    JoinMeasure,
    LatestSnapshot,
    ManifestPointer,
    PublishedSnapshot,
    Report,
    RunPhase,
    SeenSource,
    SnapshotReason,
    SnapshotReport,
    SourceSnapshot,
    Unpublished,
)
from snaploom.models.skippingindex import IndexState
from snaploom.run.reports.record import RunningReport
from snaploom.run.reports.writer import (
    LARGEST_REPORT,
    FileReport,
    Patience,
    ReportNotOurs,
    ReportNotWritten,
    ReportWriter,
    compact,
    fitting,
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
    assert running.report.progress.message == "file 100 of 2000"


# Reports that are too large for a ConfigMap.


SMALLEST = 100_000
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def a_snapshot(number: int, sources: int = 0, text: str = "") -> SnapshotReport:
    return SnapshotReport(
        time=f"2024-01-01T00:00:00.{number:06d}Z", partition=f"day={number}", rows=1, files=1,
        bytes=1, seconds=0.5, sequence=number,
        sources=tuple(
            SourceSnapshot(field_name=f"f{i}", source=text, time="2024-01-01T00:00:00Z")
            for i in range(sources)
        ),
        joins=tuple(
            JoinMeasure(child=f"f{i}", in_=1, out=1, matched=1, null_keys=0)
            for i in range(sources)
        ),
    )  # fmt: skip


def left_out(number: int, text: str = "") -> Unpublished:
    return Unpublished(
        time=f"2024-01-01T00:00:00.{number:06d}Z",
        partition=f"day={number}",
        reason=SnapshotReason.FAILED,
        message=text,
    )


def a_long_report(**parts: object) -> Report:
    known = {
        "output": "wide",
        "run_id": "run",
        "phase": RunPhase.FAILED,
        "started_at": "2024-01-01T00:00:00Z",
        "reason": "SourceNotReadable",
        "message": "it broke",
    }
    return Report.model_validate(known | parts)


def size(report: Report) -> int:
    return len(compact(report).encode())


@st.composite
def reports(draw: st.DrawFn) -> Report:
    text = draw(texts)
    counts = st.integers(0, 200)
    sources = draw(st.integers(0, 12))
    return a_long_report(
        snapshots=tuple(a_snapshot(n, sources, text * 20) for n in range(draw(counts))),
        skipped=tuple(left_out(n, text * 20) for n in range(draw(counts))),
        failed=tuple(left_out(n, text * 800) for n in range(draw(st.integers(0, 80)))),
        findings=tuple(make_finding("SL191", text * 50) for n in range(draw(counts))),
        seen=tuple(SeenSource(source=text * 25) for n in range(draw(counts))),
        session=dict.fromkeys(map(str, range(draw(st.integers(0, 256)))), text * 100),
        message=draw(st.sampled_from(["", text, text * 800])),
        index=IndexFacts(state=IndexState.ACTIVE, warnings=(text * 500,) * draw(st.integers(0, 99)))
        if draw(st.booleans())
        else None,
    )


@settings(deadline=None, max_examples=examples(25))
@given(report=reports(), limit=st.integers(SMALLEST, LARGEST_REPORT))
def test_any_report_fits_and_counts_what_is_left_out(report: Report, limit: int) -> None:
    fitted = fitting(report, limit)
    assert size(fitted) <= limit
    assert Report.parse(fitted.dump()) == fitted
    assert (fitted == report) == (size(report) <= limit) == (not fitted.truncated)
    kept = ("output", "run_id", "phase", "started_at", "reason", "manifest")
    assert all(getattr(fitted, name) == getattr(report, name) for name in kept)


def test_details_of_the_oldest_snapshots_go_first() -> None:
    report = a_long_report(snapshots=tuple(a_snapshot(n, 50, "s" * 50) for n in range(200)))
    fitted = fitting(report)
    assert len(fitted.snapshots) == 200
    detailed = [bool(snapshot.sources) for snapshot in fitted.snapshots]
    assert detailed == sorted(detailed)
    assert detailed[-1]
    assert not detailed[0]
    assert fitted.truncated == (f"snapshots: details of the oldest {detailed.count(False)} of 200",)


def test_then_the_longest_list_loses_its_oldest() -> None:
    skipped = tuple(left_out(n, "x" * 100) for n in range(9000))
    failed = tuple(left_out(n, "y" * 100) for n in range(10))
    fitted = fitting(a_long_report(skipped=skipped, failed=failed))
    assert fitted.failed == failed
    assert fitted.skipped == skipped[-len(fitted.skipped) :]
    gone = 9000 - len(fitted.skipped)
    assert fitted.truncated == (f"skipped: the oldest {gone} of 9000",)


def test_first_failure_stays_longest() -> None:
    failed = tuple(left_out(n, "x" * 30_000) for n in range(100))
    fitted = fitting(a_long_report(failed=failed))
    assert fitted.failed == failed[: len(fitted.failed)]
    assert fitted.failed


def test_newest_snapshot_with_many_names_fits_too() -> None:
    newest = LatestSnapshot(
        time="2024-01-01T00:00:00Z", published_at="2024-01-01T00:00:00Z", partition="day=1",
        rows=1, files=1, bytes=1,
        sources=tuple(
            SourceSnapshot(field_name="\x00" * 1000, source="\x00" * 1000, time="2024-01-01")
            for _ in range(50)
        ),
    )  # fmt: skip
    fitted = fitting(a_long_report(newest=newest), SMALLEST)
    assert size(fitted) <= SMALLEST
    assert fitted.newest.rows == 1


@pytest.mark.parametrize("count", [0, 10])
def test_report_that_fits_is_not_touched(count: int) -> None:
    report = a_long_report(snapshots=tuple(a_snapshot(n, 3) for n in range(count)))
    assert fitting(report) is report
