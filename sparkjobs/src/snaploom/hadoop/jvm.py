"""The JVM behind a session of Spark."""

from __future__ import annotations

from py4j.java_gateway import JVMView
from pyspark.sql import SparkSession


def jvm_of(session: SparkSession) -> JVMView:
    """The JVM of a session that is at work."""
    gateway = session.sparkContext._gateway
    assert gateway is not None  # set once a session exists
    return gateway.jvm
