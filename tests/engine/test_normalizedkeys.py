"""Normalised keys in Spark: the plain function for every text, left joins in plain Python."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from support.weaving.smallmodels import Loom, Woven, key_field, relationship, weave_into

from snaploom.engine.keys import KeyPart
from snaploom.engine.rowcounts import Weaving
from snaploom.errors import RowsMultiplied, SourceSchemaInvalid
from snaploom.models.datarelationship import Normalization
from snaploom.spark.types import find_field
from snaploom.types.merge import DASHES, WHITE_SPACE, normalized

pytestmark = pytest.mark.spark

KEYS = st.text(
    st.sampled_from("0019aAzZ.+-eExX ") | st.sampled_from(WHITE_SPACE + DASHES)
    | st.sampled_from("éße\u0301İıςΣσﬁＡ１가각\u1100\u1161\u11a8ångstro\u030a\u212b\u0344𝒳🙂"),
    max_size=12,
)  # fmt: skip
"""Texts of signs that steps change, all older than the Unicode of any Java."""
NUMBERS = st.from_regex(r"\A[ \t]?[+-]?0{0,3}[0-9]{0,40}(\.0{0,3})?1?\xa0?\Z")
STEPS = st.lists(st.sampled_from(Normalization), min_size=1, max_size=4, unique=True)


def compared(spark: SparkSession, values: DataFrame, steps: Sequence[Normalization]) -> list[Any]:
    """The column `k` of some rows as a key with these steps compares it, in the order of `n`."""
    part = KeyPart("k", find_field(values.schema, "k"), None, (), tuple(steps))
    rows = values.select("n", part.column(spark, "key").alias("key")).collect()
    return [row.key for row in sorted(rows)]


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(texts=st.lists(st.none() | KEYS | NUMBERS, min_size=20, max_size=60), steps=STEPS)
def test_spark_normalises_any_text_as_the_plain_function_does(spark, texts, steps):
    values = spark.createDataFrame(list(enumerate(texts)), "n int, k string")
    assert compared(spark, values, steps) == [normalized(text, steps) for text in texts]


@pytest.mark.parametrize("is_compiled", ["true", "false"])
@pytest.mark.parametrize("step", list(Normalization))
def test_each_step_is_the_same_compiled_or_not_and_of_a_literal(spark, step, is_compiled):
    texts = [None, "", " 007.0 ", "e\u0301-Ä", "000", "-12", "ß"]
    mode = "CODEGEN_ONLY" if is_compiled == "true" else "NO_CODEGEN"
    spark.conf.set("spark.sql.codegen.wholeStage", is_compiled)
    spark.conf.set("spark.sql.codegen.factoryMode", mode)
    try:
        values = spark.createDataFrame(list(enumerate(texts)), "n int, k string").repartition(2)
        assert compared(spark, values, [step]) == [normalized(text, [step]) for text in texts]
        literal = spark.sql("select 0 as n, ' 007.0 ' as k")
        assert compared(spark, literal, [step]) == [normalized(" 007.0 ", [step])]
    finally:
        spark.conf.unset("spark.sql.codegen.wholeStage")
        spark.conf.unset("spark.sql.codegen.factoryMode")


@pytest.mark.parametrize(
    ("number", "text"),
    [
        ("7", "7"),
        ("-7L", "-7"),
        ("7.00BD", "7"),
        ("7.50BD", None),
        ("cast('0' as decimal(38, 18))", "0"),
        ("cast('12345678901234567890.000' as decimal(30, 3))", "12345678901234567890"),
        ("7.0D", "7"),
        ("-0.0D", "0"),
        ("1e7D", "10000000"),
        ("9007199254740991D", "9007199254740991"),
        ("9007199254740992D", None),
        ("1.5D", None),
        ("double('NaN')", None),
        ("double('-Infinity')", None),
        ("cast(16777215 as float)", "16777215"),
        ("cast(16777216 as float)", None),
        ("cast(null as int)", None),
    ],
)
def test_integer_is_the_value_of_a_number_where_it_is_exact(spark, number, text):
    values = spark.sql(f"select 0 as n, {number} as k")
    assert compared(spark, values, [Normalization.INTEGER]) == [text]


def test_steps_are_taken_one_after_the_other(spark: SparkSession) -> None:
    values = spark.sql("select 0 as n, '\u00df' as k")
    assert compared(spark, values, [Normalization.UPPER, Normalization.LOWER]) == ["ss"]


def test_text_that_is_not_utf8_is_null(spark: SparkSession) -> None:
    values = spark.sql("select 0 as n, cast(X'61ff' as string) as k")
    assert compared(spark, values, [Normalization.UPPER]) == [None]


def woven(
    spark: SparkSession,
    folder: Path,
    left: DataFrame,
    right: DataFrame,
    keys: tuple[list[dict[str, Any]], list[dict[str, Any]]],
    **settings: Any,
) -> Woven:
    joined = relationship("key", {"l": keys[0], "r": keys[1]})
    return weave_into(
        folder, Loom("l", ["r"], [joined], **settings).weave({"l": left, "r": right}), spark
    )


def both(*steps: str, **more: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    key = [key_field("k", "string", normalize=list(steps), **more)]
    return key, key


@pytest.mark.parametrize(
    ("left", "right", "keys"),
    [
        ("'00001'", "1", ([key_field("k", "string", normalize=["STRIP_LEADING_ZEROS"])],
                          [key_field("k")])),
        ("'00001'", "1.0D", ([key_field("k", "string", normalize=["INTEGER"])],
                             [key_field("k", "double", normalize=["INTEGER"])])),
        ("'AB1'", "'ab1'", both("UPPER")),
        ("'AB1 '", "'AB1'", both("TRIM")),
        ("rpad('AB1', 20, ' ')", "'AB1'", ([key_field("k", "string", normalize=["TRIM"])],
                                           [key_field("k", "string")])),
        ("'e\u0301t\u00e9'", "'\u00e9te\u0301'", both("NFC")),
        ("'a-1'", "'a\u20131'", both("REMOVE_DASHES")),
        ("'6F9619FF-8B86-D011-B42D-00C04FC964FF'", "'6f9619ff-8b86-d011-b42d-00c04fc964ff'",
         ([key_field("k", "string", normalize=["LOWER"])], [key_field("k", "string")])),
        ("' 7 '", "7L", ([key_field("k", "string", normalize=["TRIM"], castDataType={"long": {}})],
                         [key_field("k", "long", castDataType={"long": {}})])),
    ],
)  # fmt: skip
def test_spellings_of_people_match_once_they_are_normalised(spark, tmp_path, left, right, keys):
    frames = [spark.sql(f"select {key} as k") for key in (left, right)]
    plain = [[{**c, "normalize": None} for c in side] for side in keys]
    before = woven(spark, tmp_path / "before", *frames, [drop_none(side) for side in plain])
    assert before.counts.joins[0].matched == ("long" in str(keys))
    after = woven(spark, tmp_path / "after", *frames, keys)
    assert (after.counts.joins[0].matched, after.counts.joins[0].null_keys) == (1, 0)


def drop_none(components: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in one.items() if v is not None} for one in components]


@settings(max_examples=12, suppress_health_check=list(HealthCheck), deadline=None)
@given(
    left=st.lists(st.tuples(st.none() | KEYS, st.sampled_from("aA")), min_size=1, max_size=25),
    right=st.lists(st.tuples(st.none() | KEYS, st.sampled_from("aA")), max_size=25),
    steps=st.tuples(STEPS, STEPS),
    is_grouped=st.booleans(),
)
def test_a_join_of_normalised_keys_is_the_left_join_of_plain_python(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    left: list[tuple[str | None, str]],
    right: list[tuple[str | None, str]],
    steps: tuple[list[Normalization], list[Normalization]],
    is_grouped: bool,
) -> None:
    def key(row: tuple[str | None, str], side: int) -> tuple[str, str] | None:
        text = normalized(row[0], steps[side])
        return None if text is None else (text, row[1].upper())

    partners: dict[tuple[str, str], list[int]] = {}
    for number, row in enumerate(right):
        if (found := key(row, 1)) is not None:
            partners.setdefault(found, []).append(number)
    expected = [partners.get(key(row, 0) or ("", ""), []) for row in left]
    frames = [
        spark.createDataFrame([(n, {"k": a}, b) for n, (a, b) in enumerate(rows)],
                              "n int, s struct<k: string>, q string")
        for rows in (left, right)
    ]  # fmt: skip
    keys = [
        [key_field("s.k", "string", normalize=one), key_field("q", "string", normalize=["UPPER"])]
        for one in steps
    ]
    more = {"group_by": {"r": ["s.k", "q"]}} if is_grouped else {}
    folder = tmp_path_factory.mktemp("joined")
    if not is_grouped and max(map(len, expected)) > 1:
        with pytest.raises(RowsMultiplied):
            woven(spark, folder, *frames, keys, **more)
        return
    got = woven(spark, folder, *frames, keys, **more)
    rows = [row.r for row in got.rows("data.n")]
    if is_grouped:
        assert [sorted(e.data.n for e in row or ()) for row in rows] == expected
    else:
        assert [[] if row is None else [row.data.n] for row in rows] == expected
    (join,) = got.counts.joins
    assert join.matched == sum(map(bool, expected))
    assert join.null_keys == sum(key(row, 0) is None for row in left)
    assert join.child_null_keys == sum(key(row, 1) is None for row in right)


def test_parents_that_become_equal_are_refused_with_both_spellings(spark, tmp_path):
    left = spark.sql("select 'ab1' as k")
    right = spark.sql("select * from values ('Ab1', 1), ('aB1', 2), ('x', 3) as t(k, n)")
    with pytest.raises(RowsMultiplied) as error:
        woven(spark, tmp_path, left, right, both("UPPER"))
    assert "k = AB1, written 'Ab1' and 'aB1' (2 rows)" in str(error.value)
    assert "from 1 to 2" in str(error.value)


def test_a_query_is_normalised_and_still_judged(spark: SparkSession, tmp_path: Path) -> None:
    left, right = spark.sql("select 'e\u0301' as k"), spark.sql("select 'X\u00c9' as k")
    keys = both("NFC", "UPPER", query="concat('x', k)")
    keys = keys[0], [key_field("k", "string", normalize=["NFC"])]
    assert woven(spark, tmp_path, left, right, keys).counts.joins[0].matched == 1
    forbidden = [key_field("k", "string", normalize=["NFC"], query="java_method('a', 'b', k)")]
    joined = relationship("key", {"l": forbidden, "r": keys[1]})
    with pytest.raises(SourceSchemaInvalid, match="java_method"):
        Weaving(Loom("l", ["r"], [joined]).weave({"l": left, "r": right}))
