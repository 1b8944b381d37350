"""Which files are read without Spark, and what is found in them."""

import time
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from snaploom.skipping.core.definition import IndexDefinition, column_term, expression_term
from snaploom.skipping.spark.builds.filerows import piece_sizes
from snaploom.skipping.spark.builds.footers import DirectReader, FooterTerm
from snaploom.skipping.spark.builds.scan import Scanned
from snaploom.skipping.spark.relations.hadoop import (
    LOCAL_GRANULARITY,
    FileState,
    wait_until_settled,
)

TIMES = [datetime(2020, 1, 2, 3, 4, 5, 678901, UTC), datetime(1999, 1, 1, tzinfo=UTC)]


def state(path: Path) -> FileState:
    found = path.stat()
    return FileState(found.st_size, found.st_mtime_ns // 1_000_000)


def reader(type_name: str, data_type: str, *names: str) -> DirectReader | None:
    term = column_term(names, data_type)
    terms = {term.key: FooterTerm(names, data_type)}
    definition = IndexDefinition("i1", type_name, (term,))
    return DirectReader.of([definition], terms, is_case_sensitive=False)


def found_in(path: Path, data_type: str, *names: str) -> Scanned | None:
    values = reader("VALUE_SET", data_type, *names)
    found = values.read(str(path), state(path))
    return None if found is None else found[0]


def written(path: Path, values: pa.Array, **options: object) -> Path:
    pq.write_table(pa.table({"c": values}), path, **options)
    return path


def test_a_file_in_many_batches_is_whole(tmp_path: Path) -> None:
    values = pa.array([number % 7 for number in range(200_000)] + [None])
    path = written(tmp_path / "f", values, row_group_size=90_000)
    assert found_in(path, "bigint", "C") == Scanned((200_000,), (1,), {"set": list(range(7))})


def test_wide_values_are_read_in_small_batches(tmp_path: Path) -> None:
    path = written(tmp_path / "f", pa.array([bytes([at]) * (1 << 20) for at in range(40)]))
    found = found_in(path, "binary", "c")
    assert [value[0] for value in found.fields["set"]] == list(range(40))


@pytest.mark.parametrize(
    ("names", "data_type", "nulls", "expected"),
    [
        (("s", "X"), "bigint", 2, [1, 2]),
        (("s", "y"), "string", 2, [b"a", b"b"]),
        (("odd name",), "bigint", 1, [1, 2, 3]),
        (("s t.u",), "string", 1, [b"p", b"q"]),
    ],
)
def test_nested_and_oddly_named_columns_are_found(names, data_type, nulls, expected, tmp_path):
    structs = [{"x": 1, "y": "a"}, None, {"x": None, "y": "b"}, {"x": 2, "y": None}]
    table = pa.table({"S": structs, "Odd name": [1, 2, 3, None], "s t.u": ["p", "q", None, "q"]})
    pq.write_table(table, tmp_path / "f")
    found = found_in(tmp_path / "f", data_type, *names)
    assert found == Scanned((4 - nulls,), (nulls,), {"set": expected})


@pytest.mark.parametrize("names", [("s", "x"), ("s.x",)])
def test_names_that_arrow_does_not_distinguish_are_left_to_spark(names, tmp_path):
    pq.write_table(pa.table({"s": [{"x": 1}], "s.x": [2]}), tmp_path / "f")
    assert found_in(tmp_path / "f", "bigint", *names) is None


DOUBTFUL = {
    "unsigned": ("bigint", pa.array([1, 2], pa.uint32()), {}),
    "widened": ("bigint", pa.array([1, 2], pa.int32()), {}),
    "duration": ("bigint", pa.array([1, 2], pa.duration("us")), {}),
    "millis": ("timestamp", pa.array(TIMES[1:], pa.timestamp("ms", "UTC")), {}),
    "int96": (
        "timestamp",
        pa.array(TIMES, pa.timestamp("us", "UTC")),
        {"use_deprecated_int96_timestamps": True},
    ),
    "wall as instant": ("timestamp", pa.array([datetime(2020, 1, 1)], pa.timestamp("us")), {}),
    "other scale": ("decimal(9,1)", pa.array([Decimal("1.00")], pa.decimal128(9, 2)), {}),
    "before 1582": ("date", pa.array([date(1500, 1, 1), date(2020, 1, 1)]), {}),
    "before 1900": (
        "timestamp",
        pa.array([datetime(1850, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")),
        {},
    ),
    "no bounds": ("date", pa.array([date(2020, 1, 1)]), {"write_statistics": False}),
    "repeated": ("bigint", pa.array([[1], [2]]), {}),
}


@pytest.mark.parametrize("case", DOUBTFUL)
def test_what_is_in_doubt_is_left_to_spark(case: str, tmp_path: Path) -> None:
    data_type, values, options = DOUBTFUL[case]
    assert found_in(written(tmp_path / "f", values, **options), data_type, "c") is None


def test_a_missing_column_is_left_to_spark(tmp_path: Path) -> None:
    assert found_in(written(tmp_path / "f", pa.array([1])), "bigint", "d") is None


def test_old_dates_are_read_where_spark_recorded_the_calendar(tmp_path: Path) -> None:
    table = pa.table({"c": [date(1500, 1, 1)]})
    noted = table.replace_schema_metadata({"org.apache.spark.version": "4.3.0"})
    pq.write_table(noted, tmp_path / "f")
    assert found_in(tmp_path / "f", "date", "c") == Scanned((1,), (0,), {"set": [-171_664]})


def test_a_file_that_was_replaced_gives_nothing(tmp_path: Path) -> None:
    path = written(tmp_path / "f", pa.array([1]))
    values = reader("VALUE_SET", "bigint", "c")
    now = state(path)
    assert values.read(str(path), now) is not None
    assert values.read(str(path), FileState(now.length, now.modified + 1)) is None
    assert values.read(str(tmp_path / "gone"), now) is None


def test_a_damaged_file_is_left_to_spark(tmp_path: Path) -> None:
    path = written(tmp_path / "f", pa.array(range(1000)), use_dictionary=False)
    path.write_bytes(path.read_bytes()[:4] + b"\xff" * 60 + path.read_bytes()[64:])
    assert found_in(path, "bigint", "c") is None


def test_expressions_and_large_decimals_need_spark() -> None:
    assert reader("BLOOM_FILTER", "decimal(18,2)", "c") is not None
    assert reader("BLOOM_FILTER", "decimal(19,2)", "c") is None
    assert reader("VALUE_SET", "decimal(19,2)", "c") is not None
    lower = IndexDefinition("i1", "VALUE_SET", (expression_term("l", "string", "lower(c)"),))
    assert DirectReader.of([lower], {}, is_case_sensitive=False) is None


MIB = 1 << 20


def test_small_files_are_built_a_thousand_at_once() -> None:
    assert list(piece_sizes([1000] * 2500)) == [1000, 1000, 500]


def test_large_files_are_built_a_few_at_once() -> None:
    assert list(piece_sizes([128 * MIB] * 150)) == [64, 64, 22]
    assert list(piece_sizes([MIB] * 600)) == [512, 88]


def test_no_files_are_no_piece() -> None:
    assert list(piece_sizes([])) == []


def test_a_file_written_just_now_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / "new").touch()
    modified = (tmp_path / "new").stat().st_mtime_ns // 1_000_000
    wait_until_settled(LOCAL_GRANULARITY, np.array([modified]))
    assert time.time() * 1000 >= modified + LOCAL_GRANULARITY


def test_a_file_from_the_future_is_not_waited_for() -> None:
    started = time.monotonic()
    in_an_hour = int(time.time() * 1000) + 3_600_000
    wait_until_settled(LOCAL_GRANULARITY, np.array([in_an_hour]))
    assert time.monotonic() - started < 3600
