"""Hadoop's client in Spark's JVM, configured as one session, or as the session to come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from py4j.java_gateway import JavaGateway, JavaObject, JVMView
from pyspark.sql import SparkSession

from snaploom.hadoop.jvm import jvm_of, with_packages


@dataclass(frozen=True)
class HadoopClient:
    """Hadoop's classes, and the configuration with which its file systems are opened."""

    gateway: JavaGateway
    """To the JVM."""
    configuration: Callable[[], JavaObject]
    """Gives a new `org.apache.hadoop.conf.Configuration`."""

    @property
    def jvm(self) -> JVMView:
        """The classes of the JVM."""
        return with_packages(self.gateway.jvm)


def client_of(spark: SparkSession) -> HadoopClient:
    """Client of a session, with its settings."""
    jvm_of(spark)
    gateway = spark.sparkContext._gateway
    assert gateway is not None  # `jvm_of` has it
    return HadoopClient(gateway, lambda: spark._jsparkSession.sessionState().newHadoopConf())
