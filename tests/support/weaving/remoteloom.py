"""The life of an output whose sources and folder are on another store, through the command line.

Run as a program it does so in a bucket, with a Spark that has S3A: `remoteloom BASE FOLDER`.
"""

import io
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import SparkSession
from support.declared.shop import (
    CUSTOMERS,
    FIRST_DAY,
    ORDERS,
    SECOND_DAY,
    Rows,
    Shop,
    done,
    snaploom,
)
from support.servers.s3servers import installed
from support.weaving.remoteuse import used

from snaploom.files.objectstore import ObjectStore
from snaploom.files.stores import open_store
from snaploom.models.allowances import ALLOW_VARIABLE
from snaploom.reader import read
from snaploom.sources.files.hadoop import HadoopFiles
from snaploom.spark.jvm import COMMITTERS, client_of


def remote_shop(base: str, folder: Path, spark_conf: Mapping[str, str]) -> Shop:
    """The shop with files and folder below a URI, and declarations in a local folder."""
    shop = Shop(folder)
    for name in ("orders", "customers"):
        shop.set(name, "hdfsLike.sourceUriGlobs", [f"{base}/{name}/*.parquet"])
        shop.set(name, "hdfsLike.sourceUriPrefix", f"{base}/{name}/{{day:STRING}}.parquet")
    shop.set("wide", "outputFolder.folderUri", f"{base}/wide/")
    shop.set("wide", "outputFolder.snapshotAutoDelete", {"maxOldSnapshots": 0})
    if spark_conf:
        shop.set("wide", "run", {"spark": {"sparkConf": dict(spark_conf)}})
    return shop


def put_rows(store: ObjectStore, name: str, rows: Rows, day: str) -> None:
    stream = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist([dict(row) for row in rows]), stream)
    store.put(f"{name}/{day}.parquet", stream.getvalue())


def live(base: str, shop: Shop, store: ObjectStore) -> dict[str, Any]:
    """Publish a day, and again; then the next, which ends the first; collect, and read.

    Args:
        base: where everything is, without `/` at its end.
        shop: its declarations.
        store: the store of `base`.
    """
    for name, rows in (("orders", ORDERS), ("customers", CUSTOMERS)):
        put_rows(store, name, rows, FIRST_DAY)
    first = done(shop.run("-o", "json"))
    again = done(shop.run("-o", "json"))
    for name, rows in (("orders", ORDERS[:2]), ("customers", CUSTOMERS)):
        put_rows(store, name, rows, SECOND_DAY)
    second = done(shop.run("-o", "json"))
    folder = f"{base}/wide/"
    listed = done(snaploom("snapshots", folder, "-o", "json"))
    collected = done(snaploom("gc", folder, "--grace", "0s", "--below-reader-grace", "-o", "json"))
    kept = sorted(info.key for info in store.list("wide/data/"))
    spark = SparkSession.Builder().getOrCreate()
    rows = (
        read(spark, folder)
        .selectExpr("data.order_id AS id", "customers.data.name AS name")
        .orderBy("id")
        .collect()
    )
    results = [first, again, second, listed, collected]
    return {
        "published": [len(each.document["snapshots"]) for each in (first, again, second)],
        "snapshots": listed.document,
        "garbage": collected.document,
        "files": kept,
        "rows": [list(row) for row in rows],
        "text": "".join(each.out + each.err for each in results),
        "staging": HadoopFiles(client_of(spark)).exists(f"{folder}data/.staging"),
        "committer": spark.conf.get(next(iter(COMMITTERS))),
    }


def main(base: str, folder: Path) -> None:
    """Print the facts of a life in a bucket as one line of JSON."""
    os.environ[ALLOW_VARIABLE] = json.dumps({"sparkConf": ["spark.driver.extraClassPath"]})
    conf = {"spark.driver.extraClassPath": f"{installed('jars', 's3a')}/*"}
    shop, store = remote_shop(base, folder, conf), open_store(base, create=True)
    print(
        json.dumps(
            live(base, shop, store)
            | {"used": used(base, shop, store)}
            | {"file": str(shop.write())}
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
