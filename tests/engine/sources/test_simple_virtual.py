"""A simple virtual source is a query over its alias, whatever the session or the disk holds."""

import pytest
from pyspark.sql import functions as sf
from support.declared.sources import NOW, a_source, by_field, files, reader, rows_at, snapshot_times
from support.declared.virtualsources import HOSTILE, over
from support.weaving.sparksession import compiled

from snaploom.errors import SourceSchemaInvalid
from snaploom.models.common import parse_instant

pytestmark = pytest.mark.spark


@pytest.fixture
def raw(spark, tmp_path):
    spark.range(4).select(
        sf.col("id").alias("id", metadata={"comment": "key"}),
        sf.when(sf.col("id") < 3, "2020-01-01").otherwise("2020-01-02").alias("day"),
        sf.struct(sf.lit("x").alias("in side")).alias("s"),
    ).coalesce(1).write.parquet(f"{tmp_path}/raw")
    snapshot = by_field("day", "ISO8601_DATE")
    return a_source(files("parquet", f"{tmp_path}/raw/*", snapshot=snapshot), "raw")


FIRST = parse_instant("2020-01-01T00:00:00Z")


def test_it_has_the_snapshots_of_its_source_and_the_rows_of_its_query(spark, raw):
    source = reader(spark, over("SELECT sum(id) AS total FROM src WHERE id > 0"), raw)

    assert len(snapshot_times(source)) == 2
    assert [rows_at(source, time) for time in snapshot_times(source)] == [[(3,)], [(3,)]]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select id from src where id = 1;", [(1,)]),
        ("select SRC.id from `Src` -- the end", [(0,), (1,), (2,)]),
        ("select x.id from src as x where x.id in (select max(id) from src)", [(2,)]),
        ("select '{src} {{}} {' as t from src where id = 0", [("{src} {{}} {",)]),
        ("select regexp_extract('aab', 'a{2}', 0) t from src where id = 0", [("aa",)]),
        ("with x as (select id + 1 n from src) select max(n) from x", [(3,)]),
        ("select s.`in side` as t, count(*) n from src group by 1", [("x", 3)]),
    ],
)
def test_a_query_returns_what_it_selects(spark, raw, query, expected):
    assert rows_at(reader(spark, over(query), raw), FIRST) == expected


def test_metadata_and_nested_types_come_through(spark, raw):
    frame = (
        reader(spark, over("SELECT id, s, named_struct('a', s) t FROM src"), raw).read(FIRST).frame
    )

    assert frame.schema["id"].metadata == {"comment": "key"}
    assert frame.schema.simpleString() == (
        "struct<id:bigint,s:struct<in side:string>,t:struct<a:struct<in side:string>>>"
    )


def test_a_view_of_the_same_name_is_neither_read_nor_touched(spark, raw):
    spark.range(100).createOrReplaceTempView("src")
    try:
        with compiled(spark):  # Spark lists tables by compiled plans only
            before = [table.name for table in spark.catalog.listTables()]
            assert len(rows_at(reader(spark, over("select id from src"), raw), FIRST)) == 3
            assert [table.name for table in spark.catalog.listTables()] == before
        assert spark.table("src").count() == 100
    finally:
        spark.catalog.dropTempView("src")


@pytest.mark.parametrize(("query", "named"), HOSTILE.items())
def test_nothing_but_the_alias_can_be_read(spark, raw, query, named):
    with pytest.raises(SourceSchemaInvalid) as caught:
        reader(spark, over(query), raw).read(FIRST)

    assert named.lower() in str(caught.value).lower()
    assert caught.value.path == "spec.simpleVirtual.dataQuery"


@pytest.mark.parametrize(
    ("query", "place", "text"),
    [
        ("select id,\n  nosuch\nfrom src", "line 2, column 3", "nosuch"),
        ("select upper(id, 1) from src", "line 1, column 8", "upper"),
        ("select id + s as x from src", "line 1, column 8", "id + s"),
    ],
)
def test_spark_s_objection_comes_with_its_place_in_the_query(spark, raw, query, place, text):
    with pytest.raises(SourceSchemaInvalid) as caught:
        reader(spark, over(query), raw).read(FIRST)

    assert place in str(caught.value)
    assert text in str(caught.value)
    assert "id, s" in str(caught.value.found)
    assert "_pyspark_" not in str(caught.value)
    assert "\n'Project" not in str(caught.value)


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("select id, id as ID from src", "id and ID"),
        ("select id, null as nothing from src", "nothing"),
    ],
)
def test_columns_that_cannot_be_published_are_refused(spark, raw, query, named):
    with pytest.raises(SourceSchemaInvalid) as caught:
        reader(spark, over(query), raw).read(FIRST)

    assert caught.value.found == named


def test_the_fingerprint_follows_files_and_query(spark, raw):
    prints = {
        reader(spark, spec, raw).read(FIRST).fingerprint
        for spec in (over("select id from src"), over("select id  from src"))
    }

    assert len(prints) == 2
    again = reader(spark, over("select id from src"), raw).read(FIRST).fingerprint
    assert again in prints


def test_it_works_over_a_source_without_history(spark, tmp_path):
    (tmp_path / "a.json").write_text('{"a": 1}')
    below = a_source(files("json", f"{tmp_path}/*"), "raw")

    assert rows_at(reader(spark, over("select a + 1 from src"), below), NOW) == [(2,)]
