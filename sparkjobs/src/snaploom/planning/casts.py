"""Which types Spark's `try_cast` takes to which, as far as declarations can name them."""

from __future__ import annotations

from snaploom.models.common import DataType

_WHOLE = frozenset(["byte", "short", "integer", "long"])
_NUMBERS = _WHOLE | {"float", "double", "decimal"}
_FROM: dict[str, frozenset[str]] = {
    "binary": frozenset(["string"]),
    "boolean": _NUMBERS | {"string"},
    "calendarInterval": frozenset(["string"]),
    "date": frozenset(["string", "timestamp", "timestampNtz"]),
    "timestamp": _NUMBERS | {"string", "date", "timestampNtz"},
    "timestampNtz": frozenset(["string", "date", "timestamp"]),
    **dict.fromkeys(_NUMBERS, _NUMBERS | {"string", "boolean", "timestamp"}),
}
"""Simple types from which each type can be cast, besides itself."""


_CONTAINERS = frozenset(["array", "map", "struct"])


def can_cast(given: DataType, wanted: DataType) -> bool:
    """Whether Spark can cast one type to another at all; a single value may still become NULL."""
    before, after = DataType.variant_of(given), DataType.variant_of(wanted)
    if before in _CONTAINERS or after in _CONTAINERS:
        return _can_cast_inside(given, wanted)
    return before in (after, "null") or after == "string" or before in _FROM.get(after, ())


def _can_cast_inside(given: DataType, wanted: DataType) -> bool:
    """The same of parts of containers, inside which Spark casts more simple types."""
    before, after = DataType.variant_of(given), DataType.variant_of(wanted)
    if before == "null" or after == "string":
        return True
    if given.array is not None and wanted.array is not None:
        return _can_cast_inside(given.array.element_type, wanted.array.element_type)
    if given.map_ is not None and wanted.map_ is not None:
        keys = (given.map_.key_type, wanted.map_.key_type)
        return _can_cast_inside(*keys) and _can_cast_inside(
            given.map_.value_type, wanted.map_.value_type
        )
    if given.struct is not None and wanted.struct is not None:
        one, other = given.struct.fields_, wanted.struct.fields_
        return len(one) == len(other) and all(
            _can_cast_inside(a.data_type, b.data_type) for a, b in zip(one, other, strict=True)
        )
    return not {before, after} & _CONTAINERS
