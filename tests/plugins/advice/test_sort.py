"""Sorting for real: what is skipped afterwards, that no row is lost, and what is left behind."""

from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from support.skipping.indexeddata import index

from snaploom.errors import IndexNotPossible, SortNotPossible
from snaploom.output import layout
from snaploom.plugins.advice.sort import checksum, sort_into
from snaploom.skipping.core.definition import SkippingDefinition
from snaploom.skipping.core.filetable import FileTable
from snaploom.skipping.core.predicates import And, Comparison, Operator
from snaploom.skipping.core.valueorder import Curve, SortRequest
from snaploom.skipping.indexes.base import evaluate
from snaploom.skipping.spark.targets.sparktarget import SparkTarget
from snaploom.skipping.spark.targets.targetlookup import open_path, open_table

FILES = 16
"""Files of the points."""


def share_skipped(target: SparkTarget, column: str, low: float, high: float) -> float:
    """Share of the files that MIN_MAX skips for a range of one column."""
    definition = index(target, "MIN_MAX", column)
    pieces = list(target.build([definition], target.list_files(""), lambda done, total: None))
    files = FileTable.of(pa.concat_tables(pieces))
    condition = And(
        (
            Comparison(definition.term, Operator.GE, low),
            Comparison(definition.term, Operator.LE, high),
        )
    )
    whole = SkippingDefinition(target.target, target.fingerprint, (definition,))
    return evaluate(condition, whole, files).dropped / files.count


@pytest.fixture(scope="session")
def by_curve(spark: SparkSession, plane: str, tmp_path_factory: pytest.TempPathFactory):
    """The points, sorted along each curve by x and y, in about sixteen files."""
    found = {}
    for curve in Curve:
        folder = tmp_path_factory.mktemp("sorted") / curve.value
        target = open_path(spark, plane, "parquet")
        size = sum(target.list_files("").column("length").to_pylist()) // FILES
        request = SortRequest(("x", "y"), curve, target_file_size=size)
        found[curve] = sort_into(target, str(folder), request)
    return found


@pytest.mark.parametrize("curve", [Curve.ZORDER, Curve.HILBERT])
def test_a_curve_makes_ranges_of_either_column_skip_half(spark, plane, by_curve, curve):
    unsorted, target = (open_path(spark, uri, "parquet") for uri in (plane, by_curve[curve].uri))
    ranges = [("x", 4000, 4160), ("y", 800.0, 816.0)]
    assert [share_skipped(unsorted, *each) for each in ranges] == [0.0, 0.0]
    assert min(share_skipped(target, *each) for each in ranges) >= 0.5


def test_a_linear_order_serves_only_its_first_column(spark: SparkSession, by_curve):
    target = open_path(spark, by_curve[Curve.LINEAR].uri, "parquet")
    assert share_skipped(target, "x", 4000, 4160) >= 0.8
    # Spark samples the bounds of files: one can be so small that it misses the range by chance.
    assert share_skipped(target, "y", 800.0, 816.0) <= 2 / FILES


@pytest.mark.parametrize("curve", list(Curve))
def test_the_new_folder_has_the_same_rows(plane: str, by_curve, curve: Curve):
    new = by_curve[curve].uri.removeprefix("file:")
    old, sorted_rows = (
        f"SELECT id, x, y, name, person.age, extra['k'] FROM '{folder}/*.parquet'"
        for folder in (plane, new)
    )
    count = f"SELECT (SELECT count(*) FROM '{new}/*.parquet'), count(*) FROM"
    assert duckdb.sql(f"{count} ({old} EXCEPT {sorted_rows})").fetchall() == [(16_000, 0)]
    assert by_curve[curve].rewritten.checksum.rows == 16_000


def test_files_have_about_the_size_that_was_asked_for(by_curve):
    assert {result.rewritten.files_before for result in by_curve.values()} == {FILES}
    assert all(FILES - 2 <= result.rewritten.files <= FILES + 2 for result in by_curve.values())


def test_folders_of_partitions_are_kept(spark: SparkSession, plane: str, tmp_path: Path):
    rows = spark.read.parquet(plane).selectExpr(
        "x", "y", "IF(id % 3 = 0, NULL, concat('d ay=', id % 3)) AS day", "int(id % 2) AS half"
    )
    rows.write.partitionBy("day", "half").parquet(str(tmp_path / "old"))
    target = open_path(spark, str(tmp_path / "old"), "parquet")
    new = tmp_path / "[new]"
    sort_into(target, str(new), SortRequest(("y",), target_file_size=30_000))
    assert folders(new) == folders(tmp_path / "old")
    literal = spark.read.option("__globPaths__", "false")
    assert checksum(literal.parquet(str(new)).select(*rows.columns)) == checksum(rows)


def test_a_table_is_sorted_into_files(spark: SparkSession, tmp_path: Path):
    options = f"OPTIONS (path '{tmp_path / 'table'}', pathGlobFilter 'part*')"
    rows = "SELECT id AS x, id * 7 % 100 AS y FROM range(500)"
    spark.sql(f"CREATE TABLE to_sort USING parquet {options} AS {rows}")
    try:
        result = sort_into(
            open_table(spark, "to_sort"), str(tmp_path / "new"), SortRequest(("y", "x"))
        )
    finally:
        spark.sql("DROP TABLE to_sort")
    assert result.rewritten.checksum == checksum(spark.read.parquet(str(tmp_path / "new")))


def folders(root: Path) -> Sequence[str]:
    return sorted({str(file.parent.relative_to(root)) for file in root.rglob("*.parquet")})


@pytest.mark.parametrize(
    ("file_format", "options"),
    [("csv", {"header": "true", "inferSchema": "true"}), ("json", {}), ("orc", {})],
)
def test_other_formats_are_sorted_too(spark, plane, tmp_path, file_format, options):
    rows = spark.read.parquet(plane).select("id", "x", "y", "name")
    rows.write.format(file_format).options(**options).save(str(tmp_path / "old"))
    target = open_path(spark, str(tmp_path / "old"), file_format, options)
    result = sort_into(target, str(tmp_path / "new"), SortRequest(("x", "name")))
    assert result.rewritten.checksum.rows == 16_000
    read = spark.read.format(file_format).options(**options).load(str(tmp_path / "new"))
    assert read.where("x = 5").count() == 1


def test_a_folder_that_holds_something_is_refused(spark: SparkSession, plane: str, tmp_path: Path):
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "precious").write_text("mine")
    with pytest.raises(SortNotPossible, match="not empty"):
        sort_into(open_path(spark, plane, "parquet"), str(tmp_path / "new"), SortRequest(("x",)))
    assert [path.name for path in tmp_path.rglob("*")] == ["new", "precious"]


@pytest.mark.parametrize("place", ["", "/inside", "/.."])
def test_what_is_read_is_never_written_to(spark: SparkSession, plane: str, place: str):
    with pytest.raises(SortNotPossible, match="apart"):
        sort_into(open_path(spark, plane, "parquet"), f"{plane}{place}", SortRequest(("x",)))


@pytest.mark.parametrize("is_source", [True, False])
def test_published_folders_are_left_to_their_manifest(spark, tmp_path, is_source):
    published, other = tmp_path / "output" / "data", tmp_path / "other"
    old, new = (published, other / "new") if is_source else (other, published / "new")
    spark.range(10).write.parquet(str(old))
    (tmp_path / "output").mkdir(exist_ok=True)
    (tmp_path / "output" / layout.MARKER).write_text("{}")
    with pytest.raises(SortNotPossible, match="sorted where they are"):
        sort_into(open_path(spark, str(old), "parquet"), str(new), SortRequest(("id",)))
    assert not new.exists()


@pytest.mark.parametrize(
    ("columns", "message"),
    [(("extra",), "no index"), (("nothing",), "no column"), (("x", "X"), "cannot be sorted by")],
)
def test_columns_without_an_order_are_refused(spark, plane, tmp_path, columns, message):
    with pytest.raises(IndexNotPossible, match=message):
        sort_into(open_path(spark, plane, "parquet"), str(tmp_path / "new"), SortRequest(columns))
    assert list(tmp_path.iterdir()) == []


def test_rows_that_a_format_does_not_give_back_are_refused(spark: SparkSession, tmp_path: Path):
    (tmp_path / "old").mkdir()
    for name in ("a", "b"):
        (tmp_path / "old" / f"{name}.txt").write_text(f"{name}\n{name}\n")
    target = open_path(spark, str(tmp_path / "old"), "text", {"wholetext": "true"})
    with pytest.raises(SortNotPossible, match="give back") as raised:
        sort_into(target, str(tmp_path / "new"), SortRequest(("value",)))
    assert "1 rows" in (raised.value.found or "")
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


def test_a_checksum_sees_what_order_hides(spark: SparkSession):
    texts = ["(1, NULL), (2, 3)", "(2, 3), (1, NULL)", "(NULL, 1), (2, 3)", "(1, 1), (2, 3)"]
    frames = [spark.sql(f"SELECT * FROM VALUES {text} AS t(a, b)") for text in texts]
    first, turned, *others = (checksum(frame) for frame in frames)
    assert first == turned
    assert first not in others
