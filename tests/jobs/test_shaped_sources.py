"""Transformers, applicators and complex virtual sources in whole runs, up to what readers see."""

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
