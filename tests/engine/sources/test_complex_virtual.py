"""A complex virtual source has a snapshot at any millisecond that its intervals hold."""

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.declared.sources import NOW, a_source, by_field, files, reader, rows_at
from support.declared.virtualsources import at_any_time

from snaploom.errors import SnapshotMissing, SnapshotValueInvalid, SourceSchemaInvalid
from snaploom.models.common import EpochNanos, parse_instant
from snaploom.plan.intervals import Span

pytestmark = pytest.mark.spark

MILLI = 1_000_000
HISTORY = {
    "id": [1, 1, 2, 3],
    "name": ["a", "b", "c", "d"],
    "since": [1000, 2000, 1500, 9000],
    "until": [1999, 2**62, 1600, 9000],
}
INTERVALS = "select since as interval_start, until as interval_end from src where id <> 1"
AS_OF = (
    "select id, name from src "
    "where {{ SNAPSHOT | UNIX_MILLISECONDS }} between since and until order by id"
)


def write(folder, day, rows):
    (folder / day).mkdir(parents=True)
    pq.write_table(pa.table(rows), folder / day / "part.parquet")


@pytest.fixture
def raw(tmp_path):
    """Two snapshots, of which only the later one is to be seen; a third lies in the future."""
    write(tmp_path / "raw", "2026-05-01", {name: values[:1] for name, values in HISTORY.items()})
    write(tmp_path / "raw", "2026-05-02", HISTORY)
    write(tmp_path / "raw", "2999-01-01", {name: values[3:] for name, values in HISTORY.items()})
    place = f"{tmp_path}/raw/"
    prefix, snapshot = f"{place}{{day:STRING}}/", by_field("day", "ISO8601_DATE")
    spec = files("parquet", f"{place}*/*", sourceUriPrefix=prefix, snapshot=snapshot)
    return a_source(spec, "raw")


def test_its_times_are_the_union_of_the_intervals(spark, raw):
    listing = reader(spark, at_any_time(AS_OF, INTERVALS), raw).listing()

    assert listing.intervalset.spans == (Span(1500, 1600), Span(9000, 9000))
    assert listing.newest(EpochNanos(0), NOW, NOW) == 9000 * MILLI


def test_the_data_is_that_of_the_asked_time(spark, raw):
    everything = "select 0 as interval_start, bigint(20000) interval_end from src"
    source = reader(spark, at_any_time(AS_OF, everything), raw)
    history = pa.table(HISTORY)  # noqa: F841  # read by the oracle
    for time in (0, 1000, 1500, 1999, 2000, 9000):
        expected = duckdb.sql(
            f"select id, name from history where {time} between since and until order by id"
        ).fetchall()
        assert rows_at(source, EpochNanos(time * MILLI)) == expected


def test_placeholders_are_numbers_of_type_bigint(spark, raw):
    query = (
        "select {{SNAPSHOT|UNIX_SECONDS}} s, {{ SNAPSHOT | UNIX_MILLISECONDS }} ms, "
        "'{{ s }}' as t, 5 -{{ SNAPSHOT | UNIX_SECONDS }} as d from src limit 1"
    )
    query = query.replace("'{{ s }}'", "'{ {s} }'")
    source = reader(
        spark, at_any_time(query, "select -1999 interval_start, 0 interval_end from src"), raw
    )

    read = source.read(EpochNanos(-1999 * MILLI))
    assert read.frame.schema.simpleString() == "struct<s:bigint,ms:bigint,t:string,d:bigint>"
    assert rows_at(source, EpochNanos(-1999 * MILLI)) == [(-2, -1999, "{ {s} }", 7)]
    assert read.fingerprint != source.read(EpochNanos(0)).fingerprint


def test_queries_build_on_one_another_and_a_source_may_play_several_roles(spark, raw):
    below = a_source(at_any_time(AS_OF, INTERVALS), "below")
    query = (
        "select a.name as one, b.name as other, c.id, {{ SNAPSHOT | UNIX_SECONDS }} as s "
        "from first a join second b on a.id = b.id - 1 join now c on c.id = b.id"
    )
    aliases = {"first": "raw", "second": "raw", "now": "below"}
    spec = at_any_time(query, "select 0 interval_start, 99999 interval_end from now", aliases)
    source = reader(spark, spec, raw, below)

    # The newest millisecond of `below` that is not in the future is 9000: only id 3 is there.
    assert rows_at(source, EpochNanos(5000 * MILLI)) == [("c", "d", 3, 5)]


def test_a_time_in_no_interval_is_no_snapshot(spark, raw):
    source = reader(spark, at_any_time(AS_OF, INTERVALS), raw)

    with pytest.raises(SnapshotMissing):
        source.read(EpochNanos(1601 * MILLI))
    with pytest.raises(SnapshotMissing):
        source.read(EpochNanos(1600 * MILLI + 1))


def test_without_a_snapshot_below_there_is_none_at_all(spark, raw):
    early = parse_instant("2026-04-30T00:00:00Z")
    source = reader(spark, at_any_time(AS_OF, INTERVALS), raw, now=early)

    assert source.listing().is_empty


@pytest.mark.parametrize(
    ("query", "error", "named"),
    [
        ("select since as interval_start from src", SourceSchemaInvalid, "interval_start"),
        ("select '1' interval_start, 2 interval_end from src", SourceSchemaInvalid, "string"),
        ("select *, 1 interval_start, 2 interval_end from src", SourceSchemaInvalid, "since"),
        (
            "select 2 interval_start, 1 interval_end from src",
            SnapshotValueInvalid,
            "ends before it begins",
        ),
        (
            "select since interval_start, if(id = 1, null, 1) interval_end from src",
            SnapshotValueInvalid,
            "2 of 4 intervals have no beginning or no end",
        ),
        ("select 1 interval_start, 1 interval_end from other", SourceSchemaInvalid, "other"),
    ],
)
def test_a_snapshot_query_that_gives_no_intervals_is_refused(spark, raw, query, error, named):
    with pytest.raises(error, match=named) as caught:
        reader(spark, at_any_time(AS_OF, query), raw).listing()

    assert caught.value.path == "spec.complexVirtual.snapshotQuery"
