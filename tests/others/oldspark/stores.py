"""Outputs that are tables in a bucket and on HDFS: their life, with a run that dies."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from support.declared.shop import CUSTOMERS, ORDERS, Shop
from support.servers.s3servers import BUCKET
from support.weaving.remoteloom import put_rows, remote_shop

from snaploom.files.objectstore import ObjectStore
from snaploom.files.stores import open_store
from snaploom.output import layout, outputtables
from snaploom.output.icebergtable import VERSIONS
from snaploom.output.manifest import ManifestLog
from snaploom.policy.addresses import hadoop_uri
from snaploom.reader import read
from snaploom.spark.hadoopstore import hadoop_stores

DAYS = ("2024-05-01", "2024-05-02", "2024-05-03")
HOUR = 3600 * 1_000_000_000


@pytest.fixture(params=["s3", "hdfs"])
def base(request: pytest.FixtureRequest, form: str, spark: SparkSession) -> str:
    if request.param == "s3":
        return f"s3://{BUCKET}/{form}"
    return f"{request.getfixturevalue('hdfs')}/{form}"


@pytest.fixture(params=["iceberg", "delta"])
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def shop(base: str, form: str, tmp_path: Path) -> Shop:
    shop = remote_shop(base, tmp_path, {}).set("wide", "outputFolder.dataFormat", form.upper())
    return shop.set("wide", "outputFolder.readerGrace", {"nano": 1})


@pytest.fixture
def store(base: str, spark: SparkSession) -> ObjectStore:
    return open_store(base, True, hadoop_stores())


def published(shop: Shop, store: ObjectStore, day: str) -> dict[str, Any]:
    """The Report of a run once a day has come."""
    number = DAYS.index(day)
    orders = [{**row, "amount": row["amount"] + number} for row in ORDERS]
    for name, rows in (("orders", orders), ("customers", CUSTOMERS)):
        put_rows(store, name, rows, day)
    result = shop.run("-o", "json")
    assert result.code == 0, result.err + result.out
    report: dict[str, Any] = result.document
    return report


def log_of(base: str) -> ManifestLog:
    return ManifestLog(open_store(f"{base}/wide/", False, hadoop_stores()))


def forget_since_the_last_publication(store: ObjectStore, base: str) -> None:
    """Leave the log as a run leaves it that dies when the table has its commits."""
    state = log_of(base).read()
    last = max(version.seq for version in state.versions.values())
    entries = [layout.manifest_key(seq) for seq in range(last, state.seq + 1)]
    store.delete([f"wide/{key}" for key in (*entries, layout.LATEST)])


def amounts(frame: DataFrame) -> list[float]:
    return sorted(row[0] for row in frame.select("data.amount").collect())


def names(store: ObjectStore, prefix: str, ending: str) -> Iterator[str]:
    return (i.key for i in store.list(f"wide/{prefix}") if i.key.endswith(ending))


def test_table_is_published_pruned_repaired_and_expired(
    base: str, form: str, spark: SparkSession, shop: Shop, store: ObjectStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(outputtables, "LISTS_MARGIN", -HOUR)
    place = f"{hadoop_uri(base)}/wide/{'iceberg' if form == 'iceberg' else 'data'}"
    assert len(published(shop, store, DAYS[0])["snapshots"]) == 1
    assert amounts(spark.read.format(form).load(place)) == [5.0, 7.5, 9.0]
    assert published(shop, store, DAYS[1])["collected"]["waiting"] == 1
    whole = log_of(base).read()
    forget_since_the_last_publication(store, base)
    again = published(shop, store, DAYS[1])
    assert (again["snapshots"], [one["reason"] for one in again["skipped"]]) == (
        [],
        ["ALREADY_PUBLISHED"],
    )
    repaired = log_of(base).read()
    assert (repaired.live_files, repaired.tombstoned_files.keys()) == (
        whole.live_files,
        whole.tombstoned_files.keys(),
    )
    last = published(shop, store, DAYS[2])
    assert (len(last["snapshots"]), last["collected"]["snapshots"]) == (1, 1)
    assert amounts(spark.read.format(form).load(place)) == [7.0, 9.5, 11.0]
    assert amounts(read(spark, f"{base}/wide/")) == [7.0, 9.5, 11.0]
    partitions = {layout.partition_of(key[5:]) for key in names(store, layout.DATA, ".parquet")}
    assert len(partitions) == 2
    if form == "delta":
        return
    assert spark.read.format("iceberg").load(f"{place}#snapshots").count() == 3
    lists = spark.read.format("iceberg").load(f"{place}#all_manifests").select("path").distinct()
    assert len(list(names(store, VERSIONS, ".avro"))) == lists.count() + 3
