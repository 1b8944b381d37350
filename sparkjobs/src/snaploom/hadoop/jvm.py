"""The JVM behind a session of Spark."""

from __future__ import annotations

from py4j.java_gateway import JVMView
from pyspark.sql import SparkSession

_CONNECT = "pyspark.sql.connect"


def is_connect(session: object) -> bool:
    """Whether a session is one of Spark Connect, which has no JVM in this process."""
    modules = [kind.__module__ for kind in type(session).__mro__]
    return any(module == _CONNECT or module.startswith(f"{_CONNECT}.") for module in modules)


def jvm_of(session: SparkSession) -> JVMView:
    """The JVM of a session that is at work."""
    gateway = session.sparkContext._gateway
    assert gateway is not None  # set once a session exists
    return gateway.jvm
