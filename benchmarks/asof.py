"""As-of joins against the same joins by hand: `make bench-asof`.

1. Keys of a hundred rows each: a run of ours, the best job by hand (one sort of both sides, and the
   last row of the right side), and DuckDB's `ASOF JOIN`, which shows what this machine could do; of
   fewer rows, the range join that people write first, with a hundred and with a thousand rows a key
   (prices of a day over three years). All rows are compared.
2. Sums, counts and last values over two lengths before each row's own time: a run of ours, and
   Spark's frames of a range by hand.
3. One key with 10 % of all rows on both sides, for both, each in a process of its own with a small
   heap. Spark's frames of a range take the square of the rows of a key there, and are left out.
"""

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

import duckdb
from figures import Figure, publish
from join import CACHE, HERE, fresh, note, peak_memory, timed
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as sf

from snaploom.models.common import now
from snaploom.models.findings import refuse
from snaploom.models.report import RunPhase
from snaploom.models.run import DriverSettings, RunSettings, SparkSettings
from snaploom.run.declarations import read_declarations
from snaploom.run.job import Job
from snaploom.run.session.spark import build_session
from snaploom.run.weaving.outputrun import weave_output

A_KEY, MANY_A_KEY = 100, 1000
"""Rows of a key, on each side."""
HOT_SHARE = 10
"""Percent of the rows that one key has in the second part."""
HOT_MEMORY = "1g"
"""Heap of that process, whatever the number of rows."""
MEMORY = "2g"
"""Heap of Spark in the other parts."""
DAY = "2024-01-01"
AS_OF = "asOf: {parentField: ordered_at, childField: valid_from}"
AGGREGATES = ", ".join(
    f"{{name: {name.lower()}_{over}, function: {name}, field: amount, over: {over}}}"
    for over in ("6h", "30d") for name in ("SUM", "COUNT", "LAST")
)  # fmt: skip
WINDOWS = AS_OF.replace("asOf", "windows").replace("}", f", aggregates: [{AGGREGATES}]}}")
OURS, SORTED, RANGE, FRAMES = "ours", "sorted by hand", "range join by hand", "frames by hand"


def main() -> None:
    """Run all parts, or with `--hot` the second one in this process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=4_000_000, help="of each side")
    parser.add_argument("--range-rows", type=int, default=500_000, help="of each side")
    parser.add_argument("--hot-rows", type=int, default=10_000_000, help="of each side")
    parser.add_argument("--repeat", type=int, default=3, help="counted runs of each side")
    parser.add_argument("--print", action="store_true", help="keep no history")
    parser.add_argument("--hot", metavar="DATA")
    parser.add_argument("--windows", action="store_true")
    arguments = parser.parse_args()
    if arguments.hot:
        spark, rule = session(HOT_MEMORY), WINDOWS if arguments.windows else AS_OF
        job = partial(by_snaploom, spark, Path(arguments.hot), fresh("asof-hot"), rule)
        seconds = timed(job)
        print(seconds, peak_memory())
        return
    figures = compared(arguments.rows, arguments.repeat)
    figures += range_figures(arguments.range_rows, A_KEY, arguments.repeat)
    figures += range_figures(arguments.range_rows // 5, MANY_A_KEY, arguments.repeat)
    figures += windows_figures(arguments.rows, arguments.repeat)
    figures += hot_figures(rows_of(arguments.hot_rows, hot=HOT_SHARE))
    if arguments.print:
        print(*(f"{one.name}: {one.value} {one.goal}" for one in figures), sep="\n")
    else:
        publish("As-of joins", "make bench-asof", figures)


def session(memory: str) -> SparkSession:
    """A session as a run makes it."""
    settings = SparkSettings(driver=DriverSettings(memory=memory))
    return build_session("benchmark", RunSettings(spark=settings))


def rows_of(count: int, hot: int, a_key: int = A_KEY) -> Path:
    """Orders and rates over two days, at random times; made when they are not there.

    Args:
        count: rows of each side.
        hot: percent of them with one key.
        a_key: rows of every other key.
    """
    data = CACHE / f"asof-{count}-{hot}-{a_key}"
    for seed, (name, time) in enumerate((("orders", "ordered_at"), ("rates", "valid_from"))):
        file = data / name / f"{DAY}.parquet"
        if file.exists():
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        keys = count // a_key
        # Microseconds of a rate end in its number, so that no two have one time.
        duckdb.sql(f"""
            COPY (SELECT i AS id,
                CASE WHEN hash(i, {seed}) % 100 < {hot} THEN 0 ELSE hash(i, {seed}, 1) % {keys} END
                    ::BIGINT AS currency,
                make_timestamp((1704067200000000 + (hash(i, {seed}, 2) % 17280) * 10000000
                    + i % 10000000)::BIGINT) AS {time},
                'text of row ' || i AS note, i * 0.5 AS amount
            FROM range({count}) r(i)) TO '{file}.new' (FORMAT parquet)
        """)
        os.replace(f"{file}.new", file)
    return data


def by_snaploom(spark: SparkSession, data: Path, target: Path, rule: str = AS_OF) -> None:
    """A run: planned, counted, written and published."""
    file = target.with_suffix(".yaml")
    text = (HERE / "model" / "asof.yaml").read_text("utf-8").replace(AS_OF, rule)
    file.write_text(text.replace("@DATA@", str(data)).replace("@OUTPUT@", str(target)), "utf-8")
    read = read_declarations([file])
    refuse(read.findings)
    job = Job(now=now(), clock=now, emit=lambda event: None)
    report = weave_output(spark, read.bundle("orders-wide"), job)
    if report.phase is not RunPhase.SUCCEEDED:
        sys.exit(f"weaving failed: {report.message}")


def by_sort(spark: SparkSession, data: Path, target: Path) -> None:
    """Both sides in one sort by hand, without any check."""
    orders, rates = (spark.read.parquet(str(data / name)) for name in ("orders", "rates"))
    right = rates.select(
        "currency", sf.col("valid_from").alias("t"), sf.lit(0).alias("side"),
        sf.lit(None).cast(orders.schema).alias("data"),
        sf.struct(sf.struct(*rates.columns).alias("data")).alias("rate"),
    )  # fmt: skip
    left = orders.select(
        "currency", sf.col("ordered_at").alias("t"), sf.lit(1).alias("side"),
        sf.struct(*orders.columns).alias("data"),
        sf.lit(None).cast(right.schema["rate"].dataType).alias("rate"),
    )  # fmt: skip
    window = Window.partitionBy("currency").orderBy("t", "side")
    last = sf.last("rate", ignorenulls=True).over(
        window.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    joined = left.unionAll(right).withColumn("rate", last).where("side = 1").select("data", "rate")
    joined.write.option("compression", "snappy").parquet(str(target))


def by_range(spark: SparkSession, data: Path, target: Path) -> None:
    """The range join, and the newest row of each order, as people write it."""
    orders, rates = (spark.read.parquet(str(data / name)) for name in ("orders", "rates"))
    data_, rate = sf.struct(*orders.columns), sf.struct(sf.struct(*rates.columns).alias("data"))
    left = orders.select("currency", "ordered_at", sf.col("id").alias("order"), data_.alias("data"))
    right = rates.select(sf.col("currency").alias("c"), "valid_from", rate.alias("rate"))
    met = (sf.col("currency") == sf.col("c")) & (sf.col("valid_from") <= sf.col("ordered_at"))
    newest = Window.partitionBy("order").orderBy(sf.desc("valid_from"))
    joined = left.join(right, met, "left").withColumn("n", sf.row_number().over(newest))
    joined.where("n = 1").select("data", "rate").write.option("compression", "snappy").parquet(
        str(target)
    )


def by_frames(spark: SparkSession, data: Path, target: Path) -> None:
    """Windows as people write them: Spark's frames of a range over both sides."""
    orders, rates = (spark.read.parquet(str(data / name)) for name in ("orders", "rates"))
    right = rates.select(
        "currency", sf.unix_micros(sf.col("valid_from").cast("timestamp")).alias("t"),
        sf.lit(None).cast(orders.schema).alias("data"), "amount",
    )  # fmt: skip
    left = orders.select(
        "currency", sf.unix_micros(sf.col("ordered_at").cast("timestamp")).alias("t"),
        sf.struct(*orders.columns).alias("data"), sf.lit(None).cast("double").alias("amount"),
    )  # fmt: skip
    by_time = Window.partitionBy("currency").orderBy("t")
    windows = []
    for name, hours in (("6h", 6), ("30d", 720)):
        frame = by_time.rangeBetween(-hours * 3_600_000_000, -1)
        windows += [
            sf.sum("amount").over(frame).alias(f"sum_{name}"),
            sf.count("amount").over(frame).alias(f"count_{name}"),
            sf.last("amount", ignorenulls=True).over(frame).alias(f"last_{name}"),
        ]
    both = left.unionAll(right).select("data", *windows).where("data IS NOT NULL")
    both.write.option("compression", "snappy").parquet(str(target))


def by_duckdb(data: Path, target: Path) -> None:
    """DuckDB's own join."""
    target.mkdir(parents=True)
    duckdb.sql(f"""
        COPY (SELECT o AS data, CASE WHEN r.id IS NOT NULL THEN {{'data': r}} END AS rate
              FROM '{data}/orders/*.parquet' o ASOF LEFT JOIN '{data}/rates/*.parquet' r
              ON o.currency = r.currency AND o.ordered_at >= r.valid_from)
        TO '{target}/rows.parquet' (FORMAT parquet)
    """)


def in_turn(jobs: Mapping[str, Callable[[Path], None]], repeat: int) -> dict[str, list[float]]:
    """Seconds of each job in each round, which begin with another one each time.

    A round before them is not counted.
    """
    seconds: dict[str, list[float]] = {side: [] for side in jobs}
    for number in range(repeat + 1):
        for side in jobs if number % 2 else reversed(list(jobs)):
            taken = timed(partial(jobs[side], fresh(folder_of(side))))
            note(f"{side}: {taken:.2f} s")
            if number:
                seconds[side].append(taken)
    return seconds


def folder_of(side: str) -> str:
    """Name of the folder that a job writes to."""
    return f"asof-{side.replace(' ', '-')}"


def ratio(seconds: Mapping[str, Sequence[float]], to: str) -> float:
    """Ratio of ours to another job: of each round, since others work here too, and their median."""
    rounds = zip(seconds[OURS], seconds[to], strict=True)
    return statistics.median(ours / other for ours, other in rounds)


def medians(kind: str, seconds: Mapping[str, Sequence[float]]) -> list[Figure]:
    """Seconds of each job."""
    found = {side: statistics.median(taken) for side, taken in seconds.items()}
    return [Figure(f"{kind}, seconds, {side}", round(taken, 2)) for side, taken in found.items()]


def compared(rows: int, repeat: int) -> list[Figure]:
    """Joins of ours, by one sort by hand, and by DuckDB."""
    data, spark = rows_of(rows, hot=0), session(MEMORY)
    jobs: dict[str, Callable[[Path], None]] = {
        OURS: partial(by_snaploom, spark, data),
        SORTED: partial(by_sort, spark, data),
        "DuckDB": partial(by_duckdb, data),
    }
    seconds = in_turn(jobs, repeat)
    refuse_differences(jobs)
    name = f"as-of join of {rows:,} rows"
    to_sorted = Figure.at_most("as-of join, ratio to sorted by hand", ratio(seconds, SORTED), 1.1)
    return [*medians(name, seconds), to_sorted]


def range_figures(rows: int, a_key: int, repeat: int) -> list[Figure]:
    """Joins of ours and by a range, of fewer rows: of each key it makes all pairs."""
    data, spark = rows_of(rows, 0, a_key), session(MEMORY)
    jobs: dict[str, Callable[[Path], None]] = {
        OURS: partial(by_snaploom, spark, data),
        RANGE: partial(by_range, spark, data),
    }
    seconds = in_turn(jobs, repeat)
    refuse_differences(jobs)
    name = f"as-of join of {rows:,} rows, {a_key:,} a key"
    to_range = Figure.at_most(f"{name}, ratio to the range join", ratio(seconds, RANGE), 0.1)
    return [*medians(name, seconds), to_range]


def windows_figures(rows: int, repeat: int) -> list[Figure]:
    """Windows of ours and by Spark's frames."""
    data, spark = rows_of(rows, hot=0), session(MEMORY)
    jobs: dict[str, Callable[[Path], None]] = {
        OURS: partial(by_snaploom, spark, data, rule=WINDOWS),
        FRAMES: partial(by_frames, spark, data),
    }
    seconds = in_turn(jobs, repeat)
    sums = "sum({0}.count_6h), sum({0}.count_30d), round(sum({0}.sum_30d)), round(sum({0}.last_6h))"
    found = [
        duckdb.execute(f"SELECT {sums.format(at)} FROM {rows_in(side)} r").fetchall()
        for at, side in (("r.rate.data", OURS), ("r", FRAMES))
    ]
    note(f"windows: {found[0]}")
    if found[0] != found[1]:
        sys.exit(f"the windows differ: {found}")
    return [
        *medians(f"windows over {rows:,} rows", seconds),
        Figure("windows, ratio to frames", round(ratio(seconds, FRAMES), 2)),
    ]


def refuse_differences(sides: Iterable[str]) -> None:
    """All outputs hold the same rows, or the comparison is worth nothing."""
    query = "SELECT count(*), sum(hash(data.id, rate.data.id)::HUGEINT) FROM {}"
    found = {side: duckdb.execute(query.format(rows_in(side))).fetchall() for side in sides}
    if len({str(one) for one in found.values()}) > 1:
        sys.exit(f"the outputs differ: {found}")
    note(f"all hold the same rows: {found[OURS]}")


def rows_in(side: str) -> str:
    """What a job wrote, as DuckDB reads it."""
    files = "data/*/*.parquet" if side == OURS else "*.parquet"
    folder = CACHE / "work" / folder_of(side)
    return f"read_parquet('{folder}/{files}', hive_partitioning = false)"


def hot_figures(data: Path) -> list[Figure]:
    """A key with a tenth of all rows, in a process of its own."""
    figures = []
    for name, more in (("as-of join", []), ("windows", ["--windows"])):
        command = [sys.executable, __file__, "--hot", str(data), *more]
        result = subprocess.run(command, check=True, capture_output=True, text=True)
        seconds, peak = map(float, result.stdout.splitlines()[-1].split())
        of = f"{name} with one key of 10 %"
        figures += [
            Figure(f"{of}, seconds", round(seconds, 1)),
            Figure(f"{of}, peak MiB of a heap of {HOT_MEMORY}", round(peak)),
        ]
    return figures


if __name__ == "__main__":
    main()
