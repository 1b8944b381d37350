"""Types of OpenSearch's fields for types of Spark, both ways, as Flint maps them.

Flint's manual has the two rows of `date` swapped; its text has them right, and so does this table:

| field | Spark type |
|---|---|
| boolean | boolean |
| long, integer, short, byte | bigint, int, smallint, tinyint |
| double, float | double, float |
| date, format `strict_date` or `date` | date |
| date, format `strict_date_optional_time_nanos`, `strict_date_optional_time` or `epoch_millis`, or none | timestamp |
| keyword | string |
| text | string with `osType: text` in the field's metadata |
| binary | binary, as base64 |
| object | struct |

Any field of OpenSearch may hold several values and no mapping shows that: arrays are those that a given
schema declares. Decimals, maps, intervals and variants have no field that keeps them whole.
"""  # noqa: E501 - a table cell cannot be broken

from __future__ import annotations

from collections.abc import Mapping

from snaploom.errors import IndexNotPossible

OWN = "_snaploom"
"""Field of a document that holds what is ours; readers of Flint ask for fields by name."""

DATE_FORMAT = "strict_date"
TIMESTAMP_FORMAT = "strict_date_optional_time_nanos"

_FIELDS = {
    "boolean": "boolean",
    "bigint": "long",
    "int": "integer",
    "smallint": "short",
    "tinyint": "byte",
    "double": "double",
    "float": "float",
    "string": "keyword",
    "binary": "binary",
}
_TYPES = {field: data_type for data_type, field in _FIELDS.items()} | {"text": "string"}
_DATE_FORMATS = frozenset({DATE_FORMAT, "date"})
_TIMESTAMP_FORMATS = frozenset({TIMESTAMP_FORMAT, "strict_date_optional_time", "epoch_millis"})


def field_of(data_type: str) -> dict[str, object] | None:
    """The field for a simple type of Spark (its `catalogString`); None where there is none."""
    if data_type in _FIELDS:
        return {"type": _FIELDS[data_type]}
    if data_type == "date":
        return {"type": "date", "format": DATE_FORMAT}
    if data_type in ("timestamp", "timestamp_ntz"):
        return {"type": "date", "format": TIMESTAMP_FORMAT}
    return None


def type_of(name: str, field: Mapping[str, object]) -> str:
    """Spark's `catalogString` of a simple field, else `IndexNotPossible`."""
    kind = str(field.get("type", ""))
    if kind == "date":
        return _type_of_date(name, str(field.get("format", TIMESTAMP_FORMAT)))
    if kind not in _TYPES:
        raise IndexNotPossible(
            f"the field {name} has a type that Spark has none for",
            found=kind,
            expected=", ".join(sorted([*_TYPES, "date", "object"])),
            hint="give a schema without this field",
        )
    return _TYPES[kind]


def _type_of_date(name: str, text: str) -> str:
    formats = {part.strip() for part in text.split("||")}
    if formats <= _DATE_FORMATS:
        return "date"
    if formats <= _TIMESTAMP_FORMATS:
        return "timestamp"
    raise IndexNotPossible(
        f"the field {name} has a format of dates that is not read",
        found=text,
        expected=", ".join(sorted(_DATE_FORMATS | _TIMESTAMP_FORMATS)),
        hint="give a schema that reads it as STRING",
    )
