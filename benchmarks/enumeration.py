"""Snapshots of a source of very many files, told by their paths: `make bench-enumeration`.

Files lie in folders of a thousand on a local disk. Listed are all of them, in order, with what
their paths capture, which is everything that planning needs of such a source. Memory is what the
Python process held at most, the files' own tree included; the JVM has its usual 1 GB.
"""

import argparse
import resource
import shutil
import tempfile
from pathlib import Path
from time import perf_counter

from figures import Figure, publish
from pyspark.sql import SparkSession

from snaploom.engine.sources.hdfslike import open_hdfs_like
from snaploom.models.datasource import HdfsLike
from snaploom.models.times import now

FILES = 1_000_000
IN_A_FOLDER = 1_000
FIRST_DAY = 946_684_800  # 2000-01-01, seconds since 1970
DAY = 86_400


def main() -> None:
    """Make the files, list them, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--folder", type=Path, help="where to make them; omitted, a scratch folder")
    count: int = parser.parse_args().files
    folder = parser.parse_args().folder or Path(tempfile.mkdtemp(prefix="enumeration-"))
    try:
        _make(folder, count)
        figures = _measured(folder, count)
    finally:
        shutil.rmtree(folder)
    publish("Enumeration", "make bench-enumeration", figures)


def _make(folder: Path, count: int) -> None:
    for number in range(-(-count // IN_A_FOLDER)):
        day = folder / f"at={FIRST_DAY + number * DAY}"
        day.mkdir(parents=True)
        for part in range(min(IN_A_FOLDER, count - number * IN_A_FOLDER)):
            (day / f"part-{part:05d}.json").touch()


def _measured(folder: Path, count: int) -> list[Figure]:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .getOrCreate()
    )
    declared = HdfsLike.parse(
        {
            "format": "json",
            "sourceUriGlobs": [f"file://{folder}/*/*.json"],
            "sourceUriPrefix": f"file://{folder}/at={{at:LONG}}/",
            "snapshot": {"fromFieldValue": {"fieldName": "at", "timeFormat": "UNIX_SECONDS"}},
        }
    )
    reader = open_hdfs_like(spark, "many", declared, now())
    before = _peak()
    started = perf_counter()
    found = len(reader.listing().times)
    seconds = perf_counter() - started
    assert found == -(-count // IN_A_FOLDER)
    return [
        Figure(f"{count:,} files: time", f"{seconds:.1f} s"),
        Figure(f"{count:,} files: memory", f"{_peak() - before:,.0f} MiB"),
    ]


def _peak() -> float:
    """Most memory that this process has held so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
