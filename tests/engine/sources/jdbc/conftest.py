"""Sources in databases, and an end to the connections that they hold; H2 files are allowed."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession
from support.declared.sources import INDEX, NOW, a_source

from snaploom.models.allowances import Allowances
from snaploom.plan.bundle import Bundle
from snaploom.sources.port import SourceReader
from snaploom.sources.readers import Sources

Opening = Callable[[dict[str, Any]], SourceReader]


@pytest.fixture
def opened(spark: SparkSession) -> Iterator[Opening]:
    """Opens sources as one run each does, and closes them all."""
    runs: list[Sources] = []

    def open_one(spec: dict[str, Any]) -> SourceReader:
        runs.append(
            Sources(
                spark,
                Bundle(skipping_index=INDEX, data_sources=(a_source(spec),)),
                NOW,
                allow=Allowances(formats=("h2", "org.example.Driver", "org.h2.Driver")),
            )
        )
        return runs[-1].reader("orders")

    yield open_one
    for run in runs:
        run.close()
