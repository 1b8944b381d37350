"""Weaving against hand-written PySpark on TPC-H: `make bench-join`.

1. One snapshot at scale factor 1, each job in a process of its own as a scheduler starts it, in
   turn: ours, the hand-written one with the settings of our sessions, so that Spark makes the same
   joins, and the hand-written one with Spark's default settings. Seconds from start to end, and the
   peak memory of Spark's driver.
2. Rows and contents of both outputs are compared, so that speed is not bought with rows, and their
   sizes are printed. DuckDB, which writes the same nested rows from the same files, shows what this
   machine could do.
3. Twelve monthly snapshots of which only the root changes: one run of ours against twelve runs of
   the hand-written job, each in its own process as a scheduler would start it.
4. Planning of 10, 100 and 1,000 sources.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter

import duckdb
import psutil
from figures import Figure, publish
from handwritten import weave_handwritten
from planner import planning_figures, startup_figure
from pyspark.sql import SparkSession

from snaploom.models.common import now
from snaploom.models.findings import refuse
from snaploom.models.report import RunPhase
from snaploom.models.run import DriverSettings, RunSettings, SparkSettings
from snaploom.run.declarations import read_declarations
from snaploom.run.job import Job
from snaploom.run.session.spark import build_session
from snaploom.run.weaving.outputrun import weave_output

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "snaploom" / "benchmarks"
DIMENSIONS = ("orders", "customer", "nation", "part", "supplier")
OUTPUT = "lineitem-wide"
MONTHS = tuple(f"2024-{month:02d}-01" for month in range(1, 13))
SIDES = {
    "ours": "Snaploom with all checks",
    "hand": "written by hand",
    "default": "written by hand, Spark's defaults",
}
SETTINGS = RunSettings(spark=SparkSettings(driver=DriverSettings(memory="6g")))


def main() -> None:
    """Run everything, or with `--once` one job in this process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale-factor", type=float, default=1.0)
    parser.add_argument("--repeat", type=int, default=3, help="runs of each side")
    parser.add_argument("--once", nargs=3, metavar=("WHO", "DATA", "TARGET"))
    arguments = parser.parse_args()
    if arguments.once:
        who, data, target = arguments.once
        run_once(who, Path(data), Path(target))
        return
    data = CACHE / f"tpch-{arguments.scale_factor:g}"
    single = single_snapshot(data, arguments.scale_factor)
    monthly = monthly_snapshots(data, single)
    figures = [
        *compare_once(single, arguments.repeat),
        *compare_months(monthly),
        *planning_figures(),
        startup_figure(),
    ]
    publish("Joins", "make bench-join", figures)


def single_snapshot(data: Path, scale_factor: float) -> Path:
    """All tables as of one day; generated when they are not there."""
    folder = data / "single"
    day = folder / MONTHS[0]
    if not (day / "supplier.parquet").exists():
        day.mkdir(parents=True, exist_ok=True)
        tool = Path(sys.executable).with_name("tpchgen-cli")
        command = [str(tool), "parquet", "--quiet", f"-s={scale_factor:g}", f"--output-dir={day}"]
        subprocess.run(command, check=True)
    return folder


def monthly_snapshots(data: Path, single: Path) -> Path:
    """Line items in twelve months, everything else in the first only."""
    folder = data / "monthly"
    if not (folder / MONTHS[-1] / "lineitem.parquet").exists():
        source = single / MONTHS[0]
        for index, month in enumerate(MONTHS):
            target = folder / month
            target.mkdir(parents=True, exist_ok=True)
            duckdb.sql(
                f"COPY (SELECT * FROM '{source}/lineitem.parquet' "
                f"WHERE (l_orderkey + l_linenumber) % 12 = {index}) "
                f"TO '{target}/lineitem.parquet' (FORMAT parquet)"
            )
        for name in DIMENSIONS:
            shutil.copy(source / f"{name}.parquet", folder / MONTHS[0] / f"{name}.parquet")
    return folder


def declared(data: Path, target: Path, texts: Sequence[str] = ()) -> Path:
    """The file with the declarations of an output in a folder, written beside it.

    Keys named in `texts` are texts, and not numbers.
    """
    template = (HERE / "model" / "lineitem.yaml").read_text(encoding="utf-8")
    for key in texts:
        template = template.replace(
            f"{key}, dataType: {{long: {{}}}}", f"{key}, dataType: {{string: {{}}}}"
        )
    file = target.with_suffix(".yaml")
    file.write_text(
        template.replace("@DATA@", str(data)).replace("@OUTPUT@", str(target)), encoding="utf-8"
    )
    return file


def snaploom_run(spark: SparkSession, data: Path, target: Path, texts: Sequence[str] = ()) -> int:
    """Weave every snapshot that is due; the number of rows."""
    declarations = declared(data, target, texts)
    read = read_declarations([declarations])
    refuse(read.findings)
    bundle = read.bundle(OUTPUT)
    report = weave_output(spark, bundle, Job(now=now(), clock=now, emit=lambda event: None))
    if report.phase is not RunPhase.SUCCEEDED:
        sys.exit(f"weaving failed: {report.message}")
    return sum(snapshot.rows for snapshot in report.snapshots)


def by_hand_run(spark: SparkSession, data: Path, target: Path, month: str = MONTHS[0]) -> None:
    """Write one snapshot by hand."""
    weave_handwritten(spark, data / MONTHS[0], data / month / "lineitem.parquet", target)


def by_duckdb(data: Path) -> None:
    """Write the same nested rows without Spark."""
    day, target = data / MONTHS[0], fresh("duckdb.parquet")
    try:
        duckdb.sql(f"""
            COPY (
                SELECT l AS data,
                    {{'data': o, 'customer': {{'data': c, 'nation': {{'data': n}}}}}} AS orders,
                    {{'data': p}} AS part, {{'data': s}} AS supplier
                FROM '{day}/lineitem.parquet' l
                LEFT JOIN '{day}/orders.parquet' o ON l_orderkey = o_orderkey
                LEFT JOIN '{day}/customer.parquet' c ON o_custkey = c_custkey
                LEFT JOIN '{day}/nation.parquet' n ON c_nationkey = n_nationkey
                LEFT JOIN '{day}/part.parquet' p ON l_partkey = p_partkey
                LEFT JOIN '{day}/supplier.parquet' s ON l_suppkey = s_suppkey
            ) TO '{target}' (FORMAT parquet)
        """)
    finally:
        target.unlink(missing_ok=True)


def mebibytes(folder: Path) -> float:
    """Size of the data files of an output."""
    return sum(path.stat().st_size for path in folder.rglob("*.parquet")) / (1 << 20)


def refuse_difference(ours: str, hand: str) -> None:
    """Two outputs hold the same rows, or the comparison is worth nothing.

    Args:
        ours: names of the files of one, with asterisks.
        hand: those of the other.
    """
    query = (
        "SELECT count(*), sum(hash(data, orders, part, supplier)::HUGEINT) "
        "FROM read_parquet('{}', hive_partitioning = false)"
    )
    results = [duckdb.execute(query.format(files)).fetchall() for files in (ours, hand)]
    if results[0] != results[1]:
        sys.exit(f"the outputs differ: {results}")
    note(f"both hold the same {results[0][0][0]:,} rows")


def compare_once(data: Path, repeat: int) -> list[Figure]:
    """One snapshot by each side in turn."""
    folders = {who: fresh(f"once-{who}") for who in SIDES}
    rounds = []
    for number in range(repeat):
        order = list(SIDES) if number % 2 else list(reversed(SIDES))
        rounds.append({who: once(who, data, fresh(f"once-{who}")) for who in order})
    refuse_difference(f"{folders['ours']}/data/*/*.parquet", f"{folders['hand']}/*.parquet")
    seconds = {who: statistics.median(each[who].seconds for each in rounds) for who in SIDES}
    peaks = {who: max(each[who].peak for each in rounds) for who in SIDES}
    same, default = (seconds["ours"] / seconds[who] for who in ("hand", "default"))
    size = mebibytes(folders["ours"]) / mebibytes(folders["hand"])
    return [
        *(Figure(f"one snapshot, seconds, {SIDES[who]}", round(seconds[who], 1)) for who in SIDES),
        Figure("one snapshot, seconds, DuckDB", round(timed(partial(by_duckdb, data)), 2)),
        Figure.at_most("one snapshot, ratio to hand-written", same, 1.03),
        Figure.at_most("one snapshot, ratio to hand-written with Spark's defaults", default, 0.80),
        Figure.at_most("one snapshot, size, ratio to hand-written", size, 1.0),
        *(Figure(f"peak driver memory, MiB, {SIDES[who]}", round(peaks[who])) for who in SIDES),
        Figure("peak driver memory, ratio", round(peaks["ours"] / peaks["hand"], 3)),
    ]


def compare_months(data: Path) -> list[Figure]:
    """One run over twelve months against twelve runs of the hand-written job."""
    ours = once("ours", data, fresh("months-ours")).seconds
    note(f"ours, twelve months: {ours:.1f} s")
    target = fresh("months-hand")
    hand = sum(once("hand", data, target / month, month).seconds for month in MONTHS)
    note(f"by hand, twelve processes: {hand:.1f} s")
    return [
        Figure("twelve months, seconds, Snaploom", round(ours, 1)),
        Figure("twelve months, seconds, twelve hand-written runs", round(hand, 1)),
        Figure.at_most("twelve months, ratio to twelve hand-written runs", ours / hand, 0.25),
    ]


@dataclass(frozen=True)
class Process:
    """What a process with one job needed."""

    seconds: float
    """From its start to its end."""
    peak: float
    """MiB of Spark's driver, resident."""
    processor: float
    """Seconds of processor time, of Python and of Spark's driver."""


def once(
    who: str,
    data: Path,
    target: Path,
    month: str = MONTHS[0],
    program: str = __file__,
    environment: Mapping[str, str] = os.environ,
) -> Process:
    """One job in a process of its own."""
    command = [sys.executable, program, "--once", f"{who}:{month}", str(data), str(target)]
    started = perf_counter()
    result = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    peak, processor = map(float, result.stdout.splitlines()[-1].split())
    found = Process(perf_counter() - started, peak, processor)
    note(f"{who}, a process: {found.seconds:.1f} s, {processor:.1f} s of processor")
    return found


def run_once(who: str, data: Path, target: Path) -> None:
    """The other side of `once`."""
    name, month = who.split(":")
    target.parent.mkdir(parents=True, exist_ok=True)
    spark = default_session() if name == "default" else build_session("benchmark", SETTINGS)
    if name == "ours":
        snaploom_run(spark, data, target)
    else:
        by_hand_run(spark, data, target, month)
    print(peak_memory(), processor_seconds())


def default_session() -> SparkSession:
    """A session that makes no setting but the driver's memory, which is that of ours."""
    return (
        SparkSession.Builder().master("local[*]").config("spark.driver.memory", "6g").getOrCreate()
    )


def peak_memory() -> float:
    """Peak resident memory of the JVM below this process, in MiB."""
    for child in psutil.Process().children(recursive=True):
        if child.name() == "java":
            for line in Path(f"/proc/{child.pid}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) / 1024
    sys.exit("no JVM found")


def processor_seconds() -> float:
    """Processor time of this process and of those below it, in seconds."""
    this = psutil.Process()
    used = [each.cpu_times() for each in (this, *this.children(recursive=True))]
    return round(sum(one.user + one.system for one in used), 2)


def timed(job: Callable[[], object]) -> float:
    """Wall time of a job, in seconds."""
    started = perf_counter()
    job()
    return perf_counter() - started


def fresh(name: str) -> Path:
    """A path below the cache at which nothing is."""
    path = CACHE / "work" / name
    shutil.rmtree(path, ignore_errors=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def note(text: str) -> None:
    """Progress, on standard error."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
