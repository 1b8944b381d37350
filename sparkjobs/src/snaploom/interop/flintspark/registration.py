"""The data source `flint` in each session in which skipping is enabled."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import cast

from pyspark.sql import SparkSession

from snaploom import lazyimport

_CLIENT = "opensearchpy"
"""Client of OpenSearch, an optional dependency: without it there is no data source."""
_OFFER = "snaploom.interop.flintspark.datasource:offer"


def offer(spark: SparkSession) -> None:
    """Make the data source known to a session, where its client is installed."""
    if find_spec(_CLIENT) is not None:
        cast(Callable[[SparkSession], None], lazyimport.resolve(_OFFER))(spark)
