"""Tables of a database, and files of CSV, against plain Spark: `make bench-jdbc`.

Ours and plain Spark read the same rows of a real PostgreSQL in turn, with the same predicates and
the same fetch size, into nothing. Ours begins anew each time: it connects, looks at the table,
fixes its moment and makes sure that the predicates split it. Ranges of whole numbers prove that by
themselves, and so do remainders, numbers below zero excepted; for any other predicate the database
counts, which reads every row once more. Plain Spark does not check. What comes first costs
some 30 ms whatever the table's size (0.72 s against 0.69 s for 1,000,000 rows), and two reads of
the same differ by more: hence a table that is read in seconds, and many reads.

The same rows as four files of CSV are read with columns by the names of their headers, by place
(`enforceSchema`), and by plain Spark, which looks for no faults in their lines first.
"""

import argparse
import statistics
import sys
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from figures import Figure, publish
from pyspark.sql import DataFrame, SparkSession
from support.declared.sources import INDEX, NOW, a_source, by_field, files
from support.servers.databases import driver_jars, in_postgres
from support.servers.postgresserver import PASSWORD, USER, Postgres, running_postgres
from support.weaving.sparksession import make_session

from snaploom.plan.bundle import Bundle
from snaploom.sources.readers import Sources

FETCH = 1000
DAYS = 10
WARM_UPS = 5
"""Pairs of reads that do not count: after so many Java has compiled what a read of this size uses,
and neither is faster for having come later (measured)."""
REMAINDERS = [f"id % 4 = {part}" for part in range(4)]
COUNTED = [f"abs(id) % 4 = {part}" for part in range(4)]
TABLE = """
CREATE TABLE lines AS SELECT id::bigint, date '2024-01-01' + (id % {days})::int AS day,
  id % 1000 AS customer, (id % 10007) / 100.0::double precision AS price,
  'a note about line ' || id AS note, timestamptz '2024-01-01 00:00+00' + id * interval '1 s' AS at
FROM generate_series(1, {rows}) id;
ALTER TABLE lines ADD PRIMARY KEY (id);
CREATE INDEX ON lines (day);
ANALYZE lines
"""


def main() -> None:
    """Make the table, read it in turn, publish the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeat", type=int, default=21, help="pairs of reads")
    arguments = parser.parse_args()
    rows = arguments.rows
    jars = {"spark.driver.extraClassPath": f"{driver_jars()}/*", "spark.driver.memory": "2g"}
    with TemporaryDirectory() as folder, running_postgres() as server:
        spark = make_session(Path(folder), jars)
        server.run(TABLE.format(days=DAYS, rows=rows))
        whole = in_turn(arguments.repeat, *whole_table(spark, server, ranges(rows)))
        rest = in_turn(arguments.repeat, *whole_table(spark, server, REMAINDERS))
        counted = in_turn(arguments.repeat, *whole_table(spark, server, COUNTED))
        one = in_turn(arguments.repeat, *one_day(spark, server))
        by_name, by_place, by_spark = csv_reads(spark, Path(folder) / "csv", rows)
        named = in_turn(arguments.repeat, by_name, by_place)
        text_files = in_turn(arguments.repeat, by_name, by_spark)
        listing = statistics.median(timed(lister(spark, server)) for _ in range(3))
        spark.stop()
    text = f"{rows:,} rows in 4 ranges"
    publish(
        "Databases",
        "make bench-jdbc",
        [
            Figure(f"{text}, seconds, Snaploom", round(whole["ours"], 2)),
            Figure(f"{text}, seconds, plain Spark", round(whole["plain"], 2)),
            Figure.at_most(f"{text}, ratio", whole["ratio"], 1.05),
            Figure.at_most(f"{rows:,} rows in 4 remainders, ratio", rest["ratio"], 1.05),
            Figure(f"{rows:,} rows in 4 that are counted, ratio", round(counted["ratio"], 3)),
            Figure(f"one day of {DAYS}, seconds, Snaploom", round(one["ours"], 2)),
            Figure(f"one day of {DAYS}, seconds, plain Spark", round(one["plain"], 2)),
            Figure(f"one day of {DAYS}, ratio", round(one["ratio"], 3)),
            Figure(f"snapshots of {rows:,} rows listed, seconds", round(listing, 2)),
            Figure.at_most("4 files of CSV, by names and by place, ratio", named["ratio"], 1.1),
            Figure("4 files of CSV, seconds, Snaploom", round(text_files["ours"], 2)),
            Figure("4 files of CSV, seconds, plain Spark", round(text_files["plain"], 2)),
            Figure("4 files of CSV, ratio", round(text_files["ratio"], 3)),
        ],
    )


def ranges(rows: int) -> list[str]:
    """Four ranges of ids, as Spark makes them of `lowerBound` and `upperBound`."""
    bounds = [rows * part // 4 for part in range(1, 4)]
    inner = [f"id >= {one} AND id < {other}" for one, other in pairwise(bounds)]
    return [f"id < {bounds[0]} OR id IS NULL", *inner, f"id >= {bounds[-1]}"]


def whole_table(
    spark: SparkSession, server: Postgres, split: list[str]
) -> tuple[Callable[[], None], Callable[[], None]]:
    """All rows, ours and plain."""
    spec = in_postgres(server, "lines", tablePredicates=split, fetchSize=FETCH)

    def ours() -> None:
        sources = opened(spark, spec)
        drain(sources.reader("orders").read(NOW).frame)
        sources.close()

    return ours, lambda: drain(plain(spark, server, split))


def one_day(spark: SparkSession, server: Postgres) -> tuple[Callable[[], None], Callable[[], None]]:
    """The rows of one snapshot; both know which there is, and neither looks for others."""
    spec = in_postgres(
        server, "lines", fetchSize=FETCH, snapshot=by_field("day", "ISO8601_DATE", dropField=False)
    )
    reader = opened(spark, spec).reader("orders")
    newest = reader.listing().times[-1]
    day = f"day = date '2024-01-01' + {DAYS - 1}"
    return (
        lambda: drain(reader.read(newest).frame),
        lambda: drain(plain(spark, server, [day])),
    )


def csv_reads(
    spark: SparkSession, folder: Path, rows: int
) -> tuple[Callable[[], None], Callable[[], None], Callable[[], None]]:
    """Four files, read with columns by their names, by place, and by plain Spark."""
    frame = spark.range(rows).selectExpr(
        "id", "date_add(date '2024-01-01', int(id % 10)) AS day", "int(id % 1000) AS customer",
        "(id % 10007) / 100D AS price", "concat('a note about line ', id) AS note",
    )  # fmt: skip
    frame.repartition(4).write.option("header", "true").csv(str(folder))
    types = ("long", "date", "integer", "double", "string")
    fields = [
        {"name": name, "dataType": {kind: {}}}
        for name, kind in zip(frame.columns, types, strict=True)
    ]

    def ours(**options: str) -> None:
        spec = files(
            "csv", f"{folder}/*.csv", formatOptions={"header": "true", **options},
            schemaFields=fields,
        )  # fmt: skip
        drain(opened(spark, spec).reader("orders").read(NOW).frame)

    def plain() -> None:
        reader = spark.read.schema(frame.schema).option("mode", "FAILFAST")
        drain(reader.option("header", "true").csv(str(folder)))

    return ours, lambda: ours(enforceSchema="true"), plain


def lister(spark: SparkSession, server: Postgres) -> Callable[[], None]:
    """A function that lists the snapshots of a table, connecting included."""
    spec = in_postgres(server, "lines", snapshot=by_field("day", "ISO8601_DATE"))

    def listing() -> None:
        sources = opened(spark, spec)
        if len(sources.reader("orders").listing().times) != DAYS:
            sys.exit("the snapshots are not those of the table")
        sources.close()

    return listing


def opened(spark: SparkSession, spec: dict[str, Any]) -> Sources:
    """The sources of a run that reads one table."""
    return Sources(spark, Bundle(skipping_index=INDEX, data_sources=(a_source(spec),)), NOW)


def plain(spark: SparkSession, server: Postgres, predicates: list[str]) -> DataFrame:
    """The same rows, as anybody would read them."""
    properties = {"user": USER, "password": PASSWORD, "driver": "org.postgresql.Driver"}
    url = f"jdbc:postgresql://127.0.0.1:{server.port}/postgres"
    properties["fetchsize"] = str(FETCH)
    return spark.read.jdbc(url, "lines", predicates=predicates, properties=properties)


def drain(frame: DataFrame) -> None:
    """Read every row and column, and keep nothing."""
    frame.write.format("noop").mode("overwrite").save()


def in_turn(
    repeat: int, ours: Callable[[], None], plain: Callable[[], None]
) -> Mapping[str, float]:
    """Medians of both and of the ratio of each pair, after warm-ups; who begins changes."""
    times: dict[str, list[float]] = {"ours": [], "plain": []}
    for attempt in range(1 - WARM_UPS, repeat + 1):
        jobs = [("ours", ours), ("plain", plain)]
        for name, job in jobs if attempt % 2 else reversed(jobs):
            seconds = timed(job)
            shown = attempt if attempt > 0 else "warm-up"
            print(f"{name} {shown}: {seconds:.2f} s", file=sys.stderr, flush=True)
            if attempt > 0:
                times[name].append(seconds)
    pairs = zip(times["ours"], times["plain"], strict=True)
    times["ratio"] = [mine / theirs for mine, theirs in pairs]
    return {name: statistics.median(found) for name, found in times.items()}


def timed(job: Callable[[], None]) -> float:
    """Wall time of a job, in seconds."""
    started = perf_counter()
    job()
    return perf_counter() - started


if __name__ == "__main__":
    main()
