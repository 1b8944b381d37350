"""Tables of a real PostgreSQL: every row, as it was at one moment, in the types that it has."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from support.declared.sources import NOW, by_field, rows_at, snapshot_times
from support.servers.databases import in_postgres

from snaploom.errors import SnapshotMissing, SnapshotValueInvalid, SourceError, SourceSchemaInvalid
from snaploom.models.common import EpochNanos

pytestmark = pytest.mark.spark

SPLIT = ["id % 3 = 0", "id % 3 = 1", "id % 3 = 2", "id IS NULL"]
# With OFFSET behind it, PostgreSQL asks this function before other conditions.
LOOKED_AT = """CREATE OR REPLACE FUNCTION looked_at() RETURNS boolean LANGUAGE plpgsql AS
  'BEGIN RAISE ''a row was looked at''; END';"""
FIELD = "spec.jdbc.snapshot.fromFieldValue.fieldName"


def micros(text):
    moment = datetime.fromisoformat(text).replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (moment.days * 86_400 + moment.seconds) * 10**9 + moment.microseconds * 1000


def test_types_and_values_are_those_of_the_table(postgres, opened):
    postgres.run(
        """CREATE TABLE typed (big bigint, small smallint, exact numeric(20, 4), half real,
             yes boolean, day date, at timestamptz, local timestamp, words text, code char(3),
             id uuid, raw bytea, list int[]);
           INSERT INTO typed VALUES (1099511627776, -3, 1234567890123456.7891, 0.5, true,
             '2024-02-29', '2024-07-01 12:00:00.123456+02', '2024-03-10 02:30:00', 'Grüße 🧵', 'ab',
             '00000000-0000-0000-0000-000000000001', '\\x00ff', '{1,NULL,3}');
           INSERT INTO typed DEFAULT VALUES"""
    )
    frame = opened(in_postgres(postgres, "typed")).read(NOW).frame
    row, empty = sorted(frame.collect(), key=lambda row: row.big is None)
    assert row.asDict() == {
        "big": 2**40,
        "small": -3,
        "exact": Decimal("1234567890123456.7891"),
        "half": 0.5,
        "yes": True,
        "day": date(2024, 2, 29),
        "at": row["at"],
        "local": datetime(2024, 3, 10, 2, 30),
        "words": "Grüße 🧵",
        "code": "ab ",
        "id": "00000000-0000-0000-0000-000000000001",
        "raw": bytearray(b"\x00\xff"),
        "list": [1, None, 3],
    }
    assert row["at"].astimezone(UTC) == datetime(2024, 7, 1, 10, 0, 0, 123456, tzinfo=UTC)
    assert set(empty) == {None}


def test_all_reads_of_a_run_see_one_moment(postgres, opened):
    postgres.run("CREATE TABLE moving AS SELECT generate_series(1, 30) AS id")
    spec = in_postgres(postgres, "moving", tablePredicates=SPLIT)
    before = opened(spec)
    first = before.read(NOW)
    postgres.run("DELETE FROM moving WHERE id > 10; INSERT INTO moving VALUES (1000), (NULL)")
    assert sorted(row.id for row in first.frame.collect()) == list(range(1, 31))
    assert before.read(NOW).frame.count() == 30
    after = opened(spec).read(NOW)
    assert after.frame.count() == 12
    assert after.frame.rdd.getNumPartitions() == len(SPLIT)
    assert after.fingerprint != first.fingerprint
    assert before.read(NOW).fingerprint == first.fingerprint


def test_a_level_without_a_moment_sees_what_is_written_meanwhile(postgres, opened):
    postgres.run("CREATE TABLE running AS SELECT 1 AS id")
    source = opened(in_postgres(postgres, "running", isolationLevel="READ_COMMITTED"))
    frame = source.read(NOW).frame
    postgres.run("INSERT INTO running VALUES (2)")
    assert frame.count() == 2


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
@pytest.mark.parametrize("predicates", [[], SPLIT])
def test_instants_are_distinguished_in_the_hour_that_comes_twice(
    spark, postgres, opened, zone, predicates
):
    postgres.run(
        """DROP TABLE IF EXISTS autumn; CREATE TABLE autumn (id int, at timestamptz);
           INSERT INTO autumn VALUES (1, '2024-11-03 05:30:00+00'), (2, '2024-11-03 06:30:00+00'),
             (NULL, '2024-11-03 06:30:00.000001+00'), (4, '1969-12-31 23:59:59.999999+00')"""
    )
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        source = opened(
            in_postgres(
                postgres,
                "autumn",
                snapshot=by_field("at", "TIMESTAMP"),
                tablePredicates=predicates,
            )
        )
        found = {time: rows_at(source, EpochNanos(time)) for time in snapshot_times(source)}
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert {time: [row[0] for row in rows] for time, rows in found.items()} == {
        -1000: [4],
        micros("2024-11-03T05:30:00"): [1],
        micros("2024-11-03T06:30:00"): [2],
        micros("2024-11-03T06:30:00.000001"): [None],
    }


@pytest.mark.parametrize(
    ("column", "values", "time_format", "times"),
    [
        ("date", "'2024-01-01', '2024-01-02'", "ISO8601_DATE", ["2024-01-01", "2024-01-02"]),
        ("timestamp", "'2024-03-10 02:30:00.5', '9999-12-31 23:59:59.999999'", "TIMESTAMP",
         ["2024-03-10T02:30:00.5", "9999-12-31T23:59:59.999999"]),
        ("text", "'2024-01-01T00:00:00Z', '2024-01-02T00:00:00Z'", "ISO8601_DATE_TIME",
         ["2024-01-01", "2024-01-02"]),
        ("bigint", "1704067200, 1704153600", "UNIX_SECONDS", ["2024-01-01", "2024-01-02"]),
        ("numeric(20,0)", "1704067200000, 1704153600000", "UNIX_MILLISECONDS",
         ["2024-01-01", "2024-01-02"]),
    ],
)  # fmt: skip
def test_every_type_of_column_gives_snapshots(postgres, opened, column, values, time_format, times):
    name = f"by {column}"
    postgres.run(
        f"""CREATE TABLE "{name}" (v int, "At" {column});
            INSERT INTO "{name}" SELECT row_number() OVER (), x::{column}
            FROM unnest(ARRAY[{values}]) x"""
    )
    spec = in_postgres(postgres, f'public."{name}"', snapshot=by_field("at", time_format))
    source = opened(spec)
    found = {time: rows_at(source, EpochNanos(time)) for time in snapshot_times(source)}
    assert found == {micros(times[0]): [(1,)], micros(times[1]): [(2,)]}


def test_field_may_stay_and_may_be_left_out_by_declared_columns(postgres, opened):
    postgres.run("CREATE TABLE with_day AS SELECT 7 AS v, date '2024-01-01' AS at")
    by_day = by_field("at", "ISO8601_DATE", dropField=False)
    assert rows_at(
        opened(in_postgres(postgres, "with_day", snapshot=by_day)), "2024-01-01T00:00Z"
    ) == [(7, date(2024, 1, 1))]
    declared = [{"name": "V", "dataType": {"long": {}}}]
    source = opened(
        in_postgres(
            postgres, "with_day", snapshot=by_field("at", "ISO8601_DATE"), schemaFields=declared
        )
    )
    assert source.read(EpochNanos(micros("2024-01-01"))).frame.schema.simpleString() == (
        "struct<V:bigint>"
    )


@pytest.mark.parametrize("value", ["NULL", "'infinity'", "'-infinity'"])
def test_row_without_a_time_is_never_left_out_silently(postgres, opened, value):
    postgres.run(
        f"""DROP TABLE IF EXISTS endless; CREATE TABLE endless (at timestamptz);
            INSERT INTO endless VALUES ({value}), ('2024-01-01 00:00+00')"""
    )
    source = opened(in_postgres(postgres, "endless", snapshot=by_field("at", "TIMESTAMP")))
    with pytest.raises(SnapshotValueInvalid, match="1 row has") as caught:
        source.listing()
    assert caught.value.path == FIELD


def test_snapshot_that_is_not_there_is_missing(postgres, opened):
    postgres.run("CREATE TABLE daily AS SELECT date '2024-01-01' AS at, 1 AS v")
    source = opened(in_postgres(postgres, "daily", snapshot=by_field("at", "ISO8601_DATE")))
    with pytest.raises(SnapshotMissing):
        source.read(EpochNanos(0))
    with pytest.raises(SnapshotMissing):
        opened(in_postgres(postgres, "daily")).read(EpochNanos(0))


@pytest.mark.parametrize(
    ("predicates", "found", "read"),
    [
        (["id < 3", "id >= 3"], "of 5 rows, 1 meet none and 0 meet more than one", 4),
        (
            ["id <= 3", "id >= 3", "id IS NULL"],
            "of 5 rows, 0 meet none and 1 meet more than one",
            6,
        ),
        (
            ["id BETWEEN 2 AND 4", "id IS NULL"],
            "of 5 rows, 1 meet none and 0 meet more than one",
            4,
        ),
        (["id % 3 > 0", "id > 2"], "of 5 rows, 1 meet none and 1 meet more than one", 5),
    ],
)
def test_predicates_that_lose_or_double_rows_are_refused(postgres, opened, predicates, found, read):
    postgres.run(
        "CREATE TABLE IF NOT EXISTS parted (id int); TRUNCATE parted; "
        "INSERT INTO parted VALUES (1), (2), (3), (4), (NULL)"
    )
    with pytest.raises(SourceSchemaInvalid, match="do not split") as caught:
        opened(in_postgres(postgres, "parted", tablePredicates=predicates)).read(NOW)
    assert caught.value.found == found
    unchecked = in_postgres(postgres, "parted", tablePredicates=predicates, checkPredicates=False)
    assert opened(unchecked).read(NOW).frame.count() == read


@pytest.mark.parametrize("column", ["exact", "half", "words", "abs(id)"])
def test_only_whole_numbers_are_divided_without_a_look_at_the_rows(postgres, opened, column):
    postgres.run(
        f"""{LOOKED_AT}
           CREATE OR REPLACE VIEW watched AS SELECT id, id::numeric(9, 1) AS exact,
             id::real AS half, id::text AS words FROM generate_series(1, 3) id
           WHERE looked_at() OFFSET 0"""
    )
    bound = "'a'" if column == "words" else "1"
    split = [f"{column} < {bound} OR {column} IS NULL", f"{column} >= {bound}"]
    with pytest.raises(SourceError, match="a row was looked at"):
        opened(in_postgres(postgres, "watched", tablePredicates=split)).read(NOW)


@pytest.mark.parametrize("bounds", [("< 1", ">= 1"), ("<= 0", "BETWEEN 1 AND 9", "> 9")])
def test_ranges_that_meet_are_believed_without_a_look_at_the_rows(postgres, opened, bounds):
    postgres.run(
        f"""{LOOKED_AT}
           CREATE OR REPLACE VIEW ranged AS SELECT id::numeric(9) FROM generate_series(1, 3) id
           WHERE looked_at() OFFSET 0"""
    )
    split = [*(f"id {bound}" for bound in bounds), "Id IS NULL"]
    source = opened(in_postgres(postgres, "ranged", tablePredicates=split))
    assert source.read(NOW).frame.rdd.getNumPartitions() == len(split)


@pytest.mark.parametrize("rest", ["id % 3 = {}", "mod(id, 3) IN ({})"])
def test_of_remainders_only_rows_below_zero_are_looked_at(postgres, opened, rest):
    postgres.run(
        f"""{LOOKED_AT}
           CREATE TABLE IF NOT EXISTS signed (id int); TRUNCATE signed;
           INSERT INTO signed VALUES (0), (1), (2), (-3);
           CREATE OR REPLACE VIEW negatives AS SELECT id FROM signed WHERE id < 0 OR looked_at()"""
    )
    split = [*(rest.format(left) for left in range(3)), "id IS NULL"]
    spec = in_postgres(postgres, "negatives", tablePredicates=split)
    assert opened(spec).read(NOW).frame.rdd.getNumPartitions() == len(split)
    postgres.run("INSERT INTO signed VALUES (-1); DELETE FROM signed WHERE id >= 0")
    with pytest.raises(SourceSchemaInvalid, match="do not split") as caught:
        opened(spec).read(NOW)
    assert caught.value.found == "of 2 rows, 1 meet none and 0 meet more than one"


def test_options_reach_the_database_however_many_parts_there_are(postgres, opened):
    postgres.run(
        "CREATE VIEW who AS SELECT 1 AS id, "
        "(SELECT application_name FROM pg_stat_activity WHERE pid = pg_backend_pid()) AS name"
    )
    spec = in_postgres(postgres, "who", options={"ApplicationName": "a loom"})
    for predicates in ([], SPLIT):
        spec["jdbc"]["tablePredicates"] = predicates
        assert [row.name for row in opened(spec).read(NOW).frame.collect()] == ["a loom"]
