"""Spark's trees of a SQL text, and the rules about what they may not have."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import cast
from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaGateway, JavaObject
from pyspark.sql import Column, DataFrame, SparkSession

from snaploom.models.allowances import Allowances
from snaploom.policy.sqlfunctions import FUNCTIONS, Kind, builtin_name, refusal_of
from snaploom.spark.jvm import compiled_class, jvm_of, new_instance
from snaploom.spark.kinds import (
    CATALYST,
    OPTIONS,
    OPTIONS_OF_CLASSES,
    OPTIONS_PLACE,
    PARSED_AGGREGATES,
    PARSED_OF_QUERIES,
    PARSED_PLANS,
    PARSED_VALUES,
    RESOLVED_EXPRESSIONS,
    RESOLVED_PLANS,
    TYPE_PLACE,
    TYPES_OF_EXAMPLES,
    USER_FUNCTIONS,
)
from snaploom.types.schemas import is_type

# Spark's trees, read by our Java in one call each.

_PACKAGE = "snaploom.spark"
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


# Judges the trees of a SQL text: pure functions over nodes that `trees` read.

_FUNCTIONS_LIST = "functions"
_OPTIONS_LIST = "options"
_CALLED = {
    Kind.AGGREGATE: "an aggregate function",
    Kind.WINDOW: "a window function",
    Kind.GROUPING: "a function about groups",
    Kind.GENERATOR: "a generator",
    Kind.TABLE: "a table function",
}
_WITHOUT_BRACKETS = frozenset(
    {
        "current_catalog", "current_database", "current_date", "current_path", "current_schema",
        "current_time", "current_timestamp", "current_user", "localtime", "localtimestamp",
        "session_user", "user",
    }
)  # fmt: skip
"""Functions that Spark takes a bare name for, where no column is called so."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Allowed constructs at a place."""

    kinds: frozenset[Kind]
    is_query: bool = False
    relations: frozenset[str] | None = frozenset()
    """Names that a query may read, in lower case; None for any."""
    columns: frozenset[str] | None = None
    """Columns that an expression may read, in lower case; None for any."""


VALUES = Scope(frozenset({Kind.VALUE}))
"""An expression over one row."""
AGGREGATES = Scope(frozenset({Kind.VALUE, Kind.AGGREGATE}))
"""An expression over one row, or over all."""
OF_QUERIES = frozenset(Kind) - {Kind.TABLE}
"""Functions that a query may have."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """One construct that a text may not have."""

    found: str
    why: str
    """A clause."""
    list_: str = ""
    """Name of the list of allowances that would have to hold it, if one could."""
    entry: str = ""
    """Entry that the list would need."""


@dataclass(frozen=True, slots=True)
class Node:
    """One node of a parsed tree."""

    parent: int
    """Place of the node that holds it; -1 for the root."""
    field: str
    kind: str
    """Class without Spark's package and without what is inside the class."""
    fields: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Use:
    """A construct in a resolved plan."""

    is_plan: bool
    class_name: str
    detail: str
    """Name of a user's function, or of a class."""
    options: Mapping[str, object]
    """Maps of texts."""
    moment: str
    """A constant text that becomes a date or a time here; empty if none does."""
    is_deterministic: bool
    """Whether a user's function gives the same result for the same row."""


def bare_kind(class_name: str) -> str:
    """Class name without Spark's package; Scala's objects and nameless classes by the outer one."""
    return class_name.removeprefix(CATALYST).split("$", 1)[0]


def judge_parsed(nodes: Sequence[Node], scope: Scope, allow: Allowances) -> tuple[Refusal, ...]:
    """Refuse constructs of a parsed tree, given as nodes, parents first."""
    return tuple(dict.fromkeys(_Parsed(nodes, scope, allow).refusals()))


def judge_resolved(uses: Iterable[Use], scope: Scope, allow: Allowances) -> tuple[Refusal, ...]:
    """Refuse constructs of a resolved plan."""
    return tuple(dict.fromkeys(one for use in uses for one in _beyond_use(use, scope, allow)))


def _beyond_use(use: Use, scope: Scope, allow: Allowances) -> Iterator[Refusal]:
    kind = bare_kind(use.class_name)
    name = kind.rpartition(".")[2]
    if use.is_plan:
        if kind not in RESOLVED_PLANS and scope.relations is not None:
            yield Refusal(name, "it reads what is not declared")
        return
    yield from _beyond_options(OPTIONS_OF_CLASSES.get(name, ""), _pairs(use.options), allow)
    if kind in RESOLVED_EXPRESSIONS and use.class_name.startswith(CATALYST):
        return
    allowed = {builtin_name(entry) for entry in allow.functions}
    if use.class_name in USER_FUNCTIONS and builtin_name(use.detail) in allowed:
        return
    if any(name in FUNCTIONS[entry].classes for entry in allowed if entry in FUNCTIONS):
        return
    called = f"{use.detail}()" if use.class_name in USER_FUNCTIONS and use.detail else name
    why = "functions that somebody made are not on the list"
    if use.class_name not in USER_FUNCTIONS:
        why = "this is not on the list of what SQL may come to"
    yield Refusal(called, why, _FUNCTIONS_LIST, use.detail)


def _pairs(options: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    found = options.get("options")
    pairs = found.get("map") if isinstance(found, Mapping) else None
    for pair in pairs if isinstance(pairs, list) else ():
        yield str(pair[0]), pair[1]


def _beyond_options(
    function: str, pairs: Iterable[tuple[str, object]], allow: Allowances
) -> Iterator[Refusal]:
    format_ = function.rpartition("_")[2]
    allowed = {entry.casefold() for entry in allow.options}
    for key, _ in pairs:
        entry = f"{format_}.{key}"
        if function and key.lower() not in OPTIONS[function] and entry.casefold() not in allowed:
            why = f"this option of {function} is not on the list"
            yield Refusal(key, why, _OPTIONS_LIST, entry)


class _Parsed:
    def __init__(self, nodes: Sequence[Node], scope: Scope, allow: Allowances) -> None:
        self._nodes = nodes
        self._scope = scope
        self._allow = allow
        self._kinds = PARSED_VALUES
        if Kind.AGGREGATE in scope.kinds:
            self._kinds = self._kinds | PARSED_AGGREGATES
        if scope.is_query:
            self._kinds = self._kinds | PARSED_OF_QUERIES | PARSED_PLANS
        self._below: list[list[int]] = [[] for _ in nodes]
        for place, node in enumerate(nodes):
            if node.parent >= 0:
                self._below[node.parent].append(place)

    def refusals(self) -> Iterator[Refusal]:
        if self._nodes[0].kind == "expressions.Alias":
            yield Refusal("AS", "an expression has no name here")
        readable = self._scope.relations
        open_: list[tuple[int, frozenset[str] | None]] = [(0, readable)]
        while open_:
            place, readable = open_.pop()
            yield from self._beyond_node(place, readable)
            open_.extend(reversed(list(self._inner(place, readable))))

    def _inner(
        self, place: int, readable: frozenset[str] | None
    ) -> Iterator[tuple[int, frozenset[str] | None]]:
        """The nodes below one, with the names readable in them: a WITH clause adds its names."""
        node = self._nodes[place]
        below = self._below[place]
        if node.kind != "plans.logical.UnresolvedWith":
            yield from ((inner, readable) for inner in below)
            return
        definitions = [inner for inner in below if self._nodes[inner].field == "cteRelations"]
        is_recursive = node.fields.get("allowRecursion") is True
        for definition in definitions:
            defined = None if readable is None else readable | {self._alias(definition)}
            yield definition, defined if is_recursive else readable
            readable = defined
        yield from ((inner, readable) for inner in below if inner not in set(definitions))

    def _alias(self, definition: int) -> str:
        identifier = self._nodes[definition].fields.get("identifier")
        name = identifier[0] if isinstance(identifier, list) and identifier else ""
        return str(name).lower()

    def _beyond_node(self, place: int, readable: frozenset[str] | None) -> Iterator[Refusal]:
        node = self._nodes[place]
        if node.kind not in self._kinds:
            yield Refusal(_called(node.kind), "this is not on the list of what may stand here")
            return
        match node.kind.rpartition(".")[2]:
            case "UnresolvedFunction":
                yield from self._beyond_call(place, _dotted(node.fields.get("nameParts")))
                if node.fields.get("isInternal") is not False:
                    yield Refusal(_dotted(node.fields.get("nameParts")), "only Spark may call it")
            case "UnresolvedGenerator":
                parts = node.fields.get("name")
                names = [part for part in parts if part] if isinstance(parts, list) else []
                # An identifier has its name in front of its schema and its catalog.
                yield from self._beyond_call(place, ".".join(map(str, reversed(names))))
            case "UnresolvedTableValuedFunction":
                yield from self._beyond_table_function(place, _dotted(node.fields.get("name")))
            case "UnresolvedRelation":
                yield from self._beyond_relation(node, readable)
            case "UnresolvedAttribute":
                yield from self._beyond_column(node)
            case "UnresolvedNamedLambdaVariable" if not self._is_of_lambda(place):
                yield from self._beyond_column(node)
            case _:
                return

    def _beyond_call(self, place: int, name: str) -> Iterator[Refusal]:
        why = refusal_of(name, self._allow)
        if why:
            yield Refusal(f"{name}()", why, _FUNCTIONS_LIST, builtin_name(name))
            return
        known = FUNCTIONS.get(builtin_name(name))
        if known is None:
            return
        if known.kind not in self._scope.kinds:
            yield Refusal(f"{name}()", f"{_CALLED[known.kind]} may not stand here")
        if known.name in OPTIONS or known.name in TYPE_PLACE:
            yield from self._beyond_arguments(place, known.name)

    def _beyond_table_function(self, place: int, name: str) -> Iterator[Refusal]:
        known = FUNCTIONS.get(builtin_name(name))
        why = refusal_of(name, self._allow)
        if not why and known is not None and known.kind is not Kind.GENERATOR:
            why = "it may not stand where a table does"
        if why:
            yield Refusal(f"{name}()", why, _FUNCTIONS_LIST, builtin_name(name))

    def _beyond_arguments(self, place: int, function: str) -> Iterator[Refusal]:
        """Refuse types and options that are computed: they must be known before anything runs."""
        arguments = [p for p in self._below[place] if self._nodes[p].field == "arguments"]
        if any(self._nodes[p].kind == "expressions.NamedArgumentExpression" for p in arguments):
            yield Refusal(f"{function}(... => ...)", "its arguments may not be named")
        if function in TYPE_PLACE:
            for argument in arguments[TYPE_PLACE[function] :][:1]:
                yield from self._beyond_type(argument, function)
        if function not in OPTIONS:
            return
        for argument in arguments[OPTIONS_PLACE[function] :]:
            texts = self._literal_map(argument)
            if texts is None:
                why = f"the options of {function} must be map('name', 'value', ...), written out"
                yield Refusal("options that are computed", why)
                return
            yield from _beyond_options(
                function, zip(texts[::2], texts[1::2], strict=False), self._allow
            )

    def _beyond_type(self, place: int, function: str) -> Iterator[Refusal]:
        node = self._nodes[place]
        text = node.fields.get("value")
        if node.kind == "expressions.Literal" and isinstance(text, str):
            if not is_type(text):
                why = f"{function} takes types of Spark's own, such as 'a INT, b STRING'"
                yield Refusal("this type", why)
            return
        name = builtin_name(_dotted(node.fields.get("nameParts")))
        if node.kind != "analysis.UnresolvedFunction" or name not in TYPES_OF_EXAMPLES:
            why = f"the type that {function} takes must be a text, such as 'a INT, b STRING'"
            yield Refusal("a type that is computed", why)

    def _literal_map(self, place: int) -> list[str] | None:
        node = self._nodes[place]
        if node.kind != "analysis.UnresolvedFunction":
            return None
        if builtin_name(_dotted(node.fields.get("nameParts"))) != "map":
            return None
        inner = [self._nodes[p] for p in self._below[place]]
        texts = [n.fields.get("value") for n in inner if n.kind == "expressions.Literal"]
        known = [text for text in texts if isinstance(text, str)]
        return known if len(known) == len(inner) and len(known) % 2 == 0 else None

    def _beyond_relation(self, node: Node, readable: frozenset[str] | None) -> Iterator[Refusal]:
        parts = node.fields.get("multipartIdentifier")
        names = [str(part) for part in parts] if isinstance(parts, list) else []
        name = ".".join(names)
        if readable is not None and not (len(names) == 1 and name.lower() in readable):
            yield Refusal(name, "it is not declared")
        if node.fields.get("options") != {"map": []} or node.fields.get("isStreaming") is not False:
            yield Refusal(f"options of {name}", "a table may not be read with options")

    def _is_of_lambda(self, place: int) -> bool:
        """Whether a name is a variable of a lambda around it: Spark shows columns in one alike."""
        name = _first_name(self._nodes[place])
        around = self._nodes[place].parent
        while around >= 0:
            if self._nodes[around].kind == "expressions.LambdaFunction" and any(
                self._nodes[p].field == "arguments" and _first_name(self._nodes[p]) == name
                for p in self._below[around]
            ):
                return True
            around = self._nodes[around].parent
        return False

    def _beyond_column(self, node: Node) -> Iterator[Refusal]:
        parts = node.fields.get("nameParts")
        names = [str(part) for part in parts] if isinstance(parts, list) else [""]
        readable = self._scope.columns
        if readable is None or names[0].lower() in readable:
            return
        if len(names) == 1 and names[0].lower() in _WITHOUT_BRACKETS:
            return
        yield Refusal(".".join(names), f"only {' and '.join(sorted(readable))} may be read here")


def _first_name(node: Node) -> str:
    parts = node.fields.get("nameParts")
    return str(parts[0]).lower() if isinstance(parts, list) and parts else ""


def _dotted(parts: object) -> str:
    return ".".join(str(part) for part in parts) if isinstance(parts, list) else ""


_NAMES = {
    "AsTableExpression": "a table as an argument",
    "ExpressionWithUnresolvedIdentifier": "IDENTIFIER()",
    "FunctionTableSubqueryArgumentExpression": "a table as an argument",
    "NamedParameter": "a parameter",
    "PlanWithUnresolvedIdentifier": "IDENTIFIER()",
    "PosParameter": "a parameter",
    "RelationTimeTravel": "AS OF",
    "ScalarSubquery": "a subquery",
    "ScriptTransformation": "TRANSFORM ... USING",
    "UnresolvedHint": "a hint",
    "UnresolvedStar": "*",
    "WindowExpression": "a window function",
}


def _called(kind: str) -> str:
    name = kind.rpartition(".")[2]
    return _NAMES.get(name, name)
