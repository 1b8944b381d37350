"""`snaploom.read` looks only at snapshots that a query chooses, and reads what is published."""

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import DataFrame, SparkSession
from support.weaving.loom import Loom

import snaploom
from snaploom import ondemand, reader
from snaploom.errors import SnaploomError
from snaploom.models.report import RunPhase

pytestmark = pytest.mark.spark

FIRST = 1_704_067_200_000
DAY = 86_400_000
DAYS = (1, 2, 3, 4)
CONDITIONS = (
    "true",
    "false",
    f"snapshot_epoch = {FIRST + DAY}",
    f"snapshot_epoch IN ({FIRST}, {FIRST + 2 * DAY}, 7)",
    f"snapshot_epoch > {FIRST} AND data.id < 2",
    f"snapshot_epoch = {FIRST} OR data.id = 3",
    f"NOT (snapshot_epoch <=> {FIRST}) AND snapshot_epoch % 7 <> 1",
    "snapshot_epoch IS NULL",
    f"snapshot_epoch = (SELECT max(id) FROM range({FIRST + DAY}, {FIRST + DAY + 1}))",
    f"CAST(snapshot_epoch AS STRING) LIKE '{FIRST + 3 * DAY}%'",
    f"_metadata.file_name LIKE '%.parquet' AND SNAPSHOT_EPOCH >= {FIRST + 2 * DAY}",
)


@pytest.fixture(scope="module")
def woven(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Loom:
    """Four days; day n has n rows, with ids from 0 on."""
    loom = Loom(tmp_path_factory.mktemp("index"))
    weave(spark, loom)
    return loom


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> None:
    """No snapshot is read ahead, as in a history of more than that many."""
    monkeypatch.setattr(reader, "READ_AHEAD", 0)


def weave(spark: SparkSession, loom: Loom, first: int = 1) -> None:
    for day in DAYS:
        rows = first if day == 1 else day
        loom.write("order", day, pa.table({"id": pa.array(range(rows), pa.int64())}))
    assert loom.weave(spark).report.phase is RunPhase.SUCCEEDED


def rows(frame: DataFrame) -> list[tuple[int, int]]:
    return sorted((row[0], row[1]) for row in frame.select("snapshot_epoch", "data.id").collect())


def location(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def only_file(loom: Loom, day: int) -> Path:
    (found,) = (loom.out / "data" / f"snapshot_epoch={FIRST + (day - 1) * DAY}").glob("*.parquet")
    return found


@pytest.fixture
def by_paths(monkeypatch: pytest.MonkeyPatch, spark: SparkSession, woven: Loom) -> DataFrame:
    with monkeypatch.context() as context:
        context.setattr(ondemand, "published_frame", no_frame, raising=False)
        return snaploom.read(spark, woven.uri)


def no_frame(*_: object) -> None:
    """A Spark that our sources do not fit."""


@pytest.mark.usefixtures("far")
def test_conditions_choose_the_rows_that_they_choose_of_all_files(spark, woven, by_paths) -> None:
    frame = snaploom.read(spark, woven.uri)
    assert frame.schema == by_paths.schema
    assert "PublishedFiles" in location(frame)
    assert "PublishedFiles" not in location(by_paths)
    for condition in CONDITIONS:
        assert rows(frame.where(condition)) == rows(by_paths.where(condition)), condition


@pytest.mark.usefixtures("far")
def test_only_chosen_snapshots_are_looked_at(spark, woven, monkeypatch) -> None:
    asked: list[int] = []
    files = reader._Selection._files
    monkeypatch.setattr(
        reader._Selection, "_files", lambda self, at: asked.append(at.time) or files(self, at)
    )
    frame = snaploom.read(spark, woven.uri)
    assert asked == []
    assert len(rows(frame.where(f"snapshot_epoch = {FIRST + DAY}"))) == 2
    assert asked == [(FIRST + DAY) * 10**6]


def test_a_join_by_snapshots_reads_those_of_the_other_side(spark, woven) -> None:
    frame = snaploom.read(spark, woven.uri)
    days = spark.createDataFrame([(FIRST + 2 * DAY,)], "snapshot_epoch BIGINT")
    assert frame.join(days, "snapshot_epoch").count() == 3
    assert frame.alias("a").join(frame.alias("b"), "snapshot_epoch").count() == 1 + 4 + 9 + 16


def test_size_is_that_of_the_files_while_few_entries_have_to_be_read(spark, woven, monkeypatch):
    def size() -> int:
        plan = snaploom.read(spark, woven.uri)._jdf.queryExecution().optimizedPlan()
        return int(str(plan.stats().sizeInBytes()))

    files = [only_file(woven, day).stat().st_size for day in DAYS]
    assert size() == sum(files)
    monkeypatch.setattr(reader, "READ_AHEAD", 3)
    assert size() == spark._jsparkSession.sessionState().conf().defaultSizeInBytes()


def test_a_frame_names_the_files_that_it_may_read(spark, woven) -> None:
    named = {
        Path(uri.removeprefix("file:")) for uri in snaploom.read(spark, woven.uri).inputFiles()
    }
    assert named == {only_file(woven, day) for day in DAYS}


@pytest.fixture
def damaged(spark: SparkSession, tmp_path: Path) -> Loom:
    loom = Loom(tmp_path)
    weave(spark, loom)
    return loom


@pytest.mark.usefixtures("far")
@pytest.mark.parametrize(
    ("length", "found"),
    [
        (None, "is not there.*`snaploom check`"),
        (0, "has 0 bytes, "),
        (100, "has 100 bytes, "),
    ],
)
def test_a_published_file_that_is_gone_or_cut_fails_the_queries_that_need_it(
    length: int | None, found: str, spark, damaged
) -> None:
    file = only_file(damaged, 2)
    file.unlink() if length is None else os.truncate(file, length)
    frame = snaploom.read(spark, damaged.uri)
    assert len(rows(frame.where(f"snapshot_epoch > {FIRST + DAY}"))) == 7
    with pytest.raises(IllegalArgumentException, match=f"{file.name} {found}"):
        frame.count()


def test_a_published_file_that_became_a_link_is_not_read(spark, damaged, monkeypatch) -> None:
    file = only_file(damaged, 2)
    os.rename(file, file.with_suffix(".aim"))
    file.symlink_to(file.with_suffix(".aim"))
    with pytest.raises(SnaploomError, match="link"):
        snaploom.read(spark, damaged.uri)
    monkeypatch.setattr(reader, "READ_AHEAD", 0)
    frame = snaploom.read(spark, damaged.uri)
    with pytest.raises(IllegalArgumentException, match="link"):
        frame.count()


def test_an_output_that_is_made_anew_in_its_place_is_read_anew(spark, damaged) -> None:
    assert snaploom.read(spark, damaged.uri).count() == 10
    shutil.rmtree(damaged.out)
    weave(spark, damaged, first=2)
    assert snaploom.read(spark, damaged.uri).count() == 11
