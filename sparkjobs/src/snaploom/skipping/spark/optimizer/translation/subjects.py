"""Subjects of conditions: terms that an index is kept about, and when they are NULL."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from snaploom.skipping.core.predicates import And, Constant, IsNotNull, IsNull, Or, Predicate
from snaploom.skipping.core.terms import Term, expression_term
from snaploom.skipping.spark.optimizer.translation.casts import (
    DECIMAL,
    FLOATING,
    mode_of,
    split,
    type_of,
)
from snaploom.skipping.spark.optimizer.translation.preimages import values_of
from snaploom.skipping.spark.relations.expressions import (
    Call,
    Column,
    Columns,
    Expression,
    Literal,
    Opaque,
    as_text,
    names_of,
    parse,
    serialised,
)
from snaploom.types.schemas import INTEGER_BITS

# Terms of expressions in conditions, for lookup of indexes.

_NESTED = ("struct<", "array<", "map<")
"""Prefixes of types of which a query may read a part."""


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


# NULL-ness of an expression over columns as conditions on the columns.

_OF_DATES = (
    *("Year", "UnixDate", "DateAdd", "DateSub", "DateDiff", "AddMonths"),
    *("LastDay", "DayOfWeek", "WeekDay"),
)
_COMPARISONS = ("EqualTo", "LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual", "In")
_NEVER_NULL = ("IsNull", "IsNotNull", "EqualNullSafe", "IsNaN")
_PRESENT = ("Coalesce", "Greatest", "Least")
"""NULL where all parts are."""
_STRICT = frozenset(
    {
        *("Add", "Subtract", "Multiply", "Divide", "IntegralDivide", "Remainder", "Pmod"),
        *("UnaryMinus", "Abs", "Ceil", "Floor", "Round", "BRound", "Cast", "Not"),
        *_OF_DATES,
        *(name for name in _COMPARISONS if name != "In"),
    }
)
"""NULL wherever an operand is."""
_MODES = ("ANSI", "LEGACY")
"""In which overflow is no NULL, but for decimals as before ANSI."""


def null(subject: Expression, columns: Columns) -> Predicate | None:
    """Condition on the columns in every row where an expression is NULL; None if unknown."""
    match subject:
        case Literal():
            return Constant(subject.is_null)
        case Call(name) if name in _NEVER_NULL:
            return Constant(is_true=False)
        case Call(name, _, children) if name in _PRESENT:
            return And(tuple(part for child in children if (part := null(child, columns))))
        case Call("If" | "CaseWhen"):
            return _any(null(value, columns) for value in values_of(subject))
        case Call(_, _, children) if _is_null_by_operands(subject, columns):
            return _any(null(child, columns) for child in children)
    term = _null_column(subject, columns)
    return None if term is None else IsNull(term)


def not_null(subject: Expression, columns: Columns) -> Predicate | None:
    """Condition on the columns in every row where an expression is not NULL."""
    match subject:
        case Literal():
            return Constant(not subject.is_null)
        case Call(name, _, children) if name in _PRESENT:
            return _any(not_null(child, columns) for child in children)
        case Call("If" | "CaseWhen"):
            return _any(not_null(value, columns) for value in values_of(subject))
        case Call(name, _, children) if name in _STRICT:
            return And(tuple(part for child in children if (part := not_null(child, columns))))
    term = _null_column(subject, columns)
    return None if term is None else IsNotNull(term)


def _any(parts: Iterable[Predicate | None]) -> Predicate | None:
    found = list(parts)
    known = tuple(part for part in found if part is not None)
    return Or(known) if len(known) == len(found) else None


def _null_column(subject: Expression, columns: Columns) -> Term | None:
    names = names_of(subject)
    if names is None:
        return None
    term = term_of(subject, columns, columns.type_of(names))
    return term if isinstance(term, Term) else None


def _is_null_by_operands(call: Call, columns: Columns) -> bool:
    """Whether a call is NULL only if an operand is."""
    numbers = (*INTEGER_BITS, *FLOATING)
    kinds = {
        type_of(child, columns.type_of) for child in call.children if not isinstance(child, Literal)
    }
    match call.name:
        case "And" | "Or" | "Not":
            return True
        case name if name in _COMPARISONS:
            return True
        case "Add" | "Subtract" | "Multiply":
            if mode_of(call) == "ANSI" and _is_decimal(call, columns):
                return True
            return kinds <= set(numbers) and mode_of(call) in _MODES
        case "Divide" | "IntegralDivide" | "Remainder" | "Pmod":
            found = split(call)
            by_number = found is not None and found[1] != 0 and not found[2]
            return by_number and kinds <= set(numbers) and mode_of(call) in _MODES
        case "UnaryMinus" | "Abs" | "Ceil" | "Floor":
            return kinds <= set(numbers) or _is_decimal(call.children[0], columns)
        case "Round" | "BRound":
            return kinds <= set(numbers) and isinstance(call.children[1], Literal)
        case "Cast":
            to = str(call.arguments.get("dataType"))
            if mode_of(call) == "ANSI" and DECIMAL.fullmatch(to):
                return _is_decimal(call.children[0], columns)
            (kind,) = kinds or {""}
            if to in FLOATING:
                return kind in INTEGER_BITS or kind in FLOATING
            return kind in INTEGER_BITS and INTEGER_BITS.get(to, 0) >= INTEGER_BITS[kind]
    return call.name in _OF_DATES and kinds <= {"date", "int"}


def _is_decimal(expression: Expression, columns: Columns) -> bool:
    """Whether an expression is a decimal of known digits, or arithmetic over such ones."""
    if isinstance(expression, Call) and expression.name in ("Add", "Subtract", "Multiply"):
        return all(_is_decimal(child, columns) for child in expression.children)
    return DECIMAL.fullmatch(type_of(expression, columns.type_of)) is not None
