"""Time to build indexes and to query with them: `make bench-skipping`.

1. A million rows of index without files: deciding, matching, opening.
2. 200 Parquet files of 20,000 rows: builds, a refresh with nothing to do, sizes, footer bytes.
3. The same files queried with skipping on and off, in turn.
4. 10,000 and 100,000 small files.
5. Delta and Iceberg, each on the nearest Spark that it runs on, over the same files and queries.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from evaluation import evaluation_figures
from figures import Figure, publish
from indexload import load_figures
from pyspark.sql import DataFrame, SparkSession

from snaploom.jobs.session.spark import build_session
from snaploom.models.run import DriverSettings, RunSettings, SparkSettings
from snaploom.skipping.spark.interfaces.enable import enable, without_skipping
from snaploom.skipping.spark.interfaces.indexbuilder import IndexBuilder, skipping_index
from snaploom.skipping.spark.targets.targetlookup import open_path
from snaploom.skipping.stores.bases import open_base

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "snaploom"
WORK = CACHE / "benchmarks" / "skipping"
FILES, ROWS = 200, 20_000
SETTINGS = RunSettings(spark=SparkSettings(driver=DriverSettings(memory="4g")))

QUERIES = {
    "selective": "id = 777777",
    "range": "id BETWEEN 1000000 AND 1100000",
    "unselective": "id >= 0",
    "point": "key = 'k0000000000000000'",
}
PEER_QUERIES = ("selective", "range", "unselective")
"""Peers keep bounds only, so that a point lookup by a Bloom filter is not theirs."""


def main() -> int:
    """Measure, publish; fail when a goal is not met."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=16, help="pairs of queries")
    parser.add_argument("--without-peers", action="store_true")
    parser.add_argument("--small-files", type=int, nargs="*", default=[10_000, 100_000])
    arguments = parser.parse_args()
    figures = [*evaluation_figures(), *load_figures(WORK / "load")]
    data = wide_files(WORK / "files")
    spark = build_session("bench-skipping", SETTINGS)
    figures += build_figures(spark, data)
    figures += query_figures(spark, data, arguments.repeat)
    for count in arguments.small_files:
        figures += small_file_figures(spark, count, arguments.repeat)
    ours = {name: planned(spark, data, QUERIES[name], arguments.repeat) for name in PEER_QUERIES}
    spark.stop()
    if not arguments.without_peers:
        figures += peer_figures(data, ours, arguments.repeat)
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


def small_file_figures(spark: SparkSession, count: int, repeat: int) -> list[Figure]:
    """Many files of ten rows: what is saved by not opening them."""
    data, base = WORK / f"small-{count}", WORK / f"small-{count}-indexes"
    if not (data / "_SUCCESS").exists():
        data.mkdir(parents=True, exist_ok=True)
        for number in range(count):
            table = pa.table({"id": np.arange(number * 10, number * 10 + 10)})
            pq.write_table(table, data / f"part-{number:06d}.parquet")
        (data / "_SUCCESS").touch()
    built = built_index(spark, data, base, lambda builder: builder.add_min_max("id"))
    again = seconds(lambda: refreshed(spark, data, base))
    enable(spark, str(base))
    on, off = pairs(spark, lambda: answer(spark, data, "id = 7777"), min(repeat, 2))
    return [
        Figure(f"{count:,} small files, build minMax, seconds", round(built, 2)),
        Figure(f"{count:,} small files, refresh with nothing to do, seconds", round(again, 2)),
        Figure(f"{count:,} small files, selective query, seconds, off", round(off, 2)),
        Figure(f"{count:,} small files, selective query, seconds, on", round(on, 2)),
        Figure.at_most(f"{count:,} small files, selective query, on / off", on / off, 0.5),
    ]


def planned(spark: SparkSession, data: Path, where: str, repeat: int) -> dict[str, float]:
    """Our own side of the comparison with peers, in the settings that they have."""
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    planning, total, frame = [], [], None
    for number in range(repeat + 1):
        started = perf_counter()
        frame = query(spark, data, where)
        frame._jdf.queryExecution().executedPlan()
        middle = perf_counter()
        frame.collect()
        if number:
            planning.append(middle - started)
            total.append(perf_counter() - started)
    assert frame is not None
    return {
        "files": files_read(frame),
        "planning": 1000 * statistics.median(planning),
        "total": 1000 * statistics.median(total),
    }


def peer_figures(data: Path, ours: Mapping[str, Mapping[str, float]], repeat: int) -> list[Figure]:
    """Delta and Iceberg over the same files; what they need is set up first."""
    places = CACHE / "peers"
    subprocess.run([str(HERE / "peers" / "environment.sh"), str(places)], check=True)
    figures = []
    for kind in ("delta", "iceberg"):
        answer = peer(kind, places, data, repeat)
        version = answer["spark"]
        for name in PEER_QUERIES:
            theirs = answer["queries"][name]
            label = f"{name} query, {kind} on Spark {version}"
            figures += [
                Figure(f"{label}, files read (ours {ours[name]['files']})", theirs["files"]),
                Figure(f"{label}, planning, milliseconds", round(theirs["planning"], 1)),
                Figure(f"{label}, total, milliseconds", round(theirs["total"], 1)),
                Figure(
                    f"{name} query, total, Snaploom / {kind}",
                    round(ours[name]["total"] / theirs["total"], 3),
                ),
            ]
    return [
        *(
            Figure(f"{name} query, Snaploom, {what}, milliseconds", round(ours[name][what], 1))
            for name in PEER_QUERIES
            for what in ("planning", "total")
        ),
        *figures,
    ]


def peer(kind: str, places: Path, data: Path, repeat: int) -> dict[str, Any]:
    work = WORK / f"peer-{kind}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    task = {
        "kind": kind,
        "jars": [str(jar) for jar in sorted((places / kind / "jars").glob("*.jar"))],
        "data": str(data),
        "work": str(work),
        "queries": {name: QUERIES[name] for name in PEER_QUERIES},
        "repeat": repeat,
    }
    done = subprocess.run(
        [str(places / kind / "bin" / "python"), str(HERE / "peers" / "query.py")],
        input=json.dumps(task),
        capture_output=True,
        text=True,
        check=True,
        env={key: value for key, value in os.environ.items() if "SPARK" not in key},
    )
    figures: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return figures


def query(spark: SparkSession, data: Path, where: str) -> DataFrame:
    frame = spark.read.schema("id BIGINT, price DOUBLE, city STRING, key STRING")
    if "small" in data.name:
        frame = spark.read.schema("id BIGINT")
    return frame.parquet(str(data)).where(where).selectExpr("count(*)", "sum(id)")


def answer(spark: SparkSession, data: Path, where: str) -> Sequence[object]:
    return query(spark, data, where).collect()


def files_read(frame: DataFrame) -> int:
    leaves = frame._jdf.queryExecution().executedPlan().collectLeaves().iterator()
    found = 0
    while leaves.hasNext():
        metrics = leaves.next().metrics()
        if metrics.contains("numFiles"):
            found += metrics.apply("numFiles").value()
    return found


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
