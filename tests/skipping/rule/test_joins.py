"""Keys of a join's other side say which files are read."""

import json

import pytest
from pyspark.sql import SparkSession
from support.skippingrule import KeepNamed, Request, SetConf, plan_text

from snaploom.skipping.spark import rule

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
}

KEEPING = {
    "left outer": f"SELECT id FROM parts LEFT JOIN {KEYS} ON id = key",
    "full outer": f"SELECT id FROM parts FULL JOIN {KEYS} ON id = key",
    "anti": f"SELECT id FROM parts LEFT ANTI JOIN {KEYS} ON id = key",
    "null safe": f"SELECT id FROM parts JOIN {KEYS} ON id <=> key",
    "range": f"SELECT id FROM parts JOIN {KEYS} ON id > key",
    "file": "SELECT a.id FROM parts a JOIN parts b ON a.id = b.id",
}


class ByKeys(KeepNamed):
    """Keeps the files whose ids are among the keys of a join."""

    def __call__(self, text: str) -> str | None:
        request = Request.parse(text)
        self.requests.append(request)
        sets = [part for part in request.header["filters"] if part[0] == "InSet"]
        parts = {f"part-{key // 10:05}" for part in sets for key in part[1]["values"]}
        return "".join(
            "1" if not sets or any(part in path for part in parts) else "0"
            for path in request.paths
        )


@pytest.fixture
def by_keys(spark: SparkSession, table: str) -> ByKeys:
    decider = ByKeys()
    rule.install(spark, decider, [], decider.concerns)
    yield decider
    rule.uninstall(spark)


def rows(spark: SparkSession, query: str) -> list[str]:
    return sorted(str(row.id) for row in spark.sql(query).collect())


@pytest.mark.parametrize("query", DROPPING.values(), ids=DROPPING)
def test_keys_of_a_join_drop_files_and_no_rows(
    spark: SparkSession, by_keys: ByKeys, query: str
) -> None:
    pruned = rows(spark, query)
    assert [
        "InSet",
        {"values": [17, 3], "type": "bigint"},
        ["col", "id", "bigint"],
    ] in by_keys.filters
    assert "skipping: 2 of 4 files" in plan_text(spark.sql(query))
    rule.uninstall(spark)
    assert rows(spark, query) == pruned


@pytest.mark.parametrize("query", KEEPING.values(), ids=KEEPING)
def test_other_joins_say_nothing(spark: SparkSession, by_keys: ByKeys, query: str) -> None:
    kept = rows(spark, query)
    assert "InSet" not in json.dumps([request.header for request in by_keys.requests])
    rule.uninstall(spark)
    assert rows(spark, query) == kept


@pytest.mark.parametrize(
    ("name", "value"),
    [("spark.snaploom.skipping.join.enabled", "false"), ("spark.snaploom.skipping.join.keys", "1")],
)
def test_settings_leave_joins_alone(
    spark: SparkSession, by_keys: ByKeys, set_conf: SetConf, name: str, value: str
) -> None:
    set_conf(name, value)
    assert rows(spark, DROPPING["inner"]) == ["17", "3"]
    assert "InSet" not in json.dumps([request.header for request in by_keys.requests])


def test_scans_with_other_keys_share_no_exchange(
    spark: SparkSession, by_keys: ByKeys, set_conf: SetConf
) -> None:
    set_conf("spark.sql.autoBroadcastJoinThreshold", "-1")
    set_conf("spark.sql.adaptive.enabled", "false")
    one = "SELECT id FROM parts JOIN (VALUES (3L)) AS k(key) ON id = key"
    other = "SELECT id FROM parts JOIN (VALUES (33L)) AS k(key) ON id = key"
    assert rows(spark, f"{one} UNION ALL {other}") == ["3", "33"]
