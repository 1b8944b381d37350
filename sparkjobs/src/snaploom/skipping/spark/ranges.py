"""What a condition on an expression over a column implies for the column itself.

Each rule gives *necessary* conditions on the column: a row for which one is not TRUE cannot satisfy
the condition. None is exact, so none is ever negated. They matter because people write them:
PySpark makes 5.1 a double, so `price > 5.1` on a decimal column arrives as
`cast(price as double) > 5.1`, which Spark's optimizer does not unwrap (measured on 4.3); nor does
it unwrap `year(ts) = 2024`, `i + 1 < 5` or `date_add(d, 3) > x`.

Rules are turned around from the outside inwards: from the numbers that an expression may be to
those that its one part with a column may be (`snaploom.skipping.spark.preimages`), down to the
column. Where no rule is known, nothing is implied.
"""

from __future__ import annotations

from snaploom.skipping.core.predicates import Operator, Predicate, StartsWith
from snaploom.skipping.core.terms import Value
from snaploom.skipping.spark.columns import Columns
from snaploom.skipping.spark.expressions import Call, Expression, Literal
from snaploom.skipping.spark.preimages import step
from snaploom.skipping.spark.spans import compared, demanded
from snaploom.skipping.spark.subjects import names_of, term_of

MOST_STEPS = 20
"""Expressions that are nested deeper than a person writes them are not followed: each step may
multiply the spans."""


def implied(
    subject: Expression,
    operator: Operator,
    value: Value,
    columns: Columns,
    data_type: str,
) -> tuple[Predicate, ...]:
    """What `subject operator value` needs of the column inside; nothing if there is no rule.

    Args:
        subject: the expression.
        operator: between the expression and the value.
        value: the literal's.
        columns: the relation's columns as they are now.
        data_type: the literal's Spark type, which is the expression's.
    """
    if names_of(subject) is not None:
        return ()
    match subject:
        case Call("Substring", _, (child, Literal(int(start)), _)) if start in (0, 1):
            return _of_beginning(child, operator, value, columns)
    spans = compared(operator, value, data_type)
    for _ in range(MOST_STEPS):
        if spans is None:
            return ()
        names = names_of(subject)
        if names is not None:
            term = term_of(subject, columns, columns.type_of(names))
            found = None if isinstance(term, str) else demanded(term, spans)
            return () if found is None else (found,)
        moved = step(subject, spans, data_type, columns.type_of)
        if moved is None:
            return ()
        subject, spans, data_type = moved
    return ()


def _of_beginning(
    child: Expression, operator: Operator, value: Value, columns: Columns
) -> tuple[Predicate, ...]:
    """What the text begins with is what its beginning is, however long that is."""
    term = term_of(child, columns, "string")
    if operator is not Operator.EQ or not isinstance(value, bytes) or isinstance(term, str):
        return ()
    return (StartsWith(term, value),)
