"""Tables of Iceberg without a catalog: files by Arrow, manifests and metadata by PyIceberg."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Literal, cast

import pyarrow as pa
import pyarrow.parquet as pq
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
