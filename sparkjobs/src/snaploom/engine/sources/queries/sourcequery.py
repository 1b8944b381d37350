"""A user's query over frames: it sees its aliases and nothing else.

What it might read or run besides is the gate's business (`snaploom.sparkgate.gate`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from snaploom.engine.failures import translate
from snaploom.engine.sources.schemas import check_schema
from snaploom.errors import SnaploomError, SourceSchemaInvalid
from snaploom.planning.sqlgate.nondeterminism import CHANGES_ROWS
from snaploom.sparkgate.gate import SqlPlace, checked_query

_POSITION = re.compile(r"line (\d+),? pos (\d+)")


@dataclass(frozen=True)
class SourceQuery:
    """One query of a virtual source."""

    spark: SparkSession
    resource: str
    path: str
    aliases: tuple[str, ...]

    def over(self, query: str, frames: Mapping[str, DataFrame]) -> DataFrame:
        """The result of a query; not computed yet.

        A semicolon at the end of the one SELECT is ignored.

        Raises:
            SourceSchemaInvalid: it reads or runs what it may not, or Spark refuses it over these
                columns, or its own columns could not be published.
        """
        expected = f"SELECT over {' and '.join(self.aliases)}"
        place = SqlPlace(
            self.resource, self.path, SourceSchemaInvalid, expected, varying=CHANGES_ROWS
        )
        try:
            frame = checked_query(self.spark, query, frames, place)
        except (PySparkException, Py4JError) as error:
            raise self._refused(error, frames) from error
        check_schema(frame.schema, self.resource, self.path)
        return frame

    def _refused(self, error: Exception, frames: Mapping[str, DataFrame]) -> SnaploomError:
        position = _POSITION.search(str(error))
        # The query is resolved behind a line of ours.
        place = (
            f" at line {int(position[1]) - 1}, column {int(position[2]) + 1}" if position else ""
        )
        cause = translate(error)
        columns = (f"{', '.join(frame.schema.names)} in {name}" for name, frame in frames.items())
        return SourceSchemaInvalid(
            f"Spark refuses the query{place}: {cause.message}",
            resource=self.resource,
            path=self.path,
            found=f"columns {'; '.join(columns)}",
            hint=cause.hint,
        )
