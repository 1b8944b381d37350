"""What more rows, one frequent key and many columns cost: `make bench-growth`.

Every case runs in a process of its own, with a driver and one executor that are processes of their
own as well (Spark's `local-cluster`), whose heaps have one size for every number of rows: what
suffices for the smallest and for the largest does not depend on them.

1. TPC-H at several scale factors, after one weave of the smallest to warm up: processor seconds a
   row, memory, and what Spark notes of its stages.
2. Few rows in very many tasks: what a task costs the driver.
3. One key with 10 % of the rows, and NULL keys in 30 % of them, beside the same rows without.
4. 2,000 columns over 20 sources, and a chain of 14 joins, beside the same joins written by hand.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter

import duckdb
import psutil
from figures import Figure, print_figures, publish
from growthcases import (
    HOT_SHARE,
    NULL_SHARE,
    PARTITIONS,
    SKEW_CASES,
    apply,
    chain,
    skewed,
    star,
    weave_bundle,
    weave_bundle_by_hand,
)
from join import CACHE, DIMENSIONS, MONTHS, fresh, mebibytes, note, single_snapshot, snaploom_run
from pydantic import BaseModel, ConfigDict, TypeAdapter
from pyspark.find_spark_home import _find_spark_home
from stagefigures import SparkStatus, Stage, interpreted, split_partitions

from snaploom.models.report import RunPhase
from snaploom.models.run import RunSettings
from snaploom.policy.variables import DEBUG_VARIABLE
from snaploom.run.session.spark import build_session
from snaploom.spark.jvm import jvm_of

DRIVER_MEMORY = "512m"
"""Heap of the driver, whatever the number of rows."""
WIDE_DRIVER_MEMORY = "2g"
"""The same for wide tables, of which it holds each source that is broadcast while it is built: 19
with 10,000 rows and 100 columns each did not fit 512 MiB."""
EXECUTOR_MEBIBYTES = 2048
"""Heap of the executor in every case."""
PARTS = ("growth", "tasks", "skew", "wide", "chain")
COLUMNS, SOURCES = 2000, 20
"""Of the wide case."""
DEPTH, CHAIN_COLUMNS = 14, 5
"""Of the chain, and columns of each of its sources."""
TASKS_SCALE_FACTOR = 0.01
"""Of the case of very many tasks: rows do not matter there."""
AT_MOST = 1.15
"""What the issue allows a row to cost beyond scale factor 1, held against it there."""
MILLION = 1e6
FALLBACKS = re.compile(
    r"codegen disabled for plan|too long generated codes|falling back to interpreter", re.IGNORECASE
)
"""Lines in which Spark's log gives up generated code."""
LEAST_READ = 16 << 20
"""Bytes of a shuffle from which on a task's memory is held against them: it has 64 MiB at least."""
LISTED_STAGES = 0.02
"""Share of the processor time of all stages from which on a stage has a line of its own."""


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    scale_factors: tuple[float, ...]
    skew_scale_factor: float
    partitions: int
    """Of shuffles, in the case of very many tasks."""
    rows: int
    """Of the wide case and of the chain."""
    columns: int
    sources: int
    depth: int

    @property
    def smallest(self) -> float:
        """The scale factor that others warm up with."""
        return min(self.scale_factors)


SMALL = Sizes((0.01,), 0.01, 32, 200, 30, 3, 3)
"""For the test that keeps this program working."""


class Measured(BaseModel):
    """What one job needed."""

    model_config = ConfigDict(frozen=True)

    name: str
    rows: int
    seconds: float
    driver_seconds: float
    """Processor seconds of the driver's JVM."""
    executor_seconds: float
    """Processor seconds of the executor's JVM."""
    python_seconds: float
    """Processor seconds of this process."""
    driver_peak: float
    """MiB, resident."""
    driver_live: float
    """MiB of the driver's heap that a full collection leaves."""
    executor_peak: float
    """MiB, resident."""
    output: float
    """MiB of data files."""
    operators: int
    """Of the plan."""
    interpreted: int
    """Operators that run without generated code."""
    split: int
    """Skewed partitions that were split."""
    fallbacks: int = 0
    """Lines of Spark's log that give up generated code."""
    stages: tuple[Stage, ...]

    @property
    def processor_seconds(self) -> float:
        """Of all processes."""
        return self.driver_seconds + self.executor_seconds + self.python_seconds

    def a_million(self, seconds: float) -> float:
        """Seconds of a million rows."""
        return seconds / self.rows * MILLION

    def a_row(self, count: Callable[[Stage], int]) -> float:
        """What stages count, a row."""
        return sum(map(count, self.stages)) / self.rows


MEASURED = TypeAdapter(list[Measured])


def main() -> None:
    """Run everything, some parts of it, or with `--once` one case in this process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale-factors", type=float, nargs="+", default=[0.1, 1, 3])
    parser.add_argument("--skew-scale-factor", type=float, default=0.3)
    parser.add_argument("--rows", type=int, default=100_000, help="of wide tables")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="print these, publish nothing")
    parser.add_argument("--small", action="store_true", help="tiny data, and publish nothing")
    parser.add_argument("--once", nargs="+", metavar="CASE", help="one case in this process")
    arguments = parser.parse_args()
    sizes = Sizes(
        tuple(arguments.scale_factors),
        arguments.skew_scale_factor,
        1000,
        arguments.rows,
        COLUMNS,
        SOURCES,
        DEPTH,
    )
    if arguments.small:
        sizes = SMALL
    if arguments.once:
        print(MEASURED.dump_json(run_once(sizes, *arguments.once)).decode())
        return
    parts = arguments.only or PARTS
    figures = [figure for part in parts for figure in FIGURES[part](sizes)]
    if arguments.only or arguments.small:
        print_figures(figures)
    else:
        publish("Growth", "make bench-growth", figures)


def growth_figures(sizes: Sizes) -> list[Figure]:
    """Every scale factor, the largest with its stages."""
    figures: list[Figure] = []
    measured = {}
    for factor in sorted(sizes.scale_factors):
        warm, measured[factor] = once(sizes, "growth", f"{factor:g}")
        figures += [
            Figure(f"SF {factor:g}, start and warm-up, processor seconds", cpu_of_start(warm)),
            *figures_of(f"SF {factor:g}", source_bytes(factor), measured[factor]),
        ]
        if 1 in measured and factor > 1:
            pair = (measured[one] for one in (factor, 1))
            here, there = (one.a_million(one.processor_seconds) for one in pair)
            name = f"SF {factor:g}, processor seconds a row, ratio to SF 1"
            figures.append(Figure.at_most(name, here / there, AT_MOST))
    largest = max(measured)
    return [*figures, *stage_figures(f"SF {largest:g}", measured[largest])]


def cpu_of_start(warm: Measured) -> float:
    """Processor seconds until everything is compiled and loaded."""
    return round(warm.processor_seconds, 1)


def figures_of(name: str, read: int, one: Measured) -> list[Figure]:
    """What a scale factor costs, by row."""
    largest = max(one.stages, key=lambda stage: stage.shuffle_write_bytes)
    return [
        Figure(f"{name}, million rows", round(one.rows / MILLION, 3)),
        Figure(f"{name}, seconds", round(one.seconds, 1)),
        Figure(
            f"{name}, processor seconds per million rows",
            round(one.a_million(one.processor_seconds), 2),
        ),
        Figure(
            f"{name}, processor seconds per million rows, executor",
            round(one.a_million(one.executor_seconds), 2),
        ),
        Figure(f"{name}, processor seconds, driver", round(one.driver_seconds, 1)),
        Figure(f"{name}, driver of {DRIVER_MEMORY}, live heap, MiB", round(one.driver_live)),
        Figure(f"{name}, driver of {DRIVER_MEMORY}, peak resident, MiB", round(one.driver_peak)),
        Figure(
            f"{name}, executor of {EXECUTOR_MEBIBYTES}m, peak resident, MiB",
            round(one.executor_peak),
        ),
        Figure(f"{name}, bytes read a row", round(read / one.rows, 1)),
        Figure(
            f"{name}, bytes of shuffles a row",
            round(one.a_row(lambda stage: stage.shuffle_write_bytes), 1),
        ),
        Figure(
            f"{name}, bytes of the largest shuffle a row",
            round(largest.shuffle_write_bytes / one.rows, 1),
        ),
        Figure(
            f"{name}, bytes spilled to disk a row",
            round(one.a_row(lambda stage: stage.disk_bytes_spilled), 1),
        ),
        Figure(f"{name}, bytes written a row", round(one.output * (1 << 20) / one.rows, 1)),
        Figure(f"{name}, execution memory by byte of shuffle", round(expansion(one.stages), 2)),
    ]


def expansion(stages: Iterable[Stage]) -> float:
    """Bytes of memory that a task needs for each byte that it reads of a shuffle, at most.

    What is spilled no longer is in memory, and is added to it.
    """
    found = (
        (stage.execution_memory + stage.memory_bytes_spilled / stage.num_tasks) / stage.largest_read
        for stage in stages
        if stage.largest_read >= LEAST_READ
    )
    return max(found, default=0.0)


def stage_figures(name: str, one: Measured) -> list[Figure]:
    """A line for every stage that matters."""
    whole = sum(stage.executor_cpu_time for stage in one.stages)
    return [
        Figure(
            f"{name}, stage {number} of {len(one.stages)}",
            f"{stage.num_tasks} tasks, {stage.executor_cpu_time / 1e9:.1f} s of processor, "
            f"{stage.executor_run_time / 1e3:.1f} s; MiB of shuffles: "
            f"{stage.shuffle_read_bytes / 2**20:.0f} read, "
            f"{stage.shuffle_write_bytes / 2**20:.0f} written, "
            f"{stage.disk_bytes_spilled / 2**20:.0f} spilled; "
            f"{stage.execution_memory / 2**20:.0f} MiB for a task",
        )
        for number, stage in enumerate(one.stages, 1)
        if stage.executor_cpu_time >= LISTED_STAGES * whole
    ]


def tasks_figures(sizes: Sizes) -> list[Figure]:
    """What the driver keeps of a task."""
    few, many = once(sizes, "tasks")
    counts = [sum(stage.num_tasks for stage in one.stages) for one in (few, many)]
    kept = (many.driver_live - few.driver_live) * 1024 / (counts[1] - counts[0])
    busy = (many.driver_seconds - few.driver_seconds) * 1000 / (counts[1] - counts[0])
    return [
        Figure("tasks, few", counts[0]),
        Figure("tasks, many", counts[1]),
        Figure("driver, live heap with few tasks, MiB", round(few.driver_live)),
        Figure("driver, live heap with many tasks, MiB", round(many.driver_live)),
        Figure("driver, KiB kept of a task", round(kept, 1)),
        Figure("driver, processor milliseconds a task", round(busy, 2)),
    ]


def skew_figures(sizes: Sizes) -> list[Figure]:
    """Each case of keys, held against even ones."""
    measured = {one.name: one for one in once(sizes, "skew")}
    even = measured["even keys"]
    figures = []
    for name, one in measured.items():
        joined = max(one.stages, key=lambda stage: stage.shuffle_read_bytes)
        tasks = joined.task_metrics_distributions
        middle, most = tasks.shuffle_read_metrics.read_bytes if tasks else (1.0, 1.0)
        ratio = one.processor_seconds / even.processor_seconds
        figures += [
            Figure(f"{name}, processor seconds, ratio to even keys", round(ratio, 3)),
            Figure(
                f"{name}, bytes of the largest task / of the median one", round(most / middle, 2)
            ),
            Figure(
                f"{name}, run time of the longest task / of the median one",
                round(joined.hottest, 2),
            ),
            Figure(f"{name}, partitions split", one.split),
        ]
    about = f"{even.rows:,} rows, {PARTITIONS} partitions, one key in {HOT_SHARE} %"
    return [Figure("rows of skew", f"{about}, NULL in {NULL_SHARE} %"), *figures]


def wide_figures(sizes: Sizes) -> list[Figure]:
    """Many columns of many sources."""
    return beside_hand(sizes, "wide", f"{sizes.columns:,} columns of {sizes.sources} sources")


def chain_figures(sizes: Sizes) -> list[Figure]:
    """Joins one below the other."""
    return beside_hand(sizes, "chain", f"chain of {sizes.depth} joins")


def beside_hand(sizes: Sizes, part: str, name: str) -> list[Figure]:
    """A model with what it costs by hand."""
    (ours,), (hand,) = (once(sizes, part, who) for who in ("ours", "hand"))
    if ours.rows != hand.rows:
        sys.exit(f"{name}: {ours.rows} rows, by hand {hand.rows}")
    figures = [
        Figure(f"{name}, rows", ours.rows),
        Figure(
            f"{name}, processor seconds, ratio to hand-written",
            round(ours.processor_seconds / hand.processor_seconds, 3),
        ),
    ]
    for who, one in (("Snaploom", ours), ("by hand", hand)):
        figures += [
            Figure(f"{name}, {who}, processor seconds", round(one.processor_seconds, 1)),
            Figure(f"{name}, {who}, processor seconds, executor", round(one.executor_seconds, 1)),
            Figure(f"{name}, {who}, seconds", round(one.seconds, 1)),
            Figure(f"{name}, {who}, driver, live heap, MiB", round(one.driver_live)),
            Figure(f"{name}, {who}, executor, peak resident, MiB", round(one.executor_peak)),
            Figure(f"{name}, {who}, bytes written a row", round(one.output * 2**20 / one.rows)),
            Figure(f"{name}, {who}, operators without generated code", one.interpreted),
            Figure(f"{name}, {who}, times that generated code was given up", one.fallbacks),
        ]
    return figures


FIGURES: dict[str, Callable[[Sizes], list[Figure]]] = {
    "growth": growth_figures,
    "tasks": tasks_figures,
    "skew": skew_figures,
    "wide": wide_figures,
    "chain": chain_figures,
}


def source_bytes(scale_factor: float) -> int:
    """Size of the files that a scale factor has."""
    day = CACHE / f"tpch-{scale_factor:g}" / "single" / MONTHS[0]
    return sum((day / f"{name}.parquet").stat().st_size for name in ("lineitem", *DIMENSIONS))


def once(sizes: Sizes, *case: str) -> list[Measured]:
    """One case in a process of its own.

    Args:
        sizes: of everything.
        case: its part, and which one of the part.
    """
    command = [
        *(sys.executable, __file__, "--once", *case),
        *("--scale-factors", *map(str, sizes.scale_factors)),
        *("--skew-scale-factor", str(sizes.skew_scale_factor), "--rows", str(sizes.rows)),
        *(["--small"] if sizes is SMALL else []),
    ]
    log = fresh(f"growth-{'-'.join(case)}.log")
    with log.open("w", encoding="utf-8") as errors:
        # Spark logs where it gives up generated code.
        environment = {**os.environ, DEBUG_VARIABLE: "1"}
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, env=environment)
    if done.returncode:
        sys.exit(f"{' '.join(case)} failed: {log}\n{log.read_text('utf-8')[-2000:]}")
    found = MEASURED.validate_json(done.stdout.splitlines()[-1])
    for one in found:
        note(
            f"{' '.join(case)} {one.name}: {one.rows:,} rows, {one.seconds:.1f} s, "
            f"{one.processor_seconds:.1f} s of processor"
        )
    in_driver = len(FALLBACKS.findall(log.read_text("utf-8")))
    return [one.model_copy(update={"fallbacks": one.fallbacks + in_driver}) for one in found]


def run_once(sizes: Sizes, part: str, which: str = "") -> list[Measured]:
    """The other side of `once`."""
    if part == "growth":
        with Machine() as machine:
            return [
                machine.lineitems(name, single(factor))
                for name, factor in (("warm-up", sizes.smallest), ("measured", float(which)))
            ]
    if part == "tasks":
        data = single(TASKS_SCALE_FACTOR)
        with Machine() as machine:
            few = machine.lineitems("few", data)
            apply(machine.spark, {"spark.sql.shuffle.partitions": str(sizes.partitions)})
            return [few, machine.lineitems("many", data)]
    if part == "skew":
        data = CACHE / f"tpch-{sizes.skew_scale_factor:g}"
        single_snapshot(data, sizes.skew_scale_factor)
        with Machine() as machine:
            apply(machine.spark, {})  # so that all cases are as warm
            machine.lineitems("warm-up", skewed(data, "single"))
            found = []
            for name, (folder, settings) in SKEW_CASES.items():
                apply(machine.spark, settings)
                found.append(machine.lineitems(name, skewed(data, folder)))
            return found
    data = fresh(f"growth-{part}-{which}")
    bundle = (
        star(data, sizes.columns, sizes.sources, sizes.rows)
        if part == "wide"
        else chain(data, CHAIN_COLUMNS, sizes.depth, sizes.rows)
    )
    with Machine(WIDE_DRIVER_MEMORY) as machine:
        if which == "hand":
            job = partial(weave_bundle_by_hand, machine.spark, bundle, data, data / "wide")
            measured = machine.measured(which, data / "wide", job)
        else:

            def weave() -> None:
                report = weave_bundle(machine.spark, bundle)
                if report.phase is not RunPhase.SUCCEEDED:
                    sys.exit(f"weaving failed: {report.message}")

            measured = machine.measured(which, data / "wide", weave)
    shutil.rmtree(data)
    return [measured]


def single(factor: float) -> Path:
    """The tables of a scale factor."""
    return single_snapshot(CACHE / f"tpch-{factor:g}", factor)


class Machine:
    """A driver and one executor, each a process whose need is measured for itself."""

    def __init__(self, driver_memory: str = DRIVER_MEMORY) -> None:
        cores = os.cpu_count() or 2
        asked = {
            "spark.master": f"local-cluster[1,{cores},{EXECUTOR_MEBIBYTES}]",
            "spark.driver.memory": driver_memory,
            "spark.executor.memory": f"{EXECUTOR_MEBIBYTES}m",
            "spark.ui.enabled": "true",
            "spark.ui.port": "0",
        }
        self.spark = build_session("benchmark", RunSettings(), asked=asked.items())
        self._status = SparkStatus(self.spark)
        self._work = Path(_find_spark_home()) / "work" / self.spark.sparkContext.applicationId

    def __enter__(self) -> "Machine":
        self.spark.range(1).count()  # so that the executor is there
        return self

    def __exit__(self, *failure: object) -> None:
        self.spark.stop()
        shutil.rmtree(self._work, ignore_errors=True)
        with suppress(OSError):
            self._work.parent.rmdir()

    def lineitems(self, name: str, data: Path) -> Measured:
        """Weave line items with all that they refer to."""
        target = fresh(f"growth-{os.getpid()}")
        try:
            return self.measured(name, target, partial(snaploom_run, self.spark, data, target))
        finally:
            shutil.rmtree(target, ignore_errors=True)
            target.with_suffix(".yaml").unlink(missing_ok=True)

    def measured(self, name: str, target: Path, job: Callable[[], object]) -> Measured:
        """Run a job that writes an output, and count its rows."""
        stage = max((one.stage_id for one in self._status.stages()), default=-1)
        query = self._status.last_query()
        driver, executor = self._processes()
        before = [seconds_of(one) for one in (driver, executor, psutil.Process())]
        started = perf_counter()
        job()
        seconds = perf_counter() - started
        after = [seconds_of(one) for one in (driver, executor, psutil.Process())]
        spent = [late - early for early, late in zip(before, after, strict=True)]
        plan = self._status.largest_plan(query)
        files = [str(path) for path in data_files(target)]
        counted = duckdb.execute(
            f"SELECT sum(num_rows) FROM parquet_file_metadata({files})"
        ).fetchall()
        return Measured(
            name=name,
            rows=int(counted[0][0]),
            seconds=seconds,
            driver_seconds=spent[0],
            executor_seconds=spent[1],
            python_seconds=spent[2],
            driver_peak=peak(driver),
            driver_live=self._live_heap(),
            executor_peak=peak(executor),
            output=mebibytes(target),
            operators=len(plan.nodes),
            interpreted=interpreted(plan),
            split=split_partitions(plan),
            fallbacks=sum(
                len(FALLBACKS.findall(log.read_text("utf-8", "replace")))
                for log in self._work.glob("*/stderr")
            ),
            stages=tuple(self._status.stages(stage)),
        )

    def _processes(self) -> tuple[psutil.Process, psutil.Process]:
        found = [one for one in psutil.Process().children(recursive=True) if one.name() == "java"]
        executors = [
            one for one in found if any("CoarseGrainedExecutor" in word for word in one.cmdline())
        ]
        (driver,) = (one for one in found if one not in executors)
        (executor,) = executors  # one that failed has another in its place, and the case is void
        return driver, executor

    def _live_heap(self) -> float:
        """MiB that full collections leave; Spark drops what nothing refers to after the first."""
        java = jvm_of(self.spark).java.lang
        bean = java.management.ManagementFactory.getMemoryMXBean()
        used = []
        for _ in range(3):
            java.System.gc()
            used.append(float(bean.getHeapMemoryUsage().getUsed()) / 2**20)
        return min(used)


def data_files(target: Path) -> Sequence[Path]:
    """The Parquet files of an output, or of a folder."""
    return sorted(target.rglob("*.parquet"))


def seconds_of(process: psutil.Process) -> float:
    """Processor seconds of a process so far."""
    times = process.cpu_times()
    return float(times.user + times.system)


def peak(process: psutil.Process) -> float:
    """Peak resident memory of a process, in MiB."""
    status = Path(f"/proc/{process.pid}/status").read_text("utf-8")
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    main()
