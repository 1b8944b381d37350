"""Keys: casts left out where they cannot matter, made where they can; no exchange for buckets."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyspark.sql import DataFrame, SparkSession
from support.weaving.smallmodels import Loom, key_field, relationship, same_key, weave_into

from snaploom.engine import unmatched
from snaploom.engine.keys import is_of_declared_type
from snaploom.engine.rowcounts import Weaving
from snaploom.engine.unmatched import unmatched_warnings
from snaploom.errors import SourceSchemaInvalid
from snaploom.sources.files.checks import SPREADING, choose_spreading

pytestmark = pytest.mark.spark


def two(spark: SparkSession, left: str, right: str) -> dict[str, DataFrame]:
    return {"l": spark.sql(left), "r": spark.sql(right)}


def matched(
    spark: SparkSession, tmp_path: Path, frames: dict[str, DataFrame], left: dict, right: dict
) -> list[bool]:
    """Whether each left row, in order of its `n`, found a match."""
    loom = Loom("l", ["r"], [relationship("key", {"l": [left], "r": [right]})])
    woven = weave_into(tmp_path, loom.weave(frames), spark)
    return [row.r is not None for row in woven.rows("data.n")]


def test_text_that_is_no_number_matches_nothing_and_is_counted(spark, tmp_path):
    frames = two(
        spark,
        "select * from values (0, 'a'), (1, '1'), (2, ' 2 ') as t(n, k)",
        "select * from values (1), (2) as t(k)",
    )
    cast = {"castDataType": {"integer": {}}}
    loom = Loom(
        "l",
        ["r"],
        [
            relationship(
                "key",
                {"l": [key_field("k", "string", **cast)], "r": [key_field("k", "integer", **cast)]},
            )
        ],
    )
    woven = weave_into(tmp_path, loom.weave(frames), spark)
    assert [row.r is not None for row in woven.rows("data.n")] == [False, True, True]
    assert woven.counts.joins[0].null_keys == 1


def test_different_types_are_compared_as_text_by_default(spark, tmp_path):
    frames = two(
        spark,
        "select * from values (0, '1'), (1, '01') as t(n, k)",
        "select * from values (1L) as t(k)",
    )
    left, right = key_field("k", "string"), key_field("K", "long")
    assert matched(spark, tmp_path, frames, left, right) == [True, False]


@pytest.mark.parametrize(
    ("declared", "actual", "cast", "is_taken"),
    [
        ("long", "int", "string", True),
        ("integer", "bigint", "string", True),
        ("integer", "bigint", "long", True),
        ("integer", "bigint", "integer", False),
        ("long", "smallint", "integer", True),
        ("long", "decimal(12,0)", "string", True),
        ("long", "decimal(12,2)", "string", False),
        ("long", "decimal(12,2)", "decimal", True),
        ("double", "float", "double", True),
        ("double", "float", "string", True),
        ("float", "double", "string", False),
        ("long", "double", "double", False),
        ("string", "int", "string", False),
        ("integer", "bigint", "double", False),
    ],
)
def test_a_type_that_widened_matches_what_it_matched(
    spark: SparkSession, tmp_path: Path, declared: str, actual: str, cast: str, is_taken: bool
) -> None:
    frames = two(
        spark,
        f"select 0 as n, cast(7 as {actual}) as k",
        f"select cast(7 as {'string' if declared == 'string' else 'bigint'}) as k",
    )
    wanted = {"precision": 38, "scale": 2} if cast == "decimal" else {}
    how = {"castDataType": {cast: wanted}}
    right = key_field("k", "string" if declared == "string" else "long", **how)
    left = key_field("k", declared, **how)
    if is_taken and declared != "double":
        assert matched(spark, tmp_path, frames, left, right) == [True]
    (component,) = relationship("key", {"l": [left]}).spec.representations[0].join_key
    (field,) = component.fields_
    assert is_of_declared_type(field, frames["l"].schema["k"].dataType, component) is is_taken


def test_odd_names_are_read_by_queries(spark: SparkSession, tmp_path: Path) -> None:
    frames = two(
        spark,
        "select 0 as n, 'x' as `a.b`, named_struct('c d', 'y') as s",
        "select 'X-y' as `k k`",
    )
    names = [("`a.b`", "s.`c d`"), ("k k",)]
    left, right = (
        [{"fieldName": name, "dataType": {"string": {}}} for name in side] for side in names
    )
    keys = (
        {"fields": left, "query": "concat(upper(`a.b`), '-', s.`c d`)"},
        {"fields": right, "query": "trim(`k k`)"},
    )
    assert matched(spark, tmp_path, frames, *keys) == [True]


def test_query_sees_its_own_source_only_and_ignores_case(spark, tmp_path):
    frames = two(
        spark,
        "select 0 as n, 'x' as A, 'y' as b",
        "select 'x-y' as a, 'z' as b",
    )
    fields = [{"fieldName": name, "dataType": {"string": {}}} for name in ("a", "B")]
    left = {"fields": fields, "query": "concat(a, '-', B)"}
    assert matched(spark, tmp_path, frames, left, key_field("A", "string")) == [True]


def test_nested_dotted_and_quoted_names_are_keys(spark: SparkSession, tmp_path: Path) -> None:
    frames = two(
        spark,
        "select 0 as n, 7 as `a.b``c`, 1 as `größe 数`",
        "select named_struct('Ä ö', named_struct('k', 7)) as `s.t`",
    )
    left, right = key_field("`a.b``c`"), key_field("`s.t`.Ä ö.K")
    assert matched(spark, tmp_path, frames, left, right) == [True]


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("explode(sequence(1, k))", "rows would be multiplied before they are counted"),
        ("max(k)", "an aggregate"),
        ("no_such_function(k)", "unknown"),
        ("k +", "no SQL"),
    ],
)
def test_query_that_spark_refuses_names_the_relationship(spark, query, why):
    frames = two(spark, "select 1 as k", "select 1 as k")
    left = {**key_field("k"), "query": query}
    loom = Loom("l", ["r"], [relationship("key", {"l": [left], "r": [key_field("k")]})])
    with pytest.raises(SourceSchemaInvalid) as error:
        Weaving(loom.weave(frames))
    assert error.value.resource == "DataRelationship/key", why


def test_bucketed_sources_are_joined_without_exchange(spark: SparkSession) -> None:
    frames = {}
    for name in ("l", "r"):
        table = f"bucketed_{name}_{uuid4().hex}"
        rows = spark.range(100).selectExpr("id as k", "cast(id as string) as v")
        rows.write.bucketBy(4, "k").sortBy("k").saveAsTable(table)
        frames[name] = spark.table(table)
    loom = Loom("l", ["r"], [same_key("k", "l r", "long")])
    assert exchanges(spark, Weaving(loom.weave(frames)).frame) == 0


def test_grouped_child_and_parent_are_shuffled_once_each(spark, tmp_path):
    frames = {name: stored(spark, tmp_path, name) for name in ("l", "r")}
    loom = Loom("l", ["r"], [same_key("k", "l r", "long")], group_by={"r": ["k"]})
    assert exchanges(spark, Weaving(loom.weave(frames)).frame) == 2


FULL, HOLES = ["id AS a", "id AS b"], ["id AS a", "nullif(id, 3) AS b"]


@pytest.mark.parametrize(
    ("written", "read", "names", "spread"),
    [
        (FULL, "*", {"a", "b"}, "false"),
        (FULL, "b, a AS other, 1 AS `_snapshot`", {"b"}, "false"),
        (HOLES, "*", {"a"}, "false"),
        (HOLES, "*", {"b"}, "true"),
        (HOLES, "b AS a, a AS b", {"a"}, "true"),
        (FULL, "nullif(a, 3) AS a", {"a"}, "true"),
        (FULL, "*", None, "true"),
    ],
)
def test_rows_are_spread_unless_a_file_shows_no_null(spark, tmp_path, written, read, names, spread):
    spark.range(0, 9, 1, 1).selectExpr(*written).write.parquet(f"{tmp_path}/a b")
    spark.read.parquet(f"{tmp_path}/a b").createOrReplaceTempView("rows_of_files")
    frame = spark.sql(f"SELECT {read} FROM rows_of_files")
    choose_spreading(spark, [(frame.unionAll(frame), names)])
    assert spark.conf.get(SPREADING) == spread


def test_rows_of_unknown_files_are_spread(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(9).write.parquet(f"{tmp_path}/files")
    spark.range(9).write.csv(f"{tmp_path}/texts")
    files, texts = spark.read.parquet(f"{tmp_path}/files"), spark.read.csv(f"{tmp_path}/texts")
    for frame, name in ((spark.range(9), "id"), (texts, "_c0")):
        choose_spreading(spark, [(files, {"id"}), (frame, {name})])
        assert spark.conf.get(SPREADING) == "true"
    for file in (tmp_path / "files").glob("*.parquet"):
        file.unlink()
    choose_spreading(spark, [(files, {"id"})])
    assert spark.conf.get(SPREADING) == "true"


@pytest.mark.parametrize(("key", "spread"), [("id % 9", 0), ("nullif(id, 5)", 2)])
def test_rows_are_spread_for_null_keys_where_there_are_any(spark, tmp_path, key, spread):
    frames = {name: stored(spark, tmp_path, name, key) for name in ("l", "r")}
    loom = Loom("l", ["r"], [same_key("k", "l r", "long")])
    plan = physical_plan(spark, Weaving(loom.weave(frames)).frame)
    knows_how = spark.version >= "4.3"
    assert plan.count("nullawarehashpartitioning") == spread * knows_how


def test_children_that_share_a_key_shuffle_the_parent_once(spark, tmp_path):
    frames = {name: stored(spark, tmp_path, name) for name in ("l", "r", "s")}
    loom = Loom("l", ["r", "s"], [same_key("k", "l r s", "long")])
    assert exchanges(spark, Weaving(loom.weave(frames)).frame) == 3


def stored(spark: SparkSession, folder: Path, name: str, key: str = "id % 9") -> DataFrame:
    """Rows in files, so that a plan has something to shuffle."""
    rows = spark.range(0, 100, 1, 1).selectExpr(f"{key} as k", "id as v")
    rows.write.parquet(str(folder / name))
    return spark.read.parquet(str(folder / name))


def exchanges(spark: SparkSession, frame: DataFrame) -> int:
    """Exchanges in the physical plan."""
    return physical_plan(spark, frame).count("Exchange ")


def physical_plan(spark: SparkSession, frame: DataFrame) -> str:
    """The physical plan without broadcasts, which depend on sizes."""
    threshold = "spark.sql.autoBroadcastJoinThreshold"
    before = spark.conf.get(threshold)
    spark.conf.set(threshold, "-1")
    try:
        plan = str(frame._jdf.queryExecution().executedPlan().toString())
    finally:
        spark.conf.set(threshold, before)
    assert "SortMergeJoin" in plan
    return plan


def warnings_of(
    spark: SparkSession,
    folder: Path,
    left: tuple[str, str],
    right: tuple[str, str],
    **changes: Any,
) -> tuple[list[bool], list[str]]:
    """Which rows matched, and the warnings; a side is a list of values of SQL, and its type."""
    frames = {
        name: spark.sql(f"select * from values {values} as t(k)")
        for name, (values, _) in (("l", left), ("r", right))
    }
    keys = [key_field("k", **changes) for _ in range(2)]
    for component, (_, type_) in zip(keys, (left, right), strict=True):
        name, _, digits = type_.partition(" ")
        shape = dict(zip(("precision", "scale"), map(int, digits.split()), strict=False))
        component["fields"][0]["dataType"] = {name: shape}
    loom = Loom("l", ["r"], [relationship("key", {"l": [keys[0]], "r": [keys[1]]})])
    weave = loom.weave(frames)
    woven = weave_into(folder, weave, spark)
    rows = [row.r is not None for row in woven.rows("data.k")]
    assert list(unmatched_warnings(weave, woven.counts.joins, (), frozenset("r"))) == []
    return rows, list(unmatched_warnings(weave, woven.counts.joins))


@pytest.mark.parametrize(
    ("left", "right", "changes", "texts"),
    [
        (("(1), (2)", "integer"), ("(1.0D)", "double"), {},
         ["'1' and", "has '1.0'", "castDataType: {double: {}}", "none of 2 rows"]),
        (("(1.00BD)", "decimal 3 2"), ("(1.0BD)", "decimal 2 1"), {},
         ["'1.00'", "'1.0'", "{decimal: {precision: 3, scale: 2}}"]),
        (("('a  ')", "string"), ("('a')", "string"), {}, ["'a  '", "normalize: [TRIM]"]),
        (("('a')", "string"), ("('A')", "string"), {}, ["'a'", "'A'", "in one way"]),
        (("('x1')", "string"), ("(1)", "integer"), {"castDataType": {"integer": {}}},
         ["'x1' (compared as NULL)", "cannot be cast"]),
    ],
)  # fmt: skip
def test_keys_that_never_match_are_a_warning_with_a_fix(
    spark: SparkSession,
    tmp_path: Path,
    left: tuple[str, str],
    right: tuple[str, str],
    changes: dict[str, Any],
    texts: list[str],
) -> None:
    rows, warnings = warnings_of(spark, tmp_path, left, right, **changes)
    assert not any(rows)
    (warning,) = warnings
    for text in (*texts, "DataRelationship/key", "DataSource/l", "warnNoMatch"):
        assert text in warning


def test_no_warning_where_a_side_has_no_keys_or_a_row_matched(spark, tmp_path):
    sides = [
        ("(cast(null as int))", "(1)"),
        ("(1)", "(cast(null as int))"),
        ("(1), (2)", "(2)"),
    ]
    for number, (left, right) in enumerate(sides):
        folder = tmp_path / str(number)
        _, warnings = warnings_of(spark, folder, (left, "integer"), (right, "integer"))
        assert warnings == []


@pytest.mark.parametrize("kind", ["double", "float"])
def test_floating_point_keys_of_one_type_are_compared_by_value(spark, tmp_path, kind):
    values = f"(cast('-0.0' as {kind})), (cast('NaN' as {kind})), (cast('1.5' as {kind}))"
    other = f"(cast('0.0' as {kind})), (cast('NaN' as {kind})), (cast('1.5' as {kind}))"
    rows, warnings = warnings_of(spark, tmp_path, (values, kind), (other, kind))
    assert rows == [True, True, True]
    assert warnings == []


def test_of_many_joins_without_a_match_the_others_are_named_without_a_look(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unmatched, "SAMPLED_JOINS", 0)
    _, warnings = warnings_of(spark, tmp_path, ("(1)", "integer"), ("(2)", "integer"))
    assert warnings == ["no row found a match in `r` either; their keys were not looked at"]
