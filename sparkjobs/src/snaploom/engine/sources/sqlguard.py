"""What a user's query may do, judged by Spark's own parser and analyser.

Validation has judged the text by another parser, which may take it for something else than Spark
does. So Spark's plans are looked at as well. Before a query is resolved, every part of the parsed
plan must be one of a list: whatever is not known is refused. After it is resolved, what it reads in
the end must be what the frames that were handed in read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession

from snaploom.engine.fields import fold_case
from snaploom.planning.validation.sql import FORBIDDEN_FUNCTIONS

_PARTS = frozenset(
    {
        "Aggregate", "AsOfJoin", "Distinct", "Except", "Filter", "Generate", "GlobalLimit",
        "Intersect", "Join", "LateralJoin", "LocalLimit", "LocalRelation", "Offset",
        "OneRowRelation", "Pivot", "Project", "Repartition", "RepartitionByExpression", "Sample",
        "Sort", "SubqueryAlias", "Tail", "Union", "Unpivot", "UnresolvedHaving", "UnresolvedHint",
        "UnresolvedInlineTable", "UnresolvedSubqueryColumnAliases", "UnresolvedTVFAliases",
        "UnresolvedWith", "Window", "WithWindowDefinition",
    }
)  # fmt: skip
"""Parts of a parsed plan that neither read by themselves nor run anything."""
_GENERATORS = frozenset(
    {
        "explode", "explode_outer", "inline", "inline_outer", "json_tuple", "posexplode",
        "posexplode_outer", "stack", "variant_explode", "variant_explode_outer",
    }
)  # fmt: skip
"""Functions that may stand where a table does: they make rows of their arguments."""
_NOT_BY_NAME = frozenset({"ExpressionWithUnresolvedIdentifier"})
"""Expressions whose function is only known when the query runs."""
_NO_DATA = frozenset({"CTERelationRef", "LocalRelation", "OneRowRelation", "Range"})
"""Leaves of a resolved plan that hold nothing but what the query says itself."""


def beyond_parsed(spark: SparkSession, query: str, aliases: Iterable[str]) -> tuple[str, ...]:
    """What a query has that it may not, by Spark's parser.

    Args:
        spark: the session.
        query: one statement, without parameters.
        aliases: names that it may read.

    Raises:
        PySparkException: it cannot be parsed.
    """
    walk = _Walk(spark)
    parsed = spark._jsparkSession.sessionState().sqlParser().parsePlan(query)
    walk.visit(parsed, frozenset(fold_case(alias) for alias in aliases))
    return tuple(dict.fromkeys(walk.refused))


def beyond_resolved(frame: DataFrame, sources: Iterable[DataFrame]) -> tuple[str, ...]:
    """What the frame of a query reads that none of the frames handed in does."""
    known = [leaf for source in sources for leaf in _leaves(source)]
    return tuple(
        str(leaf.nodeName())
        for leaf in _leaves(frame)
        if str(leaf.nodeName()) not in _NO_DATA
        and not any(leaf.sameResult(other) for other in known)
    )


def _leaves(frame: DataFrame) -> Iterator[JavaObject]:
    plan = frame._jdf.queryExecution().analyzed()
    for each in (plan, *_listed(plan.subqueriesAll())):
        yield from _listed(each.collectLeaves())


class _Walk:
    """Visits every part of a parsed plan, subqueries and WITH clauses included."""

    def __init__(self, spark: SparkSession) -> None:
        catalyst = spark._jvm.org.apache.spark.sql.catalyst  # type: ignore[union-attr]
        self._builtin = catalyst.analysis.FunctionRegistry.builtin()
        self._identifier = catalyst.FunctionIdentifier
        self._catalog = spark._jsparkSession.catalog()
        self.refused: list[str] = []
        """What the query may not have, as people call it."""

    def visit(self, plan: JavaObject, readable: frozenset[str]) -> None:
        """Look at a plan where some names may be read, in the form for comparing."""
        kind = _kind(plan)
        if kind == "UnresolvedRelation":
            name = _dotted(plan.multipartIdentifier())
            if fold_case(name) not in readable:
                self.refused.append(name)
        elif kind == "UnresolvedTableValuedFunction":
            self._table_function(_dotted(plan.name()))
        elif kind not in _PARTS:
            self.refused.append(kind)
            return
        if kind == "UnresolvedWith":
            self._visit_with(plan, readable)
            return
        if kind == "WithWindowDefinition":
            for definition in _listed(plan.windowDefinitions().values().toSeq()):
                self._expression(definition)
        for expression in _listed(plan.expressions()):
            self._expression(expression)
        for below in (*_listed(plan.innerChildren()), *_listed(plan.children())):
            self.visit(below, readable)

    def _visit_with(self, plan: JavaObject, readable: frozenset[str]) -> None:
        """A name of the clause can be read by what follows it, and by itself if it is recursive."""
        for definition in _listed(plan.innerChildren()):
            defined = readable | {fold_case(str(definition.alias()))}
            self.visit(definition, defined if plan.allowRecursion() else readable)
            readable = defined
        self.visit(plan.child(), readable)

    def _expression(self, expression: JavaObject) -> None:
        kind = _kind(expression)
        if kind == "UnresolvedFunction":
            self._function(_dotted(expression.nameParts()))
        elif kind in _NOT_BY_NAME:
            self.refused.append("IDENTIFIER()")
        for below in _listed(expression.children()):
            self._expression(below)

    def _function(self, name: str) -> None:
        bare = fold_case(name.removeprefix("system.").removeprefix("builtin."))
        is_builtin = "." not in bare and bool(self._builtin.functionExists(self._identifier(bare)))
        # A function that nobody has made is left to Spark, which says where it stands.
        is_made = not is_builtin and ("." in bare or bool(self._catalog.functionExists(bare)))
        if is_made or bare in FORBIDDEN_FUNCTIONS:
            self.refused.append(f"{name}()")

    def _table_function(self, name: str) -> None:
        if fold_case(name) not in _GENERATORS:
            self.refused.append(f"{name}()")


def _kind(node: JavaObject) -> str:
    return str(node.getClass().getSimpleName()).removesuffix("$")


def _listed(sequence: JavaObject) -> list[JavaObject]:
    return [sequence.apply(index) for index in range(sequence.size())]


def _dotted(parts: JavaObject) -> str:
    return ".".join(str(part) for part in _listed(parts))
