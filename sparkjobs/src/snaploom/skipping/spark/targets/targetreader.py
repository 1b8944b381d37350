"""Reader of a target: in the user's session to know it, in one of our own to build."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from snaploom.hadoop.jvm import jvm_of
from snaploom.models.allowances import NO_ALLOWANCES
from snaploom.planning.fileformats import spark_format
from snaploom.skipping.core.definition import Target

_STRICT = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}
"""What a file holds must be known, or that it cannot be read; never a part of it."""

LITERAL_PATH = {"__globPaths__": "false"}
"""The path is one path, whatever brackets and stars are in it."""

_SETTINGS = {
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
}
"""Settings of our own session; a batch of 64 Ki rows costs little and is handled quickly."""
_SOURCES = "spark.sql.sources.useV1SourceList"
"""Only Spark's first generation of sources exposes the file of a row for every format."""


def own_session(spark: SparkSession) -> SparkSession:
    """A session with the settings, views and functions of the user's, which it does not change.

    It has none of the user's optimizer rules: ours would skip files that are to be indexed.
    """
    java_session = spark._jsparkSession.cloneSession()
    nothing = java_session.experimental().extraOptimizations().take(0)
    getattr(java_session.experimental(), "extraOptimizations_$eq")(nothing)
    session = SparkSession(spark.sparkContext, java_session)
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    session.conf.unset(_SOURCES)
    return session


@dataclass(frozen=True)
class Reading:
    """Target, and the schema found when it was opened."""

    target: Target
    schema: Mapping[str, object]
    """Schema JSON of data columns, then partition columns."""

    def fresh(self, session: SparkSession) -> DataFrame:
        """A frame over the current files."""
        if self.target.table:
            _forget_listing(session, self.target.table)
            return session.read.options(**_STRICT).table(self.target.table)
        schema = StructType.fromJson(cast(dict[str, object], json.loads(json.dumps(self.schema))))
        reader = session.read.format(spark_format(self.target.format, NO_ALLOWANCES)).schema(schema)
        options = {**dict(self.target.options), **_STRICT, **LITERAL_PATH}
        return reader.options(**options).load(self.target.uri)


def _forget_listing(session: SparkSession, table: str) -> None:
    jvm = jvm_of(session)
    state = session._jsparkSession.sessionState()
    parts = state.sqlParser().parseMultipartIdentifier(table)
    places = [parts.apply(position) for position in range(parts.size())]
    outer = [jvm.scala.Option.apply(place) for place in reversed(places[:-1])]
    missing = [jvm.scala.Option.empty()] * (2 - len(outer))
    identifier = jvm.org.apache.spark.sql.catalyst.TableIdentifier(places[-1], *outer, *missing)
    state.catalog().refreshTable(identifier)
