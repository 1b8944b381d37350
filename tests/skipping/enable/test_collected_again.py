"""Frames that are planned once and read again after files changed: rows as without skipping."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from support.skipping.indexeddata import build_index

from snaploom.skipping.spark.interfaces.enable import setting, without_skipping

Read = Callable[[DataFrame], list[int]]

READS: dict[str, Read] = {
    "collect": lambda frame: [row.i for row in frame.collect()],
    "rdd": lambda frame: [row.i for row in frame.rdd.collect()],
    "iterator": lambda frame: [row.i for row in frame.toLocalIterator()],
    "arrow": lambda frame: frame.toArrow()["i"].to_pylist(),
    "take": lambda frame: [row.i for row in frame.take(5)],
}


def write(spark: SparkSession, folder: Path, source: str, files: int = 4) -> str:
    """Files of two rows and of equal length: 10 and 11, 20 and 21, and so on."""
    for number in range(1, 1 + files):
        write_file(spark, folder / f"part-{number}.{source}", source, number * 10)
    return str(folder)


def write_file(spark: SparkSession, file: Path, source: str, first: int) -> None:
    made = file.parent.parent / f"{file.name}-made"
    frame = spark.range(first, first + 2, 1, 1).selectExpr("id as i")
    frame.write.format(source).mode("overwrite").save(str(made))
    (content,) = made.glob("part-*")
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content.read_bytes())


def replace(spark: SparkSession, folder: str, source: str, first: int = 94) -> None:
    """The third file by one of the same length, at the same time."""
    file = Path(folder) / f"part-3.{source}"
    before = file.stat()
    write_file(spark, file, source, first)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size


@pytest.mark.parametrize("first_generation", ["", "parquet,json"], ids=["v2", "v1"])
@pytest.mark.parametrize("source", ["parquet", "json"])
@pytest.mark.parametrize("kept", ["none", "one"])
def test_replaced_file_is_read_again(skipping, location, tmp_path, source, first_generation, kept):
    path = write(skipping, tmp_path / "t", source)
    build_index(skipping, location, path, ("i",), source=source)
    wanted = "i = 95" if kept == "none" else "i IN (95, 10)"
    with setting(skipping, "spark.sql.sources.useV1SourceList", first_generation):
        for first, read in zip((94, 30) * len(READS), READS.values(), strict=False):
            frame = skipping.read.format(source).schema("i bigint").load(path).where(wanted)
            before = read(frame)
            replace(skipping, path, source, first)
            held = [10] if kept == "one" else []
            assert sorted(read(frame)) == held + [95] * (first == 94), read
            assert sorted(before) == held + [95] * (first != 94), read


Frame = Callable[[SparkSession, str], DataFrame]
WANTED = "i IN (95, 10)"


def joined(spark: SparkSession, path: str) -> DataFrame:
    keys = spark.read.parquet(path).where(WANTED).hint("broadcast")
    return spark.range(100).selectExpr("id as i").join(keys, "i")


FRAMES: dict[str, Frame] = {
    "plain": lambda spark, path: spark.read.parquet(path).where(WANTED),
    "grouped": lambda spark, path: (
        spark.read.parquet(path).where(WANTED).groupBy("i").count().select("i")
    ),
    "joined": joined,
    "one partition": lambda spark, path: spark.read.parquet(path).where(WANTED).coalesce(1),
    "twice": lambda spark, path: (
        spark.read.parquet(path).where(WANTED).union(spark.read.parquet(path).where("i = 95"))
    ),
    "subquery": lambda spark, path: (
        spark.range(100)
        .selectExpr("id as i")
        .where(
            sql.col("i").isin([95, 10])
            & (sql.lit(0) <= spark.read.parquet(path).where(WANTED).agg(sql.count("i")).scalar())
        )
    ),
    "table": lambda spark, path: spark.table("again").where(WANTED),
    "buckets": lambda spark, path: spark.table("bucketed").where(WANTED),
    "buckets joined": lambda spark, path: (
        spark.table("bucketed")
        .where(WANTED)
        .alias("a")
        .join(spark.table("bucketed").alias("b"), "i")
    ),
    "files": lambda spark, path: (
        spark.read.parquet(path).where(WANTED).select("i", "_metadata.file_name")
    ),
}

SETTINGS: dict[str, dict[str, str]] = {
    "usual": {},
    "without adaptive plans": {"spark.sql.adaptive.enabled": "false"},
    "without vectors": {
        "spark.sql.parquet.enableVectorizedReader": "false",
        "spark.sql.codegen.wholeStage": "false",
    },
}


def exchange(file: Path) -> None:
    file.write_bytes(file.with_name("donor").read_bytes())


CHANGES: dict[str, Callable[[Path], object]] = {
    "replaced": exchange,
    "deleted": Path.unlink,
    "cut off": lambda file: file.write_bytes(b""),
    "added": lambda file: file.with_name("part-9.parquet").write_bytes(file.read_bytes()),
}


def outcome(frame: DataFrame) -> str:
    try:
        return str(sorted(tuple(row) for row in frame.collect()))
    except (PySparkException, Py4JJavaError) as error:
        return f"fails with {type(error).__name__}"


@contextmanager
def having(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    with ExitStack() as held:
        for name, value in settings.items():
            held.enter_context(setting(spark, name, value))
        yield


@pytest.mark.long
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_frame_gives_again_what_it_gives_without_skipping(
    skipping: SparkSession, location: str, tmp_path: Path, change: Callable[[Path], object]
) -> None:
    path = write(skipping, tmp_path / "t", "parquet")
    build_index(skipping, location, path, ("i",))
    skipping.sql(f"CREATE TABLE again USING parquet LOCATION '{path}'")
    buckets = str(tmp_path / "b")
    rows = skipping.read.parquet(path).repartition(1).sortWithinPartitions("i")
    rows.write.bucketBy(3, "i").option("path", buckets).saveAsTable("bucketed")
    build_index(skipping, location, buckets, ("i",))
    changed = [Path(path) / "part-3.parquet", *sorted(Path(buckets).glob("part-*"))[1:2]]
    for file in changed:
        write_file(skipping, file.with_name("_donor.parquet"), "parquet", 94)
        file.with_name("_donor.parquet").rename(file.with_name("donor"))
    planned: dict[str, tuple[dict[str, DataFrame], dict[str, DataFrame]]] = {}
    try:
        for case, settings in SETTINGS.items():
            with having(skipping, settings):
                on = {name: frame(skipping, path) for name, frame in FRAMES.items()}
                first = {name: outcome(frame) for name, frame in on.items()}
                with without_skipping(skipping):
                    off = {name: frame(skipping, path) for name, frame in FRAMES.items()}
                    assert {name: outcome(frame) for name, frame in off.items()} == first
            planned[case] = on, off
        for file in changed:
            change(file)
        for case, (on, off) in planned.items():
            with having(skipping, SETTINGS[case]):
                again = {name: outcome(frame) for name, frame in on.items()}
                assert again == {name: outcome(frame) for name, frame in off.items()}, case
    finally:
        skipping.sql("DROP TABLE again")
        skipping.sql("DROP TABLE bucketed")


def test_cached_frame_is_filled_again_as_without_skipping(skipping, location, tmp_path):
    path = write(skipping, tmp_path / "t", "parquet")
    build_index(skipping, location, path, ("i",))
    frame = skipping.read.parquet(path).where(WANTED).cache()
    assert [row.i for row in frame.collect()] == [10]
    kept = frame.rdd
    frame.unpersist(blocking=True)
    replace(skipping, path, "parquet")
    assert sorted(row.i for row in kept.collect()) == [10, 95]


def test_static_side_of_a_stream_is_looked_at_with_each_batch(skipping, location, tmp_path):
    path = write(skipping, tmp_path / "t", "parquet")
    build_index(skipping, location, path, ("i",))
    events = tmp_path / "events"
    skipping.range(100).selectExpr("id as i").write.json(str(events))
    static = skipping.read.parquet(path).where(WANTED)
    joined = skipping.readStream.schema("i bigint").json(str(events)).join(static, "i")
    found: list[list[int]] = []
    query = joined.writeStream.foreachBatch(
        lambda batch, _: found.append(sorted(row.i for row in batch.collect()))
    ).start()
    try:
        query.processAllAvailable()
        replace(skipping, path, "parquet")
        skipping.range(100).selectExpr("id as i").write.mode("append").json(str(events))
        query.processAllAvailable()
    finally:
        query.stop()
    assert (found[0], found[-1]) == ([10], [10, 95])
