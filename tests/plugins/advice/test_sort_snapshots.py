"""Published snapshots sorted for real: replaced whole, no row lost, nothing left over."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from support.declared.shop import snaploom
from support.storage.folders import MODEL, START, a_run, agrees, day, keys, now
from support.weaving.flightsfolder import ROWS, flights, published_folder, sort_quietly, state_of

from snaploom.engine.write import write_frame
from snaploom.files.stores import open_store
from snaploom.models.common import EpochNanos, format_instant
from snaploom.models.outputdataset import DataFormat
from snaploom.output.entries import Replace, SnapshotRecord, Tombstone, parse_entry
from snaploom.output.folder import Folder, open_folder
from snaploom.output.gc import collect_garbage, find_garbage
from snaploom.output.layout import manifest_key
from snaploom.output.publication import SnapshotTarget, WriteResult, publish
from snaploom.output.state import FolderState, tombstone_of
from snaploom.plugins.advice.requests import SnapshotsSorted
from snaploom.reader import read
from snaploom.skipping.core.valueorder import SortRequest

HOUR = 3600 * 1_000_000_000
NO_PROBLEM = "--acknowledge-readers"


def sort(root: Path, *options: object, by: str = "data.flight") -> object:
    result = snaploom(
        "index", "sort", root, "--by", by, "--curve", "LINEAR", NO_PROBLEM, "-o", "json", *options
    )
    assert result.code == 0, result.err
    return result.document


def rows_of(root: Path, record: SnapshotRecord) -> Counter[str]:
    files = [f"{root}/{file.path}" for file in record.files]
    return Counter(repr(row) for row in duckdb.read_parquet(files).fetchall())


@pytest.fixture(scope="module")
def unsorted(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("unsorted")
    published_folder(spark, root, snapshots=2)
    return root


@pytest.fixture(scope="module")
def replaced(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sorted")
    published_folder(spark, root, snapshots=2)
    sort(root)
    return root


def test_every_snapshot_is_replaced_by_one_entry(replaced: Path) -> None:
    state = state_of(replaced)
    store = open_store(str(replaced), create=False)
    entries = [parse_entry(store.get(manifest_key(seq)), str(seq)) for seq in (4, 5)]
    assert [type(entry) for entry in entries] == [Replace, Replace]
    assert state.seq == 5
    assert [record.seq for record in state.snapshots] == [4, 5]
    assert [ended.rule for ended in state.tombstones] == ["REPLACED", "REPLACED"]
    assert "data.flight" in entries[0].message  # type: ignore[union-attr]


def test_the_rows_are_the_same(unsorted: Path, replaced: Path) -> None:
    for time, record in state_of(unsorted).live.items():
        new = state_of(replaced).live[time]
        assert rows_of(replaced, new) == rows_of(unsorted, record)
        assert new.rows == ROWS


def test_the_reader_sees_the_same_rows(spark: SparkSession, unsorted: Path, replaced: Path) -> None:
    old, new = (read(spark, str(root)).drop("extra") for root in (unsorted, replaced))
    assert old.schema == new.schema
    assert new.exceptAll(old).isEmpty()
    assert new.count() == 2 * ROWS


def test_the_files_are_of_the_kind_that_a_run_writes(unsorted: Path, replaced: Path) -> None:
    old, new = (
        pq.ParquetFile(root / state_of(root).live[day(0)].files[0].path)
        for root in (unsorted, replaced)
    )
    assert new.schema.equals(old.schema)
    assert new.metadata.metadata == old.metadata.metadata
    chunks = [file.metadata.row_group(0).column(0) for file in (old, new)]
    assert chunks[0].compression == chunks[1].compression == "ZSTD"
    names = [file.path.split("-")[-1] for file in state_of(replaced).live[day(0)].files]
    assert names == ["00000.zstd.parquet"]


def test_a_pinned_reader_still_reads_the_old_version(spark: SparkSession, replaced: Path) -> None:
    assert read(spark, str(replaced), manifest=3).count() == 2 * ROWS


def test_printed_text_lists_what_was_done(spark: SparkSession, tmp_path: Path) -> None:
    published_folder(spark, tmp_path, snapshots=2)
    result = snaploom(
        "index", "sort", tmp_path, "--by", "data.flight", NO_PROBLEM,
        "--snapshot", format_instant(day(1)),
    )  # fmt: skip
    assert result.code == 0, result.err
    assert "1 snapshot sorted" in result.out
    assert "4 files" in result.out
    assert "snaploom gc" in result.out
    assert "4 of 4 files read" in result.err
    assert [record.seq for record in state_of(tmp_path).snapshots] == [2, 4]


def test_the_json_document_lists_what_was_done(spark: SparkSession, tmp_path: Path) -> None:
    published_folder(spark, tmp_path)
    document = sort(tmp_path)
    (only,) = document["snapshots"]  # type: ignore[index]
    assert (only["rows"], only["filesBefore"], only["files"], only["sequence"]) == (ROWS, 4, 1, 3)
    assert only["bytesBefore"] == sum(f.bytes for f in state_of(tmp_path).tombstones[0].files)
    listed = snaploom("snapshots", tmp_path, "-o", "json").document
    assert [one["rule"] for one in listed["tombstones"]] == ["REPLACED"]
    assert [one["fileCount"] for one in listed["snapshots"]] == [1]


def test_garbage_collection_after_grace_removes_the_old_files_and_no_others(spark, tmp_path):
    folder = published_folder(spark, tmp_path)
    old = state_of(tmp_path).live_files
    sort(tmp_path)
    state = state_of(tmp_path)
    assert keys(folder.store) == state.live_files | old
    late = find_garbage(folder.store, state, EpochNanos(now() + 2 * HOUR), HOUR)
    assert {item.key for item in collect_garbage(folder, late, a_run())} == old
    assert read(spark, str(tmp_path)).count() == ROWS


@pytest.mark.parametrize("data_format", [DataFormat.AVRO, DataFormat.JSONL])
def test_other_formats_are_sorted_too(spark, tmp_path, data_format):
    published_folder(spark, tmp_path, data_format)
    before = read(spark, str(tmp_path)).collect()
    document = sort(tmp_path, by="price")
    after = read(spark, str(tmp_path)).collect()
    assert document["snapshots"][0]["rows"] == ROWS  # type: ignore[index]
    assert Counter(map(repr, after)) == Counter(map(repr, before))
    prices = [row.price for row in after]
    assert prices == sorted(prices) != [row.price for row in before]


def test_nothing_happens_without_the_acknowledgement(unsorted: Path) -> None:
    result = snaploom("index", "sort", unsorted, "--by", "data.flight")
    assert result.code == 2
    assert NO_PROBLEM in result.err
    assert "twice" in result.err
    assert state_of(unsorted).seq == 3


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--by", "nothing"), 2, "there is no column nothing"),
        (("--by", "carrier.legs"), 2, "no index can be kept about carrier.legs"),
        (("--by", "price", "--snapshot", "2031-01-01T00:00:00Z"), 1, "no live snapshot"),
        (("--by", "price", "--snapshot", "2031-01-01"), 2, "not a time"),
    ],
)
def test_what_cannot_be_done_changes_nothing(spark, unsorted, options, code, message):
    result = snaploom("index", "sort", unsorted, NO_PROBLEM, *options)
    assert (result.code, message in result.err) == (code, True), result.err
    assert state_of(unsorted).seq == 3
    assert keys(open_store(str(unsorted), create=False)) == state_of(unsorted).live_files


def test_other_folders_need_a_new_one(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(10).write.parquet(str(tmp_path / "files"))
    result = snaploom("index", "sort", tmp_path / "files", "--by", "id", NO_PROBLEM)
    assert (result.code, "INTO" in result.err) == (2, True), result.err
    both = snaploom("index", "sort", tmp_path / "files", tmp_path / "n", "--by", "id", NO_PROBLEM)
    assert (both.code, "only published snapshots" in both.err) == (2, True), both.err


def test_the_folder_of_the_data_names_the_output_too(spark: SparkSession, tmp_path: Path) -> None:
    published_folder(spark, tmp_path)
    sort(tmp_path / "data")
    assert state_of(tmp_path).seq == 3


def test_files_that_lost_rows_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    folder = published_folder(spark, tmp_path, rows_too_many=1)
    before = folder.log.read()
    result = snaploom("index", "sort", tmp_path, "--by", "data.flight", NO_PROBLEM)
    assert (result.code, "4,000 rows in its files" in result.err) == (1, True), result.err
    assert open_folder(folder.store).log.read() == before
    assert keys(folder.store) == before.live_files


def test_file_that_is_gone_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    folder = published_folder(spark, tmp_path)
    before = folder.log.read()
    (tmp_path / before.snapshots[0].files[0].path).unlink()
    result = snaploom("index", "sort", tmp_path, "--by", "data.flight", NO_PROBLEM)
    assert result.code == 1
    assert open_folder(folder.store).log.read() == before


def bury(folder: Folder) -> None:
    def tombstone(state: FolderState) -> Tombstone:
        ended = tombstone_of(
            state.live[day(0)], seq=state.next_seq, rule="maxSnapshotAge", deleted_at=START
        )
        return Tombstone(
            seq=state.next_seq,
            run_id=a_run().run_id,
            written_at=START,
            tool_version="0.0.0",
            snapshots=(ended,),
        )

    folder.log.commit(tombstone)


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Lets something happen once, when the first sorted files are written."""

    def happens(act: Callable[[], object]) -> None:
        waiting = [act]

        def write(*arguments: object, **more: object) -> object:
            schema = write_frame(*arguments, **more)  # type: ignore[arg-type]
            if waiting:
                waiting.pop()()
            return schema

        monkeypatch.setattr("snaploom.plugins.advice.sort.write_frame", write)

    return happens


def test_snapshot_that_retention_deletes_meanwhile_stays_deleted(spark, tmp_path, meanwhile):
    folder = published_folder(spark, tmp_path, snapshots=2)
    meanwhile(lambda: bury(open_folder(folder.store)))
    result = snaploom("index", "sort", tmp_path, "--by", "price", NO_PROBLEM, "-o", "json")
    assert result.code == 1
    (left,) = result.document["left"]
    assert "deleted" in left["message"]
    state = state_of(tmp_path)
    assert set(state.live) == {day(1)}
    assert state.live[day(1)].run_id == result.document["runId"]
    assert keys(folder.store) == state.live_files | set(state.tombstoned_files)


def test_of_two_sorts_one_wins_and_the_other_leaves_nothing(spark, tmp_path, meanwhile):
    folder = published_folder(spark, tmp_path)
    winner: list[SnapshotsSorted] = []
    meanwhile(lambda: winner.append(sort_quietly(tmp_path, SortRequest(("price",)))))
    result = snaploom("index", "sort", tmp_path, "--by", "price", NO_PROBLEM, "-o", "json")
    assert (result.code, result.document["snapshots"]) == (1, [])
    state = state_of(tmp_path)
    assert state.live[day(0)].run_id == winner[0].run_id
    assert keys(folder.store) == state.live_files | set(state.tombstoned_files)
    assert read(spark, str(tmp_path)).count() == ROWS


def test_snapshots_without_rows_are_left(spark: SparkSession, tmp_path: Path) -> None:
    folder = published_folder(spark, tmp_path)
    schema = json.dumps(json.loads(flights(spark).schema.json()))
    target = SnapshotTarget(day(1), "day=1", "plan", MODEL)
    publish(folder, a_run(), target, lambda uri: WriteResult(0, schema), agrees)
    document = sort(tmp_path)
    assert [one["message"] for one in document["left"]] == ["it has no rows"]  # type: ignore[index]
    assert state_of(tmp_path).seq == 4
