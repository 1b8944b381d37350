"""Files with a column that is named like a folder above them: the folder's value counts."""

from collections.abc import Iterator
from functools import reduce
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from support.skipping.indexeddata import counted

from snaploom.skipping.spark.interfaces.enable import (
    decider_of,
    disable,
    enable,
    setting,
    without_skipping,
)
from snaploom.skipping.spark.interfaces.indexbuilder import skipping_index

pytestmark = pytest.mark.long

DATES = ("2026-02-01", "2026-02-02", "__HIVE_DEFAULT_PARTITION__")
COLUMNS: dict[str, tuple[str, tuple[str, ...]]] = {
    "other dates": ("date'2026-02-02' + cast(id as int)", DATES),
    "numbers for dates": ("cast(id as int)", DATES),
    "texts for dates": ("cast(date'2026-02-02' + cast(id as int) as string)", DATES),
    "instants for dates": ("timestamp'2026-02-02 00:00:00' + make_interval(0, 0, 0, id)", DATES),
    "structs for dates": ("struct(id as x)", DATES),
    "dates for numbers": ("date'2026-02-02' + cast(id as int)", ("1", "2", "03")),
    "texts for numbers": ("cast(id as string)", ("1", "2", "3")),
    "wide for narrow": ("id", ("1", "2", "3")),
    "narrow for wide": ("cast(id as int)", ("1", "2", "30000000000")),
    "fractions for numbers": ("id + 0.5D", ("1", "2", "3")),
    "other texts": ("concat('b', id)", ("a", "b1", "c")),
}
VALUES = {
    "date": ("2026-02-01", "2026-02-02", "2026-02-03"),
    "int": ("1", "2", "3"),
    "bigint": ("1", "2", "30000000000"),
    "string": ("a", "b1", "c"),
}
CASES = [
    *((column, "parquet", ("day", "DAY")[number % 2]) for number, column in enumerate(COLUMNS)),
    ("other dates", "json", "Day"),
    ("numbers for dates", "json", "day"),
    ("structs for dates", "json", "day"),
    ("fractions for numbers", "json", "DAY"),
    ("other dates", "orc", "DAY"),
    ("numbers for dates", "orc", "day"),
    ("texts for numbers", "csv", "Day"),
]


def write(spark: SparkSession, root: Path, source: str, column: str, inner: str) -> None:
    values, folders = COLUMNS[column]
    for number, folder in enumerate(folders):
        rows = spark.range(number * 2, number * 2 + 2, 1, 1).selectExpr(
            "id", f"{values} as {inner}"
        )
        rows.write.format(source).option("header", "true").save(str(root / f"day={folder}"))


def rows(frame: DataFrame) -> list[tuple[int, int]]:
    """The ids that meet each of many conditions, by its number; each has a scan of its own."""
    kind = frame.schema["day"].dataType.simpleString()
    conditions = ["day IS NULL", "day IS NOT NULL AND id > 2"]
    for value in VALUES[kind]:
        literal = f"cast('{value}' as {kind})"
        conditions += (f"day {operator} {literal}" for operator in ("=", "<", ">="))
        conditions += [
            f"upper(cast(day as string)) = upper('{value}')",
            f"(day = {literal} AND id = 1) OR (day = {literal} AND id = 4)",
        ]
    parts = [
        frame.where(condition).selectExpr(f"{number} as n", "id")
        for number, condition in enumerate(conditions)
    ]
    return sorted((row.n, row.id) for row in reduce(DataFrame.union, parts).collect())


@pytest.fixture
def session(spark: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    disable(spark)
    enable(spark, str(tmp_path / "indexes"))
    with setting(spark, "spark.sql.ansi.enabled", "false"):
        yield spark
    disable(spark)


@pytest.mark.parametrize(("column", "source", "inner"), CASES)
def test_no_index_believes_the_column_of_the_files(session, tmp_path, column, source, inner):
    root = tmp_path / "t"
    options = {"header": "true", "inferSchema": "true"} if source == "csv" else {}
    write(session, root, source, column, inner)
    builder = skipping_index(session, str(tmp_path / "indexes"))
    builder = builder.on_path(str(root), source, **options)
    for kind in ("MIN_MAX", "VALUE_SET", "BLOOM_FILTER", "PARTITION"):
        builder = builder.add(kind, "day")
    builder = builder.add_expression("VALUE_SET", "upper(cast(day as string))")
    builder.add_min_max("id").build()
    frame = session.read.format(source).options(**options).load(str(root))
    decider_of(session).counting.reset()
    found = rows(frame)
    assert counted(session).dropped_files > 0
    with without_skipping(session):
        assert found == rows(frame.select("*"))
