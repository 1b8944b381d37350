"""A backlog of 24 months against the loop that people write for it: `make bench-join`.

Line items change every month, the three things they refer to (orders with their customers, parts,
suppliers) once a year. Both sides run in one warm session of their own process: ours weaves all
months in one run, the other calls the hand-written job once a month. Contents are compared.
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path
from time import perf_counter

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

from snaploom.run.session.spark import build_session

YEARS = ("2024", "2025")
MONTHS = tuple(f"{year}-{month:02d}-01" for year in YEARS for month in range(1, 13))
AT_MOST = 0.8
"""What the issue asks of the ratio."""


def main() -> None:
    """Run both sides, or with `--once` one of them in this process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale-factor", type=float, default=1.0)
    parser.add_argument("--once", nargs=3, metavar=("WHO", "DATA", "TARGET"))
    arguments = parser.parse_args()
    if arguments.once:
        who, data, target = arguments.once
        print(run_once(who, Path(data), Path(target)))
        return
    publish("Backlog", "make bench-join", backfill_figures(arguments.scale_factor))


def backfill_figures(scale_factor: float) -> list[Figure]:
    """Seconds of both sides, and their ratio."""
    data = months_of_two_years(CACHE / f"tpch-{scale_factor:g}", scale_factor)
    targets = {who: fresh(f"backfill-{who}") for who in ("ours", "hand")}
    seconds = {who: once(who, data, target) for who, target in targets.items()}
    refuse_difference(f"{targets['ours']}/data/*/*.parquet", f"{targets['hand']}/*/*.parquet")
    ratio = seconds["ours"] / seconds["hand"]
    return [
        Figure("24 months, seconds, Snaploom in one run", round(seconds["ours"], 1)),
        Figure("24 months, seconds, loop written by hand", round(seconds["hand"], 1)),
        Figure.at_most("24 months, ratio to the loop written by hand", ratio, AT_MOST),
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


def once(who: str, data: Path, target: Path) -> float:
    """One side in a process of its own; the seconds that it took."""
    command = [sys.executable, __file__, "--once", who, str(data), str(target)]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds = float(result.stdout.splitlines()[-1])
    note(f"{who}: {seconds:.1f} s")
    return seconds


def run_once(who: str, data: Path, target: Path) -> float:
    """The other side of `once`: a month by hand to warm up, then all of them."""
    target.parent.mkdir(parents=True, exist_ok=True)
    spark = build_session("benchmark", SETTINGS)
    by_hand(spark, data, fresh(f"{target.name}-warm"), MONTHS[0])
    started = perf_counter()
    if who == "ours":
        snaploom_run(spark, data, target)
    else:
        for month in MONTHS:
            by_hand(spark, data, target / month, month)
    return perf_counter() - started


def by_hand(spark: SparkSession, data: Path, target: Path, month: str) -> None:
    """One month, with what is valid in its year."""
    year = f"{month[:4]}-01-01"
    weave_handwritten(spark, data / year, data / month / "lineitem.parquet", target)


if __name__ == "__main__":
    main()
