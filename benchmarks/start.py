"""What a person waits for Spark, from the shell: `make bench-start`.

1. The first job of a session: one of Snaploom's, as for the run below, and one of PySpark's without
   a setting, until the result is there.
2. One small snapshot: `snaploom run` with all checks, and the same joins as a script by hand with
   PySpark's defaults, until the command has ended.

Each is a process of its own, in turn, after one of each that is not counted: it archives the
classes of Spark, as the first command on a laptop does.
"""

import argparse
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from time import perf_counter

import psutil
from figures import Figure, publish
from handwritten import weave_handwritten
from join import CACHE, MONTHS, OUTPUT, declared, fresh, note, refuse_difference, single_snapshot
from pyspark.sql import SparkSession

from snaploom.models.run import RunSettings
from snaploom.run.session.spark import build_session

PROGRAM = Path(sys.executable).with_name("snaploom")
SCALE_FACTOR = 0.01
"""60,000 line items: Spark's start takes longer than the joins."""
JVM_SECONDS = 120
"""For a JVM to end: the first one writes an archive of its classes."""
SIDES = {"ours": "Snaploom", "peer": "PySpark"}
FIRST_JOB, SMALL_SNAPSHOT = 0.6, 1.15
"""At most so many times what the peer takes."""


def main() -> None:
    """Measure both, and write the table; or be one of the processes that are measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=7, help="turns")
    parser.add_argument("--first-job", choices=SIDES, help="do that in this process")
    parser.add_argument("--by-hand", nargs=2, metavar=("DATA", "TARGET"), help="the same")
    arguments = parser.parse_args()
    if arguments.first_job:
        first_job(arguments.first_job)
    elif arguments.by_hand:
        by_hand(*map(Path, arguments.by_hand))
    else:
        figures = [*first_job_figures(arguments.repeat), *snapshot_figures(arguments.repeat)]
        publish("Start", "make bench-start", figures)
        sys.exit(0 if all(figure.ok for figure in figures) else 1)


def first_job_figures(repeat: int) -> Iterator[Figure]:
    """Seconds to the result of the first job."""
    works = {who: partial(seconds_to_first_job, who) for who in SIDES}
    yield from compared("first job of a session", works, repeat, FIRST_JOB)


def seconds_to_first_job(who: str) -> float:
    """From the start of a process to the line with its result; its JVM has ended after that."""
    command = [sys.executable, __file__, "--first-job", who]
    started = perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        rows, jvm = process.stdout.readline(), process.stdout.readline()
        elapsed = perf_counter() - started
        if rows != "6\n":
            sys.exit(f"{who}: {rows!r} rows")
    if psutil.pid_exists(int(jvm)):
        psutil.Process(int(jvm)).wait(JVM_SECONDS)
    return elapsed


def first_job(who: str) -> None:
    """The other side of `seconds_to_first_job`."""
    spark = (
        build_session("bench-start", RunSettings(), is_small=True)
        if who == "ours"
        else SparkSession.builder.getOrCreate()
    )
    print(spark.range(9).where("id > 2").count())
    jvm = spark._jvm
    assert jvm is not None
    print(jvm.java.lang.ProcessHandle.current().pid(), flush=True)


def snapshot_figures(repeat: int) -> Iterator[Figure]:
    """Seconds of a small snapshot."""
    data = single_snapshot(CACHE / f"tpch-{SCALE_FACTOR:g}", SCALE_FACTOR)
    targets = {who: CACHE / "work" / f"start-{who}" for who in SIDES}
    declarations = declared(data, fresh("start-ours"))
    commands: Mapping[str, list[str]] = {
        "ours": [str(PROGRAM), "run", OUTPUT, "-f", str(declarations)],
        "peer": [sys.executable, __file__, "--by-hand", str(data), str(targets["peer"])],
    }
    works = {who: partial(seconds_to_end, who, commands[who]) for who in SIDES}
    yield from compared("a small snapshot", works, repeat, SMALL_SNAPSHOT)
    refuse_difference(f"{targets['ours']}/data/*/*.parquet", f"{targets['peer']}/*.parquet")


def seconds_to_end(who: str, command: list[str]) -> float:
    """Of one command that publishes into an empty folder."""
    fresh(f"start-{who}")
    started = perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    elapsed = perf_counter() - started
    if done.returncode:
        sys.exit(f"{' '.join(command)}:\n{done.stderr or done.stdout}")
    return elapsed


def by_hand(data: Path, target: Path) -> None:
    """The other side of `snaploom run`."""
    day = data / MONTHS[0]
    weave_handwritten(SparkSession.builder.getOrCreate(), day, day / "lineitem.parquet", target)


def compared(
    name: str, works: Mapping[str, Callable[[], float]], repeat: int, goal: float
) -> Iterator[Figure]:
    """Medians of both, in turn, each first in every other turn."""
    seconds: dict[str, list[float]] = {who: [] for who in works}
    for number in range(repeat + 1):
        for who in works if number % 2 else reversed(list(works)):
            elapsed = works[who]()
            note(f"{name}, {SIDES[who]}: {elapsed:.2f} s")
            if number:
                seconds[who].append(elapsed)
    middle = {who: statistics.median(values) for who, values in seconds.items()}
    for who, value in middle.items():
        yield Figure(f"{name}, seconds, {SIDES[who]}", round(value, 2))
    ratio = middle["ours"] / middle["peer"]
    yield Figure.at_most(f"{name}, Snaploom / PySpark", ratio, goal)


if __name__ == "__main__":
    main()
