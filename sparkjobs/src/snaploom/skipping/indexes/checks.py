"""Checks of declarations by index types; refusals name the alternatives."""

from __future__ import annotations

from collections.abc import Collection

from snaploom.errors import IndexNotPossible
from snaploom.skipping.core.definition import IndexDefinition
from snaploom.skipping.core.terms import arrow_type

SUPPORTED = (
    "boolean, tinyint, smallint, int, bigint, float, double, decimal, date, timestamp, "
    "timestamp_ntz, string, binary"
)


def check_terms(
    definition: IndexDefinition, count: int = 1, types: Collection[str] | None = None
) -> None:
    """Refuse another number of terms, or terms of other types; `types` None for all keepable ones.

    Raises:
        IndexNotPossible: with what would be possible.
    """
    if len(definition.terms) != count:
        raise IndexNotPossible(
            f"{definition.type} is kept about {count} column{'s' * (count > 1)}",
            found=", ".join(term.label for term in definition.terms) or "none",
            expected=str(count),
            hint="declare one index for each column" if count == 1 else "name both columns",
        )
    for term in definition.terms:
        kept_as = arrow_type(term.data_type)
        if kept_as is None or (types is not None and term.data_type.split("(")[0] not in types):
            raise IndexNotPossible(
                f"{definition.type} cannot be kept about {term.label} of type {term.data_type}",
                found=term.data_type,
                expected=SUPPORTED if types is None else ", ".join(sorted(types)),
                hint="index an expression of a supported type over it, or one of its fields",
            )


def check_parameters(definition: IndexDefinition, names: Collection[str]) -> None:
    """Raise `IndexNotPossible` for parameters that the type does not have."""
    for name, _ in definition.parameters:
        if name not in names:
            raise IndexNotPossible(
                f"{definition.type} has no parameter {name}",
                found=name,
                expected=", ".join(sorted(names)) or "no parameters",
            )


def integer_parameter(
    definition: IndexDefinition, name: str, default: int, least: int, most: int
) -> int:
    """A parameter that is a whole number within bounds, else `IndexNotPossible`."""
    text = definition.parameter(name, str(default))
    if text.strip().isdecimal() and least <= int(text) <= most:
        return int(text)
    raise IndexNotPossible(
        f"parameter {name} of {definition.label} is not possible",
        found=text,
        expected=f"a whole number from {least} to {most}",
        hint=f"the default is {default}",
    )
