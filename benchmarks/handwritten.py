"""The handwritten job that Snaploom is compared with: it writes the same nested Parquet.

Right sides are packed before the join, so that no match is NULL; each level is one select.
"""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf


def weave_handwritten(spark: SparkSession, dimensions: Path, lineitem: Path, target: Path) -> None:
    """Join line items with all they refer to and write them to a folder."""

    def table(name: str) -> DataFrame:
        return spark.read.parquet(str(dimensions / f"{name}.parquet"))

    def leaf(name: str, key: str) -> DataFrame:
        return table(name).select(sf.col(key), sf.struct(sf.struct("*").alias("data")).alias(name))

    def branch(name: str, key: str, child: DataFrame, foreign: str, child_key: str) -> DataFrame:
        frame = table(name)
        inner = child.columns[-1]
        joined = frame.join(child, sf.col(foreign) == sf.col(child_key), "left")
        data = sf.struct(*frame.columns).alias("data")
        return joined.select(sf.col(key), sf.struct(data, sf.col(inner)).alias(name))

    nation = leaf("nation", "n_nationkey")
    customer = branch("customer", "c_custkey", nation, "c_nationkey", "n_nationkey")
    orders = branch("orders", "o_orderkey", customer, "o_custkey", "c_custkey")
    items = spark.read.parquet(str(lineitem))
    (
        items.join(orders, sf.col("l_orderkey") == sf.col("o_orderkey"), "left")
        .join(leaf("part", "p_partkey"), sf.col("l_partkey") == sf.col("p_partkey"), "left")
        .join(leaf("supplier", "s_suppkey"), sf.col("l_suppkey") == sf.col("s_suppkey"), "left")
        .select(sf.struct(*items.columns).alias("data"), "orders", "part", "supplier")
        .write.option("compression", "snappy")
        .parquet(str(target))
    )
