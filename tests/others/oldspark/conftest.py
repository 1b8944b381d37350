"""A session of the oldest Spark with the libraries of Iceberg and Delta, and with S3's client.

Tests of this folder are not collected by name: `tests/others/test_oldspark.py` runs them in a
process whose PySpark is the oldest one.
"""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from support.servers.s3servers import S3Server, environment_of
from support.weaving.oldspark import s3a_jars, table_jars
from support.weaving.sparksession import make_session

from snaploom.run.session.spark import s3a_settings


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, versitygw: S3Server) -> Iterator[SparkSession]:
    folder = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(folder / "lake"),
        "spark.jars": ",".join(table_jars()),
        "spark.driver.extraClassPath": s3a_jars(),
        **s3a_settings(versitygw.environment),
        # Delta reads its own state by a job, of 50 tasks otherwise.
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
    with environment_of(versitygw):
        session = make_session(folder, settings)
        yield session
        session.stop()
