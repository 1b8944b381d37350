"""Forecasts of `plan` for every candidate, by schemas of files and by retention, come true."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from support.declared.declarations import Raw
from support.declared.shop import CUSTOMERS, ORDERS, Shop, snaploom

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

DAYS = tuple(f"2024-05-0{number}" for number in range(1, 6))
OTHER_TYPE = [{"customer_id": "10", "name": "Ada"}]
NAMELESS = [{"id": 10, "name": "Ada"}]


def shop_of(folder: Path, **spoilt: list[dict[str, object]]) -> Shop:
    """Five days, on some of which customers have another schema."""
    shop = Shop(folder)
    for day in DAYS:
        shop.day("orders", ORDERS, day)
        shop.day("customers", spoilt.get(f"day{day[-1]}", CUSTOMERS), day)
    return shop


def promised(shop: Shop) -> dict[str, str]:
    """Outcome by day: PUBLISH, or the reason why not."""
    result = shop.plan("-o", "json")
    assert result.document["candidates"] is not None, result.err
    return {
        one["time"][:10]: "PUBLISH" if one["action"] == "PUBLISH" else one["reason"]
        for one in result.document["candidates"]
    }


def kept(shop: Shop) -> dict[str, str]:
    report = shop.run("-o", "json").document
    left = {one["time"][:10]: one["reason"] for one in (*report["skipped"], *report["failed"])}
    return left | {one["time"][:10]: "PUBLISH" for one in report["snapshots"]}


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("ERROR", ["PUBLISH", "PUBLISH", "JOIN_FIELD_MISSING", "EARLIER_FAILURE",
                   "EARLIER_FAILURE"]),
        ("SKIP_WARN", ["PUBLISH", "PUBLISH", "JOIN_FIELD_MISSING", "PUBLISH",
                       "JOIN_FIELD_MISSING"]),
        ("CONTINUE_WARN", ["PUBLISH"] * 5),
    ],
)  # fmt: skip
def test_a_key_of_another_type_is_forecast(tmp_path: Path, mode: str, expected: list[str]) -> None:
    shop = shop_of(tmp_path, day3=OTHER_TYPE, day5=NAMELESS).other(joinFieldMissingMode=mode)
    foreseen = promised(shop)
    assert foreseen == dict(zip(DAYS, expected, strict=True))
    assert kept(shop) == foreseen


def decimals(name: str, precision: int, scale: int) -> pa.Table:
    values = [Decimal(text) for text in ("1.5", "-2.25", "7")]
    column = pa.array(values, pa.decimal128(precision, scale))
    return pa.table({name: column, "number": [1, 2, 3]})


def test_keys_that_the_declared_type_holds_are_forecast_and_joined_without_loss(tmp_path):
    shop = shop_of(tmp_path).other(joinFieldMissingMode="SKIP_WARN")
    kind = {"decimal": {"precision": 10, "scale": 4}}
    key = [{"fields": [{"fieldName": "rate", "dataType": kind}]}]
    sides = [{"dataSources": ["orders", "customers"], "joinKey": key}]
    shop.set("customer-id", "representations", sides)
    scales = [(10, 4), (5, 2), (12, 2), (38, 4), (8, 2)]
    for day, (precision, scale) in zip(DAYS, scales, strict=True):
        shop.day("orders", decimals("rate", 10, 4), day)
        shop.day("customers", decimals("RATE", precision, scale), day)
    foreseen = promised(shop)
    assert [foreseen[day] for day in DAYS] == [
        "PUBLISH", "PUBLISH", "JOIN_FIELD_MISSING", "PUBLISH", "PUBLISH"
    ]  # fmt: skip
    assert kept(shop) == foreseen
    rows = duckdb.sql(
        f"select count(*), count(customers), count_if(data.number = customers.data.number) "
        f"from read_parquet('{shop.published}/data/**/*.parquet')"
    )
    assert rows.fetchall() == [(12, 12, 12)]


def test_a_failure_known_from_schemas_is_shown_with_the_rest_on_one_line(tmp_path: Path) -> None:
    result = shop_of(tmp_path, day1=OTHER_TYPE).plan()
    lines = result.out.splitlines()
    assert result.code == 1
    failing = next(line for line in lines if line.startswith("FAIL"))
    for text in ("customer_id", "string", "DataSource/customers"):
        assert text in failing
    (more,) = [line for line in lines if " more, " in line]
    assert more.split()[0] == "3"
    assert "left for the next run" in more


def test_a_run_that_fails_reports_the_rest_once(tmp_path: Path) -> None:
    result = shop_of(tmp_path, day1=OTHER_TYPE).run()
    (more,) = [line for line in result.out.splitlines() if " more, " in line]
    assert more.split()[:2] == ["3", "more,"]
    assert "EARLIER_FAILURE" in more
    assert result.out.count("skipped ") == 1


def test_snapshots_deleted_by_a_run_are_those_that_plan_and_diff_show(tmp_path: Path) -> None:
    shop = shop_of(tmp_path)
    assert shop.run("--limit", "3").code == 0
    shop.set("wide", "outputFolder.snapshotAutoDelete", {"maxOldSnapshots": 1})
    deletes = [one["time"] for one in shop.plan("-o", "json").document["deletes"]]
    compared = snaploom("diff", "wide", "-f", shop.model, "-o", "json").document["differences"]
    before = shop.published_times()
    assert shop.run().code == 0
    gone = sorted(set(before) - set(shop.published_times()))
    assert gone == sorted(deletes)
    assert [one["before"] for one in compared] == [", ".join(gone)]


@pytest.mark.parametrize("mode", ["FAIL", "WARN"])
def test_types_that_contradict_what_is_published_are_foreseen_as_it_happens(tmp_path, mode):
    shop = shop_of(tmp_path).set("wide", "outputFolder.incompatibleSchema", mode)
    assert shop.run("--limit", "2").code == 0
    shop.day("orders", [{**row, "order_id": "a"} for row in ORDERS], DAYS[3])
    foreseen = promised(shop)
    failing = ["PUBLISH", "HISTORY_INCOMPATIBLE", "EARLIER_FAILURE"]
    assert list(foreseen.values()) == (["PUBLISH"] * 3 if mode == "WARN" else failing)
    assert kept(shop) == foreseen


def test_what_is_deleted_on_the_way_contradicts_nothing(tmp_path: Path) -> None:
    """Text on day 1 goes once day 3 is there; day 2 has no such column."""
    shop = shop_of(tmp_path)
    for day, row in zip(DAYS, [{"order_id": "a"}, {}, {}, {"order_id": 7}, {}], strict=True):
        shop.day("orders", [{"customer_id": 10, **row}], day)
    assert shop.run("--limit", "1").code == 0
    for day in DAYS[3:]:
        (tmp_path / "orders" / f"{day}.parquet").unlink()
    assert shop.run().code == 0
    shop.day("orders", [{"customer_id": 10}], DAYS[3])
    shop.day("orders", [{"customer_id": 10, "order_id": 7}], DAYS[4])
    shop.set("wide", "outputFolder.snapshotAutoDelete", {"maxOldSnapshots": 2})
    foreseen = promised(shop)
    assert foreseen == dict.fromkeys(DAYS[3:], "PUBLISH")
    assert kept(shop) == foreseen


def test_columns_that_the_format_cannot_hold_are_foreseen_as_it_happens(tmp_path: Path) -> None:
    shop = shop_of(tmp_path).set("wide", "outputFolder.dataFormat", "AVRO")
    shop.day("orders", [{"customer_id": 10, "a b": 1}], DAYS[1])
    foreseen = promised(shop)
    assert list(foreseen.values())[:3] == ["PUBLISH", "SOURCE_FAILED", "EARLIER_FAILURE"]
    assert kept(shop) == foreseen


def declared(**types: str) -> list[Raw]:
    return [{"name": name, "dataType": {type_: {}}} for name, type_ in types.items()]


CUSTOMER_FIELDS = declared(customer_id="long", name="string")
NUMBERED = [{"customer_id": 10, "name": 7}]


def test_a_declared_type_that_files_do_not_have_is_forecast(tmp_path: Path) -> None:
    shop = shop_of(tmp_path, day3=NUMBERED)
    shop.set("customers", "hdfsLike.schemaFields", CUSTOMER_FIELDS)
    foreseen = promised(shop)
    assert [foreseen[day] == "PUBLISH" for day in DAYS] == [True, True, False, False, False]
    assert foreseen[DAYS[4]] == "EARLIER_FAILURE"
    failing = next(line for line in shop.plan().out.splitlines() if line.startswith("FAIL"))
    assert "2024-05-03" in failing
    assert kept(shop) == foreseen


def test_the_second_of_two_files_of_a_snapshot_is_looked_at_too(tmp_path: Path) -> None:
    shop = shop_of(tmp_path)
    shop.set("customers", "hdfsLike.schemaFields", CUSTOMER_FIELDS)
    folder = f"file://{tmp_path}/customers"
    shop.set("customers", "hdfsLike.sourceUriGlobs", [f"{folder}/*.parquet"])
    shop.set("customers", "hdfsLike.sourceUriPrefix", f"{folder}/{{day:STRING}}.{{part:STRING}}.")
    for day in DAYS:
        (tmp_path / "customers" / f"{day}.parquet").unlink()
        shop.day("customers", CUSTOMERS, f"{day}.a")
    shop.day("customers", NUMBERED, f"{DAYS[1]}.b")
    foreseen = promised(shop)
    assert [foreseen[day] == "PUBLISH" for day in DAYS] == [True, False, False, False, False]
    assert kept(shop) == foreseen


def test_a_narrower_type_and_a_column_that_is_not_declared_are_no_failure(tmp_path: Path) -> None:
    narrow = pa.table({"customer_id": pa.array([10], pa.int32()), "name": [7]})
    shop = shop_of(tmp_path)
    shop.day("customers", narrow, DAYS[2])
    shop.set("customers", "hdfsLike.schemaFields", declared(customer_id="long"))
    foreseen = promised(shop)
    assert foreseen == dict.fromkeys(DAYS, "PUBLISH")
    assert kept(shop) == foreseen


@pytest.mark.parametrize("form", ["orc", "avro"])
def test_declared_types_of_orc_and_avro_are_forecast(tmp_path, spark, form):
    shop = shop_of(tmp_path)
    folder = f"file://{tmp_path}/customers"
    writer = "org.apache.spark.sql.avro.AvroFileFormat" if form == "avro" else form
    for day in DAYS:
        rows = [(10, 7.5)] if day == DAYS[2] else [(10, date(2024, 5, 1))]
        frame = spark.createDataFrame(rows, ["customer_id", "name"])
        frame.coalesce(1).write.format(writer).save(f"{folder}/{day}")
    shop.set("customers", "hdfsLike.format", form)
    shop.set("customers", "hdfsLike.sourceUriGlobs", [f"{folder}/*/part-*"])
    shop.set("customers", "hdfsLike.sourceUriPrefix", f"{folder}/{{day:STRING}}/")
    shop.set("customers", "hdfsLike.schemaFields", declared(customer_id="long", name="date"))
    foreseen = promised(shop)
    assert foreseen[DAYS[2]] == "SOURCE_FAILED"
    assert kept(shop) == foreseen


@pytest.mark.parametrize(
    ("name", "prefix", "text"),
    [
        ("2024-05-01", "{date:STRING}", "day"),
        ("May1", "{day:STRING}", "May1"),
        ("2024-05-01", "{day:LONG}", "day"),
    ],
)
def test_a_capture_without_a_time_is_the_same_error_of_plan_and_run(tmp_path, name, prefix, text):
    shop = shop_of(tmp_path)
    shop.day("customers", CUSTOMERS, name)
    place = f"file://{tmp_path}/customers/{prefix}.parquet"
    shop.set("customers", "hdfsLike.sourceUriPrefix", place)
    planned, ran = shop.plan(), shop.run()
    assert (planned.code, ran.code) != (0, 0)
    assert planned.code == ran.code
    assert text in planned.err
    assert planned.err.splitlines()[1].strip() in ran.err


def test_plan_reports_that_undeclared_columns_of_csv_are_not_forecast(tmp_path):
    shop = Shop(tmp_path).with_data()
    (tmp_path / "orders" / "2024-05-01.csv").write_text("customer_id\n10\n")
    place = f"file://{tmp_path}/orders"
    shop.set("orders", "hdfsLike.format", "csv").set(
        "orders", "hdfsLike.formatOptions", {"header": "true"}
    )
    shop.set("orders", "hdfsLike.sourceUriGlobs", [f"{place}/*.csv"])
    shop.set("orders", "hdfsLike.sourceUriPrefix", f"{place}/{{day:STRING}}.csv")
    (line,) = [each for each in shop.plan().out.splitlines() if each.startswith("UNKNOWN")]
    assert line.startswith("UNKNOWN orders: columns and types, which csv")
    shop.set("orders", "hdfsLike.schemaFields", declared(customer_id="long"))
    assert shop.plan("-o", "json").document["unforeseen"] == []
