"""A good output folder on local disk, with all that one may hold: what hostile ones are made of."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from support.declared.declarations import document
from support.storage.folders import (
    IDENTITY,
    SETTINGS,
    START,
    a_run,
    a_target,
    agrees,
    bury,
)

from snaploom.files.objectstore import ObjectStore
from snaploom.files.stores import open_store
from snaploom.models.common import EpochNanos
from snaploom.output import layout
from snaploom.output.caches import FileFacts, Listings
from snaploom.output.checkpoints import write_checkpoint
from snaploom.output.folder import Folder, prepare_folder
from snaploom.output.leaseholder import ClaimLease
from snaploom.output.leases import Swap
from snaploom.output.publication import WriteResult, publish

SCHEMA = '{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{}}]}'
START_DATE = {
    "year": 2020, "month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0, "nano": 0,
    "timezone": "UTC",
}  # fmt: skip
LONG_AGO = 1_000_000_000
"""Seconds: the time of every file, so that no grace keeps one."""


def parquet(schema: str = SCHEMA, rows: int = 3) -> bytes:
    """A file of Parquet whose footer has a schema as Spark's would."""
    metadata = {b"org.apache.spark.sql.parquet.row.metadata": schema.encode()}
    table = pa.table({"a": pa.array(range(rows), pa.int64())}).replace_schema_metadata(metadata)
    stream = BytesIO()
    pq.write_table(table, stream)
    return stream.getvalue()


def weave(folder: Folder, number: int, schema: str = SCHEMA) -> None:
    """Publish the snapshot of a day in two files."""

    def write(uri: str) -> WriteResult:
        staging = uri.removeprefix(folder.store.uri)
        for at in range(2):
            folder.store.put(f"{staging}part-{at:05d}.snappy.parquet", parquet(schema))
        return WriteResult(rows=6, schema=schema)

    publish(folder, a_run(), a_target(number), write, agrees)


def good_folder(root: Path, schema: str = SCHEMA) -> None:
    """Three snapshots, one of which ended; leftovers, a claim, a checkpoint, hints and caches."""
    store = open_store(str(root), create=True)
    folder = prepare_folder(store, SETTINGS, IDENTITY, a_run())
    for number in range(3):
        weave(folder, number, schema)
    bury(folder, 0)
    lease = ClaimLease(folder, a_run())
    held = lease.swap(Swap(lease.read(), a_run().run_id, 60))
    assert held is not None
    lease.swap(Swap(held, a_run().run_id, 60))
    _leave(store)
    folder.revoke([a_run().run_id], a_run())
    write_checkpoint(store, folder.read())
    state = folder.read()
    store.put(layout.LATEST, json.dumps({"seq": state.seq, "checkpoint": state.seq}).encode())
    store.put(
        layout.SWEPT,
        json.dumps({"versions": 1, "seq": state.ended[0].seq, "deletedAt": START}).encode(),
    )
    weave(folder, 3, schema)  # one entry after the checkpoint
    listings = Listings(store, EpochNanos(START))
    listings.of("customer", "about").learn("file 1", EpochNanos(0), FileFacts(SCHEMA, "a", (1, 2)))
    listings.keep()
    for path in root.rglob("*"):
        os.utime(path, (LONG_AGO, LONG_AGO))


def _leave(store: ObjectStore) -> None:
    """What crashed runs leave: in staging, in a partition, and among unfinished writes."""
    one = a_run().run_id
    store.put(f"{layout.STAGING}{one}/0123abcd/part-00000.parquet", parquet())
    store.put(f"data/day=1/{one}-0123abcd-00000.parquet", parquet())
    store.put(".snaploom-tmp/unfinished", b"x")


def declarations(target: Path, folder: Path) -> Path:
    """Declarations of the output whose folder it is."""
    source = {
        "format": "parquet",
        "sourceUriGlobs": [f"file://{target}/customer/*.parquet"],
        "sourceUriPrefix": f"file://{target}/customer/{{day:STRING}}.parquet",
        "snapshot": {"fromFieldValue": {"fieldName": "day", "timeFormat": "ISO8601_DATE"}},
    }
    form = {"hivePartitioned": {"fieldName": "day", "timestampFormat": "UNIX_MILLISECONDS"}}
    interval = {
        "preference": "NEWEST",
        "intervalStartDate": START_DATE,
        "intervalLength": {"day": 1},
    }
    output = {
        "dataModel": {
            "rootDataSource": {
                "dataSource": "customer",
                "snapshotFilter": {"fromInterval": interval},
            }
        },
        "outputFolder": {
            "folderUri": f"file://{folder}",
            "dataFormat": "PARQUET",
            "dataCompression": "SNAPPY",
            "snapshotFormat": form,
            "snapshotAutoDelete": {"maxOldSnapshots": 1},
        },
    }
    documents: Sequence[object] = (
        document("DataSource", "customer", {"hdfsLike": source}),
        document("OutputDataset", IDENTITY.output, output),
    )
    path = target / "declarations.yaml"
    path.write_text(yaml.safe_dump_all(documents))
    return path
