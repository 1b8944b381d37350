"""Time to build indexes and to query with them: `make bench-skipping`.

1. A million rows of index without files: deciding, matching, opening.
2. 200 Parquet files of 20,000 rows: builds, a refresh with nothing to do, sizes, footer bytes.
3. The same files queried with skipping on and off, in turn.
4. 10,000 and 100,000 small files.
"""

import argparse
import os
import shutil
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from evaluation import evaluation_figures
from figures import Figure, publish
from indexload import load_figures
from pyspark.sql import DataFrame, SparkSession

from snaploom.models.run import DriverSettings, RunSettings, SparkSettings
from snaploom.parquet.footers import local_footer_bytes, parse_footer
from snaploom.parquet.statistics import column_statistics
from snaploom.run.session.spark import build_session
from snaploom.skipping.spark.interfaces.enable import enable, without_skipping
from snaploom.skipping.spark.interfaces.indexbuilder import IndexBuilder, skipping_index
from snaploom.skipping.spark.targets.targetlookup import open_path
from snaploom.skipping.stores.catalog import open_base

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "snaploom"
WORK = CACHE / "benchmarks" / "skipping"
FILES, ROWS = 200, 20_000
SETTINGS = RunSettings(spark=SparkSettings(driver=DriverSettings(memory="4g")))

WIDE = "id BIGINT, price DOUBLE, city STRING, key STRING"

QUERIES = {
    "selective": "id = 777777",
    "range": "id BETWEEN 1000000 AND 1100000",
    "unselective": "id >= 0",
    "point": "key = 'k0000000000000000'",
}


def main() -> int:
    """Measure, publish; fail when a goal is not met."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=16, help="pairs of queries")
    parser.add_argument("--small-files", type=int, nargs="*", default=[10_000, 100_000])
    arguments = parser.parse_args()
    figures = [*evaluation_figures(), *load_figures(WORK / "load")]
    data = wide_files(WORK / "files")
    spark = build_session("bench-skipping", SETTINGS)
    figures += build_figures(spark, data)
    figures += query_figures(spark, data, arguments.repeat)
    for count in arguments.small_files:
        figures += small_file_figures(spark, count, arguments.repeat)
    spark.stop()
    publish("Skipping", "make bench-skipping", figures)
    return 0 if all(figure.ok for figure in figures) else 1


def wide_files(folder: Path) -> Path:
    """4,000,000 rows: `id` ascending over the files, `city` one of a few a file, `key` random."""
    if (folder / "_SUCCESS").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    random = np.random.default_rng(0)
    for number in range(FILES):
        ids = np.arange(number * ROWS, (number + 1) * ROWS)
        table = pa.table(
            {
                "id": ids,
                "price": random.random(ROWS),
                "city": [f"city-{number // 4}-{at % 20}" for at in range(ROWS)],
                "key": [f"k{key:016x}" for key in random.integers(1, 2**62, ROWS)],
            }
        )
        pq.write_table(table, folder / f"part-{number:05d}.parquet")
    (folder / "_SUCCESS").touch()
    return folder


def build_figures(spark: SparkSession, data: Path) -> list[Figure]:
    """Builds beside the seconds that Xskipper took, no-op refresh, sizes."""
    declared: Mapping[str, tuple[Callable[[IndexBuilder], IndexBuilder], float]] = {
        "minMax": (lambda builder: builder.add_min_max("id"), 1.0),
        "minMax + valueSet": (
            lambda builder: builder.add_min_max("id").add_value_set("city"),
            3.0,
        ),
        "bloom": (lambda builder: builder.add_bloom_filter("key"), 3.0),
    }
    figures = []
    for name, (declare, goal) in declared.items():
        base = WORK / "indexes" / name.replace(" ", "")
        built = [built_index(spark, data, base, declare) for _ in range(3)]
        figures.append(
            Figure.at_most(f"build {name}, 200 files, seconds", statistics.median(built), goal)
        )
        again = [seconds(partial(refreshed, spark, data, base)) for _ in range(5)]
        if name == "minMax":
            middle = statistics.median(again)
            figures.append(Figure.at_most("refresh with nothing to do, seconds", middle, 0.2))
            figures += footer_figures(spark, data)
        figures.append(Figure(f"size of the index, {name}, KiB", round(folder_kib(base), 1)))
    return figures


def built_index(
    spark: SparkSession, data: Path, base: Path, declare: Callable[[IndexBuilder], IndexBuilder]
) -> float:
    shutil.rmtree(base, ignore_errors=True)
    base.mkdir(parents=True)
    declare(skipping_index(spark, str(base)).on_path(str(data))).create()
    return seconds(lambda: refreshed(spark, data, base))


def refreshed(spark: SparkSession, data: Path, base: Path) -> None:
    skipping_index(spark, str(base)).on_path(str(data)).refresh()


def footer_figures(spark: SparkSession, data: Path) -> list[Figure]:
    """Bytes that a build reads, against the sum of the footers: no data page is touched."""
    target = open_path(spark, str(data), "parquet")
    store = open_base(str(WORK / "indexes" / "minMax")).index(target.target.uri)
    definition = store.read().definition
    assert definition is not None
    for _ in target.build(definition.indexes, target.list_files(""), lambda done, total: None):
        pass
    smallest = sum(footer_length(path) for path in data.glob("*.parquet"))
    ratio = target.counters.footer_bytes / smallest
    return [Figure.at_most("bytes read by a minMax build / sum of footers", ratio, 1.05)]


def footer_length(path: Path) -> int:
    with path.open("rb") as file:
        file.seek(-8, os.SEEK_END)
        return int.from_bytes(file.read(4), "little") + 8


def query_figures(spark: SparkSession, data: Path, repeat: int) -> list[Figure]:
    """Each query on and off in turn; answers must be equal."""
    enable(spark, *(str(path) for path in (WORK / "indexes").iterdir()))
    goals = {"selective": 0.5, "unselective": 1.05, "point": 1.0}
    figures = []
    for name, where in QUERIES.items():
        on, off = pairs(spark, partial(answer, spark, data, where), repeat)
        figures += [
            Figure(f"{name} query, milliseconds, off", round(1000 * off, 1)),
            Figure(f"{name} query, milliseconds, on", round(1000 * on, 1)),
            Figure(f"{name} query, on / off", round(on / off, 3))
            if name not in goals
            else Figure.at_most(f"{name} query, on / off", on / off, goals[name]),
        ]
    return figures


def small_files(count: int) -> Path:
    """A folder of files of ten rows each."""
    data = WORK / f"small-{count}"
    if not (data / "_SUCCESS").exists():
        data.mkdir(parents=True, exist_ok=True)
        for number in range(count):
            table = pa.table({"id": np.arange(number * 10, number * 10 + 10)})
            pq.write_table(table, data / f"part-{number:06d}.parquet")
        (data / "_SUCCESS").touch()
    return data


def small_base(count: int) -> Path:
    """Where the index of these files is."""
    return WORK / f"small-{count}-indexes"


def by_id(builder: IndexBuilder) -> IndexBuilder:
    return builder.add_min_max("id")


def small_file_figures(spark: SparkSession, count: int, repeat: int) -> list[Figure]:
    """Many files of ten rows: what is saved by not opening them, and what listing them takes."""
    data, base = small_files(count), small_base(count)
    built = built_index(spark, data, base, by_id)
    idle = seconds(lambda: refreshed(spark, data, base))
    enable(spark, str(base))
    on, off = pairs(spark, lambda: answer(spark, data, "id = 7777"), min(repeat, 2))
    parts = query_parts(spark, data, "id = 7777", max(2, min(repeat, 4)))
    held = spark.read.schema("id BIGINT").parquet(str(data)).where("id = 7777")
    again = [seconds(held.collect) for _ in range(max(3, repeat))]
    label = f"{count:,} small files"
    return [
        Figure.at_most(f"{label}, build minMax, seconds", built, 8),
        Figure(f"{label}, each footer by itself, seconds", round(footers_one_by_one(data), 2)),
        Figure(f"{label}, refresh with nothing to do, seconds", round(idle, 2)),
        Figure(f"{label}, selective query, seconds, off", round(off, 2)),
        Figure(f"{label}, selective query, seconds, on", round(on, 2)),
        Figure.at_most(f"{label}, selective query, on / off", on / off, 0.5),
        *(Figure(f"{label}, {name}, seconds", round(value, 3)) for name, value in parts.items()),
        Figure(f"{label}, a frame collected again, seconds", round(min(again[1:]), 3)),
        Figure(f"{label}, a look at each, seconds", round(looks(data), 3)),
        Figure.at_most(
            f"{label}, selective query behind Spark's listing / Spark reading the one file",
            parts[BEHIND_LISTING] / parts[ONE_FILE],
            1.3,
        ),
    ]


def footers_one_by_one(data: Path) -> float:
    """What reading, parsing and asking each footer by itself takes: the floor of a build by file.

    A build may be below it: footers that are alike are parsed together.
    """
    names = sorted(str(path) for path in data.glob("*.parquet"))

    def read() -> None:
        for name in names:
            metadata = parse_footer(local_footer_bytes(name))
            if column_statistics(metadata, ("id",), "bigint", is_case_sensitive=False) is None:
                raise SystemExit(f"no statistics in {name}")

    return seconds(read)


def looks(data: Path) -> float:
    """Of the system calls, one after the other, that show whether files are as they were indexed.

    A query makes one for each local file that it skips, with all processors.
    """
    names = sorted(str(path) for path in data.glob("*.parquet"))
    return min(seconds(lambda: [os.stat(name) for name in names]) for _ in range(3))


LISTING = "Spark's own listing (bound)"
BEHIND_LISTING = "selective query behind Spark's listing"
ONE_FILE = "Spark reading the one file"


def query_parts(spark: SparkSession, data: Path, where: str, repeat: int) -> dict[str, float]:
    """Where the time of a selective query goes.

    Making the frame is listing by Spark, which needs it whatever is skipped: that is the bound.
    Everything behind it, from the frame to the answer, is compared with the same query over a frame
    of only the file that has the rows.
    """
    number = int(where.rpartition(" ")[2]) // 10
    one = data / f"part-{number:06d}.parquet"
    found: dict[str, list[float]] = {LISTING: [], BEHIND_LISTING: [], ONE_FILE: []}
    for _ in range(repeat + 1):
        started = perf_counter()
        frame = spark.read.schema("id BIGINT").parquet(str(data))
        listed = perf_counter()
        rows = frame.where(where).selectExpr("count(*)", "sum(id)").collect()
        ended = perf_counter()
        with without_skipping(spark):
            single = query(spark, data / one.name, where).collect()
        if rows != single:
            raise SystemExit(f"{where}: {rows}, and {single} in {one.name}")
        for name, value in (
            (LISTING, listed - started),
            (BEHIND_LISTING, ended - listed),
            (ONE_FILE, perf_counter() - ended),
        ):
            found[name].append(value)
    return {name: statistics.median(values[1:]) for name, values in found.items()}


def query(spark: SparkSession, data: Path, where: str) -> DataFrame:
    frame = spark.read.schema(WIDE)
    if "small" in str(data.relative_to(WORK)):
        frame = spark.read.schema("id BIGINT")
    return frame.parquet(str(data)).where(where).selectExpr("count(*)", "sum(id)")


def answer(spark: SparkSession, data: Path, where: str) -> Sequence[object]:
    return query(spark, data, where).collect()


def pairs(spark: SparkSession, work: Callable[[], object], repeat: int) -> tuple[float, float]:
    """Medians with skipping on and off, after one of each that is not counted.

    Each goes first in every other pair: in a JVM that still warms up the second one has it easier.
    """
    on: list[float] = []
    off: list[float] = []
    for number in range(repeat + 1):
        answers = []
        for is_on in (True, False) if number % 2 else (False, True):
            started = perf_counter()
            if is_on:
                answers.append(work())
            else:
                with without_skipping(spark):
                    answers.append(work())
            if number:
                (on if is_on else off).append(perf_counter() - started)
        if answers[0] != answers[1]:
            raise SystemExit(f"answers differ with and without skipping: {answers}")
    return statistics.median(on), statistics.median(off)


def folder_kib(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1024


def seconds(work: Callable[[], object]) -> float:
    started = perf_counter()
    work()
    return perf_counter() - started


if __name__ == "__main__":
    sys.exit(main())
