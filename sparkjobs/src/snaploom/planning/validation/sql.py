"""What user SQL reads and uses, by parsing it as Spark would (sqlglot), never by pattern.

A parser of our own kind is no sandbox: what a job can reach is bounded by its credentials. These
checks are for people who write a join where none is allowed, and they refuse the functions through
which a query calls any Java method.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import ParseError, SqlglotError

FORBIDDEN_FUNCTIONS = frozenset(
    {"reflect", "java_method", "try_reflect", "from_protobuf", "to_protobuf"}
)
"""Functions that call any method on the classpath, or read a file that the query names."""
_BUILTIN = ("system.builtin", "builtin")
"""Where Spark's own functions are; whatever is elsewhere somebody has made."""
_GENERATORS = (exp.Explode, exp.Posexplode, exp.Inline, exp.Stack, exp.Unnest)
_GENERATOR_NAMES = frozenset(
    {"json_tuple", "stack", "inline", "inline_outer", "explode_outer", "posexplode_outer"}
)
_SIMPLE_CLAUSES = frozenset({"expressions", "from_", "where", "group", "having", "distinct"})
"""What a simple query may have. HAVING and DISTINCT are forms of grouping."""
_CLAUSE_NAMES = {
    "with_": "WITH", "joins": "JOIN", "laterals": "LATERAL VIEW", "order": "ORDER BY",
    "sort": "SORT BY", "cluster": "CLUSTER BY", "distribute": "DISTRIBUTE BY", "limit": "LIMIT",
    "offset": "OFFSET", "sample": "TABLESAMPLE", "pivots": "PIVOT", "windows": "WINDOW",
    "hint": "a hint", "qualify": "QUALIFY", "match": "MATCH_RECOGNIZE", "into": "INTO",
}  # fmt: skip

# sqlglot logs what it passes over; what matters here is in the tree.
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)


class SqlInvalid(ValueError):
    """The text is not Spark SQL; the message says why and where."""


@dataclass(frozen=True)
class Columns:
    """The columns that an expression reads, as dotted paths with the case of the text."""

    names: tuple[str, ...]

    @property
    def folded(self) -> frozenset[str]:
        """The columns ignoring case."""
        return frozenset(name.casefold() for name in self.names)


def parse_query(text: str) -> exp.Expr:
    """Parse one statement.

    Raises:
        SqlInvalid: when it is not exactly one statement.
    """
    return _parse(text)


def parse_expression(text: str) -> exp.Expr:
    """Parse one SQL expression, such as `concat(a, b.c)`.

    Raises:
        SqlInvalid: when it is not exactly one expression.
    """
    statement = _parse(f"SELECT\n{text}", lines_before=1)
    others = [name for name, value in statement.args.items() if value and name != "expressions"]
    if not isinstance(statement, exp.Select) or others or len(statement.expressions) != 1:
        raise SqlInvalid("expected one expression, without SELECT, FROM or further clauses")
    expression: exp.Expr = statement.expressions[0]
    if isinstance(expression, exp.Alias) or expression.is_star:
        raise SqlInvalid("expected one expression, without AS and *")
    return expression


def _parse(text: str, lines_before: int = 0) -> exp.Expr:
    try:
        _refuse_dangling_comma(text, lines_before)
        statements = [part for part in sqlglot.parse(text, read="spark") if part is not None]
    except ParseError as error:
        raise SqlInvalid(_reason(error, lines_before)) from None
    except SqlglotError as error:
        raise SqlInvalid(str(error).splitlines()[0]) from None
    except RecursionError:
        raise SqlInvalid("it is nested too deeply") from None
    if len(statements) != 1:
        raise SqlInvalid(f"expected one statement, found {len(statements)}")
    return _not_a_command(statements[0])


def _not_a_command(parsed: exp.Expr) -> exp.Expr:
    if isinstance(parsed, exp.Command):
        raise SqlInvalid("this is a command, not a query")
    if isinstance(parsed, exp.Select) and not parsed.expressions:
        raise SqlInvalid("there is nothing after SELECT")
    return parsed


def _refuse_dangling_comma(text: str, lines_before: int) -> None:
    """The parser lets a comma before FROM pass; Spark does not."""
    tokens = sqlglot.tokenize(text, read="spark")
    for token, following in zip_longest(tokens, tokens[1:]):
        if token.token_type is TokenType.COMMA and (
            following is None
            or following.token_type in (TokenType.FROM, TokenType.R_PAREN, TokenType.WHERE)
        ):
            raise SqlInvalid(f"there is a comma too many on line {token.line - lines_before}")


def _reason(error: ParseError, lines_before: int) -> str:
    if not error.errors:
        return str(error).splitlines()[0]
    first = error.errors[0]
    description = str(first.get("description") or "it is not understood").rstrip(".")
    if description.startswith("Required keyword"):  # its text names classes of the parser
        description = "something is missing"
    line = max(1, (first.get("line") or 1) - lines_before)
    return f"{description} (line {line} of the SQL, near column {first.get('col')})"


def forbidden_functions(parsed: exp.Expr) -> tuple[str, ...]:
    """Names of functions that no query may call: dangerous ones, and those of a schema."""
    called = {call.name.casefold() for call in parsed.find_all(exp.Anonymous)}
    qualified = (dot for dot in parsed.find_all(exp.Dot) if isinstance(dot.expression, exp.Func))
    places = {dot.expression.name: dot.this.sql(dialect="spark") for dot in qualified}
    made = {
        f"{place}.{name}"
        for name, place in places.items()
        if place.replace("`", "").casefold() not in _BUILTIN
    }
    return tuple(sorted((called & FORBIDDEN_FUNCTIONS) | made))


def tables_read(parsed: exp.Expr) -> tuple[str, ...]:
    """Tables that a query reads, names of its own WITH clauses left out where they are in sight."""
    tables = (table for table in parsed.find_all(exp.Table) if not _is_own(table))
    return tuple(dict.fromkeys(_table_name(table) for table in tables))


def _is_own(table: exp.Table) -> bool:
    """Whether a table is the name of a WITH clause that is in sight where it stands."""
    around: list[exp.Expr] = [table]
    while around[-1].parent is not None:
        around.append(around[-1].parent)
    name = _table_name(table).casefold()
    clauses = (node.args.get("with_") for node in around)
    return any(
        cte.alias_or_name.casefold() == name
        for clause in clauses
        if isinstance(clause, exp.With)
        for cte in _in_sight(clause, around)
    )


def _in_sight(clause: exp.With, around: list[exp.Expr]) -> list[exp.Expr]:
    """The names of a clause that one of its own definitions, or the query behind it, can read."""
    names: list[exp.Expr] = clause.expressions
    position = next((i for i, cte in enumerate(names) if any(cte is node for node in around)), None)
    if position is None:
        return names
    return names[: position + 1] if clause.recursive else names[:position]


def _table_name(table: exp.Table) -> str:
    if not isinstance(table.this, exp.Identifier):
        return f"{table.this.sql(dialect='spark')}"
    return ".".join(part.name for part in table.parts)


def columns_read(parsed: exp.Expr) -> Columns:
    """Columns that an expression reads, paths into structs included."""
    names: dict[str, None] = {}
    for column in parsed.find_all(exp.Column):
        path = [part.name for part in column.parts]
        node: exp.Expr = column
        while isinstance(node.parent, exp.Dot) and node.parent.this is node:
            node = node.parent
            if not isinstance(node.args["expression"], exp.Identifier):
                break
            path.append(node.args["expression"].name)
        names[".".join(path)] = None
    return Columns(tuple(names))


def columns_besides(parsed: exp.Expr, name: str) -> tuple[str, ...]:
    """Columns that an expression reads, but for one and what is inside it."""
    read = columns_read(parsed).names
    return tuple(sorted(path for path in read if path.casefold().split(".")[0] != name))


def beyond_query(parsed: exp.Expr) -> tuple[str, ...]:
    """What a query may have nowhere: programs that rows are sent through, and other versions."""
    programs = ["TRANSFORM ... USING"] if parsed.find(exp.QueryTransform) else []
    tables = parsed.find_all(exp.Table)
    versions = ["AS OF"] if any(t.args.get("version") or t.args.get("when") for t in tables) else []
    return (*programs, *versions)


def beyond_simple(parsed: exp.Expr) -> tuple[str, ...]:
    """What a query has beyond SELECT, WHERE and GROUP BY over one table, as people call it."""
    if not isinstance(parsed, exp.Select):
        return (_statement_name(parsed),)
    clauses = [
        _CLAUSE_NAMES.get(name, name.strip("_").upper())
        for name, value in parsed.args.items()
        if value and name not in _SIMPLE_CLAUSES
    ]
    source = parsed.args.get("from_")
    if source is not None and isinstance(source.this, exp.Table):
        clauses.extend(
            _CLAUSE_NAMES.get(name, name.strip("_").upper())
            for name, value in source.this.args.items()
            if value and name not in ("this", "alias", "db", "catalog")
        )
    return tuple(dict.fromkeys([*clauses, *_inner(parsed)]))


def beyond_expression(parsed: exp.Expr) -> tuple[str, ...]:
    """What an expression over the columns of one row may not have."""
    aggregates = ["an aggregate function"] if parsed.find(exp.AggFunc) else []
    return tuple(dict.fromkeys([*aggregates, *_inner(parsed)]))


def beyond_aggregate(parsed: exp.Expr) -> tuple[str, ...]:
    """What an aggregate expression over the rows of one table may not have."""
    return tuple(dict.fromkeys(_inner(parsed)))


def _inner(parsed: exp.Expr) -> Iterable[str]:
    for node in parsed.walk():
        if isinstance(node, exp.Query) and node is not parsed:
            yield "a subquery"
        elif isinstance(node, exp.Window):
            yield "a window function"
        elif isinstance(node, _GENERATORS) or (
            isinstance(node, exp.Anonymous) and node.name.casefold() in _GENERATOR_NAMES
        ):
            yield "a generator such as explode"


def _statement_name(parsed: exp.Expr) -> str:
    return parsed.key.upper().replace("_", " ")
