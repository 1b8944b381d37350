"""Columns after transformers: names, types and values as declared, or one clear error."""

import pytest
from pyspark.sql import types as spark_types
from support.declared.sources import INDEX, a_source, by_field, files

from snaploom.errors import SourceSchemaInvalid
from snaploom.models.common import parse_instant
from snaploom.models.fieldtransformer import FieldTransformer, Rename
from snaploom.plan.bundle import Bundle
from snaploom.sources.readers import Sources
from snaploom.sources.transformers import renamed

pytestmark = pytest.mark.spark

FIRST, SECOND = parse_instant("2019-12-31T00:00:00Z"), parse_instant("2020-01-01T00:00:00Z")


def on(*patterns, **change):
    selectors = [{"coordinateIncludeRegex": pattern} for pattern in patterns]
    return {"selectors": selectors, **change}


def transformer(name, *changes):
    return FieldTransformer.parse(
        {
            "apiVersion": "snaploom.io/v1alpha1",
            "kind": "FieldTransformer",
            "metadata": {"name": name},
            "spec": {"transformers": list(changes)},
        }
    )


@pytest.fixture(scope="module")
def folder(spark, tmp_path_factory):
    """One row a snapshot, with metadata on a column."""
    place = tmp_path_factory.mktemp("transforming") / "raw"
    inner = spark_types.StructType([spark_types.StructField("x", spark_types.LongType())])
    fields = [
        spark_types.StructField("id", spark_types.LongType(), True, {"pii": "no", "level": 3}),
        spark_types.StructField("Name", spark_types.StringType(), True, {"pii": "yes"}),
        spark_types.StructField("amount", spark_types.StringType()),
        spark_types.StructField("s", inner),
        spark_types.StructField("value", spark_types.LongType()),
        spark_types.StructField("day", spark_types.StringType()),
    ]
    rows = [(7, "Ada", "1.5", (2,), 9, "2019-12-31"), (8, "Bob", "much", None, 9, "2020-01-01")]
    frame = spark.createDataFrame(rows, spark_types.StructType(fields)).coalesce(1)
    frame.write.parquet(str(place))
    return place


@pytest.fixture
def shaped(spark, folder):
    def read(*transformers, time=FIRST, keep=False):
        names = [item.name for item in transformers]
        snapshot = by_field("day", "ISO8601_DATE", dropField=not keep)
        spec = files("parquet", f"{folder}/*", snapshot=snapshot, fieldTransformers=names)
        sources = (a_source(spec),)
        bundle = Bundle(skipping_index=INDEX, data_sources=sources, field_transformers=transformers)
        return Sources(spark, bundle, time).reader("orders").read(time)

    return read


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (on("^id$", rename={"to": "key"}), {"key": 7}),
        (on("^id$", rename={"to": "ID"}), {"ID": 7}),
        (on("^id$", rename={"to": "key"}, replaceInputs=False), {"id": 7, "key": 7}),
        (on("^(id|Name)$", rename={"pattern": "^(.)(.*)", "replacement": "$2_$1"}),
         {"d_i": 7, "ame_N": "Ada"}),
        (on("^Name$", "^value", rename={"pattern": "$", "replacement": "_"}, replaceInputs=False),
         {"Name": "Ada", "Name_": "Ada", "value": 9, "value_": 9}),
        (on("amount", cast={"dataType": {"double": {}}}), {"amount": 1.5}),
        (on("^id$", "^s$", drop={}), {"Name": "Ada"}),
        (on("^id$", expression={"sql": "value * 2 -- twice\n"}), {"id": 14}),
        (on("^value$", expression={"sql": "Value + 1"}), {"value": 10}),
        (on("^s$", expression={"sql": "value.x"}), {"s": 2}),
        (on("^(id|amount)$", expression={"sql": "concat(value, '!')"}),
         {"id": "7!", "amount": "1.5!"}),
        (on("^id$", expression={"sql": "exists(array(1, 7), x -> x = value)"}), {"id": True}),
        (on("nothing", drop={}), {"id": 7}),
        ({"selectors": [{"metadata": {"pii": "yes"}}], "drop": {}}, {"id": 7}),
        ({"selectors": [{"metadata": {"pii": "no", "level": "3"}}], "drop": {}}, {"Name": "Ada"}),
        ({"selectors": [{"coordinateExcludeRegex": "^[iN]"}], "drop": {}},
         {"id": 7, "Name": "Ada"}),
    ],
)  # fmt: skip
def test_a_change_gives_the_columns_that_it_declares(shaped, change, expected):
    row = shaped(transformer("t", change)).frame.first().asDict()

    assert {name: row[name] for name in expected} == expected
    assert set(row) <= {"id", "Name", "amount", "s", "value", *expected}


def test_changes_apply_in_order_and_see_what_came_before(shaped):
    first = transformer("first", on("^id$", rename={"to": "key"}, replaceInputs=False))
    second = transformer(
        "second",
        on("^key$", expression={"sql": "value + 1"}),
        on("^key$", cast={"dataType": {"string": {}}}),
        on("^id$", drop={}),
    )
    frame = shaped(first, second).frame

    assert frame.first()["key"] == "8"
    assert frame.columns == ["key", "Name", "amount", "s", "value"]
    assert frame.schema["key"].metadata == {"pii": "no", "level": 3}


@pytest.mark.parametrize(
    ("range_", "expected"),
    [
        ({"to": "2020-01-01T00:00:00Z"}, [True, False]),
        ({"from": "2020-01-01T00:00:00Z"}, [False, True]),
        ({"from": "2019-12-31T00:00:00Z", "to": "2020-01-01T01:00:00+01:00"}, [True, False]),
        ({}, [True, True]),
    ],
)
def test_a_snapshot_range_holds_its_beginning_but_not_its_end(shaped, range_, expected):
    change = on("^id$", drop={}, snapshotRange=range_)
    read = [shaped(transformer("t", change), time=time) for time in (FIRST, SECOND)]

    assert ["id" not in one.frame.columns for one in read] == expected
    assert read[0].fingerprint != shaped(transformer("t", on("^id$", drop={}))).fingerprint


def test_what_cannot_be_cast_is_null(shaped):
    change = on("amount", cast={"dataType": {"integer": {}}})
    assert shaped(transformer("t", change), time=SECOND).frame.first()["amount"] is None


@pytest.mark.parametrize(
    ("change", "columns"),
    [
        (on("^day$", rename={"to": "at"}), []),
        (on("^day$", expression={"sql": "upper(value)"}), []),
        (on("^day$", drop={}), []),
        (on("^day$", rename={"to": "at"}, replaceInputs=False), ["at"]),
    ],
)
def test_the_snapshot_field_is_seen_and_then_dropped_whatever_it_is_called(shaped, change, columns):
    frame = shaped(transformer("t", change)).frame
    assert frame.columns == ["id", "Name", "amount", "s", "value", *columns]


def test_the_snapshot_field_stays_where_it_is_wanted(shaped):
    change = on("^day$", rename={"to": "at"})
    assert shaped(transformer("t", change), keep=True).frame.first()["at"] == "2019-12-31"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (on("^id$", rename={"to": "NAME"}), "NAME and Name"),
        (on("^id$", "amount", rename={"to": "x"}), "x and x"),
        (on("^id$", cast={"dataType": {"date": {}}}), "Spark refuses this"),
        (on("^id$", expression={"sql": "nosuch(value)"}), "nosuch"),
        (on("^id$", expression={"sql": "amount + 1"}), "amount"),
        (on("^id$", expression={"sql": "reflect('java.lang.System', 'exit', value)"}), "reflect"),
        (on("^id$", expression={"sql": "(select 1)"}), "a subquery"),
        (on("^id$", expression={"sql": "1)), explode(array(1"}), "this bracket closes none"),
    ],
)
def test_what_cannot_be_done_names_the_transformer(shaped, change, named):
    with pytest.raises(SourceSchemaInvalid) as caught:
        shaped(transformer("t", on("nothing", drop={}), change))

    assert named in str(caught.value)
    assert caught.value.resource == "FieldTransformer/t"
    assert caught.value.path == "spec.transformers[1]"
    assert "DataSource/orders" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "pattern", "replacement", "expected"),
    [
        ("cust_no", "^cust", "customer", "customer_no"),
        ("a1b2", "([a-z])([0-9])", "$2$1", "1a2b"),
        ("ab", "(a)|(x)", "[$1$2$]", "[a$]b"),
        ("x.y", r"\.", "\\1", "x\\1y"),
        ("abc", "q", "z", "abc"),
    ],
)
def test_a_pattern_is_replaced_wherever_it_is_found(name, pattern, replacement, expected):
    assert renamed(name, Rename(pattern=pattern, replacement=replacement)) == expected
