"""Rows with and without skipping are the same in every form of a query."""

import random
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from pyspark.sql import DataFrame, SparkSession
from support.skipping.onequalsoff import IndexOf, IndexSet, on_and_off, read_files, skipping_by
from support.skipping.proofconditions import conditions
from support.skipping.proofmetadata import FolderHome
from support.skipping.prooftables import ProofTable, make_table

from snaploom.skipping.spark.interfaces.enable import setting

pytestmark = pytest.mark.long

CONDITIONS = 8

FORMS = {
    "path": "SELECT * FROM parquet.`{path}` WHERE {p}",
    "table": "SELECT * FROM {t} WHERE {p}",
    "temporary view": "SELECT * FROM proof_temporary WHERE {p}",
    "permanent view": "SELECT * FROM proof_permanent WHERE {p}",
    "common table": "WITH c AS (SELECT * FROM {t}) SELECT * FROM c WHERE {p}",
    "join": "SELECT a.* FROM {t} a JOIN proof_side k ON a.i = k.k WHERE {p}",
    "left join": "SELECT a.*, k.k FROM {t} a LEFT JOIN proof_side k ON a.i = k.k WHERE {p}",
    "outer join": "SELECT a.s, k.k FROM proof_side k LEFT JOIN {t} a ON a.i = k.k AND ({p})",
    "semi join": "SELECT * FROM {t} WHERE {p} AND i IN (SELECT k FROM proof_side)",
    "anti join": "SELECT * FROM {t} WHERE {p} AND i NOT IN (SELECT k FROM proof_side)",
    "self join": "SELECT a.i, b.s FROM {t} a JOIN (SELECT * FROM {t} WHERE {p}) b ON a.i <=> b.i",
    "exists": "SELECT k FROM proof_side WHERE EXISTS (SELECT 1 FROM {t} WHERE i = k AND ({p}))",
    "scalar": "SELECT * FROM {t} WHERE i = (SELECT max(i) FROM {t} WHERE {p})",
    "union": "SELECT * FROM {t} WHERE {p} UNION ALL SELECT * FROM {t} WHERE NOT ({p})",
    "except": "SELECT i, s FROM {t} EXCEPT SELECT i, s FROM {t} WHERE {p}",
    "aggregate": "SELECT count(*), min(i), max(s), count(d) FROM {t} WHERE {p}",
    "having": "SELECT i, count(*) n FROM {t} GROUP BY i HAVING i = 5 OR count(*) > 1",
    "filter clause": "SELECT count(*) FILTER (WHERE {p}), count(*) FROM {t}",
    "window": "SELECT * FROM (SELECT i, row_number() OVER (PARTITION BY p ORDER BY i, l, s) n"
    " FROM {t}) WHERE i > 0 AND n = 1",
}
"""Queries by way; `{p}` is the condition, `{t}` the table."""


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> ProofTable:
    table = make_table(spark, tmp_path_factory.mktemp("query-forms"), "partitioned", 3)
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW proof_temporary AS SELECT * FROM {table.name}")
    spark.sql("DROP VIEW IF EXISTS proof_permanent")
    spark.sql(f"CREATE VIEW proof_permanent AS SELECT * FROM {table.name}")
    spark.sql("SELECT explode(array(1, 5, 1000, 7)) k").createOrReplaceTempView("proof_side")
    return table


@pytest.fixture(scope="module")
def location(
    spark: SparkSession, table: ProofTable, tmp_path_factory: pytest.TempPathFactory
) -> str:
    kinds = ("MIN_MAX", "VALUE_SET", "BLOOM_FILTER")
    indexes = [IndexOf(kind, (name,)) for name in table.columns for kind in kinds[: len(name) + 1]]
    home = FolderHome(tmp_path_factory.mktemp("form-indexes"))
    return home.build(spark, table, IndexSet("MIXED", tuple(indexes)))


@pytest.fixture(autouse=True)
def files_in_sql(spark: SparkSession) -> Iterator[None]:
    """Spark takes a path for a table; the settings of the engine forbid that."""
    with setting(spark, "spark.sql.runSQLOnFiles", "true"):
        yield


@pytest.mark.parametrize("form", FORMS)
def test_rows_are_the_same_through(spark, table, location, form):
    columns = {name: kind for name, kind in table.columns.items() if "." not in name}
    found = 0
    for condition in conditions(random.Random(form), columns, CONDITIONS):
        query = FORMS[form].format(p=condition.text, t=table.name, path=table.path)
        on, off = on_and_off(spark, location, partial(spark.sql, query))
        assert on == off, query
        found += len(off)
    assert found > 0


FRAMES: dict[str, Callable[[DataFrame, str], DataFrame]] = {
    "filter": lambda frame, where: frame.filter(where),
    "twice": lambda frame, where: frame.where(where).where("i IS NOT NULL OR s IS NOT NULL"),
    "projected": lambda frame, where: frame.where(where).select("i", "s").distinct(),
    "limited": lambda frame, where: frame.where(where).orderBy("i", "l", "s", "d", "ts").limit(3),
    "cached": lambda frame, where: frame.where(where).cache().where("i > 0 OR i IS NULL"),
    "sampled": lambda frame, where: frame.where(where).unionByName(frame.where(f"NOT ({where})")),
    "dropped": lambda frame, where: frame.where(where).dropna(subset=["i", "s"]),
}


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("sources", ["avro,csv,json,kafka,orc,parquet,text", ""])
def test_rows_are_the_same_of_frames(spark, table, location, name, sources):
    columns = {name: kind for name, kind in table.columns.items() if "." not in name}
    with setting(spark, "spark.sql.sources.useV1SourceList", sources):
        for condition in conditions(random.Random(name), columns, CONDITIONS // 3):
            frame = table.frame(spark)
            on, off = on_and_off(spark, location, partial(FRAMES[name], frame, condition.text))
            assert on == off, condition.text


def test_rows_that_are_written_are_the_same(spark, table, location):
    columns = {name: kind for name, kind in table.columns.items() if "." not in name}

    def written(where: str) -> DataFrame:
        spark.sql("DROP TABLE IF EXISTS proof_written")
        query = f"SELECT * FROM {table.name} WHERE {where}"
        spark.sql(f"CREATE TABLE proof_written USING parquet AS {query}")
        spark.sql(f"INSERT INTO proof_written {query}")
        return spark.table("proof_written")

    for condition in conditions(random.Random("written"), columns, 4):
        on, off = on_and_off(spark, location, partial(written, condition.text))
        assert on == off, condition.text


@pytest.mark.parametrize(
    "form", ["path", "table", "temporary view", "permanent view", "common table"]
)
def test_query_forms_skip_files(spark, table, location, form):
    query = FORMS[form].format(p="l = 5 AND m = 1.5BD", t=table.name, path=table.path)
    every = read_files(spark.sql(FORMS[form].format(p="true", t=table.name, path=table.path)))
    with skipping_by(spark, location):
        assert len(read_files(spark.sql(query))) < len(every)
