"""Terms of expressions in conditions, for lookup of indexes.

A chain of names is a column term. Any other deterministic expression over columns is a term too,
by its serialised form, so that an index over exactly this expression can serve it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from snaploom.skipping.core.terms import Term, expression_term
from snaploom.skipping.spark.relations.columns import Columns
from snaploom.skipping.spark.relations.expressions import (
    Call,
    Column,
    Expression,
    Opaque,
    as_text,
    names_of,
    parse,
    serialised,
)

_NESTED = ("struct<", "array<", "map<")
"""How types begin of which a query may read a part."""


def term_of(subject: Expression, columns: Columns, data_type: str) -> Term | str:
    """Term of an expression of type `data_type` (empty: its own), or why there is none (S7)."""
    names = names_of(subject)
    if names is not None:
        return _column(names, subject, columns, data_type)
    problem = _problem(subject, columns)
    if problem:
        return problem
    canonical = canonical_form(subject, columns)
    return expression_term(serialised(canonical), data_type, as_text(canonical))


def canonical_form(subject: Expression, columns: Columns) -> Expression:
    """The expression with columns spelt as the schema spells them."""
    match subject:
        case Column(name, data_type):
            found = columns.find((name,))
            names = found.names if found is not None else None
            return Column(names[0], data_type) if names else subject
        case Call(name, arguments, children):
            return Call(
                name, arguments, tuple(canonical_form(child, columns) for child in children)
            )
    return subject


def _column(
    names: tuple[str, ...], subject: Expression, columns: Columns, data_type: str
) -> Term | str:
    known = columns.find(names)
    label = ".".join(names)
    if known is None:
        return f"{label} is not a column of the files"
    if (known.names or names)[0] in columns.defaulted:
        return f"{label} has a DEFAULT, which files without the column read as a value"
    claimed = subject.data_type if isinstance(subject, Column) else data_type
    if (data_type or known.data_type) != known.data_type or (
        len(names) == 1 and claimed != known.data_type
    ):
        return f"{label} is {known.data_type} in the files and {claimed or data_type} in the query"
    return known


def _problem(subject: Expression, columns: Columns) -> str:
    leaves = list(_leaves(subject))
    opaque = [leaf for leaf in leaves if isinstance(leaf, Opaque)]
    if opaque:
        return f"{opaque[0].text or 'a part'} is known only when the query runs"
    used = [leaf for leaf in leaves if isinstance(leaf, Column)]
    if not used:
        return "speaks of no column"
    for column in used:
        term = columns.find((column.name,))
        if term is None:
            return f"{column.name} is not a column of the files"
        # Of a nested column, what is read of it is written down with its type.
        if term.data_type != column.data_type and not column.data_type.startswith(_NESTED):
            return f"{column.name} is {term.data_type} in the files and {column.data_type} here"
        if (term.names or ("",))[0] in columns.defaulted:
            return f"{column.name} has a DEFAULT, which files without the column read as a value"
    return ""


def _leaves(expression: Expression) -> Iterator[Expression]:
    if isinstance(expression, Call) and expression.children:
        for child in expression.children:
            yield from _leaves(child)
    else:
        yield expression


def root_names(term: Term) -> frozenset[str]:
    """Names of the top-level columns in a term."""
    if term.names is not None:
        return frozenset(term.names[:1])
    (_, expression) = json.loads(term.key)
    leaves = _leaves(parse(expression))
    return frozenset(leaf.name for leaf in leaves if isinstance(leaf, Column))


def hint_of(term: Term) -> str:
    """Advice for people on an index that would serve a condition on a term."""
    if term.names is not None:
        return f"add an index over {term.label}"
    (_, expression) = json.loads(term.key)
    return _hint(parse(expression))


def _hint(subject: Expression) -> str:
    text = as_text(subject)
    over = f"add an index over the expression {text}"
    match subject:
        case Call("Cast", _, (child,)) if names_of(child) is not None:
            return f"compare {as_text(child)} with a literal of its own type, or {over}"
        case Call("Year" | "Month" | "TruncTimestamp" | "TruncDate" | "DateFormatClass" | "Hour"):
            return f"compare the column with a range, or {over}"
        case Call("Add" | "Subtract" | "Multiply" | "Divide" | "UnaryMinus"):
            return f"what follows for its column stands beside it, if anything does; or {over}"
        case Call("RLike"):
            return f"use LIKE 'prefix%' if the pattern begins with plain text, or {over}"
        case Call("Lower" | "Upper" | "StringTrim" | "Substring" | "Concat"):
            return f"compare the column itself, or {over}"
    return over
