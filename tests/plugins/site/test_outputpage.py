"""What a page has of an output: from declarations and manifest, without data."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from support.site.histories import DAY, HOURLY, START, Events, declarations, write_history

from snaploom.files.stores import open_store
from snaploom.models.common import EpochNanos, format_instant
from snaploom.models.report import Report, RunPhase
from snaploom.output import layout
from snaploom.plugins.site.document import output_document
from snaploom.plugins.site.pagedata import OutputPage
from snaploom.plugins.site.pages import Clock, declared_pages, folder_page
from snaploom.plugins.site.timeline import lanes_of
from snaploom.run.declarations import read_declarations
from snaploom.run.reports.writer import keep_run

NOW = EpochNanos(START + 90 * DAY + DAY // 2)


def day(number: int) -> EpochNanos:
    return EpochNanos(START + number * DAY)


@pytest.fixture(scope="module")
def page(eventful: Path) -> OutputPage:
    (found,) = declared_pages(read_declarations([eventful]), ["orders-wide"], Clock(NOW))
    return found


def test_gaps_are_intervals_that_nobody_published_or_deleted(page: OutputPage) -> None:
    assert [(gap.start, gap.end, gap.intervals) for gap in page.gaps] == [
        (day(20), day(22), 2),
        (day(55), day(56), 1),
    ]


def test_retention_takes_next_what_is_beyond_the_number(page: OutputPage) -> None:
    assert len(page.snapshots) == 85
    assert [(one.time, one.rule.value) for one in page.going] == [
        (day(number), "maxOldSnapshots") for number in range(2, 6)
    ]


def test_lanes_count_each_kind_of_event(page: OutputPage) -> None:
    assert {lane.name: lane.count for lane in lanes_of(page)} == {
        "published": 85, "missing": 3, "restated": 1, "doubtful": 1, "going": 4, "deleted": 2,
    }  # fmt: skip


def test_change_of_schema_names_columns_types_and_tree(page: OutputPage) -> None:
    (change,) = page.schema_changes
    assert change.time == day(10)
    assert [one.name for one in change.added] == [
        "customer.region.data.country", "customer.region.data.name",
    ]  # fmt: skip
    assert [(one.name, one.type, before) for one, before in change.retyped] == [
        ("data.amount", "decimal(12,2)", "decimal(10,2)")
    ]
    assert change.model == ("region: added",)


def test_checks_count_snapshots_that_met_them(page: OutputPage) -> None:
    (check,) = page.checks
    assert (check.met, check.unmet, check.last_unmet) == (84, 1, day(40))
    assert check.measured == "3 rows below zero"


def test_node_has_key_columns_and_measures_of_the_newest_snapshot(page: OutputPage) -> None:
    region = next(node for node in page.nodes if node.field_name == "region")
    assert (region.parent, region.keys, region.group_by) == ("customer", ("country",), ("country",))
    assert [column.name for column in region.columns] == ["country", "name"]
    assert region.measure.matched < region.measure.in_


def test_lineage_leads_from_a_path_to_a_dataset(page: OutputPage) -> None:
    line = next(one for one in page.lineage if one.column == "customer.region.data.name")
    assert (line.source, line.origin) == ("regions", "name")
    assert "array by country" in line.through
    assert line.places[0].endswith("/regions")


def test_freshness_runs_out_two_days_after_the_publication(page: OutputPage) -> None:
    assert not page.is_stale
    assert page.freshness.expires is not None
    assert replace(page, now=page.freshness.expires).is_stale


def test_folder_without_declarations_has_what_its_manifest_records(eventful: Path) -> None:
    page = folder_page(f"{eventful / 'out'}/", Clock(NOW))
    assert page.name == "orders-wide"
    assert page.picture is not None
    assert [node.title for node in page.nodes] == ["orders", "customer", "product", "region"]
    assert (len(page.snapshots), page.gaps, page.lineage) == (85, (), ())


def test_output_that_never_ran_is_drawn_and_stale(tmp_path: Path) -> None:
    declarations(tmp_path, tmp_path / "out")
    (page,) = declared_pages(read_declarations([tmp_path]), ["orders-wide"], Clock(NOW))
    assert page.picture is not None
    assert (page.snapshots, page.problem, page.is_stale) == ((), "", True)


def test_lost_schema_costs_its_columns_only(tmp_path: Path) -> None:
    write_history(tmp_path / "out", 3, Events(gaps=(), deleted=(), restated=()))
    declarations(tmp_path, tmp_path / "out")
    for file in (tmp_path / "out/metadata/schema").glob("*.json"):
        file.unlink()
    (page,) = declared_pages(read_declarations([tmp_path]), ["orders-wide"], Clock(NOW))
    assert len(page.snapshots) == 3
    assert {node.columns for node in page.nodes} == {()}


def test_folder_that_cannot_be_read_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "other").write_text("somebody else's")
    declarations(tmp_path, tmp_path / "out")
    (page,) = declared_pages(read_declarations([tmp_path]), ["orders-wide"], Clock(NOW))
    assert "not an output folder" in page.problem
    assert [finding.code for finding in page.findings] == ["SL192"]


def test_snapshots_that_are_due_are_no_gaps(tmp_path: Path) -> None:
    write_history(tmp_path / "out", 3, Events(gaps=(), deleted=(), restated=()))
    declarations(tmp_path, tmp_path / "out")
    for name in ("orders", "customers", "products", "regions"):
        (tmp_path / name).mkdir()
        for number in (0, 1, 2, 3, 4, 6):
            (tmp_path / name / f"2024-01-{number + 1:02}.parquet").write_bytes(b"PAR1")
    (page,) = declared_pages(read_declarations([tmp_path]), ["orders-wide"], Clock(NOW))
    assert (page.due.times, page.due.problem) == ((day(3), day(4), day(6)), "")
    assert [(gap.start, gap.end) for gap in page.gaps] == [(day(5), day(6))]
    (asked_of_the_past,) = declared_pages(
        read_declarations([tmp_path]), ["orders-wide"], Clock(NOW, is_present=False)
    )
    assert asked_of_the_past.due is None


def test_runs_are_those_of_the_folder_and_of_reports(tmp_path: Path) -> None:
    write_history(tmp_path / "out", 3, Events(gaps=(), deleted=(), restated=()))
    declarations(tmp_path, tmp_path / "out")
    store = open_store(str(tmp_path / "out"), create=False)
    reports = [
        Report(output="orders-wide", run_id=name, phase=RunPhase.FAILED, message=name,
               started_at=format_instant(day(number)), finished_at=format_instant(day(number + 1)))
        for number, name in enumerate(("first", "second", "third"))
    ]  # fmt: skip
    for report in reports[:2]:
        keep_run(store, report, ('{"a": 1}',))
    (page,) = declared_pages(
        read_declarations([tmp_path]), ["orders-wide"], Clock(NOW), reports[1:]
    )
    assert [run.run_id for run in page.runs] == ["third", "second", "first"]
    assert [run.sample for run in page.runs] == [(), ('{"a": 1}',), ()]
    assert ">1 d<" in output_document(page)


@pytest.mark.parametrize("note", [b"", b"no JSON", b'{"format": 9}', b'{"format": 1, "runs": 3}'])
def test_damaged_note_of_runs_costs_the_runs_only(tmp_path: Path, note: bytes) -> None:
    write_history(tmp_path / "out", 3, Events(gaps=(), deleted=(), restated=()))
    declarations(tmp_path, tmp_path / "out")
    (tmp_path / "out" / layout.RUNS).write_bytes(note)
    (page,) = declared_pages(read_declarations([tmp_path]), ["orders-wide"], Clock(NOW))
    assert (len(page.snapshots), page.runs) == (3, ())


@pytest.mark.slow
def test_page_of_a_long_history_stays_light(tmp_path: Path) -> None:
    write_history(tmp_path / "out", 10_000, HOURLY)
    declarations(tmp_path, tmp_path / "out")
    (page,) = declared_pages(read_declarations([tmp_path]), ["orders-wide"], Clock(NOW))
    document = output_document(page)
    assert len(document) < 700_000
    # All snapshots are there as data; elements are bounded.
    assert document.count("<tr>") < 200
    assert max(map(len, re.findall(r' d="([^"]*)"', document))) < 12_000
