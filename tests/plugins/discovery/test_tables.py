"""Tables of Iceberg and Delta, read by their own metadata: columns, days, live files."""

import json
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import Literal, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.avro.codecs import AvroCompressionCodec
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import DateType, IntegerType, LongType, NestedField
from support.declared.shop import snaploom

from snaploom.plugins.discovery.discover import Discovery, discover

SCHEMA = Schema(
    NestedField(1, "customer_id", LongType(), required=False),
    NestedField(2, "level", IntegerType(), required=False),
    NestedField(3, "day", DateType(), required=False),
)
SPEC = PartitionSpec(PartitionField(3, 1000, IdentityTransform(), "day"))
SNAPSHOT = 4711
CODEC: AvroCompressionCodec = "deflate"
EPOCH = date(1970, 1, 1)


def write_iceberg(
    folder: Path,
    files: Sequence[Sequence[dict[str, object]]],
    deleted: Sequence[dict[str, object]],
    version: int,
) -> None:
    """A table with one snapshot.

    Args:
        folder: of the table.
        files: rows of each of its files; those of one file have one day, or none.
        deleted: rows of a file that it has not any more.
        version: of Iceberg's format.
    """
    form = cast(Literal[1, 2], version)
    place = f"file://{folder}"
    (folder / "metadata").mkdir(parents=True)
    (folder / "data").mkdir()
    io = PyArrowFileIO()
    manifest = f"{place}/metadata/m0.avro"
    with write_manifest(form, SPEC, SCHEMA, io.new_output(manifest), SNAPSHOT, CODEC) as writer:
        for number, rows in enumerate([*files, *([deleted] if deleted else [])]):
            status = (
                ManifestEntryStatus.ADDED if number < len(files) else ManifestEntryStatus.DELETED
            )
            entry = ManifestEntry.from_args(
                status=status, snapshot_id=SNAPSHOT, sequence_number=1, file_sequence_number=1,
                data_file=_data_file(folder, number, rows),
            )  # fmt: skip
            writer.add_entry(entry)
    listed = f"{place}/metadata/snap.avro"
    with write_manifest_list(form, io.new_output(listed), SNAPSHOT, None, 1, CODEC) as lists:
        lists.add_manifests([writer.to_manifest_file()])
    metadata = new_table_metadata(
        SCHEMA, SPEC, UNSORTED_SORT_ORDER, place, {"format-version": str(version)}
    )
    document = json.loads(metadata.model_dump_json())
    document["snapshots"] = [
        {"snapshot-id": SNAPSHOT, "timestamp-ms": 1, "manifest-list": listed, "summary": {}}
    ]
    document["current-snapshot-id"] = SNAPSHOT
    (folder / "metadata" / "v1.metadata.json").write_text(json.dumps(document))


def _data_file(folder: Path, number: int, rows: Sequence[dict[str, object]]) -> DataFile:
    path = folder / "data" / f"{number}.parquet"
    fields = [
        pa.field("customer_id", pa.int64(), metadata={"PARQUET:field_id": "1"}),
        # As it was called before it was renamed.
        pa.field("grade", pa.int32(), metadata={"PARQUET:field_id": "2"}),
        pa.field("day", pa.date32(), metadata={"PARQUET:field_id": "3"}),
    ]
    stored = [
        {"customer_id": r["customer_id"], "grade": r["level"], "day": r.get("day")} for r in rows
    ]
    pq.write_table(pa.Table.from_pylist(stored, pa.schema(fields)), path)
    day = rows[0].get("day")
    days = (day - EPOCH).days if isinstance(day, date) else None
    return DataFile.from_args(
        content=DataFileContent.DATA, file_path=f"file://{path}", file_format=FileFormat.PARQUET,
        partition=Record(days), record_count=len(rows), file_size_in_bytes=path.stat().st_size,
        column_sizes={}, value_counts={}, null_value_counts={}, nan_value_counts={},
        lower_bounds={}, upper_bounds={}, key_metadata=None, split_offsets=None, equality_ids=None,
        sort_order_id=None,
    )  # fmt: skip


LEVELS = [{"customer_id": n, "level": n % 3} for n in range(1, 21)]
CUSTOMERS = "id,name\n" + "".join(f"{n},c{n}\n" for n in range(1, 21))


def write_delta(folder: Path, versions: Iterable[Sequence[dict[str, object]]]) -> None:
    (folder / "_delta_log").mkdir(parents=True)
    for number, actions in enumerate(versions):
        text = "".join(json.dumps(action) + "\n" for action in actions)
        (folder / "_delta_log" / f"{number:020d}.json").write_text(text)


def metadata(*fields: tuple[str, str, str], partitions: Sequence[str] = ()) -> dict[str, object]:
    """The action with a schema: names, types, and names in the files."""
    described = [
        {"name": name, "type": kind, "nullable": True,
         "metadata": {} if own == name else {"delta.columnMapping.physicalName": own}}
        for name, kind, own in fields
    ]  # fmt: skip
    schema = json.dumps({"type": "struct", "fields": described})
    return {"metaData": {"id": "x", "schemaString": schema, "partitionColumns": list(partitions)}}


def add(folder: Path, name: str, rows: list[dict[str, object]], **values: str) -> dict[str, object]:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)
    return {"add": {"path": name, "partitionValues": values, "size": path.stat().st_size}}


LEVEL_FIELDS = (("customer_id", "long", "customer_id"), ("level", "integer", "level"))


def with_customers(folder: Path) -> Discovery:
    (folder / "customers.csv").write_text(CUSTOMERS)
    return discover([str(folder)], "file:///model/")


def test_a_table_of_delta_is_a_source_with_its_live_files(tmp_path: Path) -> None:
    table = tmp_path / "levels"
    old = add(table, "old.parquet", [{"customer_id": 999, "level": 1}])
    new = add(table, "new.parquet", LEVELS)
    write_delta(table, [[metadata(*LEVEL_FIELDS), old], [new, {"remove": {"path": "old.parquet"}}]])
    result = with_customers(tmp_path)
    (one,) = result.relationships.declared
    assert (one.child, one.parent, one.included.share) == ("levels", "customers", 1.0)
    assert f"format: delta\n    sourceUriGlobs: ['file://{table}']" in result.files["sources.yaml"]


def test_a_partition_by_day_is_the_snapshot_of_a_table(tmp_path: Path) -> None:
    table = tmp_path / "levels"
    days = ("2026-02-01", "2026-02-02")
    added = [add(table, f"day={day}/a.parquet", LEVELS, day=day) for day in days]
    schema = metadata(*LEVEL_FIELDS, ("day", "date", "day"), partitions=["day"])
    write_delta(table, [[schema, *added]])
    text = with_customers(tmp_path).files["sources.yaml"]
    assert "fieldName: day, timeFormat: ISO8601_DATE, dropField: false" in text
    assert "its files are divided by it" in text


def test_columns_of_delta_have_the_names_of_the_table(tmp_path: Path) -> None:
    table = tmp_path / "levels"
    stored = [{"col-1": row["customer_id"], "col-2": row["level"]} for row in LEVELS]
    schema = metadata(("customer_id", "long", "col-1"), ("level", "integer", "col-2"))
    write_delta(table, [[schema, add(table, "a.parquet", stored)]])
    assert [r.child_columns for r in with_customers(tmp_path).relationships.declared] == [
        ("customer_id",)
    ]


def test_a_checkpoint_of_delta_takes_the_place_of_older_commits(tmp_path: Path) -> None:
    table = tmp_path / "levels"
    added, schema = add(table, "a.parquet", LEVELS), metadata(*LEVEL_FIELDS)
    write_delta(table, [])
    rows = [{"add": {**added["add"], "partitionValues": None}, "metaData": None},
            {"add": None, "metaData": {**schema["metaData"], "partitionColumns": []}}]  # fmt: skip
    kind = pa.struct([("path", pa.string()), ("size", pa.int64()),
                      ("partitionValues", pa.map_(pa.string(), pa.string()))])  # fmt: skip
    described = pa.struct([("id", pa.string()), ("schemaString", pa.string()),
                           ("partitionColumns", pa.list_(pa.string()))])  # fmt: skip
    schema_ = pa.schema([("add", kind), ("metaData", described)])
    place = table / "_delta_log" / f"{7:020d}.checkpoint.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema_), place)
    later = add(table, "b.parquet", LEVELS)
    (table / "_delta_log" / f"{8:020d}.json").write_text(json.dumps(later))
    (profile,) = [p for p in with_customers(tmp_path).profiles if p.name == "levels"]
    assert profile.rows == 40


def test_a_log_of_delta_without_its_beginning_is_left_out(tmp_path: Path) -> None:
    table = tmp_path / "levels"
    write_delta(table, [[metadata(*LEVEL_FIELDS), add(table, "a.parquet", LEVELS)], []])
    (table / "_delta_log" / f"{0:020d}.json").unlink()
    reasons = {each.what: each.why for each in with_customers(tmp_path).declarations.left_out}
    assert "cannot be read from its beginning" in reasons[f"file://{table}"]


@pytest.mark.parametrize("version", [1, 2])
def test_a_table_of_iceberg_is_a_source_with_its_live_files(tmp_path: Path, version: int) -> None:
    table = tmp_path / "levels"
    gone = [{"customer_id": 999, "level": 1, "day": date(2026, 1, 1)}]
    days = [date(2026, 2, 1), date(2026, 2, 2)]
    live = [[{**row, "day": day} for row in LEVELS] for day in days]
    write_iceberg(table, live, gone, version)
    result = with_customers(tmp_path)
    (profile,) = [p for p in result.profiles if p.name == "levels"]
    assert profile.rows == 40
    assert [column.name for column in profile.columns] == ["customer_id", "level", "day"]
    assert [r.included.share for r in result.relationships.declared] == [1.0]
    text = result.files["sources.yaml"]
    assert f"format: iceberg\n    sourceUriGlobs: ['file://{table}']" in text
    assert "fieldName: day, timeFormat: ISO8601_DATE" in text


def test_a_table_of_iceberg_may_have_been_moved(tmp_path: Path) -> None:
    # Folders above have the names of those inside.
    write_iceberg(tmp_path / "metadata" / "data" / "levels", [LEVELS], [], 2)
    (tmp_path / "data").mkdir()
    (tmp_path / "metadata" / "data" / "levels").rename(tmp_path / "data" / "levels")
    assert len(with_customers(tmp_path / "data").relationships.declared) == 1


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("_delta_log/00000000000000000000.json", b'{"commitInfo": {}}\n', "no schema"),
        ("_delta_log/00000000000000000000.json", b"[]\n", "no object of JSON"),
        ("metadata/v1.metadata.json", b"{}", "without a snapshot"),
        ("metadata/v1.metadata.json", b"\xff", "not JSON"),
        ("metadata/v1.metadata.json",
         b'{"snapshots": [{"snapshot-id": 1, "manifest-list": "x"}], "current-snapshot-id": 1}',
         "without x"),
    ],
)  # fmt: skip
def test_tables_that_cannot_be_read_are_left_out_with_the_reason(tmp_path, name, content, why):
    (tmp_path / "levels" / name).parent.mkdir(parents=True)
    (tmp_path / "levels" / name).write_bytes(content)
    reasons = {each.what: each.why for each in with_customers(tmp_path).declarations.left_out}
    assert why in reasons[f"file://{tmp_path}/levels"]


def test_what_is_written_of_tables_validates_but_for_their_libraries(tmp_path: Path) -> None:
    write_iceberg(tmp_path / "data" / "levels", [LEVELS], [], 2)
    (tmp_path / "data" / "customers.csv").write_text(CUSTOMERS)
    assert snaploom("init", tmp_path / "model", "--from", tmp_path / "data").code == 0
    result = snaploom("validate", tmp_path / "model")
    assert result.code == 0, result.err
    assert "0 errors" in result.out + result.err
