"""The data source `flint` in each session in which skipping is enabled."""

from __future__ import annotations

from importlib.util import find_spec

from pyspark.sql import SparkSession

from snaploom import ondemand

_CLIENT = "opensearchpy"
"""Client of OpenSearch, an optional dependency: without it there is no data source."""


def offer(spark: SparkSession) -> None:
    """Make the data source known to a session, where its client is installed."""
    if find_spec(_CLIENT) is not None:
        ondemand.offer_flint(spark)
