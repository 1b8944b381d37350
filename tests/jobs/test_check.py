"""`snaploom check`: sound folders have no fault, and every kind of damage is one."""

import json
import shutil
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame
from support.declared.shop import CommandResult, Shop, snaploom
from support.weaving.loom import Loom, ids

from snaploom.engine.expectations import Expectations
from snaploom.models.common import CheckMode
from snaploom.run.runevents import Warned

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def published(spark, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    shop = Shop(tmp_path_factory.mktemp("sound")).with_two_days()
    assert shop.run().code == 0
    return shop


@pytest.fixture
def folder(published: Shop, tmp_path: Path) -> Path:
    return Path(shutil.copytree(published.published, tmp_path / "wide"))


def kinds(result: CommandResult) -> list[str]:
    assert result.code == int(bool(result.document["faults"]))
    return [fault["kind"] for fault in result.document["faults"]]


def checked(folder: Path, *options: object) -> CommandResult:
    return snaploom("check", folder, "-o", "json", *options)


def a_file(folder: Path) -> Path:
    return sorted(folder.glob("data/*/*.parquet"))[0]


def entry_of(folder: Path, path: Path) -> Path:
    entries = folder.glob("metadata/manifest/*.json")
    return next(entry for entry in entries if path.name in entry.read_text())


def without_checksum(path: Path) -> Path:
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    return path


def test_what_is_whole_has_no_fault(published) -> None:
    result = snaploom("check", "wide", "-f", published.write(), "-o", "json")
    assert (result.code, result.document["faults"], result.document["snapshots"]) == (0, [], 2)
    assert "2 snapshots, no fault" in snaploom("check", published.published, "--files-only").out


def test_output_that_never_ran_has_no_fault(shop_without_run) -> None:
    result = snaploom("check", "wide", "-f", shop_without_run.write(), "-o", "json")
    assert (result.code, result.document["snapshots"]) == (0, 0)


@pytest.fixture
def shop_without_run(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def test_missing_and_shortened_files_are_named_without_spark(folder) -> None:
    first, second = sorted(folder.glob("data/*/*.parquet"))
    first.unlink()
    second.write_bytes(second.read_bytes()[:-1])
    result = checked(folder, "--files-only")
    assert kinds(result) == ["FILE", "FILE"]
    assert [f["place"] for f in result.document["faults"]] == [
        str(path.relative_to(folder)) for path in (first, second)
    ]
    assert kinds(checked(folder, "--files-only", "--snapshot", "2024-05-02T00:00:00Z")) == ["FILE"]


def test_file_of_the_right_size_that_cannot_be_read_is_found(spark, folder) -> None:
    path = without_checksum(a_file(folder))
    path.write_bytes(b"\0" * path.stat().st_size)
    result = checked(folder)
    assert kinds(result) == ["FILE"]
    assert result.document["faults"][0]["place"] == str(path.relative_to(folder))


@pytest.mark.parametrize("column", ["data.order_id", "customers.data.name"])
def test_one_bit_that_changed_in_any_column_is_found(spark, folder, column) -> None:
    path = without_checksum(a_file(folder))
    group = pq.read_metadata(path).row_group(0)
    chunks = (group.column(number) for number in range(group.num_columns))
    chunk = next(each for each in chunks if each.path_in_schema == column)
    first = chunk.dictionary_page_offset or chunk.data_page_offset
    content = bytearray(path.read_bytes())
    content[first + chunk.total_compressed_size - 1] ^= 1
    path.write_bytes(content)
    result = checked(folder)
    assert kinds(result) == ["FILE"]
    assert result.document["faults"][0]["place"] == str(path.relative_to(folder))


def test_other_rows_and_columns_are_found(spark, folder) -> None:
    path = without_checksum(a_file(folder))
    size = path.stat().st_size
    table = pq.read_table(path)
    pq.write_table(table.slice(1).drop_columns(["customers"]), path, store_schema=False)
    manifest = entry_of(folder, path)
    now = path.stat().st_size
    manifest.write_text(manifest.read_text().replace(f'"bytes":{size}', f'"bytes":{now}'))
    assert kinds(checked(folder)) == ["ROWS", "SCHEMA"]


def test_key_that_occurs_twice_is_found(spark, published, folder) -> None:
    path = without_checksum(a_file(folder))
    size = path.stat().st_size
    table = pq.read_table(path)
    pq.write_table(table.take([0, 0, 1]), path)
    now = path.stat().st_size
    manifest = entry_of(folder, path)
    manifest.write_text(manifest.read_text().replace(f'"bytes":{size}', f'"bytes":{now}'))
    moved = Shop(folder.parent, published.documents)
    moved.set("wide", "outputFolder.folderUri", f"file://{folder}/")
    result = snaploom("check", "wide", "-f", moved.write(), "-o", "json")
    assert kinds(result) == ["ROOT_KEY"]
    assert "in 2 rows" in result.document["faults"][0]["message"]


def test_gap_in_the_log_is_found(folder) -> None:
    entries = sorted(folder.glob("metadata/manifest/*.json"))
    entries[1].unlink()
    (folder / "metadata/_latest").unlink()
    result = checked(folder, "--files-only")
    assert kinds(result) == ["LOG"]


def test_entry_that_is_damaged_is_a_fault(folder) -> None:
    sorted(folder.glob("metadata/manifest/*.json"))[1].write_text("{}")
    assert kinds(checked(folder)) == ["LOG"]


@pytest.mark.parametrize("name", ["schema", "datamodel"])
def test_document_without_the_hash_of_its_name_is_found(folder, name) -> None:
    path = next(p for p in folder.glob(f"metadata/{name}/*.json") if "merged" not in p.name)
    path.write_text("{}")
    assert kinds(checked(folder, "--files-only")) == ["DOCUMENT"]
    path.unlink()
    assert kinds(checked(folder, "--files-only")) == ["DOCUMENT"]


def test_no_command_takes_data_without_a_manifest_for_nothing(spark, tmp_path) -> None:
    shop = Shop(tmp_path).with_data()
    assert shop.run().code == 0
    shutil.rmtree(shop.published / "metadata")
    before = sorted(path for path in shop.published.rglob("*") if path.is_file())
    model = ("wide", "-f", shop.write())
    for command in (
        ("run", *model),
        ("plan", *model),
        ("diff", *model),
        ("snapshots", *model),
        ("gc", shop.published),
    ):
        result = snaploom(*command)
        assert result.code == (2 if "diff" in command else 1)  # of which 1 is a difference
        assert "the manifest of" in result.err
        assert "repair" in result.err
    assert kinds(checked(shop.published)) == ["LOG"]
    assert sorted(path for path in shop.published.rglob("*") if path.is_file()) == before
    assert snaploom("repair", *model, "--yes").code == 0
    assert kinds(checked(shop.published)) == []


PLACES = {
    "of a scheme without a path": "a:b",
    "of a disk with a letter": "C:\\wide",
    "with a NUL": "/tmp/wi\0de",
    "longer than names may be": f"/tmp/{'x' * 300}",
    "longer than paths may be": f"/tmp/{'x/' * 3000}",
    "relative": "~/wide",
    "with a host": "file://host/wide",
    "without a path": "file://",
    "the root": "/",
    "a device": "/dev/null",
    "empty": "",
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_what_cannot_be_a_folder_is_refused_with_what_to_do(spark, place: str) -> None:
    result = snaploom("check", place)
    assert result.code in {1, 2}
    assert "internal error" not in result.err
    for label in ("found:", "expected:", "fix:"):
        assert label in result.err


@pytest.mark.parametrize("name", ["loop", "a\0b"])
def test_declarations_that_no_path_leads_to_are_refused_with_what_to_do(tmp_path, name):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    result = snaploom("check", "wide", "-f", tmp_path / name)
    assert result.code == 2
    assert "check the path, and where its links lead" in result.err


def without_log(folder: Path) -> None:
    shutil.rmtree(folder / "metadata")


def of_another_version(folder: Path) -> None:
    marker = folder / "snaploom.json"
    marker.write_text(json.dumps(json.loads(marker.read_text()) | {"format": 99}))


def emptied(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


DAMAGES = {
    "absent": (shutil.rmtree, "FolderNotOurs", "check the folder's URI"),
    "empty": (emptied, "FolderNotOurs", "check the folder's URI"),
    "without a log": (without_log, "LOG", "restore metadata/ from a backup"),
    "of another version": (of_another_version, "FormatTooNew", "Upgrade Snaploom"),
}


@pytest.mark.parametrize(("damage", "message", "fix"), DAMAGES.values(), ids=DAMAGES)
def test_folder_that_cannot_be_checked_is_an_error_with_a_fix(folder, damage, message, fix) -> None:
    damage(folder)
    result = snaploom("check", folder, "--files-only")
    assert result.code == 1
    assert message in result.out + result.err
    assert fix in result.out + result.err


def test_each_kind_of_fault_has_its_fix_once(folder) -> None:
    for path in folder.glob("data/*/*.parquet"):
        path.unlink()
    result = snaploom("check", folder, "--files-only")
    assert result.out.count("fix of FILE: restore the file from a backup") == 1
    assert result.out.endswith("2 snapshots, 2 faults.\n")


@pytest.fixture
def loom(tmp_path: Path) -> Loom:
    """One day of three orders, of which two have a customer."""
    loom = Loom(tmp_path)
    loom.write("order", 1, [{"id": 1, "amount": 5}, {"id": 2, "amount": 7}, {"id": 2, "amount": 9}])
    loom.write("customer", 1, ids(1, 2))
    loom.join("customer")
    return loom


def expect(loom: Loom, *checks: tuple[str, str]) -> None:
    loom.spec["checks"] = [
        {"name": f"c{number}", "expression": text, "mode": mode}
        for number, (text, mode) in enumerate(checks)
    ]


def test_checks_that_hold_are_published_and_reported_everywhere(spark, loom) -> None:
    expressions = [
        "count(*) > 0",
        "data.amount >= 5",
        "count(DISTINCT data.id) = 2",
        "sum(data.amount) FILTER (WHERE data.id = 2) = 16",
        "bool_and(customer.data.id = data.id)",
    ]
    expect(loom, *((text, "FAIL") for text in expressions))
    report = loom.weave(spark).report
    (record,), (reported,) = loom.state().snapshots, report.snapshots
    assert [check.holds for check in reported.checks] == [True] * 5
    assert reported.checks == record.checks == report.newest.checks


@pytest.mark.parametrize(
    ("expression", "measured"),
    [
        ("count(*) > 3", "COUNT(*) = 3"),
        ("count(DISTINCT data.amount) = 2", "COUNT(DISTINCT data.amount) = 3"),
        ("data.amount > 5", "1 rows break it"),
        ("nullif(data.amount, 7) > 0", "1 rows break it"),
        ("avg(nullif(data.amount, data.amount)) > 0", "= None"),
    ],
)
def test_what_does_not_hold_is_not_published(spark, loom, expression, measured) -> None:
    expect(loom, (expression, "FAIL"))
    woven = loom.weave(spark)
    assert woven.outcomes == {1: "check_failed"}
    assert measured in woven.report.failed[0].message
    assert woven.report.reason == "CheckFailed"
    assert (loom.live_days(), loom.is_clean()) == ([], True)


def test_too_few_matches_publish_nothing_and_warn_where_that_is_wanted(spark, loom) -> None:
    loom.write("customer", 1, ids(1))
    loom.others[0]["matchedRows"] = {"atLeast": 0.5}
    woven = loom.weave(spark)
    assert woven.outcomes == {1: "check_failed"}
    assert "1 of 3 rows found a match (33.33%" in woven.report.failed[0].message
    assert (loom.live_days(), loom.is_clean()) == ([], True)
    loom.others[0]["matchedRows"]["mode"] = "WARN"
    (published,) = loom.weave(spark).report.snapshots
    assert "matchedRows.atLeast is 0.5" in published.warnings[0]


def test_a_warning_publishes_and_shows_what_was_measured(spark, loom) -> None:
    expect(loom, ("data.amount < 9", "WARN"), ("gone.data.id > 0", "WARN"))
    woven = loom.weave(spark)
    assert woven.outcomes == {1: "PUBLISHED"}
    reported = woven.report.snapshots[0].checks
    assert [(check.name, check.mode, check.holds) for check in reported] == [
        ("c0", CheckMode.WARN, False),
        ("c1", CheckMode.WARN, False),
    ]
    assert reported[0].measured == "1 rows break it"
    assert "cannot be measured" in reported[1].measured
    assert len(woven.events_of(Warned)) == 2


def test_counts_of_a_group_with_a_failed_task_are_taken_again(spark, loom, tmp_path) -> None:
    """Rule W25: tasks that failed may have added to what was observed."""
    expect(loom, ("count(*) = 3", "FAIL"))
    table = tmp_path / "sources/order/2024-01-01/part.parquet"
    frame = spark.read.parquet(str(table)).selectExpr("struct(*) AS data")
    asked = []
    for group, broken in (("sound", "1"), ("suspect", "raise_error('no')")):
        spark.sparkContext.setJobGroup(group, group)
        expectations = Expectations(loom.bundle().output, frame)
        expectations.frame.write.parquet(str(tmp_path / group))
        with suppress(Exception):
            spark.range(1).selectExpr(broken).collect()

        def staged(group: str = group) -> DataFrame:
            asked.append(group)
            return spark.read.parquet(str(tmp_path / group))

        assert [one.holds for one in expectations.settle(spark, group, staged)] == [True]
    assert asked == ["suspect"]


@pytest.mark.parametrize("expression", ["gone.data.id > 0", "data.amount + 1"])
def test_what_cannot_be_measured_is_not_published(spark, loom, expression) -> None:
    expect(loom, (expression, "FAIL"))
    report = loom.weave(spark).report
    assert (report.reason, report.failed[0].path) == ("CheckInvalid", "spec.checks[0].expression")
    assert loom.live_days() == []


def test_root_key_that_is_not_unique_is_refused_with_its_keys(spark, loom) -> None:
    loom.spec["dataModel.rootDataSource.rootKey"] = ["ID"]
    report = loom.weave(spark).report
    assert "rootKey: (2) in 2 rows" in report.failed[0].message
    assert "WARN" not in report.failed[0].message
    assert "name columns in rootKey that identify a row" in report.failed[0].message
    loom.spec["dataModel.rootDataSource.rootKey"] = ["id", "amount"]
    (reported,) = loom.weave(spark).report.snapshots
    assert [(check.name, check.holds) for check in reported.checks] == [("rootKey", True)]


def test_null_in_a_root_key_is_refused(spark, loom) -> None:
    loom.write("order", 1, [{"id": 1}, {"id": None}])
    loom.spec["dataModel.rootDataSource.rootKey"] = ["id"]
    assert "(None) in 1 rows" in loom.weave(spark).report.failed[0].message
