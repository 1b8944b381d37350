"""Every way into an output folder that needs no Spark, to be tried on one that an enemy wrote."""

import contextlib
import io
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
    now,
)

from snaploom import reader
from snaploom.cli.main import run_command
from snaploom.errors import SnaploomError
from snaploom.files.objectstore import ObjectStore
from snaploom.files.stores import open_store
from snaploom.models.common import EpochNanos
from snaploom.output import layout
from snaploom.output.caches import FileFacts, Listings
from snaploom.output.checkpoints import write_checkpoint
from snaploom.output.folder import Folder, FolderOwner, inspect_folder, open_folder, prepare_folder
from snaploom.output.gc import sweep
from snaploom.output.history import SchemaDocuments, store_merged_schema
from snaploom.output.leaseholder import ClaimLease
from snaploom.output.leases import Swap
from snaploom.output.publication import WriteResult, publish
from snaploom.output.removal import remove_folder
from snaploom.run.declarations import read_declarations
from snaploom.run.runevents import estimate_of
from snaploom.run.weaving.history import delete_old_snapshots
from snaploom.run.weaving.preflight import published_state

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


_RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\ud800-\udfff]|^forged line", re.MULTILINE)
"""What no message may hold, and a line that none of ours begins with."""


@dataclass(frozen=True)
class Place:
    """A hostile folder, and declarations of the output that it claims to be of."""

    folder: Path
    declarations: Path


Operation = Callable[[Place], object]


class Broken(AssertionError):
    """An operation that an enemy's folder broke."""


def command(*arguments: str) -> None:
    """Run a command line in this process; whatever it prints is for people."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run_command(arguments)
    printed = out.getvalue() + err.getvalue()
    if code not in (0, 1, 2) or "internal error" in printed or "Traceback" in printed:
        raise Broken(f"{arguments[0]} ended with {code}: {printed[-2000:]}")
    if found := _RAW.search(printed):
        raise Broken(f"{arguments[0]} printed {found[0]!r}: {printed[-2000:]!r}")


def begin_run(place: Place) -> None:
    """What a run does with its folder before, during and after weaving; nothing is woven."""
    store = open_store(str(place.folder), create=True)
    inspect_folder(store, SETTINGS, IDENTITY)
    run = a_run(start=now())
    folder = prepare_folder(store, SETTINGS, IDENTITY, run)
    state = folder.read()
    published_state(store, state)
    estimate_of(state, 3)
    Listings(store, EpochNanos(now())).of("customer", "about")
    lease = ClaimLease(folder, run)
    held = lease.swap(Swap(lease.read(), run.run_id, 60))
    if held is not None:
        lease.swap(Swap(held, run.run_id, 60))

    def write(uri: str) -> WriteResult:
        folder.store.put(f"{uri.removeprefix(store.uri)}part-0.parquet", parquet())
        return WriteResult(rows=3, schema=SCHEMA)

    publish(folder, run, a_target(9), write, agrees, leftover_grace=0)
    store_merged_schema(store, folder.read(), SchemaDocuments(store))


def retain(place: Place) -> None:
    """Deletion by retention, and removal of what ended."""
    output = read_declarations([place.declarations]).bundle(IDENTITY.output).output
    folder = open_folder(open_store(str(place.folder), create=False))
    run = a_run(start=now())
    delete_old_snapshots(folder, run, output, now())
    sweep(folder, run, now(), silence=0)


def remove(place: Place) -> None:
    store = open_store(str(place.folder), create=False)
    remove_folder(store, FolderOwner(IDENTITY.output, "", ""), a_run(start=now()))


LOOKING: Mapping[str, Operation] = {
    "snapshots": lambda place: command("snapshots", str(place.folder)),
    "files": lambda place: command("files", str(place.folder)),
    "snapshots -o json": lambda place: command("snapshots", str(place.folder), "-o", "json"),
    "gc --dry-run": lambda place: command("gc", str(place.folder), "--dry-run"),
    "check": lambda place: command("check", str(place.folder), "--files-only"),
    "check -o json": lambda place: command(
        "check", str(place.folder), "--files-only", "-o", "json"
    ),
    "diff": lambda place: command("diff", IDENTITY.output, "-f", str(place.declarations)),
    "repair": lambda place: command("repair", IDENTITY.output, "-f", str(place.declarations)),
    "schema": lambda place: reader.schema(str(place.folder)),
    "absences": lambda place: reader.absences(str(place.folder)),
}
"""Operations that change nothing."""

CHANGING: Mapping[str, Operation] = {
    "run": begin_run,
    "retention": retain,
    "gc": lambda place: command("gc", str(place.folder), "--grace", "0s", "--below-reader-grace"),
    "repair --yes": lambda place: command(
        "repair", IDENTITY.output, "-f", str(place.declarations), "--yes"
    ),
    "delete": remove,
}
"""Operations that write or remove."""


def enter(operation: Operation, place: Place) -> None:
    """Try an operation; it succeeds, or reports in one error of ours why not.

    Raises:
        Broken: it did something else.
    """
    try:
        operation(place)
    except SnaploomError as error:
        if found := _RAW.search(str(error)):
            raise Broken(f"{found[0]!r} in {str(error)!r}") from error
