"""Reads what is published: three rows in full, a question without a join, and one week of it."""

from __future__ import annotations

import sys

from pyspark.sql import Row, SparkSession

import snaploom
from snaploom import skipping

FOLDER = "file:///tmp/snaploom/flights/wide/"
INDEXES = "file:///tmp/snaploom/flights/indexes/"
WIDTH = 100

ROWS = {
    "A plane that left New York three times that day": "size(legs) = 3",
    "A plane that the register does not know": "data.tailnum IS NOT NULL AND plane IS NULL",
    "A flight without a tail number": "data.tailnum IS NULL",
}
LATE_AGAIN = """
SELECT CASE WHEN previous IS NULL THEN 'first of the day'
            WHEN previous.data.dep_delay IS NULL THEN 'was cancelled'
            WHEN previous.data.dep_delay >= 15 THEN 'left late' ELSE 'left on time' END
         AS earlier_departure_of_the_plane,
       count(*) AS flights,
       round(100 * avg(late)) AS late_percent,
       round(100 * avg(late) FILTER (WHERE rain)) AS late_percent_in_rain
FROM (SELECT try_element_at(filter(legs, leg -> leg.data.sched_dep_time < data.sched_dep_time), -1)
               AS previous,
             int(data.dep_delay >= 15) AS late,
             weather.data.precip > 0 AS rain
      FROM flights
      WHERE data.dep_delay IS NOT NULL AND legs IS NOT NULL)
GROUP BY 1 ORDER BY 1
"""

ONE_WEEK = """
SELECT count(*) FROM flights
WHERE data.time_hour >= TIMESTAMP '2013-01-07' AND data.time_hour < TIMESTAMP '2013-01-14'
"""


def start_spark() -> SparkSession:
    """A session on this machine, without web pages."""
    builder = SparkSession.Builder().appName("query flights").master("local[*]")
    builder = builder.config("spark.ui.enabled", "false")
    return builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()


def lines_of(name: str, value: object) -> list[str]:
    """One field of a nested row, cut to the width; an array has a line for each element."""
    elements = value if isinstance(value, list) else [value]
    labels = [name] + [""] * (len(elements) - 1)
    lines = [f"  {label:12}{text_of(v)}" for label, v in zip(labels, elements, strict=True)]
    return [line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…" for line in lines]


def text_of(value: object) -> str:
    """A struct as `name=value` pairs, without the level named `data` and without NULLs."""
    if value is None:
        return "NULL"
    if not isinstance(value, Row):
        return str(value)
    pairs = {name: item for name, item in value.asDict().items() if item is not None}
    inner = pairs.pop("data", None)
    shown = [f"{n}=({text_of(v)})" if isinstance(v, Row) else f"{n}={v}" for n, v in pairs.items()]
    return " ".join(shown if inner is None else [*shown, text_of(inner)])


def main() -> int:
    """Print three rows and two answers."""
    spark = start_spark()
    flights = snaploom.read(spark, FOLDER)
    for title, condition in ROWS.items():
        print(f"{title}:")
        row = flights.where(condition).orderBy("data.time_hour", "data.flight").first()
        assert row is not None, "not in the data; use at least one month"
        for name, value in row.asDict().items():
            print("\n".join(lines_of(name, value)))
        print()
    print("Does lateness travel with the plane? Share of departures at least 15 minutes late:")
    flights.createOrReplaceTempView("flights")
    spark.sql(LATE_AGAIN).show(truncate=False)
    skipping.enable(spark, INDEXES)
    (week,) = spark.sql(ONE_WEEK).collect()
    last = skipping.statistics(spark).recent[-1]
    left_out = 100 - 100 * last.kept_files // last.files
    print(f"In the second week of January: {week[0]} flights;", end=" ")
    print(f"{left_out}% of files were not opened.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
