"""Sources by the names of their files: dates, parts, values of folders, and what is left out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snaploom.plugins.discovery.dates import Unit, date_of
from snaploom.plugins.discovery.foundfiles import list_files
from snaploom.plugins.discovery.layout import Layout, glob_of, layouts_of, table_folders
from snaploom.plugins.discovery.paths import Kind, parse_path

UUIDS_LIKE_DATES = [
    UUID(text)
    for text in (
        "4ffe9d9b-46f4-4ead-8d92-926c2024abcd",
        "20260203-46f4-4ead-8d92-926c0000abcd",
        "a2026b9b-2026-4ead-8d92-926c0000ab20",
        "abcdef9b-1234-4123-8212-202602031200",
    )
]
"""With digits that are a year, a day or a month outside of a UUID."""


def layouts(folder: Path, *names: str) -> dict[str, Layout]:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("a,b\n1,2\n")
    return {layout.name: layout for layout in layouts_of(list_files([str(folder)]).files)[0]}


@pytest.mark.parametrize(
    ("path", "name", "unit"),
    [
        ("2026-02-03/orders.csv", "orders", Unit.DAY),
        ("orders/2026-02-03.csv", "orders", Unit.DAY),
        ("orders/dt=2026-02-03/part-00000-c000.snappy.parquet", "orders", Unit.DAY),
        ("orders/2026/02/03/0001.csv.gz", "orders", Unit.DAY),
        ("orders/year=2026/month=2/day=3/data.json", "orders", Unit.DAY),
        ("orders/dt=2026-02-03/hour=00/x_1.csv", "orders", Unit.HOUR),
        ("orders_20260203.csv", "orders", Unit.DAY),
        ("orders-2026-02-03.jsonl", "orders", Unit.DAY),
        ("bestellungen_03.02.2026.csv", "bestellungen", Unit.DAY),
        ("export/orders_export_2026_02_03.tsv", "orders", Unit.DAY),
        ("orders/snapshot_epoch=1770076800000/a.parquet", "orders", Unit.SECOND),
        ("orders_20260203T000000Z.csv", "orders", Unit.SECOND),
    ],
)
def test_dates_in_paths_are_found(tmp_path: Path, path: str, name: str, unit: Unit) -> None:
    found = layouts(tmp_path, path)
    assert list(found) == [name]
    assert found[name].snapshots == (datetime(2026, 2, 3, tzinfo=UTC),)
    assert found[name].unit is unit


def test_months_and_years_begin_on_their_first_day(tmp_path: Path) -> None:
    found = layouts(tmp_path, "sales_2026-02.csv", "staff/2026.csv", "stock_202603.csv")
    starts = {name: layout.snapshots[0].date().isoformat() for name, layout in found.items()}
    assert starts == {"sales": "2026-02-01", "staff": "2026-01-01", "stock": "2026-03-01"}


@pytest.mark.parametrize(
    "months",
    [
        {1: (6, 7, 8, 10, 13)},
        {1: (2, 3, 4, 5, 9, 30), 2: (1, 2)},
        {2: range(1, 29)},
    ],
    ids=["a day is missing", "two months", "a whole month"],
)
@pytest.mark.parametrize("folder", ["2026/{:02}", "year=2026/month={}"])
def test_day_in_a_name_below_year_and_month_is_found(
    tmp_path: Path, months: dict[int, Sequence[int]], folder: str
) -> None:
    dates = [(month, day) for month, days in months.items() for day in days]
    names = [f"visits/{folder.format(month)}/visits-{day:02}.csv" for month, day in dates]
    found = layouts(tmp_path, *names)["visits"]
    assert found.unit is Unit.DAY
    assert [(time.month, time.day) for time in found.snapshots] == dates


@pytest.mark.parametrize(
    "months",
    [
        {1: range(1, 9)},
        {1: (3, 7)},
        {1: (2, 5, 8, 11, 14), 2: (2, 5, 8, 11, 14)},
        {2: (6, 7, 8, 10, 30)},
    ],
    ids=["counted from 1", "two numbers", "the same every month", "no day of February"],
)
def test_number_in_a_name_that_may_be_of_a_part_is_no_day(
    tmp_path: Path, months: dict[int, Sequence[int]]
) -> None:
    dates = [(month, day) for month, days in months.items() for day in days]
    names = [f"visits/2026/{month:02}/visits-{day:02}.csv" for month, day in dates]
    found = layouts(tmp_path, *names)["visits"]
    assert found.unit is Unit.MONTH
    assert len(found.snapshots) == len(months)


def test_files_that_differ_in_dates_and_parts_are_one_source(tmp_path: Path) -> None:
    days = [f"orders/2026-02-0{day}/part_{part}.csv" for day in (1, 2) for part in (1, 2)]
    found = layouts(tmp_path, *days, "orders_2.csv", "customers.csv")
    assert {name: len(layout.files) for name, layout in found.items()} == {
        "orders": 4,
        "orders_2": 1,
        "customers": 1,
    }


def test_a_table_whose_name_begins_like_a_part_is_a_table(tmp_path: Path) -> None:
    found = layouts(tmp_path, "part_categories.csv", "part_suppliers.csv", "sales/part-00000.csv",
                    "sales/part-00001.csv", "returns/part-r-00000.csv")  # fmt: skip
    assert set(found) == {"part_categories", "part_suppliers", "sales", "returns"}


@given(unique=st.uuids() | st.sampled_from(UUIDS_LIKE_DATES))
def test_a_uuid_in_a_name_is_no_date(unique: UUID) -> None:
    names = f"sales/part-00000-{unique}-c000.zstandard.avro", f"sales/{unique}_rows.csv"
    for name in (*names, f"dt=2026-02-03/{unique}.parquet"):
        kinds = [piece.kind for piece in parse_path(name).pieces]
        assert (Kind.DATE in kinds) == name.startswith("dt=")
        assert Kind.ANY in kinds


def test_a_number_that_is_no_date_is_no_date() -> None:
    assert date_of("20261345") is None
    assert date_of("99999999") is None
    assert date_of("123456") is None


def test_globs_match_the_files_of_their_own_source_only(tmp_path: Path) -> None:
    found = layouts(
        tmp_path, "order_20260203.csv", "order_returned.csv", "order_items_20260203.csv"
    )
    everything = [file for layout in found.values() for file in layout.files]
    globs = {name: glob_of(layout, everything) for name, layout in found.items()}
    assert globs["order"] == "order_[0-9]*.csv"
    assert globs["order_items"] == "order_items_????????.csv"


def test_junk_is_left_out_with_the_reason(tmp_path: Path) -> None:
    for name in ("README.md", "_SUCCESS", ".orders.csv.crc", "x.zip", "_tmp/orders.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "link.csv").symlink_to("/etc/passwd")
    listing = list_files([str(tmp_path)])
    found, left_out = layouts_of(listing.files)
    reasons = {each.what.rpartition("/")[2]: each.why for each in (*listing.left_out, *left_out)}
    assert found == ()
    assert set(reasons) == {"README.md", "x.zip", "orders.csv", "empty.csv", "link.csv"}
    assert reasons["link.csv"] == "a link, pipe or device, which is not followed"


@pytest.mark.parametrize(
    "path",
    ["orders_2026-W06.csv", "orders_2026w06.csv", "orders/week=2026-W06/a.csv",
     "2026W06/orders.csv", "orders_2026-KW06.csv", "orders/2026/W06/a.csv",
     "orders/year=2026/week=6/a.csv"],
)  # fmt: skip
def test_iso_weeks_begin_on_their_monday(tmp_path: Path, path: str) -> None:
    (found,) = layouts(tmp_path, path).values()
    assert found.unit is Unit.WEEK
    assert found.snapshots == (datetime(2026, 2, 2, tzinfo=UTC),)


def test_weeks_that_a_year_does_not_have_are_no_dates() -> None:
    assert date_of("2026-W53") is not None
    assert date_of("2025-W53") is None


def test_tables_and_own_outputs_are_no_folders_of_files(tmp_path: Path) -> None:
    found = layouts(
        tmp_path, "lake/_delta_log/0.json", "lake/a.parquet", "ice/metadata/v1.metadata.json",
        "ice/data/a.parquet", "wide/snaploom.json", "wide/data/t=1/a.parquet",
        "wide/iceberg/metadata/v1.metadata.json", "plain.csv",
    )  # fmt: skip
    assert list(found) == ["plain"]
    tables = table_folders(list_files([str(tmp_path)]).files)
    assert [(table.name, table.data_format) for table in tables] == [
        ("ice", "iceberg"),
        ("lake", "delta"),
    ]
