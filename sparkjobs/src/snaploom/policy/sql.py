"""Facts about a text of SQL: what it reads, calls and varies by."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from sqlglot import exp
from sqlglot.optimizer.annotate_types import annotate_types

from snaploom.policy import sqltext
from snaploom.policy.sqlconditions import parse, parse_condition, parse_expression
from snaploom.policy.sqlfunctions import WORDS, Determinism, moments, varying_calls
from snaploom.types.schemas import path_text

# Parts of a parsed text that vary when computed again, by their dependence.


def varying(
    parsed: exp.Expr, tokens: Sequence[sqltext.Token]
) -> Mapping[Determinism, tuple[str, ...]]:
    """The parts of a text that vary, as people write them, by their dependence."""
    found: dict[Determinism, dict[str, None]] = {}
    parts = (varying_calls(tokens), moments(tokens), _bare_words(parsed, tokens), _clauses(parsed))
    for part in parts:
        for determinism, shown in part:
            found.setdefault(determinism, {})[shown] = None
    return {determinism: tuple(shown) for determinism, shown in found.items()}


def _bare_words(
    parsed: exp.Expr, tokens: Sequence[sqltext.Token]
) -> Iterator[tuple[Determinism, str]]:
    """Functions without brackets; a word that the text itself gives to a column is none."""
    own = {alias.alias.casefold() for alias in parsed.find_all(exp.Alias)}
    for place, token in enumerate(tokens):
        word = token.value.casefold()
        if token.kind is not sqltext.TokenKind.WORD or word not in WORDS or word in own:
            continue
        before = tokens[place - 1].value if place else ""
        behind = tokens[place + 1].value if place + 1 < len(tokens) else ""
        if before != "." and behind not in (".", "("):
            yield Determinism.SESSION, token.upper


def _clauses(parsed: exp.Expr) -> Iterator[tuple[Determinism, str]]:
    if parsed.find(exp.TableSample) is not None:
        yield Determinism.RANDOM, "TABLESAMPLE"
    for query in parsed.find_all(exp.Query):
        if (query.args.get("limit") or query.args.get("offset")) and not query.args.get("order"):
            yield Determinism.ORDER, "LIMIT without ORDER BY"


# `judge`: makes the facts of a text of SQL, from its tokens and the tree of its parser.

_GENERATORS = (exp.Explode, exp.Posexplode, exp.Inline, exp.Stack, exp.Unnest)
_GENERATOR_NAMES = frozenset(
    {"json_tuple", "stack", "inline", "inline_outer", "explode_outer", "posexplode_outer"}
)
_SIMPLE_CLAUSES = frozenset({"expressions", "from_", "where", "group", "having", "distinct"})
"""The clauses of a simple query. HAVING and DISTINCT are forms of grouping."""
_CLAUSE_NAMES = {
    "with_": "WITH", "joins": "JOIN", "laterals": "LATERAL VIEW", "order": "ORDER BY",
    "sort": "SORT BY", "cluster": "CLUSTER BY", "distribute": "DISTRIBUTE BY", "limit": "LIMIT",
    "offset": "OFFSET", "sample": "TABLESAMPLE", "pivots": "PIVOT", "windows": "WINDOW",
    "hint": "a hint", "qualify": "QUALIFY", "match": "MATCH_RECOGNIZE", "into": "INTO",
}  # fmt: skip
_SYNTAX = frozenset(
    {
        "all", "and", "any", "array", "as", "between", "by", "case", "cast", "cross",
        "cube", "distinct", "else", "except", "exclude", "exists", "filter", "for", "from",
        "full", "group", "having", "ilike", "in", "include", "inner", "intersect",
        "interval", "is", "join", "lateral", "left", "like", "limit", "lists", "minus",
        "not", "nulls", "offset", "on", "or", "order", "outer", "over", "partition",
        "pivot", "qualify", "range", "recursive", "regexp", "respect", "right", "rlike",
        "rollup", "rows", "select", "semi", "set", "sets", "some", "struct", "tablesample",
        "then", "timestamp", "try_cast", "union", "unpivot", "using", "values", "when",
        "where", "window", "with", "bigint", "binary", "boolean", "byte", "char",
        "character", "date", "dec", "decimal", "double", "float", "int", "integer", "long",
        "numeric", "real", "short", "smallint", "string", "time", "tinyint", "varchar",
    }
)  # fmt: skip
"""Words that may stand before a bracket without being called: keywords, and names of types."""


def judge(text: sqltext.SqlText) -> sqltext.SqlVerdict:
    """The facts of a text, or why it has none; never an exception."""
    try:
        return facts_of(text)
    except sqltext.SqlRefused as refused:
        return sqltext.SqlFault(str(refused), refused.found)


def facts_of(text: sqltext.SqlText) -> sqltext.SqlFacts:
    """The facts of a text."""
    try:
        return _facts(*_parsed(text), text.form)
    except sqltext.SqlRefused:
        raise
    except RecursionError:
        raise sqltext.SqlRefused("it is nested too deeply") from None
    except Exception as error:  # noqa: BLE001 - sqlglot fails in ways that it does not document
        raise sqltext.SqlRefused(f"it is not understood ({type(error).__name__})") from None


def _parsed(text: sqltext.SqlText) -> tuple[exp.Expr, sqltext.Scanned]:
    if text.form is sqltext.SqlForm.CONDITION:
        return parse_condition(text.text, text.dialect, text.added)
    scanned = sqltext.scan(text.text)
    return (parse if text.form is sqltext.SqlForm.QUERY else parse_expression)(scanned), scanned


def _facts(parsed: exp.Expr, scanned: sqltext.Scanned, form: sqltext.SqlForm) -> sqltext.SqlFacts:
    is_query = form is sqltext.SqlForm.QUERY
    names = parsed.named_selects if isinstance(parsed, exp.Query) and not parsed.is_star else None
    # A database has functions of its own: conditions are judged by what they may have.
    varies = {} if form is sqltext.SqlForm.CONDITION else varying(parsed, scanned.tokens)
    tables = (table for table in parsed.find_all(exp.Table) if not _is_own(table))
    return sqltext.SqlFacts(
        statement=parsed.key.upper().replace("_", " "),
        is_query=isinstance(parsed, exp.Query),
        tables=tuple(dict.fromkeys(_table_name(table) for table in tables)),
        has_source=parsed.find(exp.Table) is not None,
        columns=_columns(parsed),
        calls=_calls(parsed, scanned.tokens),
        selects=None if names is None else tuple(names),
        aliases=tuple(dict.fromkeys(_aliases(parsed))),
        beyond_query=_beyond_query(parsed),
        beyond_simple=_beyond_simple(parsed) if is_query else (),
        beyond_aggregate=tuple(dict.fromkeys(_inner(parsed))),
        has_aggregate=parsed.find(exp.AggFunc) is not None,
        data_type=_data_type(parsed) if form is sqltext.SqlForm.EXPRESSION else "",
        of_session=varies.get(Determinism.SESSION, ()),
        of_chance=varies.get(Determinism.RANDOM, ()),
        of_order=varies.get(Determinism.ORDER, ()),
    )


def _calls(parsed: exp.Expr, tokens: tuple[sqltext.Token, ...]) -> tuple[str, ...]:
    """Names before brackets that are neither syntax nor names of a table's columns.

    The tokens decide, not the tree: the parser replaces functions by others that mean the same.
    """
    found = Counter(_called(tokens))
    for alias in parsed.find_all(exp.TableAlias):
        if alias.columns:
            found[alias.name.casefold()] -= 1
    return tuple(sorted(name for name, count in found.items() if count > 0))


def _called(tokens: tuple[sqltext.Token, ...]) -> Iterator[str]:
    for place in range(len(tokens) - 1):
        token = tokens[place]
        if tokens[place + 1].value != "(" or token.kind not in (
            sqltext.TokenKind.WORD,
            sqltext.TokenKind.NAME,
        ):
            continue
        parts = [token.name]
        while place >= 2 and tokens[place - 1].value == ".":
            place -= 2
            parts.insert(0, tokens[place].name)
        name = ".".join(parts).casefold()
        if token.kind is sqltext.TokenKind.NAME or len(parts) > 1 or name not in _SYNTAX:
            yield name


def _is_own(table: exp.Table) -> bool:
    """Whether a table is the name of a WITH clause that is in scope where it stands."""
    around: list[exp.Expr] = [table]
    while around[-1].parent is not None:
        around.append(around[-1].parent)
    if len(table.parts) != 1:
        return False  # `a`.`b` is a table of a schema, and not what WITH `a.b` names
    name = table.name.lower()
    clauses = (node.args.get("with_") for node in around)
    return any(
        cte.alias_or_name.lower() == name
        for clause in clauses
        if isinstance(clause, exp.With)
        for cte in _names_in_scope(clause, around)
    )


def _names_in_scope(clause: exp.With, around: list[exp.Expr]) -> list[exp.Expr]:
    """The names of a clause that one of its own definitions, or the query behind it, can read."""
    names: list[exp.Expr] = clause.expressions
    inside = {id(node) for node in around}
    position = next((i for i, cte in enumerate(names) if id(cte) in inside), None)
    if position is None:
        return names
    return names[: position + 1] if clause.recursive else names[:position]


def _table_name(table: exp.Table) -> str:
    if not isinstance(table.this, exp.Identifier):
        return f"{table.this.sql(dialect=sqltext.SPARK)}"
    return ".".join(part.name for part in table.parts)


def _columns(parsed: exp.Expr) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for column in parsed.find_all(exp.Column):
        path = [part.name for part in column.parts]
        node: exp.Expr = column
        while isinstance(node.parent, exp.Dot) and node.parent.this is node:
            node = node.parent
            if not isinstance(node.args["expression"], exp.Identifier):
                break
            path.append(node.args["expression"].name)
        names[path_text(path)] = None
    return tuple(names)


def _aliases(parsed: exp.Expr) -> Iterator[str]:
    """Names given by AS, but for those of expressions that read a column of the same name."""
    for alias in parsed.find_all(exp.Alias):
        read = {column.name.casefold() for column in alias.this.find_all(exp.Column)}
        if alias.alias.casefold() not in read:
            yield alias.alias


def _beyond_query(parsed: exp.Expr) -> tuple[str, ...]:
    programs = ["TRANSFORM ... USING"] if parsed.find(exp.QueryTransform) else []
    tables = parsed.find_all(exp.Table)
    versions = ["AS OF"] if any(t.args.get("version") or t.args.get("when") for t in tables) else []
    return (*programs, *versions)


def _beyond_simple(parsed: exp.Expr) -> tuple[str, ...]:
    if not isinstance(parsed, exp.Select):
        return (parsed.key.upper().replace("_", " "),)
    clauses = list(_fact_clauses(parsed, _SIMPLE_CLAUSES))
    source = parsed.args.get("from_")
    if source is not None and isinstance(source.this, exp.Table):
        clauses.extend(_fact_clauses(source.this, frozenset({"this", "alias", "db", "catalog"})))
    return tuple(dict.fromkeys([*clauses, *_inner(parsed)]))


def _fact_clauses(node: exp.Expr, known: Iterable[str]) -> Iterator[str]:
    for name, value in node.args.items():
        if value and name not in known:
            yield _CLAUSE_NAMES.get(name, name.strip("_").upper())


def _inner(parsed: exp.Expr) -> Iterator[str]:
    for node in parsed.walk():
        if isinstance(node, exp.Query) and node is not parsed:
            yield "a subquery"
        elif isinstance(node, exp.Window):
            yield "a window function"
        elif isinstance(node, _GENERATORS) or (
            isinstance(node, exp.Anonymous) and node.name.casefold() in _GENERATOR_NAMES
        ):
            yield "a generator such as explode"


def _data_type(parsed: exp.Expr) -> str:
    try:
        found = annotate_types(parsed.copy(), dialect=sqltext.SPARK).type
    except Exception:  # noqa: BLE001 - `ceil()` fails there; Spark reports what is wrong with it
        return ""
    if found is None or found.this is exp.DataType.Type.UNKNOWN:
        return ""
    return str(found.sql(sqltext.SPARK)).lower()
