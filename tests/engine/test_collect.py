"""Grouping: one order whatever the partitioning, by the evaluated key, metadata kept."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from support.weaving.smallmodels import Loom, key_field, relationship, same_key, weave_into

from snaploom.engine.fold import Recording, fold

pytestmark = pytest.mark.spark
GROUPED = Loom("l", ["r"], [same_key("k", "l r", "long")], group_by={"r": ["K"]})

UNUSUAL = """
    id % 3 as k,
    cast(id % 5 as string) as text,
    if(id % 4 = 0, null, named_struct('m', map('z', id, 'a', -id), 'n', id % 2)) as inner,
    array(map(id % 2, array(id)), map()) as maps,
    make_interval(0, 0, 0, cast(id as int)) as interval,
    parse_json(concat('{"v": ', id, '}')) as variant,
    cast('nan' as double) as nan
"""


def arrays(frame: DataFrame, root: DataFrame) -> list[Any]:
    woven = fold(GROUPED.weave({"l": root, "r": frame}), Recording())
    return [
        row.r for row in woven.selectExpr("data.k", "cast(r as string) as r").orderBy("k").collect()
    ]


@pytest.mark.parametrize("columns", ["id % 3 as k, id % 2 as v, -id as w", UNUSUAL])
def test_arrays_do_not_depend_on_partitioning(spark: SparkSession, columns: str) -> None:
    root = spark.range(3).selectExpr("id as k")
    rows = spark.range(40).selectExpr(f"struct({columns}) as s").select("s.*")
    first = arrays(rows.repartition(3, sf.rand(1)), root)
    assert all(first)
    assert arrays(rows.repartition(2, sf.rand(2)).orderBy(sf.rand(3)), root) == first


def test_keys_that_evaluate_to_one_are_one_group(spark: SparkSession, tmp_path: Path) -> None:
    lower = {**key_field("code", "string"), "query": "lower(code)"}
    loom = Loom(
        "l", ["r"], [relationship("c", {"l": [lower], "r": [lower]})], group_by={"r": ["code"]}
    )
    frames = {
        "l": spark.createDataFrame([("A",), ("b",)], "code string"),
        "r": spark.createDataFrame([("a",), ("A",), (None,)], "code string"),
    }
    woven = weave_into(tmp_path, loom.weave(frames), spark)
    first, second = woven.rows("data.code")
    assert [element.data.code for element in first.r] == ["A", "a"]
    assert second.r is None
    assert woven.counts.joins[0].child_null_keys == 1


def test_group_inside_a_group_is_an_array_of_arrays(spark: SparkSession, tmp_path: Path) -> None:
    loom = Loom(
        "l",
        ["r", "s"],
        [same_key("k", "l r", "long"), same_key("j", "r s", "long")],
        group_by={"r": ["k"], "s": ["j"]},
    )
    frames = {
        "l": spark.range(1).selectExpr("id as k"),
        "r": spark.range(2).selectExpr("0L as k", "id as j"),
        "s": spark.range(4).selectExpr("id % 2 as j", "id as v"),
    }
    (row,) = weave_into(tmp_path, loom.weave(frames), spark).rows()
    assert [[s.data.v for s in r.s] for r in row.r] == [[0, 2], [1, 3]]


def test_compound_group_by_is_matched_in_any_order(spark: SparkSession, tmp_path: Path) -> None:
    both = [key_field("a", "long"), key_field("b", "long")]
    loom = Loom(
        "l", ["r"], [relationship("ab", {"l": both, "r": both})], group_by={"r": ["B", "a"]}
    )
    frames = {
        "l": spark.range(2).selectExpr("id as a", "id as b"),
        "r": spark.range(4).selectExpr("id % 2 as a", "id % 2 as b", "id as v"),
    }
    rows = weave_into(tmp_path, loom.weave(frames), spark).rows("data.a")
    assert [[r.data.v for r in row.r] for row in rows] == [[0, 2], [1, 3]]


@pytest.mark.parametrize("extra", ["1 as plain", "map('a', 1) as unsortable"])
def test_metadata_of_columns_survives_to_parquet(
    spark: SparkSession, tmp_path: Path, extra: str
) -> None:
    def tagged(name: str) -> DataFrame:
        column = sf.col("id").alias("k", metadata={"source": name})
        return spark.range(2).select(column, sf.expr(extra))

    loom = Loom("l", ["g", "r"], [same_key("k", "l g r", "long")], group_by={"g": ["k"]})
    frames = {name: tagged(name) for name in ("l", "g", "r")}
    schema = weave_into(tmp_path, loom.weave(frames), spark).frame.schema
    assert schema["data"].dataType["k"].metadata == {"source": "l"}
    assert schema["g"].dataType.elementType["data"].dataType["k"].metadata == {"source": "g"}
    assert schema["r"].dataType["data"].dataType["k"].metadata == {"source": "r"}
