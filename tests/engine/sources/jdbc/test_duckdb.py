"""Tables of a DuckDB file: every value as it is, or an error."""

from datetime import date, datetime
from decimal import Decimal

import pytest
from support.declared.sources import NOW, by_field, rows_at, snapshot_times
from support.servers.databases import in_duckdb, make_duckdb

from snaploom.errors import SourceNotReadable, SourceSchemaInvalid
from snaploom.models.common import EpochNanos, parse_instant

pytestmark = pytest.mark.spark

TYPED = """CREATE TABLE typed (big bigint, tiny tinyint, usmall usmallint, uint uinteger,
  exact decimal(20, 4), half float, yes boolean, day date,
  "local" timestamp, words varchar, "a.b" integer)"""
VALUES = """INSERT INTO typed VALUES (1099511627776, -128, 65535, 4294967295,
  1234567890123456.7891, 0.5, true, '2024-02-29',
  '2024-03-10 02:30:00', 'Grüße 🧵', 7), (NULL, NULL, NULL, NULL,
  NULL, NULL, NULL, NULL, NULL, NULL, NULL)"""
TIMES = """CREATE TABLE times AS SELECT * FROM (VALUES
  (1, TIMESTAMP '2024-03-10 02:30:00', DATE '2024-11-03'),
  (2, '2024-11-03 01:30:00.000001', '2024-11-04'))
  t (n, "local", "day")"""


@pytest.fixture(scope="module")
def database(spark, tmp_path_factory):
    file = tmp_path_factory.mktemp("duckdb") / "shop.db"
    make_duckdb(spark, file, TYPED, VALUES, TIMES)
    return file


def test_types_and_values_are_those_of_the_table(database, opened):
    options = {"threads": "1", "memory_limit": "200MB"}
    frame = opened(in_duckdb(database, "typed", options=options)).read(NOW).frame
    row, empty = sorted(frame.collect(), key=lambda row: row.big is None)
    assert row.asDict() == {
        "big": 2**40,
        "tiny": -128,
        "usmall": 65535,
        "uint": 2**32 - 1,
        "exact": Decimal("1234567890123456.7891"),
        "half": 0.5,
        "yes": True,
        "day": date(2024, 2, 29),
        "local": datetime(2024, 3, 10, 2, 30),
        "words": "Grüße 🧵",
        "a.b": 7,
    }
    assert set(empty) == {None}


@pytest.mark.parametrize(
    ("field", "time_format", "times"),
    [
        ("local", "TIMESTAMP", ["2024-03-10T02:30:00Z", "2024-11-03T01:30:00.000001Z"]),
        ("day", "ISO8601_DATE", ["2024-11-03T00:00:00Z", "2024-11-04T00:00:00Z"]),
    ],
)
def test_columns_of_times_give_snapshots(database, opened, field, time_format, times):
    spec = in_duckdb(
        database, "times", snapshot=by_field(field, time_format),
        tablePredicates=["n = 1", "n <> 1"],
    )  # fmt: skip
    source = opened(spec)
    found = {time: rows_at(source, EpochNanos(time))[0][0] for time in snapshot_times(source)}
    assert found == {parse_instant(time): number for number, time in enumerate(times, 1)}


@pytest.mark.parametrize("settings", [
    {}, {"tablePredicates": ["LOT < 2", "lot >= 2"]},
    {"snapshot": by_field("day", "ISO8601_DATE")},
])  # fmt: skip
def test_columns_of_unknown_types_are_left_out_by_schema_fields(spark, tmp_path, opened, settings):
    make_duckdb(
        spark,
        tmp_path / "shop.db",
        "CREATE TABLE odd (moment timestamptz, id uuid, lot int, day date)",
        "INSERT INTO odd SELECT now(), '6f1c2f3e-0000-4000-8000-00000000000a', 1, '2024-05-01'",
    )
    with pytest.raises(SourceSchemaInvalid) as caught:
        opened(in_duckdb(tmp_path / "shop.db", "odd")).read(NOW)
    assert "schemaFields" in caught.value.hint
    fields = [{"name": "ID", "dataType": {"string": {}}}]
    source = opened(in_duckdb(tmp_path / "shop.db", "odd", schemaFields=fields, **settings))
    (time,) = snapshot_times(source) if "snapshot" in settings else (NOW,)
    assert rows_at(source, time) == [("6f1c2f3e-0000-4000-8000-00000000000a",)]


def test_types_that_spark_does_not_know_are_read_as_others(spark, tmp_path, opened):
    values = {
        "ubigint": ("18446744073709551615", Decimal(2**64 - 1)),
        "hugeint": ("99999999999999999999", Decimal(10**20 - 1)),
        "uuid": ("'6f1c2f3e-0000-4000-8000-00000000000A'", "6f1c2f3e-0000-4000-8000-00000000000a"),
        "enum('a', 'b')": ("'b'", "b"),
        "bit": ("'101'::bit", "101"),
        "integer[]": ("[1, 2]", "[1, 2]"),
        "integer": ("7", 7),
    }
    columns = ", ".join(f'"c {n}" {kind}' for n, kind in enumerate(values))
    given = ", ".join(text for text, _ in values.values())
    make_duckdb(spark, tmp_path / "shop.db", f"CREATE TABLE odd ({columns})",
                f"INSERT INTO odd VALUES ({given})")  # fmt: skip
    split = ['"c 6" = 7', '"c 6" <> 7 OR "c 6" IS NULL']
    source = opened(in_duckdb(tmp_path / "shop.db", "odd", tablePredicates=split))
    assert rows_at(source, NOW) == [tuple(value for _, value in values.values())]


def test_a_type_that_spark_does_not_know_is_named(spark, tmp_path, opened):
    make_duckdb(spark, tmp_path / "shop.db", "CREATE TABLE odd (x TIMESTAMP WITH TIME ZONE)")
    with pytest.raises(SourceSchemaInvalid) as caught:
        opened(in_duckdb(tmp_path / "shop.db", "odd")).read(NOW)
    assert "TIMESTAMP WITH TIME ZONE" in caught.value.found


def test_file_that_is_not_there_is_not_made(tmp_path, opened):
    with pytest.raises(SourceNotReadable):
        opened(in_duckdb(tmp_path / "none.db", "times")).listing()
    assert list(tmp_path.iterdir()) == []
