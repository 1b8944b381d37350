"""Tables of a real MariaDB, by its own driver and by MySQL's: every value as it is, or an error."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from support.declared.sources import NOW, by_field, rows_at, snapshot_times
from support.servers.databases import in_mariadb

from snaploom.errors import SourceError, SourceSchemaInvalid
from snaploom.models.common import EpochNanos, parse_instant

pytestmark = pytest.mark.spark

both_drivers = pytest.mark.parametrize("driver", ["MARIADB", "MYSQL"])
TYPED = """
CREATE TABLE typed (big bigint unsigned, tiny tinyint, utiny tinyint unsigned,
  usmall smallint unsigned, uint int unsigned, yes tinyint(1), exact decimal(20,4), d double,
  day date, at timestamp(6) NULL, local datetime(6), words varchar(20), code char(3),
  raw varbinary(5), choice enum('a', 'b'), bit1 bit(1), j json);
SET time_zone = '+00:00';
INSERT INTO typed VALUES (18446744073709551615, -128, 255, 65535, 4294967295, 1,
  1234567890123456.7891, 1e300, '2024-02-29', '2024-07-01 10:00:00.123456',
  '2024-03-10 02:30:00.123456', 'Grüße 🧵', 'ab', x'00ff', 'b', b'1', '{"a": 1}');
INSERT INTO typed (big) VALUES (NULL);
"""
TIMES = """
SET time_zone = '+00:00';
CREATE TABLE times (n int, at timestamp(6) NULL, local datetime(6), day date);
INSERT INTO times VALUES
  (1, '2024-11-03 05:30:00', '2024-03-10 02:30:00', '2024-11-03'),
  (2, '2024-11-03 06:30:00.000001', '2024-11-03 01:30:00.000001', '2024-11-04');
"""


@pytest.fixture(scope="module")
def database(mariadb):
    mariadb.run(TYPED + TIMES)
    return mariadb


@both_drivers
def test_types_and_values_are_those_of_the_table(database, opened, driver):
    frame = opened(in_mariadb(database, "typed", driver)).read(NOW).frame
    row, empty = sorted(frame.collect(), key=lambda row: row.big is None)
    assert row.asDict() == {
        "big": Decimal(2**64 - 1),
        "tiny": -128,
        "utiny": 255,
        "usmall": 65535,
        "uint": 2**32 - 1,
        "yes": True,
        "exact": Decimal("1234567890123456.7891"),
        "d": 1e300,
        "day": date(2024, 2, 29),
        "at": row["at"],
        "local": datetime(2024, 3, 10, 2, 30, 0, 123456),
        "words": "Grüße 🧵",
        "code": "ab ",
        "raw": bytearray(b"\x00\xff"),
        "choice": "b",
        "bit1": True,
        "j": '{"a": 1}',
    }
    assert row["at"].astimezone(UTC) == datetime(2024, 7, 1, 10, 0, 0, 123456, tzinfo=UTC)
    assert set(empty) == {None}


@both_drivers
@pytest.mark.parametrize(
    ("field", "time_format", "times"),
    [
        ("at", "TIMESTAMP", ["2024-11-03T05:30:00Z", "2024-11-03T06:30:00.000001Z"]),
        ("local", "TIMESTAMP", ["2024-03-10T02:30:00Z", "2024-11-03T01:30:00.000001Z"]),
        ("day", "ISO8601_DATE", ["2024-11-03T00:00:00Z", "2024-11-04T00:00:00Z"]),
    ],
)
def test_columns_of_times_give_snapshots(database, opened, driver, field, time_format, times):
    spec = in_mariadb(
        database, "times", driver,
        snapshot=by_field(field, time_format), tablePredicates=["n = 1", "n <> 1"],
        isolationLevel="REPEATABLE_READ",
    )  # fmt: skip
    source = opened(spec)
    found = {time: rows_at(source, EpochNanos(time))[0][0] for time in snapshot_times(source)}
    assert found == {parse_instant(time): number for number, time in enumerate(times, 1)}


@both_drivers
def test_ranges_of_whole_numbers_divide_a_table(database, opened, driver):
    database.run(
        """CREATE OR REPLACE TABLE ranged (Id bigint unsigned);
           INSERT INTO ranged VALUES (0), (9), (10), (18446744073709551615), (NULL)"""
    )
    split = ["ID < 10", "`id` BETWEEN 10 AND 20", "id > 20 OR id IS NULL"]
    source = opened(in_mariadb(database, "ranged", driver, tablePredicates=split))
    assert sorted(str(row.Id) for row in source.read(NOW).frame.collect()) == [
        "0", "10", "18446744073709551615", "9", "None",
    ]  # fmt: skip
    gap = in_mariadb(database, "ranged", driver, tablePredicates=[split[0], split[2]])
    with pytest.raises(SourceSchemaInvalid) as caught:
        opened(gap).read(NOW)
    assert caught.value.found == "of 5 rows, 1 meet none and 0 meet more than one"


@both_drivers
def test_names_are_names_whatever_is_in_them(database, opened, driver):
    database.run(
        """CREATE DATABASE IF NOT EXISTS `my shop`; DROP TABLE IF EXISTS `my shop`.`a.b``c`;
           CREATE TABLE `my shop`.`a.b``c` (`call "it"` int, `a b` text, `sel``ect` int);
           INSERT INTO `my shop`.`a.b``c` VALUES (7, 'x', 8); GRANT ALL ON `my shop`.* TO weaver"""
    )
    spec = in_mariadb(database, '"a.b`c"', driver, database="my shop")
    (row,) = opened(spec).read(NOW).frame.collect()
    assert row.asDict() == {'call "it"': 7, "a b": "x", "sel`ect": 8}


@both_drivers
@pytest.mark.parametrize(
    ("column", "value", "change"),
    [
        ("decimal(65,30)", "0.1234567890123456789", "30 digits after the point, 3 would be left"),
        ("bit(9)", "257", "bits would become text"),
    ],
)
def test_columns_that_spark_would_change_are_refused(
    database, opened, driver, column, value, change
):
    database.run(f"CREATE OR REPLACE TABLE wide (n int, x {column}); "
                 f"INSERT INTO wide VALUES (1, {value})")  # fmt: skip
    with pytest.raises(SourceSchemaInvalid) as caught:
        opened(in_mariadb(database, "wide", driver)).read(NOW)
    assert change in caught.value.found
    declared = [{"name": "n", "dataType": {"integer": {}}}]
    without = in_mariadb(database, "wide", driver, schemaFields=declared)
    assert rows_at(opened(without), NOW) == [(1,)]


@both_drivers
def test_tiny_numbers_are_no_truth_values_where_that_is_asked(database, opened, driver):
    database.run("CREATE OR REPLACE TABLE tiny AS SELECT CAST(1 AS int) AS n; "
                 "ALTER TABLE tiny ADD yes tinyint(1) DEFAULT 2")  # fmt: skip
    as_number = in_mariadb(database, "tiny", driver, options={"tinyInt1isBit": "false"})
    assert rows_at(opened(as_number), NOW) == [(1, 2)]


@both_drivers
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"tableReference": "nowhere"}, "SourceNotReadable"),
        ({"port": 1}, "SourceNotReadable"),
        ({"credentials": {"fromPlaintext": {"user": "weaver", "password": "geheim"}}},
         "CredentialsRefused"),
    ],
)  # fmt: skip
def test_refusals_have_reasons_and_no_secret(database, opened, driver, changes, reason):
    with pytest.raises(SourceError) as caught:
        opened(in_mariadb(database, "times", driver, **changes)).listing()
    assert caught.value.reason == reason
    assert "geheim" not in str(caught.value)
    assert "weaver" not in str(caught.value)


def test_a_whole_url_of_mariadb_reads_columns_too(database, opened, monkeypatch):
    monkeypatch.setenv("SNAPLOOM_ALLOW_JDBC_URL", "true")
    url = f"jdbc:mariadb://127.0.0.1:{database.port}/shop?tcpKeepAlive=true"
    spec = in_mariadb(database, "times", url=url, host=None, port=None, database=None)
    assert sorted(row.n for row in opened(spec).read(NOW).frame.collect()) == [1, 2]
