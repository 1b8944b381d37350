"""Invalid data: one clear error each, exit code 1, and nothing is published."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from support.declared.declarations import document
from support.declared.shop import (
    CUSTOMERS,
    FIRST_DAY,
    ORDERS,
    SECOND_DAY,
    Shop,
    assert_one_error,
    snaploom,
    write_rows,
)

from snaploom.engine import unmatched

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark"), pytest.mark.long]


def assert_nothing_published(shop: Shop) -> None:
    assert shop.published_times() == []
    assert [file for file in shop.data_files() if file != "snaploom.json"] == []


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:200])


def damaged(path: Path) -> None:
    """Pages of noise under a sound footer."""
    raw = bytearray(path.read_bytes())
    group = parquet.ParquetFile(path).metadata.row_group(0)
    for column in map(group.column, range(group.num_columns)):
        start = column.dictionary_page_offset or column.data_page_offset
        raw[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    path.write_bytes(bytes(raw))


def customers_twice(shop: Shop) -> None:
    shop.day("customers", [*CUSTOMERS, {"customer_id": 10, "name": "Ada again"}])


def column_gone(shop: Shop) -> None:
    shop.day("customers", [{"id": 10, "name": "Ada"}])


def other_type(shop: Shop) -> None:
    shop.day("customers", [{"customer_id": "10", "name": "Ada"}])


def file_beside_prefix(shop: Shop) -> None:
    write_rows(shop.folder / "customers" / "2024-05-01.old", CUSTOMERS)
    shop.set("customers", "hdfsLike.sourceUriGlobs", [f"file://{shop.folder}/customers/*"])


def day_unparsable(shop: Shop) -> None:
    shop.day("customers", CUSTOMERS, "someday")


def root_day_unparsable(shop: Shop) -> None:
    shop.day("orders", ORDERS, "2024-02-30")


def day_column(*days: str | None) -> Callable[[Shop], None]:
    def spoil(shop: Shop) -> None:
        del shop.raw("customers")["spec"]["hdfsLike"]["sourceUriPrefix"]
        rows = [{"customer_id": 10 + i, "name": "x", "day": day} for i, day in enumerate(days)]
        shop.day("customers", rows)

    return spoil


def names_equal_but_for_case(shop: Shop) -> None:
    names = pa.table({"customer_id": [10], "Name": ["Ada"], "name": ["Grace"]})
    shop.day("customers", names)


def file_spoilt(source: str, spoil: Callable[[Path], None]) -> Callable[[Shop], None]:
    def apply(shop: Shop) -> None:
        rows = [{"customer_id": i, "order_id": i, "text": f"row {i}"} for i in range(3000)]
        spoil(shop.day(source, rows))

    return apply


def no_bytes(path: Path) -> None:
    path.write_bytes(b"")


CASES = [
    pytest.param(customers_twice, ("is one-to-many", "from 3 to 4", "customer_id = 10 (2 rows)"),
                 id="duplicate key that matches"),
    pytest.param(column_gone, ("DataSource/customers", "customer_id", "only id, name"),
                 id="column missing"),
    pytest.param(other_type, ("DataSource/customers", "customer_id", "string", "bigint"),
                 id="column of another type"),
    pytest.param(file_beside_prefix, ("DataSource/customers spec.hdfsLike.sourceUriPrefix",
                                      "customers/2024-05-01.old"),
                 id="file matches no prefix"),
    pytest.param(day_unparsable, ("DataSource/customers", "'someday'", "ISO8601_DATE"),
                 id="snapshot value in a name"),
    pytest.param(root_day_unparsable, ("DataSource/orders", "'2024-02-30'", "ISO8601_DATE"),
                 id="snapshot value that is no day"),
    pytest.param(day_column(FIRST_DAY, "nope"), ("DataSource/customers", "'nope'"),
                 id="snapshot value in a column"),
    pytest.param(day_column(FIRST_DAY, None), ("DataSource/customers", "NULL"),
                 id="no snapshot value in a column"),
    pytest.param(names_equal_but_for_case, ("DataSource/customers", "`name`", "case"),
                 id="columns equal but for case"),
    pytest.param(file_spoilt("orders", truncated), ("DataSource/orders", f"{FIRST_DAY}.parquet"),
                 id="truncated file of the root"),
    pytest.param(file_spoilt("customers", truncated),
                 ("DataSource/customers", f"{FIRST_DAY}.parquet"), id="truncated file of a child"),
    pytest.param(file_spoilt("orders", damaged), (f"orders/{FIRST_DAY}.parquet",),
                 id="damaged pages of the root"),
    pytest.param(file_spoilt("customers", damaged), (f"customers/{FIRST_DAY}.parquet",),
                 id="damaged pages of a child"),
    pytest.param(file_spoilt("customers", no_bytes), ("DataSource/customers", "zero bytes"),
                 id="empty file"),
]  # fmt: skip


@pytest.mark.parametrize(("spoil", "texts"), CASES)
def test_wrong_data_has_one_error_and_nothing_is_published(tmp_path, spoil, texts):
    shop = Shop(tmp_path).with_data()
    spoil(shop)
    assert_one_error(shop.run(), *texts)
    assert_nothing_published(shop)


def test_a_missing_snapshot_names_the_nearest_and_nothing_is_published(tmp_path: Path) -> None:
    shop = Shop(tmp_path).with_data()
    shop.day("orders", ORDERS, SECOND_DAY)
    result = shop.run()
    assert_one_error(result, "no snapshot at 2024-05-02", "the nearest is 2024-05-01T00:00:00Z")
    assert "skipped 2024-05-01T00:00:00Z  EARLIER_FAILURE" in result.out
    assert_nothing_published(shop)
    planned = shop.plan()
    assert planned.code == 1
    assert "FAIL    2024-05-02T00:00:00Z" in planned.out


def test_what_was_published_before_a_failure_stays(tmp_path: Path) -> None:
    shop = Shop(tmp_path).with_data()
    shop.day("orders", ORDERS, SECOND_DAY)
    shop.day("customers", [{"id": 10}], SECOND_DAY)
    assert_one_error(shop.run(), "JOIN_FIELD_MISSING", "only id")
    assert shop.published_times() == ["2024-05-01T00:00:00Z"]
    shop.day("customers", CUSTOMERS, SECOND_DAY)
    assert shop.run().code == 0
    assert shop.published_times() == ["2024-05-01T00:00:00Z", "2024-05-02T00:00:00Z"]


def test_a_glob_without_matches_is_a_warning(tmp_path: Path) -> None:
    shop = Shop(tmp_path).with_data()
    (tmp_path / "orders" / f"{FIRST_DAY}.parquet").unlink()
    for result in (shop.plan(), shop.run()):
        assert result.code == 0
        assert "warning SL307" in result.err
        assert f"no file matches file://{tmp_path}/orders/*.parquet" in result.err


def test_an_empty_root_is_a_failure_where_a_scheduler_asks_for_it(tmp_path: Path) -> None:
    shop = Shop(tmp_path).with_data()
    (tmp_path / "orders" / f"{FIRST_DAY}.parquet").unlink()
    asked = [shop.run("--strict"), shop.plan("--strict"), shop.run("--strict", "--dry-run")]
    shop.set("wide", "run.onEmptyRoot", "Fail")
    for result in (*asked, shop.run()):
        assert_one_error(result, "orders/*.parquet", "spec.hdfsLike.sourceUriGlobs", code=5)
    assert_nothing_published(shop)


def test_message_of_an_empty_root_names_files_without_rows(tmp_path: Path) -> None:
    shop = Shop(tmp_path).with_data()
    place = f"file://{tmp_path}/orders"
    by_row = {"fromFieldValue": {"fieldName": "at", "timeFormat": "ISO8601_DATE"}}
    shop.set("orders", "hdfsLike.sourceUriPrefix", f"{place}/").set(
        "orders", "hdfsLike.snapshot", by_row
    )
    kinds = {"order_id": pa.int64(), "customer_id": pa.int64(), "at": pa.string()}
    shop.day("orders", pa.schema(list(kinds.items())).empty_table())
    assert f"no file matches {place}/*.parquet, or none that does has a row" in shop.plan().err


def test_an_empty_virtual_root_names_what_it_reads(tmp_path: Path) -> None:
    shop = Shop(tmp_path).with_data()
    (tmp_path / "orders" / f"{FIRST_DAY}.parquet").unlink()
    query = {"dataSource": "orders", "alias": "o", "dataQuery": "SELECT * FROM o"}
    shop.documents.append(document("DataSource", "few", {"simpleVirtual": query}))
    shop.set("wide", "dataModel.rootDataSource.dataSource", "few")
    shop.raw("customer-id")["spec"]["representations"][0]["dataSources"] = ["few", "customers"]
    result = shop.run("--strict")
    assert result.code == 5
    assert "to pass it as a warning, set `run.onEmptyRoot` to Warn" in result.err


def test_a_root_with_snapshots_is_none_that_is_empty(tmp_path: Path) -> None:
    shop = Shop(tmp_path).with_data()
    assert shop.run("--strict").code == 0
    assert len(shop.published_times()) == 1
    # Nothing is due any more, and the root has its snapshot.
    assert shop.run("--strict").code == 0


def test_a_join_that_matches_nothing_is_warned_of_and_published(tmp_path: Path) -> None:
    shop = Shop(tmp_path).with_data()
    shop.day("customers", [{"customer_id": 10.0, "name": "Ada"}])
    both = [
        {
            "dataSources": [source],
            "joinKey": [{"fields": [{"fieldName": "customer_id", "dataType": {kind: {}}}]}],
        }
        for source, kind in (("orders", "long"), ("customers", "double"))
    ]
    shop.set("customer-id", "representations", both)
    assert "warning SL159" in shop.validate().err
    result = shop.run()
    assert result.code == 0
    assert "rows found a match by DataRelationship/customer-id" in " ".join(result.err.split())
    assert len(shop.published_times()) == 1
    again = Shop(tmp_path / "quiet", list(shop.documents)).other(warnNoMatch=False)
    again.set("wide", "outputFolder.folderUri", f"file://{tmp_path}/quiet/wide/")
    assert "found a match" not in again.run().err


def test_spellings_of_keys_stand_where_people_look_until_they_are_normalised(tmp_path, monkeypatch):
    monkeypatch.setattr(unmatched, "SECONDS_FOR_NEWEST", 600.0)
    shop = Shop(tmp_path)
    ids = ["10", "11", "12", None, "99"]
    shop.day("orders", [{"order_id": n, "customer_id": one} for n, one in enumerate(ids)])
    shop.day("customers", [{"customer_id": one} for one in ("10", "11 ", "12\t")])
    key = {"fields": [{"fieldName": "customer_id", "dataType": "string"}]}
    sides = [{"dataSources": ["orders", "customers"], "joinKey": [key]}]
    shop.set("customer-id", "representations", sides)
    result = shop.run("-o", "json")
    advice = (
        "`customers`: 3 rows have no match by DataRelationship/customer-id; 2 would match with "
        "blanks cut, such as '11' for '11 ', '12' for '12\\t': normalize: [TRIM] in joinKey[0] of "
        "orders and customers"
    )
    assert advice in " ".join(result.err.split())
    report = result.document
    (snapshot,) = report["snapshots"]
    assert snapshot["warnings"] == report["newest"]["warnings"] == [advice]
    (found,) = snapshot["unmatched"]
    assert (found["rows"], found["nearMisses"][0]["rows"], found["notCounted"]) == (3, 2, "")
    assert found["nearMisses"][0]["keys"][1] == {"left": "12", "right": "12\t"}
    assert snaploom("page", shop.published, "--to", tmp_path / "site").code == 0
    page = (tmp_path / "site" / "index.html").read_text("utf-8")
    assert "normalize: [TRIM] in joinKey[0] of orders and customers" in page

    key["normalize"] = ["TRIM"]
    assert "orders.customer_id (TRIM), customers.customer_id (TRIM)" in shop.plan().out
    again = shop.set("wide", "outputFolder.folderUri", f"file://{tmp_path}/again/").run(
        "-o", "json"
    )
    report = again.document
    (join,) = report["snapshots"][0]["joins"]
    assert (join["in"], join["out"], join["matched"], join["nullKeys"]) == (5, 5, 3, 1)
    assert report["snapshots"][0]["warnings"] == []


SCHEMA = [
    {"name": "order_id", "dataType": {"long": {}}},
    {"name": "customer_id", "dataType": {"long": {}}},
    {"name": "amount", "dataType": {"decimal": {"precision": 10, "scale": 2}}},
]


def test_a_run_names_file_line_field_and_value_that_would_change(tmp_path: Path) -> None:
    shop = Shop(tmp_path).with_data()
    rows = "order_id,customer_id,amount\n1,10,5.00\n2,11,7.505\n"
    (tmp_path / "orders" / f"{FIRST_DAY}.csv").write_text(rows)
    place = f"file://{tmp_path}/orders"
    shop.set("orders", "hdfsLike.format", "csv")
    shop.set("orders", "hdfsLike.formatOptions", {"header": "true"})
    shop.set("orders", "hdfsLike.schemaFields", SCHEMA)
    shop.set("orders", "hdfsLike.sourceUriGlobs", [f"{place}/*.csv"])
    shop.set("orders", "hdfsLike.sourceUriPrefix", f"{place}/{{day:STRING}}.csv")

    result = shop.run()

    assert result.code == 1
    shown = " ".join((result.out + result.err).split())
    for text in (
        "DataSource/orders",
        "a value of amount would change",
        f"7.505 in line 3 of file:{tmp_path}/orders/{FIRST_DAY}.csv",
        "a number with at most 2 digits after the point",
        "mode: PERMISSIVE",
    ):
        assert text in shown
    assert "Traceback" not in shown
    assert not shop.published_times()
