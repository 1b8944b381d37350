"""The contract of object stores over a real HDFS, and the messages of its errors."""

import secrets
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from support.storage.objectstoresuite import *  # noqa: F403
from support.storage.objectstoresuite import keys
from support.weaving.smallmodels import Loom, weave_into

from snaploom.errors import FolderNotOurs, FolderNotWritable, SourceSchemaInvalid, StorageError
from snaploom.files.stores import UnsupportedStore, open_store
from snaploom.models.outputdataset import UNWRITABLE, DataCompression, DataFormat
from snaploom.spark.hadoopstore import HadoopObjectStore, hadoop_stores
from snaploom.spark.jvm import client_of

pytestmark = pytest.mark.spark


@pytest.fixture
def store(spark: SparkSession, hdfs: str) -> HadoopObjectStore:
    return HadoopObjectStore(client_of(spark), f"{hdfs}/{secrets.token_hex(8)} %3A/", create=True)


@pytest.fixture
def racing_store(store: HadoopObjectStore) -> HadoopObjectStore:
    return store


def test_directories_that_are_emptied_go_and_places_of_work_stay(spark, store):
    store.put("a/b/c", b"1")
    store.put("a/.staging/r/d", b"1")
    store.delete(["a/b/c", "a/.staging/r/d"])
    again = HadoopObjectStore(client_of(spark), f"{store.uri}a", create=False)
    assert [found.uri for found in again._listed(again.uri)] == [f"{again.uri}.staging"]
    store.prune("a/")
    assert again._listed(again.uri) == []


def test_store_is_opened_by_scheme_and_by_default_file_system(spark, hdfs):
    store = open_store(f"{hdfs}/by-scheme", create=True, others=hadoop_stores(spark))
    store.put_if_absent("a", b"1")
    assert (store.uri, keys(store)) == (f"{hdfs}/by-scheme/", {"a"})


def test_folder_that_refuses_is_an_error(spark: SparkSession, hdfs: str) -> None:
    root = HadoopObjectStore(client_of(spark), f"{hdfs}/full", create=True)
    root._files.setQuota(root._root, 3, 2**62)
    root.put_if_absent("a", b"1")
    with pytest.raises(FolderNotWritable, match="quota"):
        root.put_if_absent("b", b"1")


def test_unknown_host_is_an_error(spark: SparkSession) -> None:
    with pytest.raises(StorageError, match=r"nowhere\.invalid/x cannot be reached"):
        HadoopObjectStore(client_of(spark), "hdfs://nowhere.invalid/x", create=False)


def test_file_in_place_of_the_folder_stays(spark: SparkSession, hdfs: str) -> None:
    HadoopObjectStore(client_of(spark), f"{hdfs}/in-place", create=True).put("file", b"1")
    with pytest.raises(FolderNotOurs, match="was not touched"):
        HadoopObjectStore(client_of(spark), f"{hdfs}/in-place/file/", create=True)


@pytest.mark.parametrize("uri", ["nosuch://host/x/", "abfsx:/x"])
def test_scheme_unknown_to_hadoop_is_an_error(spark: SparkSession, uri: str) -> None:
    with pytest.raises(UnsupportedStore, match="no file system"):
        open_store(uri, create=True, others=hadoop_stores(spark))


def test_local_file_is_reached_the_same_way(spark: SparkSession, tmp_path: Path) -> None:
    store = HadoopObjectStore(client_of(spark), f"file://{tmp_path}", create=True)
    store.put("a/b", b"1")
    assert (tmp_path / "a/b").read_bytes() == b"1"


PAIRS = [
    (data_format, compression)
    for data_format in (DataFormat.PARQUET, DataFormat.AVRO, DataFormat.JSONL)
    for compression in DataCompression
    if (data_format, compression) not in UNWRITABLE
]
SINGLE = Loom("l", [], [])
VALUES = """
    select id, cast(id as byte) as byte, cast(id as short) as short, 1.25 as amount,
      double('nan') as nan, timestamp'2020-02-29 12:34:56.123456Z' as instant,
      timestamp_ntz'2020-02-29 12:34:56.123456' as local, date'2020-02-29' as day,
      map('k', cast(id as short)) as counts, array(null, 'x') as texts, X'00ff' as bytes,
      named_struct('deep', if(id = 0, null, named_struct('b', true))) as outer
    from range(3)
"""


@pytest.mark.parametrize(("data_format", "compression"), PAIRS)
def test_rows_come_back_from_every_format(spark, tmp_path, data_format, compression):
    frame = spark.sql(VALUES)
    woven = weave_into(tmp_path, SINGLE.weave({"l": frame}), spark, data_format, compression)
    assert str(woven.rows("data.id")) == str(frame.selectExpr("struct(*) as data").collect())


@pytest.mark.parametrize(
    ("data_format", "compression", "suffix"),
    [
        (DataFormat.PARQUET, DataCompression.ZSTD, ".zstd.parquet"),
        (DataFormat.AVRO, DataCompression.SNAPPY, ".avro"),
        (DataFormat.JSONL, DataCompression.GZIP, ".json.gz"),
        (DataFormat.JSONL, DataCompression.NONE, ".json"),
    ],
)
def test_folder_holds_data_files_and_no_success_marker(
    spark: SparkSession,
    tmp_path: Path,
    data_format: DataFormat,
    compression: DataCompression,
    suffix: str,
) -> None:
    weave_into(tmp_path, SINGLE.weave({"l": spark.range(3)}), spark, data_format, compression)
    names = [path.name for path in (tmp_path / "snapshot").iterdir() if path.name[0] != "."]
    assert names
    assert all(name.endswith(suffix) for name in names)


def test_dictionaries_are_small_where_zstandard_finds_repetitions_itself(spark, tmp_path):
    frame = spark.range(40_000, numPartitions=1).selectExpr("id % 12000 as many", "id % 9 as few")
    used: dict[DataCompression, list[bool]] = {}
    for codec in (DataCompression.SNAPPY, DataCompression.ZSTD):
        weave_into(tmp_path / codec, SINGLE.weave({"l": frame}), spark, compression=codec)
        [file] = (tmp_path / codec / "snapshot").glob("*.parquet")
        columns = pq.ParquetFile(file).metadata.row_group(0).to_dict()["columns"]
        used[codec] = [column["has_dictionary_page"] for column in columns]
    assert used == {DataCompression.SNAPPY: [True, True], DataCompression.ZSTD: [False, True]}


@pytest.mark.parametrize("data_format", [DataFormat.PARQUET, DataFormat.AVRO, DataFormat.JSONL])
def test_empty_snapshot_has_zero_rows_in_at_most_one_file(spark, tmp_path, data_format):
    woven = weave_into(tmp_path, SINGLE.weave({"l": spark.range(0)}), spark, data_format)
    assert (woven.counts.rows, woven.frame.count()) == (0, 0)
    files = [path for path in (tmp_path / "snapshot").iterdir() if path.name[0] != "."]
    assert len(files) <= 1


def test_void_column_is_refused_before_anything_is_written(spark, tmp_path):
    with pytest.raises(SourceSchemaInvalid, match=r"data\.nothing.*without a type"):
        weave_into(tmp_path, SINGLE.weave({"l": spark.sql("select null as nothing")}), spark)
    assert not (tmp_path / "snapshot").exists()


def test_type_that_only_spark_knows_is_refused_with_its_words(spark, tmp_path):
    frame = spark.sql("select parse_json('1') as v")
    with pytest.raises(SourceSchemaInvalid, match="AVRO cannot hold"):
        weave_into(tmp_path, SINGLE.weave({"l": frame}), spark, DataFormat.AVRO)
