"""Keys of a join's other side decide which files are read."""

import json

import pytest
from pyspark.sql import SparkSession
from support.skipping.indexinterfaces import KeepNamed, plan_text

from snaploom.skipping.spark.optimizer import requests

KEYS = "(VALUES (3L, 'a'), (17L, 'b'), (null, 'c')) AS k(key, name)"

DROPPING = {
    "inner": f"SELECT id FROM parts JOIN {KEYS} ON id = key",
    "other order": f"SELECT id FROM {KEYS} JOIN parts ON key = id",
    "semi": f"SELECT id FROM parts LEFT SEMI JOIN {KEYS} ON id = key",
    "in": f"SELECT id FROM parts WHERE id IN (SELECT key FROM {KEYS})",
    "right outer": f"SELECT id FROM parts RIGHT JOIN {KEYS} ON id = key",
    "left outer": f"SELECT id FROM {KEYS} LEFT JOIN parts ON id = key",
    "renamed": f"SELECT n AS id FROM (SELECT id AS n FROM parts) JOIN {KEYS} ON n = key",
    "cast": "SELECT id FROM parts JOIN (VALUES (3), (17)) AS k(key) ON id = key",
    "union": "SELECT id FROM parts WHERE id IN (SELECT 3L UNION ALL SELECT 17L)",
    "distinct union": "SELECT id FROM parts WHERE id IN (SELECT 3L UNION SELECT 17L)",
    "union of values": f"SELECT id FROM parts WHERE id IN (SELECT 3L UNION SELECT key FROM {KEYS})",
    "computed": f"SELECT id FROM parts WHERE id IN (SELECT key + 0 FROM {KEYS} WHERE name < 'c')",
    "grouped": f"SELECT id FROM parts WHERE id IN (SELECT key FROM {KEYS} GROUP BY key)",
    "ordered": f"SELECT id FROM parts WHERE id IN (SELECT key FROM {KEYS} ORDER BY name LIMIT 9)",
    "exists": "SELECT id FROM parts WHERE EXISTS"
    " (SELECT 1 FROM (SELECT 3L AS k UNION ALL SELECT 17L) WHERE k = id)",
}

KEEPING = {
    "left outer": f"SELECT id FROM parts LEFT JOIN {KEYS} ON id = key",
    "full outer": f"SELECT id FROM parts FULL JOIN {KEYS} ON id = key",
    "anti": f"SELECT id FROM parts LEFT ANTI JOIN {KEYS} ON id = key",
    "null safe": f"SELECT id FROM parts JOIN {KEYS} ON id <=> key",
    "range": f"SELECT id FROM parts JOIN {KEYS} ON id > key",
    "file": "SELECT a.id FROM parts a JOIN parts b ON a.id = b.id",
    "not in": "SELECT id FROM parts WHERE id NOT IN (SELECT 3L UNION ALL SELECT 17L)",
    "not exists": "SELECT id FROM parts WHERE NOT EXISTS"
    " (SELECT 1 FROM (SELECT 3L AS k UNION ALL SELECT 17L) WHERE k = id)",
    "or": "SELECT id FROM parts WHERE id IN (SELECT 3L UNION ALL SELECT 17L) OR part = 1",
    "of a function": "SELECT id FROM parts WHERE id IN (SELECT max(key) FROM"
    f" {KEYS} GROUP BY name)",
    "random": "SELECT id FROM parts WHERE id IN (SELECT round(rand() * 0) UNION ALL SELECT 3)",
    "of one file": "SELECT id FROM parts WHERE id IN (SELECT 3L UNION ALL SELECT id FROM parts)",
}


class ByKeys(KeepNamed):
    """Keeps the files whose ids are among the keys of a join."""

    def __call__(self, text: str) -> str | None:
        request = self.request(text)
        sets = [part for part in request.header["filters"] if part[0] == "InSet"]
        parts = {f"part-{key // 10:05}" for part in sets for key in part[1]["values"]}
        return "".join(
            "1" if not sets or any(part in path for part in parts) else "0"
            for path in request.paths
        )


@pytest.fixture
def by_keys(spark: SparkSession, table: str) -> ByKeys:
    decider = ByKeys()
    requests.install(spark, decider, [], decider.concerns)
    yield decider
    requests.uninstall(spark)


def rows(spark: SparkSession, query: str) -> list[str]:
    return sorted(str(row.id) for row in spark.sql(query).collect())


@pytest.mark.parametrize("query", DROPPING.values(), ids=DROPPING)
def test_keys_of_a_join_drop_files_and_no_rows(spark, by_keys, query):
    pruned = rows(spark, query)
    assert [
        "InSet",
        {"values": [17, 3], "type": "bigint", "legacyNullInEmptyBehavior": False},
        ["col", "id", "bigint"],
    ] in by_keys.filters
    assert "skipping: 2 of 4 files" in plan_text(spark.sql(query))
    requests.uninstall(spark)
    assert rows(spark, query) == pruned


@pytest.mark.parametrize("query", KEEPING.values(), ids=KEEPING)
def test_other_joins_decide_nothing(spark: SparkSession, by_keys: ByKeys, query: str) -> None:
    kept = rows(spark, query)
    assert "InSet" not in json.dumps([request.header for request in by_keys.requests])
    requests.uninstall(spark)
    assert rows(spark, query) == kept


@pytest.mark.parametrize(
    ("name", "value"),
    [("spark.snaploom.skipping.join.enabled", "false"), ("spark.snaploom.skipping.join.keys", "1")],
)
def test_settings_disable_joins(spark, by_keys, set_conf, name, value):
    set_conf(name, value)
    assert rows(spark, DROPPING["inner"]) == ["17", "3"]
    assert "InSet" not in json.dumps([request.header for request in by_keys.requests])


@pytest.mark.parametrize("sources", ["parquet", ""], ids=["first", "second"])
def test_scans_with_other_keys_share_no_exchange(spark, by_keys, parts, set_conf, sources):
    set_conf("spark.sql.autoBroadcastJoinThreshold", "-1")
    set_conf("spark.sql.adaptive.enabled", "false")
    set_conf("spark.sql.sources.useV1SourceList", sources)
    spark.read.parquet(parts).createOrReplaceTempView("read_parts")
    one = "SELECT id FROM read_parts JOIN (VALUES (3L)) AS k(key) ON id = key"
    other = "SELECT id FROM read_parts JOIN (VALUES (33L)) AS k(key) ON id = key"
    assert rows(spark, f"{one} UNION ALL {other}") == ["3", "33"]
    assert len(by_keys.requests) >= 2


def test_keys_drop_files_of_scans_of_the_second_generation(spark, by_keys, parts, set_conf):
    set_conf("spark.sql.sources.useV1SourceList", "")
    spark.read.parquet(parts).createOrReplaceTempView("read_parts")
    query = "SELECT id FROM read_parts WHERE id IN (SELECT 3L UNION ALL SELECT 17L)"
    assert rows(spark, query) == ["17", "3"]
    assert "skipping: 2 of 4 files" in plan_text(spark.sql(query))


def test_keys_of_a_cast_column_are_values_of_the_cast(spark: SparkSession, by_keys: ByKeys) -> None:
    query = "SELECT id FROM parts WHERE id + 1 IN (SELECT 4L UNION ALL SELECT 18L)"
    assert rows(spark, query) == ["17", "3"]
    (keys,) = [part for part in by_keys.filters if part[0] == "InSet"]
    assert keys[1] == {"values": [18, 4], "type": "bigint", "legacyNullInEmptyBehavior": False}
    assert keys[2][0] == "Add"


def test_more_rows_than_the_setting_are_not_computed(spark, by_keys, set_conf):
    set_conf("spark.snaploom.skipping.join.keys", "2")
    query = "SELECT id FROM parts WHERE id IN (SELECT 3L UNION ALL SELECT 3L UNION ALL SELECT 3L)"
    assert rows(spark, query) == ["3"]
    assert "InSet" not in json.dumps([request.header for request in by_keys.requests])
