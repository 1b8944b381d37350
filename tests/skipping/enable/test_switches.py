from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from support.skipping.indexeddata import FILES, build_index, counted, last, write_files

from snaploom import skipping as public
from snaploom.errors import SkippingNotAvailable
from snaploom.skipping.spark.interfaces.enable import decider_of, setting
from snaploom.skipping.spark.optimizer import requests


def kept(frame: DataFrame) -> int:
    """Files read for one id."""
    decider_of(frame.sparkSession).counting.reset()
    assert frame.where("id = 5").count() == 1
    recent = counted(frame.sparkSession).recent
    return recent[-1].kept_files if recent else FILES


@pytest.mark.parametrize("name", [requests.ENABLED, requests.FLINT_ENABLED])
def test_setting_switches_a_session_off(rows: DataFrame, name: str) -> None:
    with setting(rows.sparkSession, name, "false"):
        assert kept(rows) == FILES
        assert not public.is_enabled(rows.sparkSession)
    assert kept(rows) == 1


def test_evaluate_only_counts_and_drops_nothing(rows: DataFrame) -> None:
    with setting(rows.sparkSession, requests.EVALUATE_ONLY, "true"):
        frame = rows.where("id = 5")
        assert frame.rdd.getNumPartitions() > 0
        assert kept(rows) == 1
        assert last(rows.sparkSession).is_evaluated_only
        plan = frame._jdf.queryExecution().optimizedPlan().toString()
    assert "Skipping" not in plan


def test_enabling_twice_adds_a_location(
    skipping: SparkSession, location: str, folder: Path, tmp_path: Path
) -> None:
    path = write_files(skipping, folder)
    other = str(tmp_path / "other")
    build_index(skipping, other, path, ("id",))
    assert kept(skipping.read.parquet(path)) == FILES
    public.enable(skipping, other)
    assert decider_of(skipping).bases == (location, other)
    assert kept(skipping.read.parquet(path)) == 1


def test_locations_may_come_from_the_session(
    skipping: SparkSession, folder: Path, tmp_path: Path
) -> None:
    path = write_files(skipping, folder)
    build_index(skipping, str(tmp_path / "own"), path, ("id",))
    with setting(skipping, requests.LOCATIONS, f"{tmp_path / 'none'}, {tmp_path / 'own'}"):
        assert kept(skipping.read.parquet(path)) == 1


def test_session_made_from_this_one_skips(skipping: SparkSession, indexed: str) -> None:
    other = skipping.newSession()
    assert public.is_enabled(other)
    assert kept(other.read.parquet(indexed)) == 1


def test_disabled_session_reads_every_file(spark: SparkSession, location: str) -> None:
    public.enable(spark, location)
    public.disable(spark)
    assert not public.is_enabled(spark)
    with pytest.raises(SkippingNotAvailable, match="not enabled"):
        public.statistics(spark)


def test_statistics_have_files_bytes_and_last_use(rows: DataFrame) -> None:
    assert kept(rows) == 1
    found = public.statistics(rows.sparkSession)
    assert (found.relations, found.served, found.dropped_files) == (1, 1, FILES - 1)
    assert 0 < found.kept_bytes < found.bytes
    (use,) = [each for each in found.indexes.values() if each.times]
    assert use.last_used > 0


def test_connect_session_gets_one_clear_message() -> None:
    module = "pyspark.sql.connect.session"
    session = type("SparkSession", (), {"__module__": module})()
    with pytest.raises(SkippingNotAvailable, match="Spark Connect session cannot skip"):
        public.enable(session)


def test_condition_that_no_index_serves_is_asked_about_once(rows: DataFrame) -> None:
    assert rows.where("odd + id = 6").groupBy("odd").count().count() == 2
    assert public.statistics(rows.sparkSession).relations == 1
