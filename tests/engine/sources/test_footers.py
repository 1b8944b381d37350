"""Footers give the values of a column exactly when every row group has one value."""

import datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as spark_types

from snaploom.files.listed import ListedFile
from snaploom.sources.files.footers import Footer, read_footers

TEXT, LONG, DATE = spark_types.StringType(), spark_types.LongType(), spark_types.DateType()


def end_of(file: ListedFile, length: int) -> bytes:
    """As a store would give it: the files of these tests are local."""
    return Path(file.uri.partition(":")[2]).read_bytes()[-length:]


def footers(*files: ListedFile, name: str = "day") -> list[Footer | None]:
    return list(read_footers(files, name, end_of))


def footer_values(
    folder: Path,
    *columns: pa.Array,
    kind: spark_types.DataType = TEXT,
    name: str = "day",
    group: int = 2,
    scheme: str = "file",
    **how: object,
) -> list[frozenset[str | int] | None]:
    """Values by footers of one file for each column, in row groups of two."""
    listed = []
    for number, column in enumerate(columns):
        path = folder / f"{number}.parquet"
        table = pa.table({"day": column, "x": list(range(len(column)))})
        pq.write_table(table, path, row_group_size=group, **how)
        listed.append(ListedFile(f"{scheme}:{path}", path.stat().st_size, 1))
    found = [footer and footer.column for footer in footers(*listed, name=name)]
    return [column and column.of((name,), kind.simpleString()) for column in found]


values = st.lists(st.sampled_from(["2020-01-01", "2020-01-02", "ünï", None]), max_size=6)


@given(st.lists(values, min_size=1, max_size=3), st.sampled_from(["file", "s3a"]))
def test_footers_give_all_values_or_none(tmp_path_factory, columns, scheme):
    folder = tmp_path_factory.mktemp("footers")
    arrays = [pa.array(column, pa.string()) for column in columns]
    expected = []
    for column in columns:
        groups = [column[i : i + 2] for i in range(0, len(column), 2)]
        is_sure = all(len(set(group)) == 1 and None not in group for group in groups)
        expected.append(frozenset(column) if is_sure else None)
    assert footer_values(folder, *arrays, scheme=scheme) == expected


@pytest.mark.parametrize(
    ("column", "kind", "expected"),
    [
        (pa.array([5, 5]), LONG, {5}),
        (pa.array([5, 5], pa.int16()), spark_types.ShortType(), {5}),
        (pa.array([datetime.date(2020, 1, 2)] * 2), DATE, {18263}),
        (pa.array([datetime.date(1500, 1, 1)] * 2), DATE, None),
        (pa.array([5, 5]), TEXT, None),
        (pa.array([5.0, 5.0]), spark_types.DoubleType(), None),
        (pa.array([b"a", b"a"]), TEXT, None),
        (pa.array([datetime.datetime(2020, 1, 1)] * 2), spark_types.TimestampType(), None),
        (pa.array([["a"], ["a"]]), TEXT, None),
    ],
)
def test_only_types_whose_statistics_are_their_values_are_read(tmp_path, column, kind, expected):
    assert footer_values(tmp_path, column, kind=kind) == [
        None if expected is None else frozenset(expected)
    ]


def test_missing_or_unknown_statistics_give_no_values(tmp_path: Path) -> None:
    column = pa.array(["a", "a"])
    assert footer_values(tmp_path, column) == [frozenset(["a"])]
    assert footer_values(tmp_path, column, name="other") == [None]
    assert footer_values(tmp_path, column, name="DAY") == [None]
    assert footer_values(tmp_path, column, write_statistics=False) == [None]
    (tmp_path / "0.parquet").write_bytes(b"PAR1 cut short")
    assert footers(ListedFile(f"file:{tmp_path}/0.parquet", 14, 1)) == [None]
    assert footers(ListedFile(f"s3a:{tmp_path}/0.parquet", 14, 1)) == [None]
    assert footers(ListedFile("s3a:/absent.parquet", 14, 1)) == [None]


def test_footer_longer_than_what_is_asked_for_first_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "wide.parquet"
    names = ["day", *(f"a column with the number {number}" for number in range(2000))]
    pq.write_table(pa.table({name: ["a"] for name in names}), path)
    (found,) = footers(ListedFile(f"s3a:{path}", path.stat().st_size, 1))
    assert found.column.values == {"a"}


def test_files_that_spark_reads_alike_have_one_hash(tmp_path: Path) -> None:
    listed = []
    for number, kind in enumerate([pa.int32(), pa.int32(), pa.int64()]):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table({"n": pa.array([number], kind)}), path)
        listed.append(ListedFile(f"file:{path}", path.stat().st_size, 1))
    one, same, other = (footer.schema_hash for footer in footers(*listed) if footer)
    assert one == same != other


def test_statistics_of_an_unknown_writer_are_not_trusted(tmp_path: Path) -> None:
    assert footer_values(tmp_path, pa.array(["a", "a"])) == [frozenset(["a"])]
    path = tmp_path / "0.parquet"
    unknown = path.read_bytes().replace(b"parquet-cpp-arrow", b"parquet-cpp-other")
    path.write_bytes(unknown)
    (found,) = footers(ListedFile(f"file:{path}", path.stat().st_size, 1))
    assert found.column is None


def test_text_that_its_writer_may_have_cut_is_not_trusted(tmp_path: Path) -> None:
    for length in (63, 64):
        path = tmp_path / f"{length}.parquet"
        duckdb.sql(f"COPY (SELECT repeat('x', {length}) AS day) TO '{path}' (FORMAT parquet)")
    listed = [ListedFile(f"file:{p}", p.stat().st_size, 1) for p in sorted(tmp_path.iterdir())]
    short, long = footers(*listed)
    assert short.column is not None
    assert long.column is None
