"""Spark's trees, read by our Java in one call each."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from importlib import resources
from typing import cast
from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaGateway, JavaObject
from pyspark.sql import Column, DataFrame, SparkSession

from snaploom.hadoop.janino import compiled_class, new_instance
from snaploom.hadoop.jvm import jvm_of
from snaploom.sparkgate.treerules import Node, Use, bare_kind

_PACKAGE = "snaploom.sparkgate"
LEXICAL_SETTINGS = {
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.legacy.consecutiveStringLiterals.enabled": "false",
    "spark.sql.legacy.parseQueryWithoutEof": "false",
    "spark.sql.legacy.parser.havingWithoutGroupByAsWhere": "false",
    "spark.sql.legacy.setopsPrecedence.enabled": "false",
    "spark.sql.operatorPipeSyntaxEnabled": "false",
    # What a VALUES list holds is judged, and not what the parser computed of it.
    "spark.sql.parser.eagerEvalOfUnresolvedInlineTable": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.parser.singleCharacterPipeOperator.enabled": "false",
    # Otherwise `${env:NAME}` is replaced by a variable of the environment, in quotes too.
    "spark.sql.variable.substitute": "false",
}
"""Settings that decide what a text means to Spark's parser. The gate parses under these, whatever
the session has: what was scanned is what is parsed."""


_JAVA: WeakKeyDictionary[JavaGateway, JavaObject] = WeakKeyDictionary()


def _java_of(gateway: JavaGateway) -> JavaObject:
    """The object in a JVM; it is stateless and serves all threads."""
    if gateway not in _JAVA:
        sources = resources.files(__package__).joinpath("java")
        _JAVA[gateway] = new_instance(gateway, compiled_class(gateway, _PACKAGE, sources, "Trees"))
    return _JAVA[gateway]


class Trees:
    """Spark's parser and trees for one session.

    Raises:
        Py4JJavaError: our Java does not fit this Spark.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        gateway = cast(JavaGateway, spark.sparkContext._gateway)
        self._java = _java_of(gateway)
        self._classic = jvm_of(spark).org.apache.spark.sql.classic
        self._settings = [text for pair in LEXICAL_SETTINGS.items() for text in pair]

    def parse(self, text: str, *, is_query: bool) -> JavaObject:
        """Parse a text to an unresolved Java expression or plan; raises Spark's errors."""
        session = self._spark._jsparkSession
        return cast(JavaObject, self._java.parse(session, text, is_query, self._settings))

    def column(self, parsed: JavaObject) -> Column:
        """A parsed expression as a column: it is not parsed again."""
        return Column(self._classic.ExpressionUtils.column(parsed))

    def replaced(self, parsed: JavaObject, columns: Mapping[tuple[str, ...], Column]) -> JavaObject:
        """Replace the columns of a parsed expression, by the parts of the name in any case."""
        others = [self._classic.ExpressionUtils.expression(one._jc) for one in columns.values()]
        names = [list(name) for name in columns]
        return cast(JavaObject, self._java.replaced(parsed, names, others))

    def frame(self, parsed: JavaObject) -> DataFrame:
        """Resolve a parsed plan without computing it; raises Spark's errors."""
        rows = self._classic.Dataset.ofRows(self._spark._jsparkSession, parsed)
        return DataFrame(rows, self._spark)

    def nodes(self, parsed: JavaObject, most: int) -> list[Node]:
        """Nodes of a parsed tree, parents first; at most `most`."""
        return [
            Node(parent, field, bare_kind(kind), fields)
            for parent, field, kind, fields in json.loads(self._java.parsed(parsed, most))
        ]

    def uses(
        self, plan: JavaObject, given: Sequence[JavaObject], views: Collection[str] = ()
    ) -> list[Use]:
        """Constructs of a resolved plan above given plans and temporary views."""
        lines = json.loads(self._java.resolved(plan, list(given), list(views)))
        return [Use(kind == "plan", *found) for kind, *found in lines]
