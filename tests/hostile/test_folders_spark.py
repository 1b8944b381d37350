"""Hostile output folders in Spark's hands: what is given to it, and what its files may name."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.declared.shop import CommandResult, snaploom
from support.hostile.foldermutations import Outside, append, foreign_type, sealed, with_schema
from support.hostile.folderoperations import good_folder, parquet

from snaploom import reader
from snaploom.errors import ManifestCorrupt, NotAPlainFile, SourceSchemaInvalid
from snaploom.files.stores import open_store
from snaploom.output.folder import open_folder
from snaploom.sources.files.globs import list_files
from snaploom.sources.files.hadoop import HadoopFiles
from snaploom.sources.files.snapshots import only_live
from snaploom.spark.jvm import client_of
from snaploom.spark.types import schema_of

pytestmark = pytest.mark.spark


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    good_folder(tmp_path / "out")
    return tmp_path / "out"


@pytest.fixture
def canaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of somebody, which is on Python's path as well."""
    made = tmp_path / "canaries"
    made.mkdir()
    monkeypatch.syspath_prepend(made)
    (made / "precious.parquet").write_bytes(parquet(rows=100))
    return made


def live_file(folder: Path) -> Path:
    store = open_store(str(folder), create=False)
    return folder / open_folder(store).read().snapshots[0].files[0].path


def linked(folder: Path, canaries: Path) -> Path:
    path = live_file(folder)
    path.unlink()
    path.symlink_to(canaries / "precious.parquet")
    return path


def checked(folder: Path) -> CommandResult:
    return snaploom("check", str(folder), "-o", "json")


def test_good_folder_is_read_and_whole(spark: SparkSession, folder: Path) -> None:
    assert reader.read(spark, str(folder)).count() == 18
    assert checked(folder).code == 0


def test_link_in_place_of_a_published_file_is_not_read(spark, folder, canaries):
    linked(folder, canaries)
    with pytest.raises(NotAPlainFile, match="is a link"):
        reader.read(spark, str(folder))
    result = checked(folder)
    assert (result.code, "link" in result.out) == (1, True)


def test_link_in_place_of_a_partition_is_not_read(spark, folder, canaries):
    partition = live_file(folder).parent
    partition.rename(canaries / "partition")
    partition.symlink_to(canaries / "partition")
    with pytest.raises(NotAPlainFile, match="is a link"):
        reader.read(spark, str(folder))


def test_folder_that_is_a_source_is_not_read_through_a_link(spark, folder, canaries):
    linked(folder, canaries)
    files = list_files(
        [f"file://{folder}/data/*/*.parquet"], "DataSource/x", HadoopFiles(client_of(spark))
    )
    with pytest.raises(NotAPlainFile, match="is a link"):
        only_live(files, HadoopFiles(client_of(spark)))


def test_class_in_the_schema_of_a_manifest_is_not_loaded(spark, folder, canaries):
    with_schema(folder, foreign_type(Outside(canaries, "")))
    for look in (reader.schema, lambda place: reader.read(spark, place)):
        with pytest.raises(ManifestCorrupt, match="damaged"):
            look(str(folder))
    assert checked(folder).code == 1
    assert not (canaries / "imported").exists()


def test_class_in_the_footer_of_a_file_is_not_loaded(spark, folder, canaries):
    path = live_file(folder)
    hostile, size = parquet(foreign_type(Outside(canaries, ""))), path.stat().st_size
    for file in folder.glob("data/day=*/*"):
        file.write_bytes(hostile)
    for place in ("manifest", "checkpoint"):
        for document in (folder / "metadata" / place).iterdir():
            content = document.read_bytes().replace(b":%d," % size, b":%d," % len(hostile))
            index = content.partition(b"\n")[2]
            document.write_bytes(sealed(index) if place == "checkpoint" else content)
    assert reader.read(spark, str(folder)).count() == 18
    assert "user-defined type" in checked(folder).out
    with pytest.raises(SourceSchemaInvalid, match="not a schema"):
        schema_of(spark.read.parquet(str(path)))
    assert not (canaries / "imported").exists()


def test_name_that_leads_elsewhere_never_reaches_spark(spark: SparkSession, folder: Path) -> None:
    ended = {
        "time": "2020-01-03T00:00:00Z", "partition": "day=2", "publishedSeq": 4, "rule": "x",
        "deletedAt": "1970-01-01T00:00:00Z",
        "files": [{"path": "../canaries/precious.parquet", "bytes": 1}],
    }  # fmt: skip
    append(folder, {"action": "tombstone", "snapshots": [ended]})
    with pytest.raises(ManifestCorrupt, match="damaged"):
        reader.read(spark, str(folder))
    assert checked(folder).code == 1


def test_damaged_data_are_a_fault_and_no_internal_error(spark: SparkSession, folder: Path) -> None:
    path = live_file(folder)
    content = bytearray(path.read_bytes())
    content[20:60] = b"\xff" * 40
    path.write_bytes(content)
    result = checked(folder)
    assert (result.code, "internal error" in result.err) == (1, False)
