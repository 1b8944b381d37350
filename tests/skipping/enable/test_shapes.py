"""Conditions in the forms that Spark's optimizer gives them: files are skipped for them."""

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from support.skipping.indexeddata import FILES, build_index, counted, last, on_and_off, write_files

from snaploom.skipping.spark.interfaces import enable as explaining
from snaploom.skipping.spark.interfaces.enable import decider_of, setting
from snaploom.skipping.spark.interfaces.indexbuilder import skipping_index

SKIPPING = {
    "i = 5L": 1,
    "5 = i": 1,
    "i < 5.5": 1,
    "id = '5'": 1,
    "i in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 99)": 2,
    "i not in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 99)": 5,
    "i in (1, null)": 1,
    "i between 30 and 45": 2,
    "not (i between 10 and 90)": 2,
    "i <=> 5": 1,
    "id > 95 or i < 3": 2,
    "not (i >= 20 or odd = 2)": 1,
    "odd = 2": 0,
    "dec = 5": 1,
    "dec > 90.5D": 1,
    "dt = '2024-01-03'": 1,
    "dt >= date'2024-01-01' + interval 90 day": 1,
    "cast(ts as date) = '2024-01-03'": 1,
    "ts between '2024-01-03' and '2024-01-05'": 1,
    "year(dt) = 2025": 0,
    "year(ts) < 2024": 1,
    "date_trunc('month', ts) = timestamp'2024-04-01 00:00:00'": 1,
    "c like 'k09%'": 1,
    "c like 'k0_9'": 5,
    "c like 'k09_'": 1,
    "substr(c, 1, 3) = 'k09'": 1,
    "c between 'k010' and 'k012'": 1,
    "isnan(d)": 5,
    "not isnan(d) and d > 200": 5,
    "d < 3": 1,
    "n is null": 2,
    "n is not null": 3,
    "n > 0": 3,
    "not (n <=> 50)": 5,
    "flag": 2,
    "not flag": 3,
    "flag is not true": 3,
    "st.x = 7": 1,
    "coalesce(n, 0) = 45": 1,
    "if(i > 50, i < 60, false)": 1,
    "case when i > 50 then i < 60 end": 1,
    "i + 1 = 5": 1,
    "i + id = 5": 5,
    "id = i": 5,
}


@pytest.fixture(scope="module")
def truth(spark: SparkSession, indexed: str) -> Mapping[str, int]:
    counts = [sql.expr(f"count_if({condition})") for condition in SKIPPING]
    return dict(zip(SKIPPING, spark.read.parquet(indexed).select(*counts).head(), strict=True))


@pytest.mark.parametrize(("condition", "most"), SKIPPING.items())
def test_condition_reads_few_files_and_finds_all_rows(rows, truth, condition, most):
    assert rows.where(condition).count() == truth[condition]
    assert (last(rows.sparkSession).kept_files, last(rows.sparkSession).files) == (most, FILES)


def test_float_of_python_compared_with_a_decimal_skips(rows: DataFrame) -> None:
    assert rows.where(sql.col("dec") > 98.5).count() == 1
    assert last(rows.sparkSession).kept_files == 1


def test_dropna_keeps_files_that_have_values(rows: DataFrame) -> None:
    assert rows.dropna(subset=["n", "c"]).count() == 60
    assert last(rows.sparkSession).kept_files == 3


@pytest.fixture(scope="module")
def by_expression(
    spark: SparkSession, location: str, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """Files with indexes over an expression and over one that may be NULL."""
    path = write_files(spark, tmp_path_factory.mktemp("expressions") / "t")
    build_index(
        spark,
        location,
        path,
        ("id",),
        lambda builder: builder.add_expression("MIN_MAX", "upper(c)").add_expression(
            "MIN_MAX", "try_divide(1, n - 99)"
        ),
    )
    return path


@pytest.mark.parametrize(
    ("condition", "rows", "files"),
    [
        ("upper(C) = 'K099'", 1, 1),
        (f"upper(c) in {tuple(f'K{n:03}' for n in range(12))}", 12, 1),
        ("try_divide(1, n - 99) is null", 41, 3),
        ("try_divide(1, n - 99) is not null", 59, 3),
    ],
)
def test_expression_index_serves_the_same_expression(
    skipping: SparkSession, by_expression: str, condition: str, rows: int, files: int
) -> None:
    assert skipping.read.parquet(by_expression).where(condition).count() == rows
    assert last(skipping).kept_files == files


def test_condition_of_hundreds_of_parts_skips(rows: DataFrame) -> None:
    chain = sql.lit(False)
    for number in range(150):
        chain = chain | ((sql.col("id") == number * 1000 + 7) & (sql.col("i") >= -number))
    assert rows.where(chain).count() == 1
    assert last(rows.sparkSession).kept_files == 1


def test_deeply_nested_condition_finds_all_rows(rows: DataFrame) -> None:
    nested = sql.col("id") == 0
    for number in range(1, 100):
        equal = sql.col("id") == number
        nested = (nested | equal) if number % 2 else (nested & ~equal)
    odd_or_nought = [0, *range(1, 100, 2)]
    assert [row.id for row in rows.where(nested).sort("id").collect()] == odd_or_nought


BOTH = "(day = 1 AND x = 3) OR (day = 2 AND x = 15)"
CONDITIONS = {
    BOTH: 2,
    "day = 1 AND x = 3": 1,
    "day + 1 = 2 OR x = 15": 6,
    "NOT (day = 1 OR x <> 15)": 1,
    "(day IS NULL AND x > 15) OR (day = 1 AND x > 90)": 2,
    "day = 9 OR x IN (3, 99)": 3,
}
"""Most files that are read: days 1, 2 and NULL hold x from 0 to 9, and from 10 to 19, a file each.

A partition column inside an expression is known only to Spark.
"""


@pytest.fixture
def days(skipping: SparkSession, location: str, folder: Path) -> str:
    """Three days with two indexed files each."""
    rows = skipping.range(0, 20, 1, 2).selectExpr("id AS x", "explode(array(1, 2, null)) AS day")
    rows.write.partitionBy("day").parquet(str(folder))
    build_index(
        skipping, location, str(folder), ("x",), lambda builder: builder.add_partitions("day")
    )
    return str(folder)


@pytest.fixture
def table(skipping: SparkSession, days: str) -> Iterator[str]:
    """A table whose catalog has other days: what lies below `day=1` is of day 2, and vice versa."""
    skipping.sql(
        f"CREATE TABLE days (x bigint, day int) USING parquet PARTITIONED BY (day) "
        f"LOCATION '{days}'"
    )
    for day, folder in ((1, "day=2"), (2, "day=1"), (None, "day=__HIVE_DEFAULT_PARTITION__")):
        value = "null" if day is None else day
        skipping.sql(f"ALTER TABLE days ADD PARTITION (day = {value}) LOCATION '{days}/{folder}'")
    yield "days"
    skipping.sql("DROP TABLE days")


@pytest.mark.parametrize(("condition", "most"), CONDITIONS.items())
def test_condition_on_both_kinds_of_columns_skips_in_a_folder(skipping, days, condition, most):
    on, off = on_and_off(skipping, lambda: skipping.read.parquet(days).where(condition))
    assert on == off
    assert last(skipping).kept_files <= most


def test_values_of_the_catalog_decide_in_a_table(skipping: SparkSession, table: str) -> None:
    on, off = on_and_off(skipping, lambda: skipping.table(table).where(BOTH))
    assert on == off == ["Row(x=15, day=2)", "Row(x=3, day=1)"]
    assert (last(skipping).kept_files, last(skipping).files) == (2, 4)


def test_keys_of_a_join_on_a_partition_column_skip(skipping: SparkSession, table: str) -> None:
    query = f"SELECT x, day FROM {table} JOIN (VALUES (2)) AS k(d) ON day = d"
    on, off = on_and_off(skipping, lambda: skipping.sql(query))
    assert on == off
    assert len(on) == 20
    assert (last(skipping).kept_files, last(skipping).files) == (2, 4)


def test_scans_with_other_conditions_share_no_exchange(skipping: SparkSession, table: str) -> None:
    one = f"SELECT x FROM {table} WHERE {BOTH}"
    other = one.replace("x = 15", "x = 14")
    query = f"{one} UNION ALL {other}"
    on, off = on_and_off(skipping, lambda: skipping.sql(query))
    assert on == off == ["Row(x=14)", "Row(x=15)", "Row(x=3)", "Row(x=3)"]


@pytest.fixture
def own(skipping: SparkSession, location: str, folder: Path) -> str:
    path = write_files(skipping, folder)
    build_index(skipping, location, path, ("id",))
    return path


def test_other_reader_does_not_use_the_index(rows: DataFrame) -> None:
    spark = rows.sparkSession
    with setting(spark, "spark.sql.files.ignoreCorruptFiles", "true"):
        assert rows.where("id = 5").count() == 1
        text = str(explaining.explain(rows.where("id = 5")))
    assert last(spark).kept_files == FILES
    assert "the reader has changed: spark.sql.files.ignoreCorruptFiles" in text


def test_index_never_refreshed_prunes_nothing_and_logs_it(skipping, location, folder):
    path = write_files(skipping, folder)
    skipping_index(skipping, location=location).on_path(path).add_min_max("id").create()
    frame = skipping.read.parquet(path).where("id = 5")
    assert frame.count() == 1
    assert not counted(skipping).recent
    assert "it was never refreshed" in str(explaining.explain(frame))


def test_damaged_index_is_logged_once_and_reads_every_file(skipping, own, location, caplog):
    decider_of(skipping).forget()
    (folder,) = [
        path.parents[1]
        for path in Path(location).rglob("manifest/*.json")
        if own in path.read_text()
    ][:1]
    for segment in (folder / "segments").iterdir():
        segment.write_bytes(b"nothing of the kind")
    with caplog.at_level(logging.WARNING, "snaploom.skipping"):
        for wanted in (5, 6):
            assert skipping.read.parquet(own).where(f"id = {wanted}").count() == 1
    assert last(skipping).kept_files == FILES
    assert sum("unreadable" in record.message for record in caplog.records) == 1
