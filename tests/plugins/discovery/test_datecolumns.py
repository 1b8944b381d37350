"""Dates in columns as the snapshots of a source: registers by day, events, and dates of neither."""

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from snaploom.models.datasource import DataSourceSpec, FromFieldValue, TimeFormat
from snaploom.plugins.discovery.dates import (
    DATE,
    LONG,
    STRING,
    TIMESTAMP,
    ColumnType,
    Unit,
    column_dates,
)
from snaploom.plugins.discovery.discover import Discovery, discover

DAYS = [date(2026, 3, 1) + timedelta(days=n) for n in range(6)]
Rows = list[dict[str, object]]


def found(folder: Path, root: str | None = None, **tables: Rows) -> Discovery:
    for name, rows in tables.items():
        pq.write_table(pa.Table.from_pylist(rows), folder / f"{name}.parquet")
    return discover([str(folder)], "file:///model/", root)


def spec(result: Discovery, name: str) -> DataSourceSpec:
    resources = {each.resource.name: each.resource for each in result.declarations.sources}
    declared = resources[name].spec
    assert isinstance(declared, DataSourceSpec)
    return declared


def snapshot(result: Discovery, name: str) -> FromFieldValue | None:
    declared = spec(result, name).hdfs_like
    return declared.snapshot.from_field_value


def sales(**columns: object) -> Rows:
    return [
        {"id": n, "store_id": n % 5 + 1, "amount": n / 4, **{k: f(n) for k, f in columns.items()}}
        for n in range(60)
    ]  # fmt: skip


def stores_by_day(name: str, days: list[date] = DAYS) -> Rows:
    return [{name: day, "store_id": n, "size": n} for day in days for n in range(1, 6)]


def test_a_register_that_is_copied_every_day_has_its_days_as_snapshots(tmp_path: Path) -> None:
    result = found(tmp_path, stores=stores_by_day("as_of"), sales=sales())
    settings = snapshot(result, "stores")
    assert (settings.field_name, settings.time_format) == ("as_of", TimeFormat.ISO8601_DATE)
    assert not settings.drop_field
    assert [r.parent for r in result.relationships.declared] == ["stores"]
    assert "store_id is unique within each day of it" in result.files["sources.yaml"]


def test_the_key_of_a_register_by_day_is_that_of_a_day(tmp_path: Path) -> None:
    stock = [{"snapshot_date": day, "store_id": s, "part_no": f"P{p}", "on_hand": 3}
             for day in DAYS for s in range(4) for p in range(5)]  # fmt: skip
    result = found(tmp_path, stock=stock)
    assert result.relationships.primary["stock"].columns == ("store_id", "part_no")
    assert snapshot(result, "stock") is not None


def test_rows_that_change_on_some_days_are_no_copies(tmp_path: Path) -> None:
    changes = [{"load_date": DAYS[n % 6], "store_id": n % 30, "size": n} for n in range(60)]
    assert snapshot(found(tmp_path, stores=changes, sales=sales()), "stores") is None


def test_events_at_the_root_are_divided_by_their_day(tmp_path: Path) -> None:
    result = found(tmp_path, sales=sales(sale_date=lambda n: DAYS[n % 6]))
    settings = snapshot(result, "sales")
    assert settings.field_name == "sale_date"
    assert "6 days of 60 rows, none without" in result.files["sources.yaml"]
    assert "6 snapshots, the first of 2026-03-01" in result.files["output.yaml"]


@pytest.mark.parametrize(("form", "pattern"), [("%d.%m.%Y", "dd.MM.yyyy"), ("%Y-%m", "yyyy-MM")])
def test_days_of_events_may_be_written_in_other_ways(tmp_path, form, pattern):
    months = [date(2026, 1 + n, 1) for n in range(6)]
    rows = sales(sale_date=lambda n: months[n % 6].strftime(form))
    settings = snapshot(found(tmp_path, sales=rows), "sales")
    assert (settings.time_format, settings.time_pattern) == (TimeFormat.PATTERN, pattern)


@pytest.mark.parametrize(
    ("form", "first", "guesses"),
    [("%m/%d/%Y", 9, 0), ("%-m/%-d/%y", 9, 0), ("%d.%m.%Y", 9, 0), ("%b %d %Y", 1, 0),
     ("%m/%d/%Y", 1, 1), ("%d.%m.%Y", 1, 1)],
)  # fmt: skip
def test_all_values_of_a_column_decide_its_order(tmp_path, form, first, guesses):
    days = [date(2026, 3, first + n) for n in range(6)]
    result = found(tmp_path, sales=sales(sale_date=lambda n: days[n % 6].strftime(form)))
    (profile,) = result.profiles
    assert [time.date() for time in profile.times] == days
    assert len(result.guesses) == guesses


def test_times_of_events_are_divided_by_a_query(tmp_path: Path) -> None:
    start = datetime(2026, 3, 1, 7, tzinfo=UTC)
    result = found(tmp_path, sales=sales(created_at=lambda n: start + timedelta(hours=n)))
    declared = spec(result, "sales").complex_virtual
    assert "date_trunc('DAY', `created_at`)" in declared.data_query
    assert spec(result, "sales-files").hdfs_like is not None


def test_events_below_a_root_keep_all_of_their_rows(tmp_path: Path) -> None:
    visits = [{"customer_id": n % 9 + 1, "visit_date": DAYS[n % 6]} for n in range(36)]
    customers = [{"id": n, "name": f"c{n}"} for n in range(1, 10)]
    result = found(tmp_path, "customers", customers=customers, visits=visits)
    assert [node.field for node in result.tree.nodes] == ["customers", "visits"]
    assert snapshot(result, "visits") is None


@pytest.mark.parametrize(
    "columns",
    [
        {"birth_date": lambda n: DAYS[n % 6]},
        {"sale_date": lambda n: DAYS[n % 6] if n else None},
        {"sale_date": lambda n: date(2020, 1, 1) + timedelta(days=n)},
        {"first_posted": lambda n: DAYS[n % 6], "sent_on": lambda n: DAYS[n % 5],
         "posted_on": lambda n: DAYS[n % 4]},
        {"valid_from": lambda n: DAYS[n % 6]},
    ],
    ids=["of birth", "with NULL", "as many as rows", "several", "of validity"],
)  # fmt: skip
def test_dates_of_something_else_are_no_snapshots(tmp_path, columns):
    assert snapshot(found(tmp_path, sales=sales(**columns)), "sales") is None


def test_a_calendar_is_no_register_of_its_weeks(tmp_path: Path) -> None:
    days = [date(2026, 3, 2) + timedelta(days=n) for n in range(70)]
    calendar = [
        {"cal_dt": day, "week_begin_dt": day - timedelta(days=day.weekday()), "dow_id": n % 7}
        for n, day in enumerate(days)
    ]
    assert snapshot(found(tmp_path, calendar=calendar, sales=sales()), "calendar") is None


SPRING = [date(2026, 3, 2) + timedelta(days=n) for n in range(70)]
SKY = {"sky": lambda n: "sun" if n % 3 else "rain"}


def by_day(name: str, days: Sequence[object] = SPRING, **columns: Callable[[int], object]) -> Rows:
    rows = range(len(days))
    return [{name: days[n]} | {each: value(n) for each, value in columns.items()} for n in rows]


@pytest.mark.parametrize(
    ("name", "table", "chosen"),
    [
        ("calendar", by_day("cal_dt", month=lambda n: n % 3), "calendar.cal_dt"),
        ("feast", by_day("iso", week=lambda n: n // 7, year=lambda n: 2026), "feast.iso"),
        ("weather", by_day("day", **SKY), "weather.day"),
        ("weather", by_day("on", **SKY), None),
        ("sums", by_day("day", paid=lambda n: n * 2), "nothing"),
        ("weather", by_day("day", SPRING[:30], **SKY), None),
        ("weather", [{"id": n, **row} for n, row in enumerate(by_day("day", **SKY))], None),
        ("moments", by_day("day", [datetime(2026, 3, 2, n % 7, n) for n in range(60)]), None),
    ],
)
def test_a_date_refers_to_a_list_of_days_by_a_guess(tmp_path, name, table, chosen):
    result = found(tmp_path, **{name: table}, sales=sales(day=lambda n: SPRING[n % 40 + 5]))
    days = {each.chosen for each in result.guesses if each.what == "sales.day refers to"}
    assert days == ({chosen} if chosen else set())
    declared = {one.target for one in result.relationships.declared}
    assert declared == ({chosen} & {f"{name}.{next(iter(table[0]))}"} if chosen else set())


def test_what_else_is_of_a_day_does_not_hang_below_it(tmp_path: Path) -> None:
    returns = [{"return_no": n, "day": SPRING[n % 30], "why": f"w{n}"} for n in range(90)]
    result = found(tmp_path, root="sales", calendar=by_day("day", month=lambda n: n % 3),
                   sales=sales(day=lambda n: SPRING[n % 40]), returns=returns)  # fmt: skip
    assert [node.table for node in result.tree.nodes] == ["sales", "calendar"]


@pytest.mark.parametrize(
    ("day", "key", "is_taken"),
    [("listed", "supply_no", True), ("start", "supply_no", False), ("listed", "code", False)],
)
def test_a_day_that_is_not_called_for_copies_is_a_guess(tmp_path, day, key, is_taken):
    rows = [{day: each, key: f"C{n}", "grams": n} for each in DAYS for n in range(5)]
    result = found(tmp_path, supplies=rows, sales=sales())
    assert (snapshot(result, "supplies") is not None) == is_taken
    assert (f"a guess: {key} is unique within" in result.files["sources.yaml"]) == is_taken


def test_days_that_could_be_meant_equally_are_named(tmp_path: Path) -> None:
    rows = sales(sent_on=lambda n: DAYS[n % 6], posted_on=lambda n: DAYS[n % 5])
    result = found(tmp_path, sales=rows)
    assert snapshot(result, "sales") is None
    assert "# could be divided by: sent_on, posted_on" in result.files["sources.yaml"]


@pytest.mark.parametrize(
    ("kind", "values", "unit", "time_format", "pattern"),
    [
        (DATE, pa.array(["2026-02-03"]), Unit.DAY, TimeFormat.ISO8601_DATE, None),
        (LONG, pa.array([20260203, None]), Unit.DAY, TimeFormat.PATTERN, "yyyyMMdd"),
        (STRING, pa.array(["20260203"]), Unit.DAY, TimeFormat.ISO8601_DATE, None),
        (STRING, pa.array(["03.02.2026"]), Unit.DAY, TimeFormat.PATTERN, "dd.MM.yyyy"),
        (STRING, pa.array(["2026-02"]), Unit.MONTH, TimeFormat.PATTERN, "yyyy-MM"),
        (STRING, pa.array(["2026-W06"]), Unit.WEEK, TimeFormat.PATTERN, "YYYY-'W'ww"),
        (TIMESTAMP, pa.array([datetime(2026, 2, 3)], pa.timestamp("us", "UTC")), Unit.DAY,
         TimeFormat.TIMESTAMP, None),
    ],
)  # fmt: skip
def test_days_of_a_column_are_read_as_the_engine_reads_them(
    kind: ColumnType, values: pa.Array, unit: Unit, time_format: TimeFormat, pattern: str | None
) -> None:
    dates = column_dates(kind, values)
    assert (dates.unit, dates.time_format, dates.time_pattern) == (unit, time_format, pattern)
    assert dates.is_exact
    assert dates.times[0].year == 2026


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (LONG, pa.array([1770076800])),
        (LONG, pa.array([202602])),
        (STRING, pa.array(["2026-02-03", "n/a"])),
        (STRING, pa.array(["2026"])),
        (DATE, pa.array([date(1900, 1, 1)])),
        (DATE, pa.array([date(1990, 1, 1) + timedelta(days=n) for n in range(4000)])),
    ],
)
def test_other_values_are_no_days_of_snapshots(kind: ColumnType, values: pa.Array) -> None:
    assert column_dates(kind, values) is None
