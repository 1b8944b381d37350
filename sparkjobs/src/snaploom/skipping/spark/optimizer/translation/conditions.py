"""Subjects of conditions, and conditions as a whole: ranges, LIKE and NULL of expressions."""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from snaploom.skipping.core.definition import SkippingDefinition, Term, Value, expression_term
from snaploom.skipping.core.predicates import (
    And,
    Comparison,
    Constant,
    Contains,
    EndsWith,
    IsNotNull,
    IsNull,
    Operator,
    Or,
    Predicate,
    StartsWith,
    Unknown,
)
from snaploom.skipping.spark.optimizer.translation import preimages
from snaploom.skipping.spark.optimizer.translation.preimages import values_of
from snaploom.skipping.spark.optimizer.translation.spans import (
    DECIMAL,
    FLOATING,
    Span,
    Spans,
    compared,
    demanded,
    mode_of,
    number_of,
    split,
    type_of,
)
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


# Translates LIKE to conditions on the text's bytes.

_REPLACEMENT = "\ufffd"
"""Text that LIKE sees for bytes that are not UTF-8: the bytes themselves do not have it."""


def like(term: Term, value: bytes, escape: str, *, negated: bool) -> Predicate:
    """`term LIKE value ESCAPE escape`, exact for plain text and `text%`, else necessary."""
    pattern = value.decode(errors="replace")
    text = f"{term.label} {'NOT ' * negated}LIKE '{pattern}'"
    pieces = _pieces(pattern, escape)
    if pieces is None or _REPLACEMENT in pattern:
        return Unknown(text, "the pattern is not understood")
    texts = [piece.text.encode() for piece in pieces]
    if len(pieces) == 1:
        return Comparison(term, Operator.NE if negated else Operator.EQ, texts[0])
    if len(pieces) == 2 and not texts[1] and not pieces[0].is_counted:
        return StartsWith(term, texts[0], negated)
    if negated:
        return Unknown(text, "NOT LIKE implies nothing that an index could disprove")
    needs: list[Predicate] = [IsNotNull(term)]
    if texts[0]:
        needs.append(StartsWith(term, texts[0]))
    needs.extend(Contains(term, text) for text in dict.fromkeys(texts[1:-1]) if text)
    if texts[-1]:
        needs.append(EndsWith(term, texts[-1]))
    return And(tuple(needs))


@dataclass(frozen=True)
class _Piece:
    text: str
    """Literal text between two wildcards, or before the first, or after the last."""
    is_counted: bool
    """Whether the wildcard after it is `_`, which stands for exactly one character."""


def _pieces(pattern: str, escape: str) -> list[_Piece] | None:
    """Literal texts between wildcards; None where Spark itself would refuse the pattern."""
    pieces: list[_Piece] = []
    text = ""
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, None)
            if following not in ("_", "%", escape):
                return None
            text += following or ""
        elif character in "_%":
            pieces.append(_Piece(text, character == "_"))
            text = ""
        else:
            text += character
    return [*pieces, _Piece(text, False)]


# Conditions on a column that follow from a condition on an expression over it.

MOST_STEPS = 20
"""Expressions that are nested deeper than a person writes them are not followed: each step may
multiply the spans."""
_EVERY_ROW = Constant(is_true=True)


@dataclass(frozen=True)
class Surroundings:
    """Columns of expressions, and the translation of conditions within them."""

    columns: Columns
    """The relation's columns as they are now."""
    holds: preimages.Holds
    is_null: preimages.IsNull


def implied(
    subject: Expression,
    operator: Operator,
    value: Value,
    around: Surroundings,
    data_type: str,
) -> tuple[Predicate, ...]:
    """Conditions of `subject operator value` on the column inside; empty if there is no rule."""
    match subject:
        case Call("Substring", _, (child, Literal(int(start)), _)) if start in (0, 1):
            return _of_beginning(child, operator, value, around.columns)
        case Call("StringTrimRight", _, (child,)):
            return _of_beginning(child, operator, value, around.columns)
    written = preimages.days_of(subject, operator, value, around.columns.type_of)
    if written is not None:
        subject, spans, data_type = written
        found = _within(subject, spans, data_type, around, MOST_STEPS)
    else:
        wanted = compared(operator, value, data_type)
        found = None if wanted is None else _within(subject, wanted, data_type, around, MOST_STEPS)
    return () if found is None else (found,)


def _within(
    subject: Expression, spans: Spans, data_type: str, around: Surroundings, steps: int
) -> Predicate | None:
    for left in range(steps, 0, -1):
        names = names_of(subject)
        if names is not None:
            term = term_of(subject, around.columns, around.columns.type_of(names))
            return None if isinstance(term, str) else demanded(term, spans)
        match subject:
            case Literal():
                if subject.is_null:
                    return Constant(is_true=False)
                if isinstance(subject.value, float) and math.isnan(subject.value):
                    return Constant(spans.has_nan)
                number = number_of(subject)
                return (
                    None
                    if number is None
                    else Constant(any(_holds(span, number) for span in spans.spans))
                )
            case Call("Greatest" | "Least" as name, _, parts):
                return _extreme_within(name, parts, spans, data_type, around, left - 1)
        branches = preimages.branches_of(subject, data_type, around.holds, around.is_null)
        if branches:
            return Or(
                tuple(
                    And((each.given, _needed(each.value, spans, data_type, around, left - 1)))
                    for each in branches
                )
            )
        moved = preimages.step(subject, spans, data_type, around.columns.type_of)
        if moved is None:
            return None
        subject, spans, data_type = moved
    return None


def _needed(
    subject: Expression, spans: Spans, data_type: str, around: Surroundings, steps: int
) -> Predicate:
    return _within(subject, spans, data_type, around, steps) or _EVERY_ROW


def _holds(span: Span, number: Fraction) -> bool:
    is_above = span.low is None or span.low <= number
    return is_above and (span.high is None or number <= span.high)


def _extreme_within(
    name: str,
    parts: Sequence[Expression],
    spans: Spans,
    data_type: str,
    around: Surroundings,
    steps: int,
) -> Predicate:
    """Condition that one part is in the spans and no other non-NULL part is beyond them.

    The second is left open for parts that have parts themselves.
    """
    one = Or(tuple(_needed(part, spans, data_type, around, steps) for part in parts))
    limit = _upto(spans) if name == "Greatest" else _from(spans)
    if limit is None:
        return one
    others = (
        Or((around.is_null(part, data_type), _needed(part, limit, data_type, around, steps)))
        for part in parts
        if not preimages.has_branches(part)
    )
    return And((one, *others))


def _upto(spans: Spans) -> Spans | None:
    highs = [span.high for span in spans.spans]
    if spans.has_nan or not highs or None in highs:
        return None
    return Spans((Span(high=max(high for high in highs if high is not None)),))


def _from(spans: Spans) -> Spans | None:
    lows = [span.low for span in spans.spans]
    if not lows or None in lows:
        return None
    return Spans((Span(low=min(low for low in lows if low is not None)),), has_nan=True)


def _of_beginning(
    child: Expression, operator: Operator, value: Value, columns: Columns
) -> tuple[Predicate, ...]:
    """Condition on a text from one on its beginning of any length."""
    term = term_of(child, columns, "string")
    if operator is not Operator.EQ or not isinstance(value, bytes) or isinstance(term, str):
        return ()
    return (StartsWith(term, value),)


# Conditions as a whole: lookup of indexes over boolean expressions.

_CHAINS = ("And", "Or")
_TURNED = {
    "EqualTo": "EqualTo",
    "EqualNullSafe": "EqualNullSafe",
    "LessThan": "GreaterThan",
    "LessThanOrEqual": "GreaterThanOrEqual",
    "GreaterThan": "LessThan",
    "GreaterThanOrEqual": "LessThanOrEqual",
}
"""Comparisons when the sides change places."""
_OPPOSITES = {
    "LessThan": "GreaterThanOrEqual",
    "LessThanOrEqual": "GreaterThan",
    "GreaterThan": "LessThanOrEqual",
    "GreaterThanOrEqual": "LessThan",
}
"""Under NOT: exact, since Spark's order is total and both are NULL for the same rows."""


@dataclass(frozen=True)
class IndexedConditions:
    """Conditions with an index."""

    terms: frozenset[Term] = frozenset()

    @cached_property
    def _conjunctions(self) -> tuple[tuple[Term, frozenset[str]], ...]:
        found = []
        for term in self.terms:
            (_, expression) = json.loads(term.key)
            whole = parse(expression)
            if isinstance(whole, Call) and whole.name == "And":
                found.append((term, frozenset(map(_text, whole.children))))
        return tuple(found)

    def of_whole(self, whole: Expression, columns: Columns, *, negated: bool) -> list[Predicate]:
        """Conditions implied by a TRUE condition, or a FALSE one if negated; empty if unknown."""
        found: list[Predicate] = []
        for form, is_opposite in ((whole, False), (_opposite(whole), True)):
            term = condition_term(form, columns)
            if term in self.terms and isinstance(term, Term):
                found.append(Comparison(term, Operator.EQ, negated is is_opposite))
        return found

    def of_parts(self, parts: Sequence[Expression], columns: Columns) -> list[Predicate]:
        """Conditions implied by several conditions that are TRUE at once."""
        if not self._conjunctions:
            return []
        known = {_text(_spelt(part, columns)) for part in _members("And", parts)}
        return [
            Comparison(term, Operator.EQ, True)
            for term, members in self._conjunctions
            if members <= known
        ]


def indexed_conditions(definitions: Iterable[SkippingDefinition]) -> IndexedConditions:
    """Conditions indexed by some definitions."""
    return IndexedConditions(
        frozenset(
            term
            for definition in definitions
            for index in definition.indexes
            for term in index.terms
            if term.data_type == "boolean" and term.names is None
        )
    )


def condition_term(condition: Expression, columns: Columns) -> Term | str:
    """Term of a condition, the same for all of its forms; or the reason why there is none."""
    return term_of(_one_form(condition), columns, "boolean")


def _spelt(condition: Expression, columns: Columns) -> Expression:
    """Form of a condition in a term's key; unchanged if it is no term."""
    term = condition_term(condition, columns)
    if isinstance(term, str) or term.names is not None:
        return condition
    (_, expression) = json.loads(term.key)
    return parse(expression)


def _opposite(condition: Expression) -> Expression:
    match condition:
        case Call("Not", _, (child,)):
            return child
        case Call(name, arguments, children) if name in _OPPOSITES:
            return Call(_OPPOSITES[name], arguments, children)
    return Call("Not", {}, (condition,))


def _one_form(condition: Expression) -> Expression:
    match condition:
        case Call(name, arguments, children) if name in _CHAINS:
            members = sorted(map(_one_form, _members(name, children)), key=_text)
            return Call(name, arguments, tuple(members))
        case Call("Not", arguments, (child,)):
            return Call("Not", arguments, (_one_form(child),))
        case Call(name, arguments, (left, right)) if name in _TURNED:
            if isinstance(left, Literal) or (
                not isinstance(right, Literal) and _text(right) < _text(left)
            ):
                return Call(_TURNED[name], arguments, (right, left))
    return condition


def _members(name: str, parts: Sequence[Expression]) -> Iterator[Expression]:
    for part in parts:
        if isinstance(part, Call) and part.name == name:
            yield from _members(name, part.children)
        else:
            yield part


def _text(expression: Expression) -> str:
    return json.dumps(serialised(expression), ensure_ascii=False, separators=(",", ":"))
