"""Arrow's IPC files and streams as sources: every value as PyArrow has it, or one clear error."""

import datetime as dt
from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from support.declared.sources import (
    NOW,
    by_field,
    files,
    reader,
    rows_at,
    snapshot_times,
)
from support.storage.disks import cuts_that_pass

from snaploom.errors import SnaploomError, SourceNotReadable, SourceSchemaInvalid
from snaploom.files.typedfiles import conform, open_ipc
from snaploom.spark.failures import translate
from snaploom.spark.hadoopstore import HadoopObjectStore
from snaploom.spark.jvm import client_of

pytestmark = pytest.mark.spark

MOMENT = dt.datetime(2020, 1, 2, 3, 4, 5, 678901)
TABLE = pa.table(
    {
        "id": pa.array([1, 2, None], pa.uint32()),
        "big": pa.array([2**64 - 1, 0, None], pa.uint64()),
        "text": pa.array(["ü", "", None]).dictionary_encode(),
        "view": pa.array(["a", None, "c"], pa.string_view()),
        "day": pa.array([MOMENT.date(), None, None], pa.date64()),
        "at": pa.array([MOMENT, None, None], pa.timestamp("ns")),
        "zoned": pa.array([MOMENT, None, None], pa.timestamp("ms", "Europe/Berlin")),
        "amount": pa.array([Decimal("1.50"), None, Decimal("-2.00")], pa.decimal256(20, 2)),
        "half": pa.array([1.5, None, 2.5], pa.float32()).cast(pa.float16()),
        "bytes": pa.array([b"ab", None, b"\xff\x00"], pa.binary(2)),
        "pair": pa.array([[1, 2], None, [3, None]], pa.list_(pa.int8(), 2)),
        "deep": [{"a": [{"b": 1}]}, None, {"a": None}],
        "map": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int32())),
        "none": pa.nulls(3),
    }
)


def written(path, table, form="file", rows=2):
    """Write a table in batches of a few rows."""
    opened = pa.ipc.new_file if form == "file" else pa.ipc.new_stream
    options = pa.ipc.IpcWriteOptions(compression="lz4" if form == "lz4" else None)
    with opened(str(path), table.schema, options=options) as out:
        out.write_table(table, max_chunksize=rows)
    return path


def outcome(spark, path, **settings):
    try:
        return reader(spark, files("arrow", path, **settings)).read(NOW).frame.collect()
    except (SnaploomError, Py4JError, PySparkException) as error:
        return translate(error, resource="DataSource/orders")


@pytest.mark.parametrize("form", ["file", "stream", "lz4"])
def test_every_type_is_read_as_pyarrow_has_it(spark, tmp_path, form):
    written(tmp_path / "a.arrow", TABLE, form)
    read = reader(spark, files("ARROW", tmp_path / "*")).read(NOW).frame.toArrow()
    assert [plain(row) for row in read.to_pylist()] == [plain(row) for row in TABLE.to_pylist()]
    assert read.schema.field("none").type == pa.int32()


def plain(value):
    """A value in the one form in which both sides are compared."""
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if isinstance(value, dt.datetime):
        zone = value.tzinfo
        return value.astimezone(dt.UTC) if zone else dt.datetime.fromisoformat(value.isoformat())
    return value


def test_the_rows_are_those_that_duckdb_finds(spark, tmp_path):
    numbers = pa.table({"n": list(range(25_000)), "t": [str(n % 7) for n in range(25_000)]})
    written(tmp_path / "a.arrow", numbers, rows=9_000)
    frame = reader(spark, files("arrow", tmp_path / "*")).read(NOW).frame
    counted = frame.groupBy("t").agg({"n": "sum", "*": "count"}).toArrow()
    with pa.ipc.open_file(tmp_path / "a.arrow") as found:
        there = found.read_all()
    query = "SELECT t, count(*), sum(n)::BIGINT FROM there GROUP BY t ORDER BY t"
    expected = duckdb.connect().register("there", there).sql(query).fetchall()
    assert sorted(
        (row["t"], row["count(1)"], row["sum(n)"]) for row in counted.to_pylist()
    ) == expected  # fmt: skip


def test_schemas_of_files_are_merged_without_regard_to_case(spark, tmp_path):
    written(tmp_path / "a.feather", pa.table({"id": pa.array([1], pa.int16()), "x": [{"a": 1}]}))
    wider = pa.table({"y": ["new"], "ID": pa.array([2**40], pa.int64()), "x": [{"b": "t"}]})
    written(tmp_path / "b.ipc", wider, "stream")
    written(tmp_path / "c.arrow", wider.slice(0, 0))
    frame = reader(spark, files("arrow", tmp_path / "*")).read(NOW).frame
    assert frame.schema.simpleString() == "struct<id:bigint,x:struct<a:bigint,b:string>,y:string>"
    read = sorted((r.id, r.x.asDict(), r.y) for r in frame.collect())
    assert read == [(1, {"a": 1, "b": None}, None), (2**40, {"a": None, "b": "t"}, "new")]


def test_types_that_have_nothing_in_common_are_one_error(spark, tmp_path):
    written(tmp_path / "a.arrow", pa.table({"id": [1]}))
    written(tmp_path / "b.arrow", pa.table({"id": [[1]]}))
    error = outcome(spark, tmp_path / "*")
    assert isinstance(error, SourceSchemaInvalid)
    assert "b.arrow" in str(error.found)


def test_captured_values_are_those_of_the_file_of_each_row(spark, tmp_path):
    for country in ("de", "ö x", "fr"):
        (tmp_path / f"c={country}").mkdir()
        written(tmp_path / f"c={country}" / "a b%.arrow", pa.table({"name": [country] * 5}))
    prefix = f"{tmp_path}/c={{country:STRING}}/"
    source = reader(spark, files("arrow", f"{tmp_path}/*/*", sourceUriPrefix=prefix))
    assert rows_at(source, NOW) == sorted([(c, c) for c in ("de", "ö x", "fr")] * 5)


def test_a_column_divides_rows_into_snapshots(spark, tmp_path):
    for name, days in (("a", [1, 1, 2]), ("b", [2, 3])):
        at = [dt.date(2020, 1, day) for day in days]
        written(tmp_path / f"{name}.arrow", pa.table({"at": at, "file": [name] * len(days)}))
    spec = files("arrow", tmp_path / "*", snapshot=by_field("at", "ISO8601_DATE"))
    source = reader(spark, spec)
    assert len(snapshot_times(source)) == 3
    assert rows_at(source, "2020-01-02T00:00:00Z") == [("a",), ("b",)]


@pytest.mark.parametrize("form", ["file", "stream", "lz4"])
def test_a_file_is_refused_wherever_it_was_cut(tmp_path, form):
    table = pa.table({"id": [1, 2, 3], "t": ["a", "", None]})
    assert cuts_that_pass(open_ipc, written(tmp_path / "a", table, form, 1).read_bytes()) == []


@pytest.mark.parametrize("cut", ["batch", "half", "tail"])
@pytest.mark.parametrize("form", ["file", "stream"])
def test_a_file_that_was_cut_short_is_named_and_gives_no_rows(spark, tmp_path, form, cut):
    whole = written(tmp_path / "a b.arrow", pa.table({"id": [1, 2, 3]}), form, rows=1).read_bytes()
    ends = {"batch": whole.rindex(b"\xff\xff\xff\xff"), "half": len(whole) // 2, "tail": -1}
    (tmp_path / "a b.arrow").write_bytes(whole[: ends[cut]])
    error = outcome(spark, tmp_path / "*")
    assert isinstance(error, SourceNotReadable)
    assert "a b.arrow" in str(error.found)
    assert "Traceback" not in str(error)


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (pa.array([MOMENT], pa.timestamp("us")).cast(pa.timestamp("ns")), None),
        (pa.array([1], pa.time64("us")), "time64[us]"),
        (pa.array([2], pa.time32("s")), "time32[s]"),
    ],
)  # fmt: skip
def test_what_spark_cannot_hold_is_one_error_and_never_another_value(
    spark, tmp_path, values, found
):
    written(tmp_path / "a.arrow", pa.table({"id": [7], "v": values}))
    error = outcome(spark, tmp_path / "*")
    if found is None:
        assert [tuple(row) for row in error] == [(7, MOMENT)]
        return
    assert isinstance(error, SnaploomError)
    assert (found in str(error), "a.arrow" in str(error)) == (True, True)
    declared = {"schemaFields": [{"name": "id", "dataType": {"long": {}}}]}
    assert [tuple(row) for row in outcome(spark, tmp_path / "*", **declared)] == [(7,)]


def test_digits_of_times_after_microseconds_are_cut(spark, tmp_path):
    times = pa.array([1_999, -1_999], pa.timestamp("ns"))
    written(tmp_path / "a.arrow", pa.table({"v": times}))
    assert sorted(at.microsecond for (at,) in outcome(spark, tmp_path / "*")) == [1, 999_999]


def test_a_file_of_the_first_feather_is_refused_with_what_to_do(spark, tmp_path):
    (tmp_path / "a.feather").write_bytes(b"FEA1" + bytes(64) + b"FEA1")
    error = outcome(spark, tmp_path / "*")
    assert isinstance(error, SourceNotReadable)
    assert "version 2" in str(error)


@pytest.mark.parametrize("view", [(13, 0, 0, 99), (13, 0, 7, 0), (13, 0, -1, 0), (-1, 0, 0, 0)])
def test_a_text_outside_of_its_file_is_an_error_and_ends_no_process(view):
    good = pa.array([None, "thirteen bytes"], pa.string_view())
    valid, views, content = good.buffers()
    spoilt = np.frombuffer(views, np.int32).copy()
    spoilt[:4] = view  # of NULL, where anything may stand
    bad = pa.Array.from_buffers(pa.string_view(), 2, [valid, pa.py_buffer(spoilt), content])
    assert conform(bad, pa.string()).to_pylist() == [None, "thirteen bytes"]
    bad = pa.Array.from_buffers(pa.string_view(), 1, [None, pa.py_buffer(spoilt), content])
    with pytest.raises(ValueError, match="outside of the file"):
        conform(bad, pa.string())


def test_files_of_hdfs_are_read_as_local_ones(spark, hdfs, tmp_path):
    store = HadoopObjectStore(client_of(spark), f"{hdfs}/arrow/", create=True)
    for form in ("file", "stream"):
        path = written(tmp_path / form, pa.table({"id": [1, 2], "form": [form] * 2}), form)
        store.put(f"f={form}/a.arrow", path.read_bytes())
    prefix = f"{store.uri}f={{f:STRING}}/"
    source = reader(spark, files("arrow", f"{store.uri}*/*", sourceUriPrefix=prefix))
    assert rows_at(source, NOW) == [(n, form, form) for n in (1, 2) for form in ("file", "stream")]
    store.put("f=file/a.arrow", b"ARROW1 and no more")
    assert isinstance(outcome(spark, f"{store.uri}*/*"), SourceNotReadable)


def test_batches_without_columns_keep_their_rows(spark, tmp_path):
    empty = pa.table({"id": [1, 2]}).select([])
    written(tmp_path / "a.arrow", empty)
    written(tmp_path / "b.arrow", pa.table({"id": [3]}))
    read = outcome(spark, tmp_path / "*")
    assert sorted(str(row.id) for row in read) == ["3", "None", "None"]
