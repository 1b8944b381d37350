"""Folding: the layout of rule W23, and joins that match by their keys."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from support.weaving.smallmodels import Loom, key_field, relationship, same_key, weave_into

from snaploom.engine.fold import Recording, fold
from snaploom.engine.rowcounts import Weaving
from snaploom.models.report import JoinMeasure

pytestmark = pytest.mark.spark

CUSTOMERS = Loom(
    "customer",
    [
        {"dataSource": "customer_address", "fieldName": "customer_address"},
        "customer_contact",
        "customer_group",
        "group_attributes",
    ],
    [
        same_key("customer_id", "customer customer_group customer_address customer_contact"),
        same_key("group_id", "customer_group group_attributes", "string"),
    ],
    group_by={"customer_contact": ["customer_id"], "customer_group": ["customer_id"]},
)


@pytest.fixture
def customers(spark: SparkSession) -> dict[str, DataFrame]:
    return {
        "customer": spark.createDataFrame(
            [(1, "brad"), (2, "jane"), (None, "nobody")], "customer_id int, name string"
        ),
        "customer_address": spark.createDataFrame(
            [(1, "Australia", "VIC"), (9, "Peru", "LIM")],
            "customer_id int, country string, state string",
        ),
        "customer_contact": spark.createDataFrame(
            [(1, "phone", "1"), (1, "email", "b@x"), (None, "fax", "2")],
            "customer_id int, kind string, value string",
        ),
        "customer_group": spark.createDataFrame(
            [(1, "c", "secondary"), (1, "b", "primary")],
            "customer_id int, group_id string, relation_type string",
        ),
        "group_attributes": spark.createDataFrame(
            [("b", "iPhone"), ("c", "iPad"), ("d", "Mac")], "group_id string, name string"
        ),
    }


def test_worked_example_has_its_rows(spark, customers, tmp_path):
    woven = weave_into(tmp_path, CUSTOMERS.weave(customers), spark)
    nobody, brad, jane = woven.rows("data.customer_id")
    assert brad.asDict(recursive=True) == {
        "data": {"customer_id": 1, "name": "brad"},
        "customer_address": {"data": {"customer_id": 1, "country": "Australia", "state": "VIC"}},
        "customer_contact": [
            {"data": {"customer_id": 1, "kind": "email", "value": "b@x"}},
            {"data": {"customer_id": 1, "kind": "phone", "value": "1"}},
        ],
        "customer_group": [
            {
                "data": {"customer_id": 1, "group_id": "b", "relation_type": "primary"},
                "group_attributes": {"data": {"group_id": "b", "name": "iPhone"}},
            },
            {
                "data": {"customer_id": 1, "group_id": "c", "relation_type": "secondary"},
                "group_attributes": {"data": {"group_id": "c", "name": "iPad"}},
            },
        ],
    }
    assert (jane.customer_address, jane.customer_contact, jane.customer_group) == (None, None, None)
    assert nobody.data.name == "nobody"


def test_worked_example_has_its_schema(spark, customers, tmp_path):
    woven = weave_into(tmp_path, CUSTOMERS.weave(customers), spark)
    assert woven.schema.simpleString() == (
        "struct<data:struct<customer_id:int,name:string>,"
        "customer_address:struct<data:struct<customer_id:int,country:string,state:string>>,"
        "customer_contact:array<struct<data:struct<customer_id:int,kind:string,value:string>>>,"
        "customer_group:array<struct<"
        "data:struct<customer_id:int,group_id:string,relation_type:string>,"
        "group_attributes:struct<data:struct<group_id:string,name:string>>>>>"
    )
    nullable = {field.name: field.nullable for field in woven.schema}
    assert nullable == {
        "data": False,
        "customer_address": True,
        "customer_contact": True,
        "customer_group": True,
    }
    assert woven.frame.schema.simpleString() == woven.schema.simpleString()


def test_worked_example_counts_every_join(spark, customers, tmp_path):
    woven = weave_into(tmp_path, CUSTOMERS.weave(customers), spark)

    def measure(
        child: str, rows: int, matched: int, nulls: int, own: int, left: str = ""
    ) -> object:
        return JoinMeasure(
            child=child, in_=rows, out=rows, matched=matched, null_keys=nulls, child_null_keys=own,
            left=left,
        )  # fmt: skip

    assert woven.counts.rows == 3
    assert woven.counts.joins == (
        measure("customer_address", 3, 1, 1, 0),
        measure("customer_contact", 3, 1, 1, 1),
        measure("customer_group", 3, 1, 1, 0),
        measure("group_attributes", 2, 2, 0, 0, "customer_group"),
    )


@pytest.mark.slow
def test_chain_of_fourteen_joins_runs(spark: SparkSession, tmp_path: Path) -> None:
    names = [f"s{number:02}" for number in range(15)]
    keys = [
        relationship(f"k{i}", {a: [key_field("next", "long")], b: [key_field("id", "long")]})
        for i, (a, b) in enumerate(pairwise(names))
    ]
    frames = {name: spark.range(3).selectExpr("id", "id as next") for name in names}
    woven = weave_into(tmp_path, Loom("s00", names[1:], keys).weave(frames), spark)
    assert woven.frame.where(f"{'.'.join(names[1:])}.data.id = data.id").count() == 3
    assert [join.matched for join in woven.counts.joins] == [3] * 14


@pytest.mark.slow
def test_star_of_sixty_children_runs(spark: SparkSession, tmp_path: Path) -> None:
    names = [f"c{number}" for number in range(60)]
    loom = Loom("root", names, [same_key("id", " ".join(["root", *names]), "long")])
    frames = {name: spark.range(2).coalesce(1) for name in ["root", *names]}
    woven = weave_into(tmp_path, loom.weave(frames), spark)
    assert woven.frame.columns == ["data", *sorted(names)]
    assert [join.matched for join in woven.counts.joins] == [2] * 60
    # So many leaves are not observed one by one; the counts that prove the joins are there.
    assert {join.child_null_keys for join in woven.counts.joins} == {None}


def test_more_than_a_hundred_fields_with_odd_names_are_woven(spark, tmp_path):
    wide = spark.range(4).selectExpr("id", *[f"id + {i} as `füllung {i}`" for i in range(150)])
    loom = Loom("l", ["r"], [same_key("ID", "l r", "long")], group_by={"r": ["id"]})
    woven = weave_into(tmp_path, loom.weave({"l": wide, "r": wide}), spark)
    row = woven.rows("data.id")[2]
    assert row.data["füllung 149"] == row.r[0].data["füllung 149"] == 151


def test_listener_hears_of_every_join(spark: SparkSession, customers: dict[str, DataFrame]) -> None:
    heard: list[tuple[int, int, str]] = []
    Weaving(CUSTOMERS.weave(customers), lambda j, m, node: heard.append((j, m, node.field_name)))
    assert heard == [
        (1, 4, "group_attributes"),
        (2, 4, "customer_address"),
        (3, 4, "customer_contact"),
        (4, 4, "customer_group"),
    ]


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
def test_metadata_of_columns_survives_to_parquet(spark, tmp_path, extra):
    def tagged(name: str) -> DataFrame:
        column = sf.col("id").alias("k", metadata={"source": name})
        return spark.range(2).select(column, sf.expr(extra))

    loom = Loom("l", ["g", "r"], [same_key("k", "l g r", "long")], group_by={"g": ["k"]})
    frames = {name: tagged(name) for name in ("l", "g", "r")}
    schema = weave_into(tmp_path, loom.weave(frames), spark).frame.schema
    assert schema["data"].dataType["k"].metadata == {"source": "l"}
    assert schema["g"].dataType.elementType["data"].dataType["k"].metadata == {"source": "g"}
    assert schema["r"].dataType["data"].dataType["k"].metadata == {"source": "r"}
