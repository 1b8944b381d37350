"""Writing of Reports beside a run: the newest wins, failures are retried and logged."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from snaploom.models.report import Report, RunPhase
from snaploom.run.reports.writer import (
    FileReport,
    Patience,
    ReportNotOurs,
    ReportNotWritten,
    ReportWriter,
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
