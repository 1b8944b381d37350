"""Types of join keys whose texts differ for equal values, and the casts that fix them.

Keys are compared as text unless `castDataType` is another type, and equal values of two types need
not have one text: 1 and 1.0, 1.0 and 1.00, a day and the midnight that begins it.
"""

from __future__ import annotations

from snaploom.models.common import DataType

DECIMAL_DIGITS = 38
"""Digits of the largest decimal that Spark has."""
_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 19}
"""Digits of whole numbers."""
_FLOATING = frozenset({"float", "double"})
_ANY_TEXT = frozenset({"string", "binary"})
"""Types whose values may be the text of any other."""
_NESTED = frozenset({"array", "struct", "map"})
_QUERY = "a query on one side that gives what the other side has"


def common_cast(one: DataType, other: DataType) -> str | None:
    """The fix for two types whose texts differ for equal values; None where they agree."""
    first, second = DataType.variant_of(one), DataType.variant_of(other)
    if one == other or {first, second} & (_ANY_TEXT | _NESTED):
        return None
    if {first, second} == {"date", "timestamp"}:
        return "castDataType: {date: {}} to compare days, or {timestamp: {}} to compare instants"
    digits = _whole_and_fraction(one), _whole_and_fraction(other)
    if digits[0] is not None and digits[1] is not None:
        if digits[0][1] == digits[1][1]:
            return None
        fraction = max(digits[0][1], digits[1][1])
        precision = min(DECIMAL_DIGITS, max(digits[0][0], digits[1][0]) + fraction)
        return f"castDataType: {{decimal: {{precision: {precision}, scale: {fraction}}}}}"
    if first in _FLOATING and second in _FLOATING:
        return None
    if all(_is_numeric(variant) for variant in (first, second)):
        return "castDataType: {double: {}}, which is exact for whole numbers up to 2^53"
    if "boolean" in (first, second) and all(
        variant == "boolean" or variant in _DIGITS for variant in (first, second)
    ):
        return "castDataType: {integer: {}}, where true is 1"
    return None if first == second else _QUERY


def what_helps(
    source: str, field_name: str, declared: DataType, actual: DataType | None, in_query: bool
) -> str:
    """The change in a relationship for data of another type, as one clause.

    `actual` is None where declarations have no name for the type of the data.
    """
    if actual is None:
        return "no dataType names the data's type"
    found = _flow_text(actual)
    if found is None:
        found = "the one that the data has"
    declare = f"give {source} a representation with {field_name} of dataType: {found}"
    if in_query:
        return f"{declare}, and let the query convert it"
    cast = common_cast(declared, actual) or _cast_of_equal_texts(declared, actual)
    return f"{declare}, and " + (cast if cast == _QUERY else f"every representation {cast}")


def _cast_of_equal_texts(one: DataType, other: DataType) -> str:
    """The cast for types that `common_cast` has nothing for: text, floats, and equal scales."""
    variants = [DataType.variant_of(data_type) for data_type in (one, other)]
    if variants[0] in _ANY_TEXT:
        return f"castDataType: {_flow_text(other) or '{string: {}}'}"
    if variants[1] in _ANY_TEXT:
        return f"castDataType: {_flow_text(one) or '{string: {}}'}"
    if set(variants) == _FLOATING:
        return "castDataType: {double: {}}"
    wider = max((one, other), key=lambda data_type: _whole_and_fraction(data_type) or (0, 0))
    return f"castDataType: {_flow_text(wider) or '{string: {}}'}"


def _flow_text(data_type: DataType) -> str | None:
    """A type as a declaration writes it on one line; None of nested ones, which take many."""
    if data_type.decimal is not None:
        precision, scale = data_type.decimal.precision, data_type.decimal.scale
        return f"{{decimal: {{precision: {precision}, scale: {scale}}}}}"
    variant = DataType.variant_of(data_type)
    return None if variant in _NESTED else f"{{{variant}: {{}}}}"


def _is_numeric(variant: str) -> bool:
    return variant in _FLOATING or variant in _DIGITS or variant == "decimal"


def _whole_and_fraction(data_type: DataType) -> tuple[int, int] | None:
    """Digits before and after the point; None of types without fixed ones."""
    if data_type.decimal is not None:
        scale = data_type.decimal.scale
        return data_type.decimal.precision - scale, scale
    digits = _DIGITS.get(DataType.variant_of(data_type))
    return None if digits is None else (digits, 0)
