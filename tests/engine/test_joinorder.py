"""The order of the joins of one node."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from pyspark.sql import DataFrame, SparkSession, types
from support.weaving.smallmodels import Loom, same_key

from snaploom.engine.fold import bytes_of_row, in_join_order
from snaploom.engine.rowcounts import Weaving
from snaploom.skipping.spark.interfaces.enable import setting

BROADCASTS = "spark.sql.autoBroadcastJoinThreshold"
LOOM = Loom("root", ["wide", "slim"], [same_key("w", "root wide"), same_key("s", "root slim")])


@dataclass(frozen=True)
class Child:
    name: str
    key: str
    width: int
    is_broadcast: bool = False


def ordered(*children: Child) -> str:
    order = in_join_order(
        children, lambda one: one.key, lambda one: one.width, lambda one: one.is_broadcast
    )
    return " ".join(child.name for child in order)


@pytest.mark.parametrize(
    ("children", "order"),
    [
        ([Child("a", "x", 90), Child("b", "y", 10)], "b a"),
        ([Child("a", "x", 10, True), Child("b", "y", 90)], "b a"),
        ([Child("a", "x", 10), Child("b", "y", 15), Child("c", "x", 10)], "b a c"),
        ([Child("a", "x", 90), Child("b", "x", 10)], "a b"),
        ([Child("a", "x", 10), Child("b", "y", 10)], "a b"),
        ([Child("a", "x", 10, True), Child("b", "y", 90), Child("c", "x", 20)], "c b a"),
        ([], ""),
    ],
    ids=[
        "slim first",
        "broadcast last",
        "same key together",
        "one key only",
        "equal",
        "in a group",
        "none",
    ],
)
def test_children_are_joined_where_they_move_the_fewest_bytes(children, order):
    assert ordered(*children) == order


@pytest.mark.parametrize(
    ("data_type", "width"),
    [
        (types.LongType(), 8),
        (types.BinaryType(), 20),
        (types.StructType().add("a", "date").add("b", "string"), 28),
        (types.ArrayType(types.StringType()), 20),
        (types.MapType(types.StringType(), types.DoubleType()), 28),
    ],
    ids=lambda value: value.simpleString() if isinstance(value, types.DataType) else "",
)
def test_width_of_a_row_is_that_of_its_leaves(data_type: types.DataType, width: int) -> None:
    assert bytes_of_row([types.StructField("x", data_type)]) == width


@pytest.fixture
def frames(spark: SparkSession) -> Mapping[str, DataFrame]:
    return {
        "root": spark.range(100).selectExpr("id AS r", "id AS w", "id AS s"),
        "wide": spark.range(100_000).selectExpr("id AS w", *(f"'x' AS v{i}" for i in range(5))),
        "slim": spark.range(10).selectExpr("id AS s"),
    }


@pytest.mark.spark
@pytest.mark.parametrize(
    ("threshold", "key_of_last"), [("-1", "c0_1"), ("10000", "c0_2")], ids=["wide", "broadcast"]
)
def test_what_is_joined_last_is_wide_or_broadcast(spark, frames, threshold, key_of_last):
    with setting(spark, BROADCASTS, threshold):
        plan = Weaving(LOOM.weave(frames)).frame._jdf.queryExecution().analyzed().toString()
    outermost = re.search(r"Join LeftOuter, \((\w+)#", plan)
    assert outermost[1] == key_of_last


@pytest.mark.spark
def test_rows_are_the_same_in_every_order(spark, frames):
    found = []
    for threshold in ("-1", "10000", "10485760"):
        with setting(spark, BROADCASTS, threshold):
            frame = Weaving(LOOM.weave(frames)).frame
            found.append((frame.columns, sorted(frame.orderBy("data.r").collect())))
    assert found[0] == found[1] == found[2]
    assert sum(row.slim is not None for row in found[0][1]) == 10
