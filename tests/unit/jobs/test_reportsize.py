"""Reports that are too large for a ConfigMap."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.runner.quick import examples

from snaploom.models.findings import make_finding
from snaploom.models.report import (
    IndexFacts,
    JoinMeasure,
    LatestSnapshot,
    Report,
    RunPhase,
    SeenSource,
    SnapshotReason,
    SnapshotReport,
    SourceSnapshot,
    Unpublished,
)
from snaploom.models.skippingindex import IndexState
from snaploom.run.reports.writer import LARGEST_REPORT, compact, fitting

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


def a_report(**parts: object) -> Report:
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
    return a_report(
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
    report = a_report(snapshots=tuple(a_snapshot(n, 50, "s" * 50) for n in range(200)))
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
    fitted = fitting(a_report(skipped=skipped, failed=failed))
    assert fitted.failed == failed
    assert fitted.skipped == skipped[-len(fitted.skipped) :]
    gone = 9000 - len(fitted.skipped)
    assert fitted.truncated == (f"skipped: the oldest {gone} of 9000",)


def test_first_failure_stays_longest() -> None:
    failed = tuple(left_out(n, "x" * 30_000) for n in range(100))
    fitted = fitting(a_report(failed=failed))
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
    fitted = fitting(a_report(newest=newest), SMALLEST)
    assert size(fitted) <= SMALLEST
    assert fitted.newest is not None
    assert fitted.newest.rows == 1


@pytest.mark.parametrize("count", [0, 10])
def test_report_that_fits_is_not_touched(count: int) -> None:
    report = a_report(snapshots=tuple(a_snapshot(n, 3) for n in range(count)))
    assert fitting(report) is report
