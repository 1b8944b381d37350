"""Simple virtual sources: one query over each snapshot of one physical source.

The query sees its alias and nothing else. The alias is a common table expression around the frame
itself, so no name is left in the session, and a table, a view or a file of the same name cannot be
meant; any other table reference is refused before Spark sees the query, as validation has done
before (a bundle may come from anywhere).
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp

from snaploom.engine.failures import translate
from snaploom.engine.fields import fold_case, quote
from snaploom.engine.sources.port import SourceFrame, SourceReader
from snaploom.engine.sources.schemas import check_schema
from snaploom.errors import SnaploomError, SourceSchemaInvalid
from snaploom.models.datasource import SimpleVirtual
from snaploom.models.times import EpochNanos
from snaploom.planning.intervals import SourceSnapshots
from snaploom.planning.validation.sql import (
    SqlInvalid,
    forbidden_functions,
    parse_query,
    tables_read,
)

_PATH = "spec.simpleVirtual.dataQuery"
_POSITION = re.compile(r"line (\d+),? pos (\d+)")


@dataclass(frozen=True)
class SimpleVirtualReader:
    """A query over the snapshots of another source."""

    spark: SparkSession
    name: str
    declared: SimpleVirtual
    source: SourceReader

    def listing(self) -> SourceSnapshots:
        """The snapshots of the source that is read."""
        return self.source.listing()

    def read(self, snapshot: EpochNanos) -> SourceFrame:
        """The result of the query over one snapshot; not computed yet.

        Raises:
            SourceSchemaInvalid: Spark refuses the query over this snapshot's schema.
            SourceError: the source cannot be read.
        """
        below = self.source.read(snapshot)
        frame = self._query(below.frame)
        check_schema(frame.schema, self._resource, _PATH)
        query = self.declared.data_query
        digest = hashlib.sha256(f"{below.fingerprint}\n{query}".encode()).hexdigest()
        return SourceFrame(frame, snapshot, digest)

    @property
    def _resource(self) -> str:
        return f"DataSource/{self.name}"

    def _query(self, frame: DataFrame) -> DataFrame:
        query = self.declared.data_query.strip().removesuffix(";")
        self._refuse_other_tables(query)
        # One line before the query, so that positions are off by one line; braces are doubled
        # because Spark takes them for parameters.
        text = (
            f"WITH {quote(self.declared.alias)} AS (SELECT * FROM {{source}}) SELECT * FROM (\n"
            + query.replace("{", "{{").replace("}", "}}")
            + "\n)"
        )
        try:
            return self.spark.sql(text, source=frame)
        except (PySparkException, Py4JError) as error:
            raise self._refused(error, frame) from error

    def _refuse_other_tables(self, query: str) -> None:
        try:
            parsed = parse_query(query)
        except SqlInvalid as error:
            raise self._forbidden(f"the query cannot be parsed: {error}") from error
        if not isinstance(parsed, exp.Query):
            raise self._forbidden("the query must be a SELECT", parsed.key.upper())
        beyond = [
            *(t for t in tables_read(parsed) if fold_case(t) != fold_case(self.declared.alias)),
            *forbidden_functions(parsed),
        ]
        if beyond:
            message = "the query may read its alias and nothing else"
            raise self._forbidden(message, ", ".join(beyond))

    def _forbidden(self, message: str, found: str | None = None) -> SourceSchemaInvalid:
        return SourceSchemaInvalid(
            message,
            resource=self._resource,
            path=_PATH,
            found=found,
            expected=f"SELECT, WHERE and GROUP BY over {self.declared.alias}",
        )

    def _refused(self, error: Exception, frame: DataFrame) -> SnaploomError:
        position = _POSITION.search(str(error))
        place = (
            f" at line {int(position[1]) - 1}, column {int(position[2]) + 1}" if position else ""
        )
        cause = translate(error)
        return SourceSchemaInvalid(
            f"Spark refuses the query{place}: {cause.message}",
            resource=self._resource,
            path=_PATH,
            found=f"columns {', '.join(frame.schema.names)} in {self.declared.alias}",
            hint=cause.hint,
        )
