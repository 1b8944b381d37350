"""A table of a database as a frame, with a partition for each condition.

Spark's own `jdbc(predicates=...)` writes the names of options in small letters, which drivers pass
over as unknown: `sslMode`, `connectTimeout`, and what keeps a server from asking for files. So the
relation is made here, of the same parts, with the options as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession


def jdbc_frame(
    spark: SparkSession,
    url: str,
    table: str,
    predicates: Sequence[str],
    options: Mapping[str, str],
) -> DataFrame:
    """A frame of a table; the database is asked for the schema, and for nothing else yet.

    `table` is a name as the database quotes it, or a query in parentheses with a name behind it.
    Each predicate is read by one task; without any, one task reads everything.

    Raises:
        PySparkException: Spark or the database refuses.
        Py4JError: likewise.
    """
    if not predicates:
        return spark.read.jdbc(url, table, properties=dict(options))
    gateway = spark.sparkContext._gateway
    assert gateway is not None  # set once a session exists
    jvm = gateway.jvm
    package = jvm.org.apache.spark.sql.execution.datasources.jdbc
    partitions = gateway.new_array(jvm.org.apache.spark.Partition, len(predicates))
    for number, predicate in enumerate(predicates):
        partitions[number] = package.JDBCPartition(predicate, number)
    kept = package.JDBCOptions(url, table, jvm.PythonUtils.toScalaMap(dict(options)))
    session = spark._jsparkSession
    relation = getattr(getattr(package, "JDBCRelation$"), "MODULE$").apply(
        partitions, kept, session
    )
    return DataFrame(session.baseRelationToDataFrame(relation), spark)
