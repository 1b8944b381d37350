"""A session of the oldest Spark with the libraries of Iceberg and Delta, S3's client, and catalogs.

Tests of this folder are not collected by name: `tests/others/test_oldspark.py` runs them in a
process whose PySpark is the oldest one.
"""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from support.servers.databases import driver_jars
from support.servers.postgresserver import PASSWORD, Postgres
from support.servers.s3servers import S3Server, environment_of
from support.weaving.oldspark import (
    aws_jars,
    catalog_settings,
    glue_settings,
    hive_settings,
    jdbc_catalog,
    table_jars,
)
from support.weaving.sparksession import make_session

from snaploom.run.session.spark import s3a_settings


@pytest.fixture(scope="session")
def spark(
    tmp_path_factory: pytest.TempPathFactory,
    versitygw: S3Server,
    rest_catalog: S3Server,
    postgres: Postgres,
    metastore: int,
    glue: S3Server,
) -> Iterator[SparkSession]:
    folder = tmp_path_factory.mktemp("spark")
    settings = {
        **catalog_settings("rest", type="rest", uri=rest_catalog.endpoint),
        **hive_settings("hive", metastore),
        # Writers in one process wait for each other by themselves, unless the name is another one.
        **hive_settings("hive2", metastore),
        **glue_settings(glue.endpoint),
        # Spark reads the same tables, and does not look into the environment for the password.
        **catalog_settings("jdbc", **jdbc_catalog(postgres.port, PASSWORD)),
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(folder / "lake"),
        "spark.jars": ",".join([*table_jars(), *map(str, driver_jars().glob("postgresql-*"))]),
        "spark.driver.extraClassPath": aws_jars(),
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
