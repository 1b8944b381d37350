"""One day of a long history, read by `snaploom.read` and by its own folder: `make bench-histories`.

An output with 10,000 snapshots of ten files each. Read is one day of them: with `at`, with a
condition on the partition column, and with a condition that an index answers besides. In turn with
each, Spark reads the folder of that day under the schema that it has, and nothing else: what people
do who know where the day lies. Planning is in all of it, from opening the log to the rows.
"""

import argparse
import resource
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from figures import Figure, publish
from publication import IDENTITY, SETTINGS, hour, published
from pyspark.sql import DataFrame, SparkSession

from snaploom import read
from snaploom.files.stores import open_store
from snaploom.models.common import format_instant, now
from snaploom.models.run import DriverSettings, RunSettings, SparkSettings
from snaploom.output.checkpoints import CHECKPOINT_EVERY, write_checkpoint
from snaploom.output.entries import FileRecord, format_entry
from snaploom.output.folder import Run, prepare_folder
from snaploom.output.layout import manifest_key, new_run_id
from snaploom.output.manifest import store_schema
from snaploom.output.state import fold
from snaploom.run.session.spark import build_session
from snaploom.skipping.spark.interfaces.enable import disable, enable, without_skipping
from snaploom.skipping.spark.interfaces.indexbuilder import skipping_index

SNAPSHOTS, FILES, ROWS = 10_000, 10, 1_000
REPEATS = 12
WARM = 12
"""Pairs before those that count: until then Spark's code is still compiled, in other threads."""
SCHEMA = (
    '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}},'
    '{"name":"price","type":"double","nullable":true,"metadata":{}}]}'
)
SETTINGS_OF_RUN = RunSettings(spark=SparkSettings(driver=DriverSettings(memory="4g")))


def main() -> None:
    """Make the history, read a day of it in every way, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--snapshots", type=int, default=SNAPSHOTS)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    arguments = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="histories-"))
    try:
        figures = list(measured(place, arguments.snapshots, arguments.repeats))
    finally:
        shutil.rmtree(place)
    publish("Histories", "make bench-histories", figures)
    sys.exit(0 if all(figure.ok for figure in figures) else 1)


def measured(place: Path, snapshots: int, repeats: int) -> Iterator[Figure]:
    """Figures of one history."""
    folder, indexes = place / "output", place / "indexes"
    write_history(folder, snapshots)
    spark = build_session("bench-histories", SETTINGS_OF_RUN)
    day = snapshots // 2
    name = f"a day of {snapshots:,} snapshots, {snapshots * FILES:,} files"
    schema = read(spark, str(folder), at=format_instant(hour(day))).drop("hour").schema

    def by_folder(where: str) -> DataFrame:
        path = str(folder / "data" / f"hour={day}")
        return spark.read.schema(schema).parquet(path).where(where)

    def at(where: str) -> DataFrame:
        return read(spark, str(folder), at=format_instant(hour(day))).where(where)

    def whole(where: str) -> DataFrame:
        return read(spark, str(folder)).where(f"hour = {day} AND {where}")

    with without_skipping(spark):
        for way, ours in (("at", at), ("where", whole)):
            yield from compared(f"{name}, {way}", ours, by_folder, "true", repeats)
    indexes.mkdir()
    builder = skipping_index(spark, str(indexes)).on_path(str(folder / "data"))
    started = perf_counter()
    builder.add_min_max("id").create()
    builder.refresh()
    yield Figure(f"{name}, index built, seconds", round(perf_counter() - started, 2))
    enable(spark, str(indexes))
    chosen = f"id = {day * FILES * ROWS + 3 * ROWS + 77}"
    for way, ours in (("at", at), ("where", whole)):
        yield from compared(f"{name}, {way} with index", ours, by_folder, chosen, repeats)
    disable(spark)  # which leaves notes beside the indexes
    spark.stop()


def compared(
    name: str,
    ours: Callable[[str], DataFrame],
    peer: Callable[[str], DataFrame],
    where: str,
    repeats: int,
) -> Iterator[Figure]:
    """Medians of both, in turn, each first in every other pair, once Spark is warm."""
    seconds: dict[str, list[float]] = {"ours": [], "peer": []}
    processor: dict[str, list[float]] = {"ours": [], "peer": []}
    for number in range(WARM + repeats):
        answers = {}
        for who in ("ours", "peer") if number % 2 else ("peer", "ours"):
            way = ours if who == "ours" else peer
            used, started = cpu(), perf_counter()
            answers[who] = way(where).selectExpr("count(*)", "sum(id)", "sum(price)").collect()
            if number >= WARM:
                seconds[who].append(perf_counter() - started)
                processor[who].append(cpu() - used)
        if answers["ours"] != answers["peer"]:
            sys.exit(f"{name}: answers differ: {answers}")
    mine, other = (statistics.median(seconds[who]) for who in ("ours", "peer"))
    yield Figure(f"{name}, milliseconds, Snaploom", round(1000 * mine, 1))
    yield Figure(f"{name}, milliseconds, its folder", round(1000 * other, 1))
    mine_cpu, other_cpu = (statistics.median(processor[who]) for who in ("ours", "peer"))
    yield Figure(f"{name}, processor milliseconds, Snaploom", round(1000 * mine_cpu, 1))
    yield Figure(f"{name}, processor milliseconds, its folder", round(1000 * other_cpu, 1))
    yield Figure.at_most(f"{name}, Snaploom / its folder", mine / other, 1.2)


def cpu() -> float:
    """Processor seconds of this process and of Spark's JVM."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    spark = SparkSession.getActiveSession()
    assert spark is not None
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    pid = gateway.jvm.java.lang.ProcessHandle.current().pid()
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    return own.ru_utime + own.ru_stime + ticks / 100


def write_history(place: Path, length: int) -> None:
    """Snapshots with their files, entries as publications write them, and a checkpoint."""
    store = open_store(str(place), create=True)
    run = Run(new_run_id(now()), "bench", now)
    folder = prepare_folder(store, SETTINGS, IDENTITY, run)
    state, entries = folder.log.read(), []
    schema_hash = store_schema(store, SCHEMA)
    for number in range(length):
        entry = published(run, number, state.next_seq + number, files_of(place, run, number))
        record = entry.snapshot.model_copy(update={"schema_hash": schema_hash})
        entries.append(entry.model_copy(update={"snapshot": record}))
        store.put(manifest_key(entry.seq), format_entry(entries[-1]))
    last = length - length % CHECKPOINT_EVERY
    if last:
        write_checkpoint(store, fold(state, entries[: last - 1]))


def files_of(place: Path, run: Run, number: int) -> Iterator[FileRecord]:
    """The files of one snapshot, written: `id` ascends over all of them."""
    day = f"data/hour={number}"
    (place / day).mkdir(parents=True)
    for part in range(FILES):
        first = (number * FILES + part) * ROWS
        ids = np.arange(first, first + ROWS)
        key = f"{day}/{run.run_id}-0123abcd-{part:05d}.snappy.parquet"
        pq.write_table(pa.table({"id": ids, "price": ids * 0.01}), place / key)
        yield FileRecord(path=key, bytes=(place / key).stat().st_size)


if __name__ == "__main__":
    main()
