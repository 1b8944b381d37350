"""Transformers, applicators and complex virtual sources in whole runs, up to what readers see."""

import random
from itertools import pairwise
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.declared.declarations import document
from support.declared.virtualsources import at_any_time
from support.weaving.loom import Loom, ids

import snaploom
from snaploom.models.common import format_instant
from snaploom.output import layout

pytestmark = pytest.mark.spark

YEARS = [
    document(
        "FieldTransformer",
        "numbers",
        {
            "transformers": [
                {
                    "selectors": [{"coordinateIncludeRegex": "^(cust_no|CustomerNumber)$"}],
                    "rename": {"to": "id"},
                },
                {
                    "selectors": [{"coordinateIncludeRegex": "^id$"}],
                    "cast": {"dataType": {"long": {}}},
                    "snapshotRange": {"to": "2024-01-02T00:00:00Z"},
                },
            ]
        },
    ),
    document(
        "MetadataApplicator",
        "personal",
        {
            "fieldSelectors": [{"coordinateIncludeRegex": "^name$|home:street"}],
            "metadata": {"pii": "yes"},
        },
    ),
]


def customers(loom):
    """The source whose key has another name, and type, every day."""
    loom.write("customer", 1, [{"cust_no": "1", "name": "Ada", "home": {"street": "x"}}])
    loom.write("customer", 2, [{"CustomerNumber": 1, "name": "Ada L.", "home": {"street": "y"}}])
    loom.write("customer", 3, [{"id": 1, "name": "A. Lovelace", "home": {"street": "z"}}])
    loom.sources.remove("customer")
    source = loom._source("customer")
    source["spec"]["hdfsLike"] |= {
        "fieldTransformers": ["numbers"],
        "metadataApplicators": ["personal"],
    }
    return source


def metadata_of(struct):
    customer = struct["customer"].dataType["data"].dataType
    street = customer["home"].dataType["street"]
    return customer["name"].metadata, street.metadata


@pytest.mark.parametrize(("kept", "in_files"), [("BOTH", b'"pii":"yes"'), ("MANIFEST", None)])
def test_a_key_that_changed_its_name_goes_on_joining(spark, tmp_path, kept, in_files):
    loom = Loom(tmp_path, folder={"columnMetadata": kept})
    for day in (1, 2, 3):
        loom.write("order", day, ids(1, 2))
    loom.more = [customers(loom), *YEARS]
    loom.join("customer")

    woven = loom.weave(spark)

    assert woven.outcomes == {1: "PUBLISHED", 2: "PUBLISHED", 3: "PUBLISHED"}
    frame = snaploom.read(spark, loom.uri)
    rows = frame.selectExpr("data.id", "customer.data.id", "customer.data.name").collect()
    names = ["Ada", "Ada L.", "A. Lovelace"]
    assert sorted(map(tuple, rows), key=str) == sorted(
        [(1, 1, name) for name in names] + [(2, None, None)] * 3, key=str
    )
    assert metadata_of(frame.schema) == ({"pii": "yes"}, {"pii": "yes"})
    for name in loom.state().live_files:
        footer = pq.read_metadata(loom.out / name).metadata
        stored = footer[b"org.apache.spark.sql.parquet.row.metadata"]
        assert (in_files in stored) if in_files else (b"pii" not in stored)
    (schema,) = {record.schema_hash for record in loom.state().snapshots}
    assert loom.opened().store.get(layout.schema_key(schema)).count(b'"pii"') == 2


def test_a_root_with_data_at_any_time_gives_each_interval_its_newest_millisecond(spark, tmp_path):
    loom = Loom(tmp_path, root="state")
    loom.write(
        "change",
        1,
        [
            {"id": 1, "value": "a", "since": 1704067200000, "until": 1704196799999},
            {"id": 1, "value": "b", "since": 1704196800000, "until": 1704240000000},
            {"id": 2, "value": "c", "since": 1704412800000, "until": 2**62},
        ],
    )
    for day in (1, 2, 3):
        loom.write("order", day, ids(1))
    millis = "{{ SNAPSHOT | UNIX_MILLISECONDS }}"
    spec = at_any_time(
        f"select id, value from c where {millis} between since and until",
        "select since as interval_start, until as interval_end from c",
        {"c": "change"},
    )
    loom.more = [document("DataSource", "state", spec)]
    loom.join("order", snapshot={"timeBefore": {"day": 1}, "snapshotMissingMode": "SKIP_IGNORE"})

    woven = loom.weave(spark, at="2024-01-06T12:00:00Z")

    times = [format_instant(record.time) for record in loom.state().snapshots]
    # 3 January at noon the second interval ends; from the 5th on there is data again.
    assert times == ["2024-01-01T23:59:59.999Z", "2024-01-02T23:59:59.999Z", "2024-01-03T00:00:00Z"]
    assert woven.outcomes[5] == "SNAPSHOT_MISSING"
    rows = snaploom.read(spark, loom.uri).selectExpr("data.value", "order.data.id").collect()
    assert sorted(map(tuple, rows)) == [("a", 1), ("b", 1), ("b", 1)]


ROWS = 60_000
"""Some 3 MB that no codec makes smaller."""


@pytest.fixture(scope="module")
def orders() -> pa.Table:
    """Rows in no order, of which most bytes are noise."""
    noise = random.Random(7)
    return pa.table(
        {
            "id": pa.array(noise.sample(range(ROWS), ROWS), pa.int64()),
            "region": pa.array([noise.randrange(50) for _ in range(ROWS)]),
            "noise": pa.array([noise.randbytes(48) for _ in range(ROWS)]),
        }
    )


def sorted_ids(loom: Loom) -> bool:
    found = duckdb.sql(f"SELECT data.id FROM read_parquet('{loom.out}/data/*/*') ORDER BY 1")
    return [row[0] for row in found.fetchall()] == list(range(ROWS))


def files(loom: Loom) -> list[Path]:
    (record,) = loom.state().snapshots
    return [loom.out / file.path for file in record.files]


def ranges(path: Path, column: str) -> tuple[int, int]:
    query = f"SELECT min(data.{column}), max(data.{column}) FROM read_parquet('{path}')"
    ((least, most),) = duckdb.sql(query).fetchall()
    return least, most


def test_files_have_about_the_size_asked_for(spark, tmp_path, orders) -> None:
    loom = Loom(tmp_path, folder={"targetFileSizeMiB": 1})
    loom.write("order", 1, orders)
    loom.weave(spark)
    sizes = [path.stat().st_size for path in files(loom)]
    assert len(sizes) > 2
    assert all(0.5 < size / 2**20 < 1.3 for size in sizes)
    assert (sorted_ids(loom), loom.is_clean()) == (True, True)


def test_files_that_fit_are_left_as_they_are(spark, tmp_path) -> None:
    loom = Loom(tmp_path, folder={"targetFileSizeMiB": 64})
    loom.write("order", 1, [{"id": 1}])
    (reported,) = loom.weave(spark).report.snapshots
    assert (reported.rows, reported.files, loom.is_clean()) == (1, 1, True)


def test_clustered_files_share_no_values_and_checks_still_hold(spark, tmp_path, orders) -> None:
    loom = Loom(tmp_path, folder={"targetFileSizeMiB": 1, "clusterBy": ["DATA.id"]})
    loom.spec["checks"] = [{"name": "all", "expression": f"count(*) = {ROWS}"}]
    loom.write("order", 1, orders)
    loom.weave(spark)
    bounds = sorted(ranges(path, "id") for path in files(loom))
    assert len(bounds) > 2
    assert all(before[1] < after[0] for before, after in pairwise(bounds))
    assert (sorted_ids(loom), loom.is_clean()) == (True, True)


def test_column_that_is_not_there_publishes_nothing(spark, tmp_path) -> None:
    loom = Loom(tmp_path, folder={"clusterBy": ["data.gone"]})
    loom.write("order", 1, [{"id": 1}])
    report = loom.weave(spark).report
    assert report.failed[0].path == "spec.outputFolder.clusterBy"
    assert (loom.live_days(), loom.is_clean()) == ([], True)
