"""Every format with every compression: what is written is read back, and nothing else is there."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from support.weaving.smallmodels import Loom, weave_into

from snaploom.errors import SourceSchemaInvalid
from snaploom.models.outputdataset import UNWRITABLE, DataCompression, DataFormat

pytestmark = pytest.mark.spark
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
def test_rows_come_back_from_every_format(
    spark: SparkSession, tmp_path: Path, data_format: DataFormat, compression: DataCompression
) -> None:
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


def test_dictionaries_are_small_where_zstandard_finds_repetitions_itself(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = spark.range(40_000, numPartitions=1).selectExpr("id % 12000 as many", "id % 9 as few")
    used: dict[DataCompression, list[bool]] = {}
    for codec in (DataCompression.SNAPPY, DataCompression.ZSTD):
        weave_into(tmp_path / codec, SINGLE.weave({"l": frame}), spark, compression=codec)
        [file] = (tmp_path / codec / "snapshot").glob("*.parquet")
        columns = pq.ParquetFile(file).metadata.row_group(0).to_dict()["columns"]
        used[codec] = [column["has_dictionary_page"] for column in columns]
    assert used == {DataCompression.SNAPPY: [True, True], DataCompression.ZSTD: [False, True]}


@pytest.mark.parametrize("data_format", [DataFormat.PARQUET, DataFormat.AVRO, DataFormat.JSONL])
def test_empty_snapshot_has_zero_rows_in_at_most_one_file(
    spark: SparkSession, tmp_path: Path, data_format: DataFormat
) -> None:
    woven = weave_into(tmp_path, SINGLE.weave({"l": spark.range(0)}), spark, data_format)
    assert (woven.counts.rows, woven.frame.count()) == (0, 0)
    files = [path for path in (tmp_path / "snapshot").iterdir() if path.name[0] != "."]
    assert len(files) <= 1


def test_void_column_is_refused_before_anything_is_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises(SourceSchemaInvalid, match=r"data\.nothing.*without a type"):
        weave_into(tmp_path, SINGLE.weave({"l": spark.sql("select null as nothing")}), spark)
    assert not (tmp_path / "snapshot").exists()


def test_type_that_only_spark_knows_is_refused_with_its_words(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = spark.sql("select parse_json('1') as v")
    with pytest.raises(SourceSchemaInvalid, match="AVRO cannot hold"):
        weave_into(tmp_path, SINGLE.weave({"l": frame}), spark, DataFormat.AVRO)
