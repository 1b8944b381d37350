"""`c IN (SELECT ...)` over rows that stand in the query: the same rows, from fewer files.

Files hold neighbouring values of each type, NULL and the odd forms of numbers; lists are drawn from
them and written in every form that a query may have. One file changed after it was indexed.
"""

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from support.skipping.indexeddata import build_index, counted, on_and_off

from snaploom.skipping.spark.interfaces.enable import decider_of, disable, enable, setting

pytestmark = pytest.mark.long

FILES = 8
SOURCES = ("parquet", "orc")
EACH = 3 * int(os.environ.get("SNAPLOOM_PROOF_SEEDS", "1"))
"""Forms of lists that a column is asked with, of nine."""
GENERATIONS = {"first": "orc,parquet", "second": ""}

COLUMNS = {
    "i": "if(id % 10 = 9, null, cast(id as int))",
    "l": "id",
    "m": "cast(id / 4 as decimal(9,2))",
    "d": "if(id % 20 = 0, if(id < 80, -0.0D, double('NaN')), double(id) / 2)",
    "dt": "date_add(date'2024-01-01', cast(id as int))",
    "s": "concat('k', lpad(cast(id as string), 3, '0'))",
}
OTHER_TYPES = {
    "i": ("bigint", "decimal(12,1)", "smallint"), "l": ("int", "double"),
    "m": ("double", "decimal(20,4)", "int"), "d": ("double", "int"), "dt": ("date",),
    "s": ("string",),
}  # fmt: skip
"""Types of the lists, which Spark brings together with the column's by casts on either side."""

LISTS = {
    "values": "SELECT v FROM VALUES ({0}), ({1}) AS k(v)",
    "null": "SELECT v FROM VALUES ({0}), (NULL), ({1}) AS k(v)",
    "union": "SELECT {0} UNION ALL SELECT {1}",
    "distinct": "SELECT {0} UNION SELECT {1} UNION SELECT {0}",
    "filtered": "SELECT v FROM (SELECT {0} AS v UNION ALL SELECT {1}) WHERE v <> {1}",
    "limited": "SELECT v FROM (SELECT {0} AS v UNION ALL SELECT {1}) ORDER BY v LIMIT 1",
    "grouped": "SELECT v FROM VALUES ({0}), ({1}), ({1}) AS k(v) GROUP BY v",
    "intersected": "(SELECT {0} UNION SELECT {1}) INTERSECT SELECT {1}",
    "none": "SELECT v FROM (SELECT {0} AS v UNION ALL SELECT {1}) WHERE v IS NULL",
}
CONDITIONS = (
    "{c} IN ({list})",
    "{c} NOT IN ({list})",
    "{c} IN ({list}) OR l = 3",
    "{c} IN ({list}) AND l < 100",
    "coalesce({c}, {x}) IN ({list})",
)


@dataclass(frozen=True)
class Indexed:
    """A table whose last file is another one than was indexed."""

    spark: SparkSession
    path: str
    source: str

    def select(self, condition: str) -> str:
        return f"SELECT * FROM {self.source}.`{self.path}` WHERE {condition}"


@pytest.fixture(scope="module", params=SOURCES)
def indexed(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Indexed]:
    folder = tmp_path_factory.mktemp(f"literal-rows-{request.param}")
    path, location = folder / "t", str(folder / "indexes")
    rows = spark.range(0, FILES * 20, 1, FILES)
    texts = [f"{text} AS {name}" for name, text in COLUMNS.items()]
    rows.selectExpr(*texts).write.format(request.param).save(str(path))
    build_index(spark, location, str(path), list(COLUMNS), source=request.param)
    _rewrite_last(spark, path, request.param, rows.selectExpr("200 - id AS id").selectExpr(*texts))
    enable(spark, location)
    with setting(spark, "spark.sql.runSQLOnFiles", "true"):
        yield Indexed(spark, str(path), request.param)
    disable(spark)


def _rewrite_last(spark: SparkSession, path: Path, source: str, rows: DataFrame) -> None:
    """Other rows in the place of the last file, under its name."""
    other = path.parent / "other"
    rows.coalesce(1).write.format(source).save(str(other))
    (new,) = other.glob("part-*")
    last = max(path.glob("part-*"))
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)
    new.replace(last)


def drawn(seed: str) -> Iterator[str]:
    """Conditions with lists of some forms, over each column and types in turn."""
    rng = random.Random(seed)
    for name, types in OTHER_TYPES.items():
        for form in rng.choices(list(LISTS.values()), k=EACH):
            values = [_value(rng, name, rng.choice(types)) for _ in range(2)]
            query = form.format(*values)
            condition = rng.choice((CONDITIONS[0], CONDITIONS[0], *CONDITIONS))
            yield condition.format(c=name, list=query, x=f"CAST({values[0]} AS {_TYPES[name]})")


_TYPES = {
    "i": "int",
    "l": "bigint",
    "m": "decimal(9,2)",
    "d": "double",
    "dt": "date",
    "s": "string",
}


def _value(rng: random.Random, name: str, data_type: str) -> str:
    number = rng.randrange(140)
    if name == "dt":
        return f"date_add(date'2024-01-01', {number})"
    if name == "s":
        return f"'k{number:03}'"
    if name == "d" and data_type == "double":
        return rng.choice(["0.0D", "double('NaN')", f"{number / 2}D"])
    return f"CAST({number} AS {data_type})"


@pytest.mark.parametrize("generation", GENERATIONS)
def test_lists_of_literal_rows_lose_no_row(indexed: Indexed, generation: str) -> None:
    spark = indexed.spark
    ansi = "true" if (generation == "first") is (indexed.source == "parquet") else "false"
    decider_of(spark).counting.reset()
    found = 0
    with (
        setting(spark, "spark.sql.sources.useV1SourceList", GENERATIONS[generation]),
        setting(spark, "spark.sql.ansi.enabled", ansi),
    ):
        for condition in drawn(f"{indexed.source} {generation}"):
            on, off = on_and_off(spark, partial(spark.sql, indexed.select(condition)))
            assert on == off, condition
            found += len(off)
    seen = counted(spark)
    assert found > 0
    assert seen.errors == 0
    assert seen.stale > 0
    assert seen.served > 5


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize(
    ("name", "form"),
    list(
        zip(COLUMNS, ["union", "distinct", "filtered", "limited", "grouped", "null"], strict=True)
    ),
)
def test_lists_of_literal_rows_leave_out_files(indexed, generation, name, form):
    spark = indexed.spark
    value = f"(SELECT {COLUMNS[name]} FROM (SELECT 47L AS id))"
    value = spark.sql(f"SELECT CAST({value} AS string)").first()[0]
    literal = f"CAST('{value}' AS {_TYPES[name]})"
    decider_of(spark).counting.reset()
    with (
        setting(spark, "spark.sql.sources.useV1SourceList", GENERATIONS[generation]),
    ):
        condition = f"{name} IN ({LISTS[form].format(literal, literal)})"
        if form == "filtered":
            condition = condition.replace("<>", "=")
        rows = spark.sql(indexed.select(condition)).collect()
    assert [row.l for row in rows] == [47, 47]  # one is in the file that changed
    # Files of d have 0.0 beside greater numbers, so that two of them have it between their bounds.
    assert counted(spark).recent[-1].kept_files == (3 if name == "d" else 2)
