"""Forged indexes in Spark's hands: their SQL is judged, their servers are not asked, rows stay."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.hostile.listener import listening
from support.skipping.indexinterfaces import Lake

from snaploom.errors import IndexNotFound, SnaploomError
from snaploom.skipping import disable, enable
from snaploom.skipping.spark.interfaces.indexbuilder import IndexBuilder, skipping_index
from snaploom.skipping.spark.optimizer.requests import LOCATIONS

MARK = "snaploom.hostile.mark"
SQL = f"reflect('java.lang.System', 'setProperty', '{MARK}', 'set') IS NOT NULL"


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Lake]:
    made = Lake(tmp_path).fill()
    spark.conf.set(LOCATIONS, made.base)
    spark._jvm.System.clearProperty(MARK)
    yield made
    spark.conf.unset(LOCATIONS)


def built(spark: SparkSession, lake: Lake) -> IndexBuilder:
    builder = skipping_index(spark, location=lake.base).on_path(lake.data)
    builder = builder.add_min_max("price").add_expression("VALUE_SET", "lower(name)")
    builder.create()
    builder.refresh("FULL")
    return builder


def newest(lake: Lake) -> Path:
    return max(Path(lake.base).glob("*/manifest/*.json"))


def forge(
    lake: Lake, change: Callable[[dict[str, dict[str, list[dict[str, object]]]]], None]
) -> None:
    document = json.loads(newest(lake).read_text())
    change(document["state"])
    newest(lake).write_text(json.dumps(document))


def where(state: dict[str, dict[str, object]]) -> None:
    state["definition"]["where"] = SQL


def label(state: dict[str, dict[str, list[dict[str, list[dict[str, object]]]]]]) -> None:
    state["definition"]["indexes"][1]["terms"][0]["label"] = SQL


@pytest.mark.parametrize("change", [where, label])
def test_sql_of_a_forged_state_runs_nothing(
    spark: SparkSession, lake: Lake, change: Callable[[object], None]
) -> None:
    builder = built(spark, lake)
    forge(lake, change)
    lake.add("2024-02-01", 7)
    with pytest.raises(SnaploomError):
        builder.refresh("FULL")
    assert spark._jvm.System.getProperty(MARK) is None


@pytest.mark.parametrize(
    "content", [b"", b"[" * 100_000, b"PAR1" + b"\xff" * 64 + b"PAR1", b"\0" * 4096]
)
@pytest.mark.parametrize("name", ["*/manifest/*.json", "*/segments/*.parquet"])
def test_a_query_over_a_broken_index_reads_every_file(
    spark: SparkSession, lake: Lake, name: str, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    built(spark, lake)
    for path in Path(lake.base).glob(name):
        path.write_bytes(content)
    enable(spark, lake.base)
    try:
        assert spark.read.parquet(lake.data).where("price >= 25").count() == 5
    finally:
        disable(spark)
    assert "is not used" in caplog.text


def test_a_property_of_a_table_names_no_server(spark: SparkSession, tmp_path: Path) -> None:
    with listening() as listener:
        place = f"opensearch://127.0.0.1:{listener.port}"
        spark.range(3).write.parquet(str(tmp_path / "t"))
        spark.sql(
            f"CREATE TABLE hostile_t USING parquet LOCATION '{tmp_path / 't'}' "
            f"TBLPROPERTIES ('io.xskipper.parquet.mdlocation' = '{place}/x')"
        )
        try:
            with pytest.raises(IndexNotFound):
                skipping_index(spark, location=str(tmp_path)).on_table("hostile_t").refresh()
        finally:
            spark.sql("DROP TABLE hostile_t")
    assert listener.heard == []
