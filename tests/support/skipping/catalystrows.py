"""An oracle for conditions: serialised Catalyst expressions and predicates, evaluated on one row.

Written from Spark's rules of three-valued logic and its total order of floating-point numbers,
with nothing of the library's code for either. A row maps a column to its value, None for NULL.
"""

import math
import re
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from fractions import Fraction

from snaploom.skipping.core import predicates as p

Row = Mapping[str, object]

ORDER = {
    "EqualTo": lambda left, right: left == right,
    "LessThan": lambda left, right: left < right,
    "LessThanOrEqual": lambda left, right: left <= right,
    "GreaterThan": lambda left, right: left > right,
    "GreaterThanOrEqual": lambda left, right: left >= right,
}
SYMBOLS = {
    p.Operator.EQ: "EqualTo",
    p.Operator.LT: "LessThan",
    p.Operator.LE: "LessThanOrEqual",
    p.Operator.GT: "GreaterThan",
    p.Operator.GE: "GreaterThanOrEqual",
}


def ranked(value: object) -> object:
    """A key that orders as Spark does: NaN equals itself and is greatest."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value.encode() if isinstance(value, str) else value


def catalyst(node: Sequence, row: Row) -> object:
    """The value of a serialised expression, None for NULL."""
    name, arguments, *children = node
    if name == "col":
        return row[arguments]
    if name == "lit":
        is_float = children[0] in ("double", "float") and arguments is not None
        return float(arguments) if is_float else arguments
    values = [catalyst(child, row) for child in children]
    if name == "And":
        return False if False in values else None if None in values else True
    if name == "Or":
        return True if True in values else None if None in values else False
    if name == "IsNull":
        return values[0] is None
    if name == "IsNotNull":
        return values[0] is not None
    if name == "EqualNullSafe":
        return ranked(values[0]) == ranked(values[1])
    if name == "IsNaN":
        return values[0] is not None and math.isnan(values[0])
    if name == "AtLeastNNonNulls":
        return sum(_is_present(value) for value in values) >= arguments["n"]
    if name == "Coalesce":
        return next((value for value in values if value is not None), None)
    if name == "If":
        return values[1] if values[0] is True else values[2]
    if name == "CaseWhen":
        return _case(values)
    if name in ("In", "InSet"):
        return _in(values[0], [*values[1:], *arguments.get("values", [])])
    return None if None in values else _null_intolerant(name, arguments, values)


def _is_present(value: object) -> bool:
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def _case(values: Sequence) -> object:
    pairs = len(values) // 2
    for position in range(pairs):
        if values[2 * position] is True:
            return values[2 * position + 1]
    return values[-1] if len(values) % 2 else None


def _in(value: object, members: Sequence) -> bool | None:
    if value is None:
        return None
    if any(member is not None and ranked(member) == ranked(value) for member in members):
        return True
    return None if None in members else False


def _null_intolerant(name: str, arguments: Mapping, values: Sequence) -> object:
    if name in ORDER:
        return ORDER[name](ranked(values[0]), ranked(values[1]))
    if name == "Not":
        return not values[0]
    if name == "StartsWith":
        return values[0].startswith(values[1])
    if name == "EndsWith":
        return values[0].endswith(values[1])
    if name == "Contains":
        return values[1] in values[0]
    if name == "Like":
        return _like(values[0], values[1], arguments["escapeChar"])
    if name == "Lower":
        return values[0].lower()
    if name == "Substring":
        return values[0][: values[2]]
    if name == "Year":
        return (date(1970, 1, 1) + timedelta(days=values[0])).year
    if name == "Cast" and arguments["dataType"] == "double":
        return float(values[0])
    raise NotImplementedError(name)


def _like(text: str, pattern: str, escape: str) -> bool:
    regex = re.sub(
        rf"{re.escape(escape)}(.)|(%)|(_)|(.)",
        lambda m: re.escape(m[1]) if m[1] else ".*" if m[2] else "." if m[3] else re.escape(m[4]),
        pattern,
        flags=re.DOTALL,
    )
    return re.fullmatch(regex, text, re.DOTALL) is not None


def holds(predicate: p.Predicate, row: Row) -> bool | None:
    """The value of a predicate; `Unknown` is TRUE, and so must not stand under a Not."""
    match predicate:
        case p.And(parts):
            values = [holds(part, row) for part in parts]
            return False if False in values else None if None in values else True
        case p.Or(parts):
            values = [holds(part, row) for part in parts]
            return True if True in values else None if None in values else False
        case p.Not(part):
            value = holds(part, row)
            return None if value is None else not value
        case p.Constant(is_true):
            return is_true
        case p.Unknown():
            return True
    names = predicate.term.names
    if names is None:
        return True  # about an expression, which the oracle does not evaluate again
    return _leaf(predicate, row[names[0]])


def _leaf(leaf: p.Leaf, value: object) -> bool | None:
    match leaf:
        case p.IsNull():
            return value is None
        case p.IsNotNull():
            return value is not None
    if value is None:
        return None
    key = ranked(value)
    match leaf:
        case p.Comparison(_, p.Operator.NE, literal):
            return key != ranked(literal)
        case p.Comparison(_, operator, literal):
            return ORDER[SYMBOLS[operator]](key, ranked(literal))
        case p.In(_, values, is_negated):
            return (key in [ranked(each) for each in values]) is not is_negated
        case p.Residue(_, modulus, first, count, low, high):
            whole = ranked(_units(value, leaf.term.data_type))
            is_between = (low is None or low <= whole) and (high is None or whole <= high)
            return is_between and (whole - first) % modulus < count
        case p.StartsWith(_, prefix, is_negated):
            return key.startswith(prefix) is not is_negated
        case p.Contains(_, piece):
            return piece in key
        case p.EndsWith(_, suffix):
            return key.endswith(suffix)
    raise NotImplementedError(leaf)


def _units(value: object, data_type: str) -> int:
    """A whole number, or a decimal's number without its point."""
    digits = int(data_type.rstrip(")").split(",")[1]) if data_type.startswith("decimal") else 0
    whole = Fraction(value) * 10**digits
    assert whole.denominator == 1
    return int(whole)
