"""Files on HDFS that were replaced, with their length and time made to be what they were."""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession
from support.skipping.onequalsoff import skipping_by

from snaploom.skipping.spark.interfaces.enable import explain
from snaploom.skipping.spark.interfaces.indexbuilder import skipping_index
from snaploom.skipping.spark.interfaces.manage import SkippingIndexes
from snaploom.skipping.statements.syntax import PathName
from snaploom.spark.jvm import jvm_of

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DAYS = 3


@dataclass(frozen=True)
class Lake:
    """A folder on HDFS, one file a day, and bounds of `a` about them in a local folder."""

    spark: SparkSession
    uri: str
    folder: Path

    @property
    def location(self) -> str:
        return str(self.folder / "index")

    def path(self, name: str) -> JavaObject:
        return jvm_of(self.spark).org.apache.hadoop.fs.Path(f"{self.uri}/{name}")

    @property
    def indexes(self) -> SkippingIndexes:
        return SkippingIndexes(self.spark, self.location)

    @property
    def subject(self) -> PathName:
        return PathName("parquet", self.uri)

    @property
    def client(self) -> JavaObject:
        conf = self.spark._jsparkSession.sessionState().newHadoopConf()
        return self.path("day=0").getFileSystem(conf)

    def put(self, name: str, value: int) -> None:
        local = self.folder / "file.parquet"
        pq.write_table(pa.table({"a": [value]}), local)
        source = jvm_of(self.spark).org.apache.hadoop.fs.Path(local.as_uri())
        self.client.copyFromLocalFile(False, True, source, self.path(name))

    def read(self) -> DataFrame:
        return self.spark.read.parquet(self.uri)

    def found(self, condition: str) -> int:
        with skipping_by(self.spark, self.location):
            return self.read().where(condition).count()


def name_of(day: int) -> str:
    return f"day={day}/part.parquet"


@pytest.fixture
def lake(spark: SparkSession, hdfs: str, tmp_path: Path) -> Lake:
    made = Lake(spark, f"{hdfs}/{tmp_path.name}", tmp_path)
    for day in range(DAYS):
        made.put(name_of(day), day)
    skipping_index(spark, made.location).on_path(made.uri, "parquet").add_min_max("a").create()
    made.indexes.refresh(made.subject)
    return made


def overwritten(lake: Lake, name: str, value: int) -> None:
    """As `hdfs dfs -put -f -p` and `distcp -pt` leave a file."""
    lake.put(name, value)


def renamed(lake: Lake, name: str, value: int) -> None:
    lake.put("_prepared", value)
    lake.client.delete(lake.path(name), False)
    assert lake.client.rename(lake.path("_prepared"), lake.path(name))


@pytest.mark.parametrize("replaced", [overwritten, renamed])
@pytest.mark.parametrize("threshold", [32, 0], ids=["listed by the driver", "listed by a job"])
def test_same_length_and_time_set_back_is_read(lake, replaced, threshold):
    path = lake.path(name_of(0))
    before = lake.client.getFileStatus(path)
    replaced(lake, name_of(0), 2)
    lake.client.setTimes(path, before.getModificationTime(), -1)
    after = lake.client.getFileStatus(path)
    assert after.getLen() == before.getLen()
    assert after.getModificationTime() == before.getModificationTime()
    key = "spark.sql.sources.parallelPartitionDiscovery.threshold"
    lake.spark.conf.set(key, threshold)
    try:
        assert lake.found("a = 2") == 2
    finally:
        lake.spark.conf.unset(key)


def test_unchanged_files_are_skipped_and_the_description_shows_by_what(lake):
    with skipping_by(lake.spark, lake.location):
        (outcome,) = explain(lake.read().where("a = 2")).relations
    assert (outcome.kept_files, outcome.indexes[0].stale) == (1, 0)
    described = lake.indexes.describe(lake.subject)
    assert described.same_file.endswith("milliseconds, the number that HDFS gave the file")
