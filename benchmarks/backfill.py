"""A backlog of 24 months against the loop that people write for it: `make bench-join`.

Line items change every month, the three things they refer to (orders with their customers, parts,
suppliers) once a year. Both sides run in one warm session of their own process: ours weaves all
months in one run, the other calls the hand-written job once a month. Contents are compared.

The same months once more, where the keys of orders, parts and suppliers are texts, of which one in
a hundred ends in a blank: the share of that run's time that counting the near misses takes.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import Any
from unittest.mock import patch

import duckdb
from figures import Figure, publish
from handwritten import weave_handwritten
from join import (
    CACHE,
    DIMENSIONS,
    SETTINGS,
    fresh,
    note,
    refuse_difference,
    single_snapshot,
    snaploom_run,
)
from pyspark.sql import SparkSession

from snaploom.engine.unmatched import SECONDS_FOR_NEWEST, SHARE_OF_TIME, unmatched_rows
from snaploom.models.datarelationship import UnmatchedRows
from snaploom.run.session.spark import build_session
from snaploom.run.weaving import snapshot

YEARS = ("2024", "2025")
MONTHS = tuple(f"{year}-{month:02d}-01" for year in YEARS for month in range(1, 13))
AT_MOST = 0.8
"""What the issue asks of the ratio."""
SPELT = {"orders": "o_orderkey", "part": "p_partkey", "supplier": "s_suppkey"}
"""Keys of joined tables that are spelt otherwise in a hundredth of their rows."""


def main() -> None:
    """Run both sides, or with `--once` one of them in this process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale-factor", type=float, default=1.0)
    parser.add_argument("--once", nargs=3, metavar=("WHO", "DATA", "TARGET"))
    arguments = parser.parse_args()
    if arguments.once:
        who, data, target = arguments.once
        print(*run_once(who, Path(data), Path(target)))
        return
    data = CACHE / f"tpch-{arguments.scale_factor:g}"
    months = months_of_two_years(data, arguments.scale_factor)
    figures = [*backfill_figures(months), *near_miss_figures(spelt_otherwise(data, months))]
    publish("Backlog", "make bench-join", figures)


def backfill_figures(data: Path) -> list[Figure]:
    """Seconds of both sides, and their ratio."""
    targets = {who: fresh(f"backfill-{who}") for who in ("ours", "hand")}
    seconds = {who: once(who, data, target)[0] for who, target in targets.items()}
    refuse_difference(f"{targets['ours']}/data/*/*.parquet", f"{targets['hand']}/*/*.parquet")
    ratio = seconds["ours"] / seconds["hand"]
    return [
        Figure("24 months, seconds, Snaploom in one run", round(seconds["ours"], 1)),
        Figure("24 months, seconds, loop written by hand", round(seconds["hand"], 1)),
        Figure.at_most("24 months, ratio to the loop written by hand", ratio, AT_MOST),
    ]


def near_miss_figures(data: Path) -> list[Figure]:
    """The share of a run that counting takes, and the joins of snapshots that were counted."""
    seconds, counting, counted, joins = once("spelt", data, fresh("backfill-spelt"))
    text = "24 months with near misses in three joins"
    allowed = round(max(SHARE_OF_TIME, SECONDS_FOR_NEWEST / seconds), 3)
    return [
        Figure(f"{text}, seconds", round(seconds, 1)),
        Figure.at_most(f"{text}, share of the time to count them", counting / seconds, allowed),
        Figure(f"{text}, share of joins counted", round(counted / joins, 3)),
    ]


def months_of_two_years(data: Path, scale_factor: float) -> Path:
    """Line items in 24 months, everything else at the beginning of each year."""
    folder = data / "two-years"
    if not (folder / MONTHS[-1] / "lineitem.parquet").exists():
        source = single_snapshot(data, scale_factor) / "2024-01-01"
        for index, month in enumerate(MONTHS):
            target = folder / month
            target.mkdir(parents=True, exist_ok=True)
            duckdb.sql(
                f"COPY (SELECT * FROM '{source}/lineitem.parquet' "
                f"WHERE (l_orderkey + l_linenumber) % {len(MONTHS)} = {index}) "
                f"TO '{target}/lineitem.parquet' (FORMAT parquet)"
            )
        for year in YEARS:
            for name in DIMENSIONS:
                shutil.copy(source / f"{name}.parquet", folder / f"{year}-01-01/{name}.parquet")
    return folder


def spelt_otherwise(data: Path, months: Path) -> Path:
    """The same months with keys as texts, a blank behind one in a hundred."""
    folder = data / "two-years-spelt"
    if not folder.exists():
        making = fresh("two-years-spelt")
        for file in sorted(months.rglob("*.parquet")):
            target = making / file.relative_to(months)
            target.parent.mkdir(parents=True, exist_ok=True)
            key = SPELT.get(file.stem)
            if key is None:
                os.link(file, target)
                continue
            text = f"{key}::VARCHAR || CASE WHEN {key} % 100 = 0 THEN ' ' ELSE '' END"
            duckdb.sql(
                f"COPY (SELECT * REPLACE ({text} AS {key}) FROM '{file}') "
                f"TO '{target}' (FORMAT parquet)"
            )
        making.rename(folder)
    return folder


def once(who: str, data: Path, target: Path) -> tuple[float, ...]:
    """One side in a process of its own; the seconds that it took, and what else it found."""
    command = [sys.executable, __file__, "--once", who, str(data), str(target)]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    found = tuple(map(float, result.stdout.splitlines()[-1].split()))
    note(f"{who}: {', '.join(f'{number:g}' for number in found)}")
    return found


def run_once(who: str, data: Path, target: Path) -> tuple[float, ...]:
    """The other side of `once`: a month by hand to warm up, then all of them."""
    target.parent.mkdir(parents=True, exist_ok=True)
    spark = build_session("benchmark", SETTINGS)
    by_hand(spark, data, fresh(f"{target.name}-warm"), MONTHS[0])
    started = perf_counter()
    if who == "ours":
        snaploom_run(spark, data, target)
    elif who == "spelt":
        return spelt_run(spark, data, target)
    else:
        for month in MONTHS:
            by_hand(spark, data, target / month, month)
    return (perf_counter() - started,)


def spelt_run(spark: SparkSession, data: Path, target: Path) -> tuple[float, ...]:
    """Seconds of a run and of its counting, joins of snapshots that were counted, and all."""
    seconds, found = 0.0, list[UnmatchedRows]()

    def timed(*given: Any, **named: Any) -> tuple[UnmatchedRows, ...]:
        nonlocal seconds
        started = perf_counter()
        new = unmatched_rows(*given, **named)
        seconds += perf_counter() - started
        found.extend(new)
        return new

    started = perf_counter()
    with patch.object(snapshot, "unmatched_rows", timed):
        snaploom_run(spark, data, target, tuple(SPELT.values()))
    counted = sum(bool(one.near_misses) for one in found)
    return perf_counter() - started, seconds, counted, len(found)


def by_hand(spark: SparkSession, data: Path, target: Path, month: str) -> None:
    """One month, with what is valid in its year."""
    year = f"{month[:4]}-01-01"
    weave_handwritten(spark, data / year, data / month / "lineitem.parquet", target)


if __name__ == "__main__":
    main()
