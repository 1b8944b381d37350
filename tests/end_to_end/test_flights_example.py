"""The flights example as a newcomer meets it; DuckDB joins the same data by hand as the oracle."""

from collections.abc import Iterator

import duckdb
import pytest
from support.documentation import examples

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]

JANUARY = "2013-01-31"

BY_HAND = """
WITH flights AS (FROM read_parquet('{sources}/flights/snapshot_date={day}/*.parquet',
                                   hive_partitioning = false)),
     airports AS (FROM read_csv('{sources}/airports/{month}-01/airports.csv', types = {{
                    'alt': 'INTEGER', 'tz': 'INTEGER', 'dst': 'VARCHAR'}})),
     airlines AS (FROM read_csv('{sources}/airlines/airlines-2013-01-01.csv')),
     planes AS (FROM '{sources}/planes/planes-{register}.parquet'),
     weather AS (FROM read_json('{sources}/weather/{day}.json', columns = {{
       origin: 'VARCHAR', time_hour: 'TIMESTAMPTZ', temp: 'DOUBLE', dewp: 'DOUBLE',
       humid: 'DOUBLE', wind_dir: 'INTEGER', wind_speed: 'DOUBLE', wind_gust: 'DOUBLE',
       precip: 'DOUBLE', pressure: 'DOUBLE', visib: 'DOUBLE'}})),
     leg AS (SELECT sched_dep_time, dep_delay, arr_delay, carrier, flight, origin, dest,
                    tailnum, year, month, day FROM flights),
     leg_airport AS (SELECT faa, name FROM airports),
     legs AS (
       SELECT tailnum, year, month, day,
              list_sort(list({{data: leg, leg_destination: CASE WHEN a.faa IS NOT NULL
                                                           THEN {{data: a}} END}})) AS legs
       FROM leg LEFT JOIN leg_airport a ON a.faa = leg.dest
       WHERE tailnum IS NOT NULL
       GROUP BY tailnum, year, month, day)
SELECT flights AS data,
       CASE WHEN airlines.carrier IS NOT NULL THEN {{data: airlines}} END AS airline,
       CASE WHEN destinations.faa IS NOT NULL THEN {{data: destinations}} END AS destination,
       legs.legs AS legs,
       CASE WHEN origins.faa IS NOT NULL THEN {{data: origins}} END AS origin,
       CASE WHEN planes.tailnum IS NOT NULL THEN {{data: planes}} END AS plane,
       CASE WHEN weather.origin IS NOT NULL THEN {{data: weather}} END AS weather
FROM flights
LEFT JOIN airlines USING (carrier)
LEFT JOIN airports origins ON origins.faa = flights.origin
LEFT JOIN airports destinations ON destinations.faa = flights.dest
LEFT JOIN planes ON planes.tailnum = flights.tailnum
LEFT JOIN weather ON weather.origin = flights.origin AND weather.time_hour = flights.time_hour
LEFT JOIN legs ON (legs.tailnum, legs.year, legs.month, legs.day)
                = (flights.tailnum, flights.year, flights.month, flights.day)
"""
WOVEN = """
SELECT data, airline, destination, list_sort(legs) AS legs, origin, plane, weather
FROM read_parquet({files}, hive_partitioning = false)
"""
REGISTERS = {JANUARY: "2013-01-31", "2013-02-28": "2013-02-28", "2013-03-31": "2013-03-29"}
"""The newest register of planes by the end of each month; 31 March 2013 was a Sunday."""


@pytest.fixture(scope="module")
def example(
    shared_shell: examples.Shell, tmp_path_factory: pytest.TempPathFactory
) -> examples.Example:
    copied = examples.copy_example("flights", tmp_path_factory.mktemp("flights"), shared_shell)
    copied.run_readme()
    return copied


@pytest.fixture(scope="module")
def published(example: examples.Example) -> dict[str, list[str]]:
    return examples.published_files(example.folder / "wide")


@pytest.fixture
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


def test_readme_publishes_every_month(published: dict[str, list[str]]) -> None:
    assert list(published) == [f"{day}T00:00:00Z" for day in REGISTERS]


@pytest.mark.parametrize("day", REGISTERS)
def test_published_rows_are_those_of_a_join_by_hand(example, published, oracle, day):
    sources = example.folder / "sources"
    by_hand = BY_HAND.format(sources=sources, day=day, month=day[:7], register=REGISTERS[day])
    oracle.execute(f"CREATE TABLE expected AS {by_hand}")
    oracle.execute(f"CREATE TABLE woven AS {WOVEN.format(files=published[f'{day}T00:00:00Z'])}")
    rows = oracle.execute("SELECT count(*) FROM expected").fetchone()
    assert rows == oracle.execute("SELECT count(*) FROM woven").fetchone()
    for left, right in (("expected", "woven"), ("woven", "expected")):
        only = oracle.execute(f"FROM {left} EXCEPT ALL FROM {right} LIMIT 3").fetchall()
        assert not only, f"only in {left}: {only}"


def test_legs_are_in_the_order_of_departure(published, oracle):
    times = "list_transform(legs, lambda leg: leg.data.sched_dep_time)"
    unordered = oracle.execute(
        f"SELECT count(*) FROM read_parquet({published[f'{JANUARY}T00:00:00Z']}) "
        f"WHERE {times} <> list_sort({times})"
    ).fetchone()
    assert unordered == (0,)


def test_second_demo_has_nothing_to_do(example, published):
    printed = example.run("python examples/flights/demo.py")
    assert "nothing to publish" in printed.lower()
    assert examples.published_files(example.folder / "wide") == published


def test_demo_runs_the_commands_of_the_readme(example: examples.Example) -> None:
    demo = (example.readme.parent / "demo.py").read_text("utf-8")
    for command, _ in examples.commands_in(example.readme):
        assert f'"{command}"' in demo
