"""Weaving with the accelerator against hand-written PySpark and DuckDB: `make bench-native`.

Everything of Spark runs on the oldest supported one, for which Comet is built; a process a job.

1. One snapshot, in turn: ours with Comet and all checks, the hand-written job with Spark's
   defaults, the hand-written job with Comet, and DuckDB, which writes the same nested rows. Wall
   and processor time; rows and contents are compared.
2. Twelve monthly snapshots of which only the root changes: one run of ours with Comet against
   twelve runs of the hand-written job with Spark's defaults.
3. Seconds a row at larger scale factors, against the first one.
4. The newest figures of the same jobs without the accelerator, as other benchmarks published them.
"""

import argparse
import json
import os
import statistics
import subprocess
from functools import partial
from itertools import chain
from pathlib import Path

from figures import CHECKOUT, HISTORY, Figure, print_figures, publish
from join import (
    CACHE,
    MONTHS,
    SETTINGS,
    Process,
    by_duckdb,
    by_hand_run,
    default_session,
    fresh,
    monthly_snapshots,
    note,
    once,
    peak_memory,
    processor_seconds,
    refuse_difference,
    single_snapshot,
    snaploom_run,
    timed,
)
from pyspark.sql import SparkSession

from snaploom.models.run import Accelerator, SparkSettings
from snaploom.policy.acceleration import accelerated_settings
from snaploom.run.databases import install_jar
from snaploom.run.driverlock import REPOSITORY_VARIABLE, cached_jar
from snaploom.run.session.classarchive import JARS
from snaploom.run.session.spark import build_session
from snaploom.sources.databases.drivers import COMET_JAR

SIDES = {
    "ours": "Snaploom with Comet and all checks",
    "default": "written by hand, Spark's defaults",
    "comet": "written by hand, with Comet",
}
assert SETTINGS.spark is not None
WITHOUT_COMET = {
    "one snapshot, ratio to hand-written with Spark's defaults": "Joins",
    "twelve months, ratio to twelve hand-written runs": "Joins",
    "SF 3, processor seconds a row, ratio to SF 1": "Growth",
    "100,000 small files, build minMax, seconds": "Skipping",
    "100,000 small files, selective query behind Spark's listing / Spark reading the one file": (
        "Skipping"
    ),
}
"""Figures of other benchmarks, and their sections of the history."""
SPARK: SparkSettings = SETTINGS.spark.model_copy(update={"accelerator": Accelerator.COMET})


def main() -> None:
    """Run everything, or with `--once` one job in this process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale-factor", type=float, default=1.0)
    parser.add_argument("--larger", type=float, nargs="*", default=[3.0], help="scale factors")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each side")
    parser.add_argument("--print", action="store_true", help="write no line of history")
    parser.add_argument("--once", nargs=3, metavar=("WHO", "DATA", "TARGET"))
    arguments = parser.parse_args()
    if arguments.once:
        who, data, target = arguments.once
        run_once(who, Path(data), Path(target))
        return
    install_jar(COMET_JAR, os.environ.get(REPOSITORY_VARIABLE, ""))
    single = data_of(arguments.scale_factor)
    rounds = compared_once(single, arguments.repeat)
    figures = [
        *figures_of_one(rounds, statistics.median(duckdb_seconds(single, arguments.repeat))),
        *compare_months(monthly_snapshots(single.parent, single)),
        *chain.from_iterable(
            growth(rounds, arguments.scale_factor, larger) for larger in arguments.larger
        ),
    ]
    if arguments.print:
        for figure in figures:
            note(f"{figure.name}: {figure.value} {figure.goal}")
    else:
        publish("Native", "make bench-native", figures)
    print_figures(figures_without_comet())


def data_of(scale_factor: float) -> Path:
    """All tables as of one day."""
    return single_snapshot(CACHE / f"tpch-{scale_factor:g}", scale_factor)


def process(who: str, data: Path, target: Path, month: str = MONTHS[0]) -> Process:
    """One job in a process of its own, with the oldest Spark."""
    oldest = subprocess.run(
        [str(CHECKOUT / ".ci" / "apart"), "oldspark"], check=True, text=True, stdout=subprocess.PIPE
    ).stdout.strip()
    paths = (oldest, os.environ.get("PYTHONPATH", ""))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    return once(who, data, target, month, __file__, environment)


def run_once(who: str, data: Path, target: Path) -> None:
    """The other side of `process`."""
    name, month = who.split(":")
    target.parent.mkdir(parents=True, exist_ok=True)
    jar = str(cached_jar(COMET_JAR))
    if name == "ours":
        run = SETTINGS.model_copy(update={"spark": SPARK})
        snaploom_run(build_session("benchmark", run, asked=((JARS, jar),)), data, target)
    else:
        spark = default_session() if name == "default" else session_with_comet(jar)
        by_hand_run(spark, data, target, month)
    print(peak_memory(), processor_seconds())


def session_with_comet(jar: str) -> SparkSession:
    """A session of Spark's defaults with Comet, as ours sets it."""
    builder = SparkSession.Builder().master("local[*]").config("spark.driver.memory", "6g")
    for name, value in {**accelerated_settings(SPARK), JARS: jar}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def compared_once(data: Path, repeat: int) -> list[dict[str, Process]]:
    """One snapshot by each side in turn, several times; all write the same rows."""
    rounds = []
    for number in range(repeat):
        order = list(SIDES) if number % 2 else list(reversed(SIDES))
        rounds.append({who: process(who, data, fresh(f"native-{who}")) for who in order})
    folders = {who: CACHE / "work" / f"native-{who}" for who in SIDES}
    for who in ("default", "comet"):
        refuse_difference(f"{folders['ours']}/data/*/*.parquet", f"{folders[who]}/*.parquet")
    return rounds


def duckdb_seconds(data: Path, repeat: int) -> list[float]:
    """Seconds of DuckDB, which writes the same nested rows."""
    return [timed(partial(by_duckdb, data)) for _ in range(repeat)]


def figures_of_one(rounds: list[dict[str, Process]], duckdb: float) -> list[Figure]:
    """Seconds of each side, and what ours takes of those of others."""
    wall = {who: statistics.median(each[who].seconds for each in rounds) for who in SIDES}
    processor = {who: statistics.median(each[who].processor for each in rounds) for who in SIDES}
    ours, used = wall["ours"], processor["ours"]
    by_hand = "one accelerated snapshot, {}, ratio to hand-written with Spark's defaults"
    return [
        *(Figure(f"one snapshot, seconds, {SIDES[who]}", round(wall[who], 1)) for who in SIDES),
        *(
            Figure(f"one snapshot, seconds of processor, {SIDES[who]}", round(processor[who], 1))
            for who in SIDES
        ),
        Figure("one snapshot, seconds, DuckDB", round(duckdb, 2)),
        Figure.at_most(by_hand.format("wall"), ours / wall["default"], 0.50),
        Figure.at_most(by_hand.format("processor"), used / processor["default"], 0.50),
        Figure.at_most("one accelerated snapshot, ratio to DuckDB", ours / duckdb, 2.2),
        Figure.at_most(
            "one accelerated snapshot, ratio to hand-written with Comet", ours / wall["comet"], 1.05
        ),
    ]


def compare_months(data: Path) -> list[Figure]:
    """One run over twelve months against twelve runs of the hand-written job."""
    ours = process("ours", data, fresh("native-months-ours")).seconds
    target = fresh("native-months-hand")
    hand = sum(process("default", data, target / month, month).seconds for month in MONTHS)
    name = "twelve accelerated months, ratio to twelve hand-written runs with Spark's defaults"
    return [
        Figure("twelve months, seconds, Snaploom with Comet", round(ours, 1)),
        Figure("twelve months, seconds, twelve hand-written runs", round(hand, 1)),
        Figure.at_most(name, ours / hand, 0.15),
    ]


def figures_without_comet() -> list[Figure]:
    """The newest published figures of the jobs without the accelerator, with day and command."""
    lines = [json.loads(line) for line in HISTORY.read_text("utf-8").splitlines()]
    figures = []
    for name, section in WITHOUT_COMET.items():
        line = [line for line in lines if line["section"] == section and name in line["values"]][-1]
        text = f"without Comet ({line['command']}, {line['time'][:10]}): {name}"
        limit = float(line["goals"][name].removeprefix("<= "))
        figures.append(Figure.at_most(text, line["values"][name], limit))
    return figures


def growth(rounds: list[dict[str, Process]], base: float, larger: float) -> list[Figure]:
    """Seconds a row at a larger scale factor, against those at the first one."""
    seconds = process("ours", data_of(larger), fresh("native-larger")).seconds
    first = statistics.median(each["ours"].seconds for each in rounds)
    ratio = seconds / larger / (first / base)
    name = f"scale factor {larger:g} with Comet"
    return [
        Figure(f"{name}, seconds", round(seconds, 1)),
        Figure.at_most(f"{name}, seconds a row, ratio to {base:g}", ratio, 1.15),
    ]


if __name__ == "__main__":
    main()
