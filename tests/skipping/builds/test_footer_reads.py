"""Footers of many files and of other file systems, against those that Python reads here."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from support.skipping.indexeddata import build, index, names

from snaploom.skipping.spark.builds import footers
from snaploom.skipping.spark.builds.footers import FooterReader, FooterTerm
from snaploom.skipping.spark.interfaces.enable import disable, enable
from snaploom.skipping.spark.interfaces.indexbuilder import skipping_index
from snaploom.skipping.spark.relations.hadoop import FileState, are_as_listed, states_of
from snaploom.skipping.spark.targets.targetlookup import open_path

READER = FooterReader((FooterTerm(("id",), "bigint"), FooterTerm(("text",), "string")), False)


@pytest.fixture
def files(spark: SparkSession, tmp_path: Path) -> Path:
    """Five Parquet files of ten rows."""
    frame = spark.range(0, 50, 1, 5).selectExpr("id", "string(id) AS text", "id / 2D AS half")
    frame.write.parquet(str(tmp_path / "files"))
    return tmp_path / "files"


@pytest.fixture
def mounted(spark: SparkSession, files: Path) -> Iterator[str]:
    """The same files under a file system that only Hadoop knows."""
    # Hadoop keeps a file system by its authority, so that every test needs one of its own.
    name = f"mount-{hashlib.sha256(str(files).encode()).hexdigest()[:12]}"
    setting = f"fs.viewfs.mounttable.{name}.link./files"
    spark.conf.set(setting, files.as_uri())
    yield f"viewfs://{name}/files"
    spark.conf.unset(setting)


def read(spark: SparkSession, folder: Path, root: str) -> pa.Table:
    """What footers prove, of files by which a file system calls them."""
    found = sorted(folder.glob("*.parquet"))
    paths = [f"{root}/{path.name}" for path in found]
    return READER.read(spark, paths, [path.stat().st_size for path in found]).facts


@pytest.mark.parametrize("first_bytes", [8, 100, 1 << 15])
def test_the_jvm_reads_the_same_footers(
    first_bytes: int, spark: SparkSession, files: Path, mounted: str, monkeypatch
) -> None:
    monkeypatch.setattr(footers, "_FIRST_BYTES", first_bytes)
    monkeypatch.setattr(footers, "_FILES_OF_A_CALL", 2)
    here, there = (read(spark, files, root).drop(["length"]) for root in (f"file:{files}", mounted))
    assert here == there
    assert there.column("rows").to_pylist() == [10] * 5


@pytest.mark.parametrize(
    "content", [b"", b"PAR1", b"no Parquet file at all", b"\xff" * 40, b"\x10\0\0\0PARQ" * 4]
)
def test_what_is_no_parquet_file_has_a_failure_for_a_footer(
    content: bytes, spark: SparkSession, files: Path, mounted: str
) -> None:
    (files / "odd.parquet").write_bytes(content)
    found = read(spark, files, mounted)
    (odd,) = (row for row in found.to_pylist() if row["rows"] is None)
    assert odd["failure"]
    assert found.column("rows").to_pylist().count(10) == 5


@pytest.mark.parametrize(
    ("listed", "now", "expected"),
    [
        (FileState(1, 2), FileState(1, 2), True),
        (FileState(1, 2, "a"), FileState(1, 2, "a"), True),
        (FileState(1, 2, "a"), FileState(1, 2, "b"), False),
        (FileState(1, 2), FileState(1, 2, "b"), True),
        (FileState(1, 2), FileState(1, 3), False),
        (FileState(1, 2), FileState(2, 2), False),
        (FileState(1, 2), None, False),
    ],
)
def test_states_agree_about_one_content(
    listed: FileState, now: FileState | None, expected: bool
) -> None:
    assert listed.agrees(now) is expected
    assert are_as_listed(columns(listed), columns(now)).tolist() == [expected]


def columns(state: FileState | None) -> pa.Table:
    facts = (None,) * 3 if state is None else (state.length, state.modified, state.etag)
    kinds = (pa.int64(), pa.int64(), pa.large_string())
    arrays = [pa.array([fact], kind) for fact, kind in zip(facts, kinds, strict=True)]
    return pa.table(arrays, ["length", "modified", "etag"])


def test_a_file_that_is_gone_has_no_state_and_no_footer(
    spark: SparkSession, files: Path, mounted: str
) -> None:
    size = next(files.glob("*.parquet")).stat()
    known = f"{mounted}/{next(files.glob('*.parquet')).name}"
    expected = FileState(size.st_size, size.st_mtime_ns // 1_000_000)
    found = states_of(spark, [known, f"{mounted}/gone"]).select(["length", "modified"])
    assert found.to_pylist() == [
        {"length": expected.length, "modified": expected.modified},
        {"length": None, "modified": None},
    ]
    (gone,) = READER.read(spark, [f"{mounted}/gone"], [100]).facts.to_pylist()
    assert gone["failure"]


def test_min_max_of_a_file_system_of_hadoop_reads_footers_only(
    spark: SparkSession, mounted: str
) -> None:
    target = open_path(spark, mounted, "parquet")
    rows = build(target, index(target, "MIN_MAX", "id"))
    assert [row["i1.max"] for row in rows] == [9, 19, 29, 39, 49]
    assert (target.counters.footer_files, target.counters.scanned_files) == (5, 0)


def test_what_footers_cannot_prove_is_scanned_there(spark: SparkSession, mounted: str) -> None:
    target = open_path(spark, mounted, "parquet")
    rows = build(target, index(target, "MIN_MAX", "half"))
    assert [row["i1.max"] for row in rows] == [4.5, 9.5, 14.5, 19.5, 24.5]
    assert target.counters.scanned_files == 5


def test_a_file_rewritten_there_while_it_is_read_is_left_out(
    spark: SparkSession, files: Path, mounted: str
) -> None:
    target = open_path(spark, mounted, "parquet")
    listed = target.list_files("")
    changed = sorted(files.glob("*.parquet"))[0]
    changed.write_bytes(sorted(files.glob("*.parquet"))[1].read_bytes() + b" ")
    pieces = target.build([index(target, "MIN_MAX", "id")], listed, lambda done, total: None)
    rows = [row for piece in pieces for row in piece.to_pylist()]
    assert len(rows) == 4
    assert changed.name not in names(rows)


def test_queries_skip_files_there(spark: SparkSession, mounted: str, tmp_path: Path) -> None:
    building = skipping_index(spark, str(tmp_path / "i")).on_path(mounted)
    building.add_min_max("id").create()
    building.refresh()
    enable(spark, str(tmp_path / "i"))
    frame = spark.read.parquet(mounted).where("id = 17")
    assert [row.id for row in frame.collect()] == [17]
    assert "1 of 5 files" in frame._jdf.queryExecution().toString()
    disable(spark)
