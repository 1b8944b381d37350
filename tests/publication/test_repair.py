"""A manifest that is lost is made anew from files, as far as they prove it."""

from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.storage.faultystore import DyingStore, FaultyStore, Killed
from support.storage.folders import (
    IDENTITY,
    MODEL,
    SETTINGS,
    a_run,
    agrees,
    at,
    day,
    keys,
    published,
    replaced,
)

from snaploom.errors import FolderNotOurs, ManifestCorrupt
from snaploom.files.objectstore import ObjectStore
from snaploom.models.common import EpochNanos
from snaploom.models.outputdataset import HivePartitioned, TimestampFormat
from snaploom.output.entries import FolderSettings, SnapshotRecord
from snaploom.output.folder import CrashPoint, Folder, open_folder
from snaploom.output.publication import SnapshotTarget, WriteResult, publish
from snaploom.output.repair import find_snapshots, restore, time_of
from snaploom.output.state import FolderState
from snaploom.plan.times import partition_of

SCHEMA = '{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{}}]}'
SPARK = {b"org.apache.spark.sql.parquet.row.metadata": SCHEMA.encode()}


def parquet(rows: int, metadata: dict[bytes, bytes] | None = None) -> bytes:
    table = pa.table({"a": pa.array(range(rows), pa.int64())})
    stream = BytesIO()
    pq.write_table(table.replace_schema_metadata(SPARK if metadata is None else metadata), stream)
    return stream.getvalue()


def weave(folder: Folder, number: int, *files: bytes, run: object = None) -> SnapshotRecord:
    """Publish a snapshot of these files."""

    def write(uri: str) -> WriteResult:
        staging = uri.removeprefix(folder.store.uri)
        for place, content in enumerate(files):
            folder.store.put(f"{staging}part-{place:05d}.snappy.parquet", content)
        rows = sum(pq.read_metadata(BytesIO(content)).num_rows for content in files)
        return WriteResult(rows=rows, schema=SCHEMA)

    millis = day(number) // 1_000_000
    target = SnapshotTarget(day(number), f"day={millis}", "plan", MODEL)
    return publish(folder, run or a_run(), target, write, agrees).record  # type: ignore[arg-type]


def lose_the_manifest(store: ObjectStore) -> None:
    store.delete([*keys(store, "metadata/"), "snaploom.json"])


def repaired(store: ObjectStore) -> FolderState:
    return restore(store, SETTINGS, IDENTITY, MODEL, find_snapshots(store, SETTINGS), a_run())


def test_what_files_prove_is_live_again_with_rows_schema_and_the_same_files(folder):
    lost = [weave(folder, 0, parquet(3), parquet(4)), weave(folder, 2, parquet(5))]
    before = keys(folder.store)
    lose_the_manifest(folder.store)
    state = repaired(folder.store)
    fields = ("time", "partition", "rows", "files", "run_id", "schema_hash", "model_hash")
    assert [
        [getattr(r, n) for n in fields] for r in open_folder(folder.store).log.read().snapshots
    ] == [[getattr(record, name) for name in fields] for record in lost]
    assert keys(folder.store) == before
    assert state.settings == SETTINGS
    assert published(open_folder(folder.store), 7).record.seq == state.next_seq


def crashed(folder: Folder, point: CrashPoint, number: int) -> None:
    dying = FaultyStore(folder.store)
    run = a_run(at(point, dying.die))
    with pytest.raises(Killed):
        weave(open_folder(dying), number, parquet(1), parquet(1), run=run)


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda f: f.store.put(f"data/{f.log.read().snapshots[0].partition}/notes", b""), "name"),
        (lambda f: f.store.delete([f.log.read().snapshots[0].files[0].path]), "are missing"),
        (lambda f: f.store.put(f.log.read().snapshots[0].files[1].path, b"PAR1"), "no Parquet"),
        (
            lambda f: f.store.put(f.log.read().snapshots[0].files[1].path, parquet(1, {})),
            "no Parquet by Spark",
        ),
        (lambda f: crashed(f, CrashPoint.DURING_PROMOTION, 1), "died before"),
        (replaced, "2 works"),
    ],
)
def test_what_is_not_proven_is_reported_and_kept(folder, damage, why):
    weave(folder, 0, parquet(3), parquet(4))
    damage(folder)
    before = {info.key: info.size for info in folder.store.list("data/")}
    lose_the_manifest(folder.store)
    found = find_snapshots(folder.store, SETTINGS)
    assert [one.why for one in found.left if why in one.why]
    if found.snapshots:
        repaired(folder.store)
    assert {info.key: info.size for info in folder.store.list("data/")} == before


def test_a_run_that_died_after_its_files_were_complete_is_published(folder: Folder) -> None:
    crashed(folder, CrashPoint.AFTER_PROMOTION, 0)
    lose_the_manifest(folder.store)
    for key in keys(folder.store, "data/.staging/"):
        folder.store.delete([key])
    assert [record.rows for record in repaired(folder.store).snapshots] == [2]


def test_formats_without_footers_prove_nothing(folder: Folder) -> None:
    weave(folder, 0, parquet(1))
    lose_the_manifest(folder.store)
    settings = SETTINGS.model_copy(update={"data_format": "AVRO"})
    [left] = find_snapshots(folder.store, settings).left
    assert "AVRO" in left.why


def test_a_manifest_of_which_anything_is_left_is_not_made_anew(folder: Folder) -> None:
    weave(folder, 0, parquet(1))
    weave(folder, 1, parquet(1))
    folder.store.delete(["metadata/manifest/00000000000000000001.json"])
    with pytest.raises(ManifestCorrupt, match="is not lost"):
        find_snapshots(folder.store, SETTINGS)


def test_nothing_is_begun_where_nothing_is_proven(store: ObjectStore) -> None:
    store.put("holiday/1.jpg", b"")
    with pytest.raises(FolderNotOurs):
        repaired(store)
    assert keys(store, "") == {"holiday/1.jpg"}


@pytest.mark.parametrize("writes_left", range(1, 14))
def test_a_repair_that_died_goes_on(folder: Folder, writes_left: int) -> None:
    for number in range(3):
        weave(folder, number, parquet(number + 1))
    lose_the_manifest(folder.store)
    try:
        repaired(DyingStore(folder.store, writes_left, is_done=writes_left % 2 == 0))
    except Killed:
        repaired(folder.store)
    state = open_folder(folder.store).log.read()
    assert [record.rows for record in state.snapshots] == [1, 2, 3]


@given(
    st.integers(-(10**9), 4 * 10**9),
    st.sampled_from(TimestampFormat),
    st.sampled_from(["UTC", "Australia/Melbourne", "America/St_Johns"]),
)
def test_times_are_parsed_from_names_of_partitions(seconds, form, zone):
    time = EpochNanos(seconds * 10**9)
    hive = HivePartitioned(field_name="t", timestamp_format=form, output_timezone=zone)
    settings = FolderSettings(
        data_format="PARQUET",
        data_compression="ZSTD",
        partition_field_name="t",
        timestamp_format=form.value,
        output_timezone=zone,
    )
    assert time_of(settings, partition_of(hive, time).folder) == time


@pytest.mark.parametrize("partition", ["t=1", "day=x", "day", "day="])
def test_other_folders_have_no_time(partition: str) -> None:
    assert time_of(SETTINGS, partition) is None
