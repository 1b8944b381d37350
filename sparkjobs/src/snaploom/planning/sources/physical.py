"""Checks that files, tables and databases share: names of columns, the field of the time."""

from __future__ import annotations

from collections.abc import Sequence

from snaploom.models.codes import make_finding
from snaploom.models.common import DataType, SchemaField
from snaploom.models.datasource import (
    DataSource,
    FromFieldValue,
    SnapshotSettings,
    TimeFormat,
)
from snaploom.planning.commonchecks.fields import Findings, duplicate_findings, zone_findings
from snaploom.planning.prefix import SNAPSHOT_TYPES, UriPrefix

_WHOLE = ("byte", "short", "integer", "long", "decimal")
COLUMN_TYPES = {
    TimeFormat.ISO8601_DATE: ("string", "date"),
    TimeFormat.ISO8601_DATE_TIME: ("string",),
    TimeFormat.TIMESTAMP: ("timestamp", "timestampNtz", "date"),
    TimeFormat.UNIX_MILLISECONDS: _WHOLE,
    TimeFormat.UNIX_SECONDS: _WHOLE,
    TimeFormat.PATTERN: ("string", *_WHOLE),
}
"""Types of a column from which each time format is read (rule W14)."""


def schema_findings(fields: Sequence[SchemaField], owner: DataSource, path: str) -> Findings:
    """Fields of one struct whose names are equal ignoring case, at every level."""
    inner = (
        finding
        for index, field in enumerate(fields)
        for finding in _type_findings(field.data_type, owner, f"{path}[{index}].dataType")
    )
    # One finding a name: at the field's name rather than at the whole field.
    own = duplicate_findings((field.name for field in fields), owner, path)
    return (*(f.model_copy(update={"path": f"{f.path}.name"}) for f in own), *inner)


def _type_findings(data_type: DataType, owner: DataSource, path: str) -> Findings:
    if data_type.struct is not None:
        return schema_findings(data_type.struct.fields_, owner, f"{path}.struct.fields")
    if data_type.array is not None:
        return _type_findings(data_type.array.element_type, owner, f"{path}.array.elementType")
    if data_type.map_ is not None:
        return (
            *_type_findings(data_type.map_.key_type, owner, f"{path}.map.keyType"),
            *_type_findings(data_type.map_.value_type, owner, f"{path}.map.valueType"),
        )
    return ()


def snapshot_findings(
    settings: SnapshotSettings,
    columns: Sequence[SchemaField],
    owner: DataSource,
    path: str,
    prefix: UriPrefix | None = None,
) -> Findings:
    """Faults of the field of the snapshot time, as far as declarations show.

    `prefix` captures fields of paths; `path` is the field path of the declaration.
    """
    by_field = settings.from_field_value
    if by_field is None:
        return ()
    at = f"{path}.snapshot.fromFieldValue"
    return (
        *zone_findings(by_field.default_timezone, owner, f"{at}.defaultTimezone"),
        *_time_type(by_field, columns, owner, at, prefix),
    )


def _time_type(
    by_field: FromFieldValue,
    columns: Sequence[SchemaField],
    owner: DataSource,
    path: str,
    prefix: UriPrefix | None,
) -> Findings:
    capture = prefix.capture(by_field.field_name) if prefix else None
    if capture is not None:
        given, allowed = str(capture.type), tuple(map(str, SNAPSHOT_TYPES[by_field.time_format]))
    else:
        folded = by_field.field_name.casefold()
        column = next((c for c in columns if c.name.casefold() == folded), None)
        if column is None:
            return ()  # only the data shows it; where a schema is declared, it is judged there
        given, allowed = _variant(column.data_type), COLUMN_TYPES[by_field.time_format]
    if given in allowed:
        return ()
    return (
        make_finding(
            "SL142",
            f"{by_field.time_format} cannot be read from a field of this type",
            resource=owner.identity,
            path=f"{path}.timeFormat",
            found=f"{by_field.field_name} of type {given}",
            expected=f"a field of type {' or '.join(allowed)}",
        ),
    )


def _variant(data_type: DataType) -> str:
    variant = DataType.variant_of(data_type)
    if data_type.decimal is not None and data_type.decimal.scale != 0:
        return f"decimal with {data_type.decimal.scale} digits after the point"
    return variant
