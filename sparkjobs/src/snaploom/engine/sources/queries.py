"""A user's query over frames: it sees its aliases and nothing else.

An alias is a common table expression around the frame itself, so no name is left in the session,
and a table, a view or a file of the same name cannot be meant. What else a query might read or run
is refused three times: by validation's parser (again here, since a bundle may come from anywhere),
by Spark's parser before the query is run, and by what the resolved plan reads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.errors import ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp

from snaploom.engine.failures import translate
from snaploom.engine.fields import fold_case, quote
from snaploom.engine.sources.schemas import check_schema
from snaploom.engine.sources.sqlguard import beyond_parsed, beyond_resolved
from snaploom.errors import SnaploomError, SourceSchemaInvalid
from snaploom.planning.validation.sql import (
    SqlInvalid,
    beyond_query,
    forbidden_functions,
    parse_query,
    tables_read,
)

_POSITION = re.compile(r"line (\d+),? pos (\d+)")


@dataclass(frozen=True)
class SourceQuery:
    """One query of a virtual source."""

    spark: SparkSession
    resource: str
    """`Kind/name` of the source."""
    path: str
    """Field path of the query."""
    aliases: tuple[str, ...]
    """Names that it may read."""

    def over(self, query: str, frames: Mapping[str, DataFrame]) -> DataFrame:
        """The result of a query; not computed yet.

        Args:
            query: one SELECT; a semicolon at its end is passed over.
            frames: by alias.

        Raises:
            SourceSchemaInvalid: it reads or runs what it may not, or Spark refuses it over these
                columns, or its own columns could not be published.
        """
        text = query.strip().removesuffix(";")
        self._refuse_text(text)
        try:
            self._refuse(beyond_parsed(self.spark, text, self.aliases))
            frame = self._resolved(text, frames)
            self._refuse(beyond_resolved(frame, frames.values()))
        except (PySparkException, Py4JError) as error:
            raise self._refused(error, frames) from error
        check_schema(frame.schema, self.resource, self.path)
        return frame

    def _resolved(self, text: str, frames: Mapping[str, DataFrame]) -> DataFrame:
        # One line before the query, so that positions are off by one line; braces are doubled
        # because Spark takes them for parameters.
        named = {f"source{number}": frame for number, frame in enumerate(frames.values())}
        expressions = ", ".join(
            f"{quote(alias)} AS (SELECT * FROM {{{name}}})"
            for alias, name in zip(frames, named, strict=True)
        )
        escaped = text.replace("{", "{{").replace("}", "}}")
        whole = f"WITH {expressions} SELECT * FROM (\n{escaped}\n)"
        return self.spark.sql(whole, None, **named)

    def _refuse_text(self, text: str) -> None:
        try:
            parsed = parse_query(text)
        except SqlInvalid as error:
            raise self._forbidden(f"the query cannot be parsed: {error}") from error
        if not isinstance(parsed, exp.Query):
            raise self._forbidden("the query must be a SELECT", parsed.key.upper())
        folded = {fold_case(alias) for alias in self.aliases}
        strangers = (table for table in tables_read(parsed) if fold_case(table) not in folded)
        self._refuse((*strangers, *forbidden_functions(parsed), *beyond_query(parsed)))

    def _refuse(self, beyond: tuple[str, ...]) -> None:
        if beyond:
            one = len(self.aliases) == 1
            message = f"the query may read its alias{'' if one else 'es'} and nothing else"
            raise self._forbidden(message, ", ".join(beyond))

    def _forbidden(self, message: str, found: str | None = None) -> SourceSchemaInvalid:
        return SourceSchemaInvalid(
            message,
            resource=self.resource,
            path=self.path,
            found=found,
            expected=f"SELECT over {' and '.join(self.aliases)}",
        )

    def _refused(self, error: Exception, frames: Mapping[str, DataFrame]) -> SnaploomError:
        position = _POSITION.search(str(error))
        lines_before = 0 if isinstance(error, ParseException) else 1
        place = (
            f" at line {int(position[1]) - lines_before}, column {int(position[2]) + 1}"
            if position
            else ""
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
