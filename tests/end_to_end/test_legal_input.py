"""Legal input that looks invalid: what is published, and which warnings are shown."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from support.declared.declarations import simple
from support.declared.shop import (
    CUSTOMERS,
    FIRST_DAY,
    ORDERS,
    SECOND_DAY,
    CommandResult,
    Shop,
    day_source,
    done,
    same_key,
    snaploom,
    wide,
    write_rows,
)

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

FIRST, SECOND = f"{FIRST_DAY}T00:00:00Z", f"{SECOND_DAY}T00:00:00Z"


def rows(shop: Shop) -> list[dict[str, Any]]:
    """Every published row, in the order of `order_id`."""
    files = [file for file in shop.data_files() if file.endswith(".parquet")]
    tables = [parquet.ParquetFile(shop.published / file).read() for file in files]
    listed = [row for table in tables for row in table.to_pylist()]
    return sorted(listed, key=lambda row: row["data"]["order_id"])


def join_of(result: CommandResult) -> dict[str, Any]:
    (snapshot,) = result.document["snapshots"]
    return snapshot["joins"][0]


def test_a_duplicate_key_that_nothing_matches_is_no_fault(tmp_path: Path) -> None:
    shop = Shop(tmp_path).with_data()
    shop.day("customers", [*CUSTOMERS, *({"customer_id": 77, "name": n} for n in "ab")])
    join = join_of(done(shop.run("-o", "json")))
    assert (join["in"], join["out"], join["matched"]) == (3, 3, 2)


def test_null_keys_match_nothing_and_are_counted(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.day("orders", [*ORDERS, {"order_id": 4, "customer_id": None, "amount": 1.0}])
    shop.day("customers", [*CUSTOMERS, *({"customer_id": None, "name": n} for n in "ab")])
    join = join_of(done(shop.run("-o", "json")))
    assert (join["in"], join["out"], join["matched"], join["nullKeys"]) == (4, 4, 2, 1)
    assert [row["customers"] is None for row in rows(shop)] == [False, False, True, True]


def test_text_that_is_no_number_is_a_null_key(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    key = {"fields": [{"fieldName": "customer_id", "dataType": {"string": {}}}]}
    component = key | {"castDataType": {"integer": {}}}
    shop.set("customer-id", "representations.0.joinKey", [component])
    ids = ("10", "a", " 11 ")
    shop.day("orders", [{"order_id": n, "customer_id": i} for n, i in enumerate(ids)])
    shop.day("customers", [{"customer_id": i, "name": i} for i in ("10", "a", "11")])
    join = join_of(done(shop.run("-o", "json")))
    assert (join["matched"], join["nullKeys"]) == (2, 1)
    assert [row["customers"] and row["customers"]["data"]["name"] for row in rows(shop)] == [
        "10", None, "11",
    ]  # fmt: skip


MODES = ["CONTINUE_IGNORE", "CONTINUE_WARN", "SKIP_IGNORE", "SKIP_WARN"]


def assert_mode(shop: Shop, result: CommandResult, mode: str, reason: str) -> None:
    """Check the second day's row of the truth table in log, Report and manifest."""
    report = result.document
    assert ("warning" in result.err) is mode.endswith("WARN"), result.err
    if mode.startswith("SKIP"):
        assert [(s["time"], s["reason"]) for s in report["skipped"]] == [(SECOND, reason)]
        assert shop.published_times() == [FIRST]
        return
    assert report["skipped"] == []
    reported = report["snapshots"][1]["excluded"]
    assert [(e["fieldName"], e["reason"]) for e in reported] == [("customers", reason)]
    listed = snaploom("snapshots", shop.published, "-o", "json").document["snapshots"]
    assert [(e["fieldName"], e["reason"]) for e in listed[1]["excluded"]] == [("customers", reason)]
    assert listed[0]["excluded"] == []
    assert "customers" not in parquet_columns(shop, listed[1])


def parquet_columns(shop: Shop, snapshot: dict[str, Any]) -> list[str]:
    path = shop.published / snapshot["files"][0]["path"]
    return parquet.ParquetFile(path).schema_arrow.names


@pytest.mark.parametrize("mode", MODES)
def test_a_missing_snapshot(tmp_path: Path, mode: str) -> None:
    shop = Shop(tmp_path).with_data().other(snapshot={"snapshotMissingMode": mode})
    shop.day("orders", ORDERS, SECOND_DAY)
    planned = done(shop.plan("-o", "json")).document["candidates"][1]
    skips = mode.startswith("SKIP")
    assert planned["action"] == ("SKIP" if skips else "PUBLISH")
    assert planned["reason"] == ("SNAPSHOT_MISSING" if skips else "NEW_SNAPSHOT")
    excluded = [] if skips else [{"fieldName": "customers", "reason": "SNAPSHOT_MISSING"}]
    assert planned["excluded"] == excluded
    assert_mode(shop, done(shop.run("-o", "json")), mode, "SNAPSHOT_MISSING")


@pytest.mark.parametrize("mode", MODES)
def test_a_missing_join_field(tmp_path: Path, mode: str) -> None:
    shop = Shop(tmp_path).with_data().other(joinFieldMissingMode=mode)
    shop.day("orders", ORDERS, SECOND_DAY)
    shop.day("customers", [{"id": 10, "name": "Ada"}], SECOND_DAY)
    assert_mode(shop, done(shop.run("-o", "json")), mode, "JOIN_FIELD_MISSING")


@pytest.mark.parametrize("mode", MODES)
def test_a_missing_group_field(tmp_path: Path, mode: str) -> None:
    grouping = {"fieldNames": ["customer_id"], "groupByFieldMissingMode": mode}
    shop = Shop(tmp_path).with_data().other(transformations={"groupBy": grouping})
    shop.other(joinFieldMissingMode=mode)
    shop.day("orders", ORDERS, SECOND_DAY)
    shop.day("customers", [{"id": 10, "name": "Ada"}], SECOND_DAY)
    result = done(shop.run("-o", "json"))
    entry = result.document["skipped"] or result.document["snapshots"][1]["excluded"]
    assert entry[0]["reason"] in ("GROUP_BY_FIELD_MISSING", "JOIN_FIELD_MISSING")
    assert_mode(shop, result, mode, entry[0]["reason"])


@pytest.mark.parametrize("mode", MODES[:2])
def test_a_missing_path(tmp_path: Path, mode: str) -> None:
    shop = Shop(tmp_path).with_data()
    people = {"dataSource": "people", "fieldName": "people", "pathMissingMode": mode}
    shop.documents[3:] = [day_source(tmp_path, "people"), wide(tmp_path, "customers", people)]
    planned = done(shop.plan("-o", "json"))
    assert planned.document["unreachable"] == [
        {"fieldName": "people", "source": "people", "mode": mode}
    ]
    result = done(shop.run("-o", "json"))
    for one in (planned, result):
        assert ("warning SL303" in one.err) is (mode == "CONTINUE_WARN"), one.err
    (snapshot,) = result.document["snapshots"]
    excluded = [(e["fieldName"], e["reason"]) for e in snapshot["excluded"]]
    assert excluded == [("people", "PATH_MISSING")]
    assert "people" not in rows(shop)[0]


def test_an_empty_snapshot_is_published_with_no_rows(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.day("orders", pa.Table.from_pylist([dict(row) for row in ORDERS]).slice(0, 0))
    shop.day("customers", CUSTOMERS)
    (snapshot,) = done(shop.run("-o", "json")).document["snapshots"]
    assert (snapshot["rows"], snapshot["joins"][0]["matched"]) == (0, 0)
    assert snapshot["warnings"] == ["it has no rows: DataSource/orders has none of its time"]
    assert shop.published_times() == [FIRST]


@pytest.mark.parametrize("is_declared", [True, False])
def test_a_csv_that_gains_moves_and_loses_columns_is_published_by_name(tmp_path, is_declared):
    shop = Shop(tmp_path).with_data()
    kinds = {"order_id": "long", "customer_id": "long", "note": "string"}
    fields = [{"name": name, "dataType": kind} for name, kind in kinds.items()]
    options = {"header": "true", "inferSchema": "true"}
    shop.set("orders", "hdfsLike.format", "csv").set("orders", "hdfsLike.formatOptions", options)
    if is_declared:
        shop.set("orders", "hdfsLike.schemaFields", fields)
    (tmp_path / "orders" / f"{FIRST_DAY}.parquet").write_text("order_id,customer_id\n1,10\n")
    second = "note,customer_id,order_id\nlate,11,2\n"
    (tmp_path / "orders" / f"{SECOND_DAY}.parquet").write_text(second)
    (tmp_path / "orders" / "2024-05-03.parquet").write_text("order_id,customer_id\n3,10\n")
    for day in (SECOND_DAY, "2024-05-03"):
        shop.day("customers", CUSTOMERS, day)

    result = done(shop.run("-o", "json"))

    found = [(row["data"]["order_id"], row["data"].get("note")) for row in rows(shop)]
    assert found == [(1, None), (2, "late"), (3, None)]
    warnings = [w for one in result.document["snapshots"] for w in one["warnings"] if "note" in w]
    (warning,) = warnings
    expected = "have no column `note`" if is_declared else "are gone, and NULL from here on"
    assert expected in warning


def test_a_snapshot_in_the_future_is_no_candidate(tmp_path: Path) -> None:
    shop = Shop(tmp_path).with_data()
    shop.day("orders", ORDERS, "2024-07-01")
    (candidate,) = done(shop.plan("-o", "json")).document["candidates"]
    assert candidate["time"] == FIRST


@pytest.mark.parametrize(
    ("zone", "start", "day", "candidate"),
    [
        ("Europe/Berlin", {"month": 3, "day": 31, "hour": 2, "minute": 30}, "2024-03-31",
         "2024-03-31T00:00:00Z"),
        ("America/Sao_Paulo", {"year": 2018, "month": 11, "day": 4}, "2018-11-04",
         "2018-11-04T00:00:00Z"),
        ("Europe/Berlin", {"month": 10, "day": 27, "hour": 2, "minute": 30}, "2024-10-27",
         "2024-10-27T00:00:00Z"),
    ],
)  # fmt: skip
def test_intervals_may_start_where_clocks_change(tmp_path, zone, start, day, candidate):
    shop = Shop(tmp_path)
    shop.day("orders", ORDERS, "2025-01-15")
    shop.day("orders", ORDERS, day)
    shop.day("customers", CUSTOMERS, day)
    shop.other(snapshot={"timeBefore": {"year": 10}})
    interval = "dataModel.rootDataSource.snapshotFilter.fromInterval.intervalStartDate"
    for name, value in {**start, "timezone": zone}.items():
        shop.set("wide", f"{interval}.{name}", value)
    result = snaploom(
        "plan", "wide", "-f", shop.write(), "--now", "2025-02-01T00:00:00Z", "-o", "json"
    )
    times = [one["time"] for one in done(result).document["candidates"]]
    # 00:00 UTC lies before the first interval in Sao Paulo (03:00 UTC) and in Berlin's spring
    # (01:00 UTC); in autumn the overlap's first 02:30 is 00:30 UTC.
    assert candidate not in times
    assert times == ["2025-01-15T00:00:00Z"]


def test_names_may_be_unicode_and_need_quotes(tmp_path: Path) -> None:
    folder = tmp_path / "Ablage für Käufe"
    shop = Shop(folder)
    column, name = "naïve col.a", "größe"
    customers = pa.table(
        {"customer_id": [10, 11], column: ["Zoë", "O'Hara"], name: ["日本", '"q"']}
    )
    shop.day("customers", customers)
    shop.day("orders", ORDERS)
    done(shop.run())
    assert [row["customers"] and row["customers"]["data"] for row in rows(shop)][:2] == [
        {"customer_id": 10, column: "Zoë", name: "日本"},
        {"customer_id": 11, column: "O'Hara", name: '"q"'},
    ]


def test_a_key_may_have_a_name_that_needs_quotes(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.documents[2] = same_key("customer-id", "`naïve col.a`", "orders", "customers")
    shop.day("orders", [{"order_id": 1, "naïve col.a": 10}])
    shop.day("customers", [{"naïve col.a": 10, "name": "Ada"}])
    assert join_of(done(shop.run("-o", "json")))["matched"] == 1


def test_yaml_may_repeat_by_anchors_and_merge_keys(tmp_path: Path) -> None:
    shop = Shop(tmp_path).with_data()
    shop.write()
    shop.model.write_text(
        f"""\
apiVersion: v1
kind: List
items:
  - &source
    apiVersion: &api snaploom.io/v1alpha1
    kind: DataSource
    metadata: {{name: orders}}
    spec:
      hdfsLike: &files
        format: parquet
        sourceUriGlobs: ["file://{tmp_path}/orders/*.parquet"]
        sourceUriPrefix: "file://{tmp_path}/orders/{{day:STRING}}.parquet"
        snapshot: {{fromFieldValue: {{fieldName: day, timeFormat: ISO8601_DATE}}}}
  - <<: *source
    metadata: {{name: customers}}
    spec:
      hdfsLike:
        <<: *files
        sourceUriGlobs: ["file://{tmp_path}/customers/*.parquet"]
        sourceUriPrefix: "file://{tmp_path}/customers/{{day:STRING}}.parquet"
  - apiVersion: *api
    kind: DataRelationship
    metadata: {{name: customer-id}}
    spec:
      representations:
        - dataSources: [orders, customers]
          joinKey:
            - fields: [{{fieldName: customer_id, dataType: &id {{long: {{}}}}}}]
              castDataType: *id
""",
        "utf-8",
    )
    output = tmp_path / "output.yaml"
    output.write_text(str(Shop(tmp_path).raw("wide")).replace("'", '"'), "utf-8")
    result = snaploom("run", "wide", "-f", shop.model, output, "--now", "2024-06-01T00:00:00Z")
    done(result)
    assert len(rows(shop)) == 3


def test_a_virtual_source_of_a_column_that_needs_quotes(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    query = "SELECT customer_id, `naïve col.a` AS label FROM c WHERE name <> 'x'"
    shop.documents.insert(2, simple("labels", query, "customers"))
    shop.documents[3:] = [
        same_key("customer-id", "customer_id", "orders", "labels"),
        wide(tmp_path, "labels"),
    ]
    shop.day("orders", ORDERS)
    write_rows(
        tmp_path / "customers" / f"{FIRST_DAY}.parquet",
        [{"customer_id": 10, "naïve col.a": "Ä", "name": "n"}],
    )
    done(shop.run())
    assert rows(shop)[0]["labels"] == {"data": {"customer_id": 10, "label": "Ä"}}
