"""Flint's view of a row: the fields of its columns, in types of OpenSearch.

Flint drops a file when no document of it matches, and knows no "unknown" for most kinds. A row
that do not fit whole in Flint's fields (bounds that were cut, NaN and infinity, a text that is
too long, a year beyond 9999) therefore shows no field at all, not even the path: for Flint the file
is not in the index. What is rounded is rounded outwards: OpenSearch compares milliseconds.
"""

from __future__ import annotations

import base64
import datetime as dt
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from snaploom.interop.flint.fields import field_of
from snaploom.interop.flint.metadata import (
    FILE_PATH,
    MIN_MAX_FIELDS,
    FlintColumn,
    FlintForm,
    FlintMetadata,
    file_uri,
)
from snaploom.skipping.core.definition import IndexDefinition, SkippingDefinition
from snaploom.skipping.core.filetable import field_column, values_column
from snaploom.skipping.stores.port import StoredState

LONGEST_TERM = 8191
"""Characters of a text that OpenSearch surely indexes: 32,766 bytes, 4 for a character."""

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_DAY_ZERO = dt.date(1970, 1, 1).toordinal()
_MILLISECOND = 1000

Row = Mapping[str, object]
"""One row of a table of rows: values by column, in Catalyst's internal form."""


class NotRepresentable(Exception):
    """A value that Flint's fields cannot hold; never leaves this package."""


@dataclass(frozen=True)
class ShownIndex:
    """An index that Flint's form can show."""

    index: IndexDefinition
    """Index in our form."""
    column: str
    """Name of the column, nested ones with dots."""
    fields: tuple[str, ...]
    """Fields of the document, with dots where they are nested."""


def shown_indexes(definition: SkippingDefinition) -> tuple[ShownIndex, ...]:
    """The indexes that Flint's form can show: one of its kinds over a column, one a column."""
    shown: list[ShownIndex] = []
    taken: set[str] = {FILE_PATH}
    for index in definition.indexes:
        names = index.terms[0].names if len(index.terms) == 1 else None
        if names is None or index.type not in _FIELDS or not all(map(_is_plain, names)):
            continue
        if field_of(index.term.data_type) is None or index.term.data_type == "binary":
            continue
        column = ".".join(names)
        fields = tuple(name.format(column) for name in _FIELDS[index.type])
        if any(_clash(field, other) for field in fields for other in taken):
            continue
        taken.update(fields)
        shown.append(ShownIndex(index, column, fields))
    return tuple(shown)


_FIELDS = {
    "PARTITION": ("{}",),
    "VALUE_SET": ("{}",),
    "BLOOM_FILTER": ("{}",),
    "MIN_MAX": MIN_MAX_FIELDS[0],
}


def _is_plain(name: str) -> bool:
    # Dots would nest, and names that begin with an underscore are OpenSearch's own, or ours.
    return bool(name.strip()) and "." not in name and not name.startswith("_")


def _clash(one: str, other: str) -> bool:
    return one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")


def mapping_of(shown: ShownIndex) -> dict[str, dict[str, object]]:
    """The mapping of an index's fields, by field."""
    if shown.index.type == "BLOOM_FILTER":
        return {shown.fields[0]: {"type": "binary", "doc_values": True}}
    return {name: field_of(shown.index.term.data_type) or {} for name in shown.fields}


def metadata_of(
    state: StoredState, indexes: tuple[ShownIndex, ...], name: str, form: FlintForm
) -> FlintMetadata:
    """Metadata of a state with a definition for the mapping."""
    definition = cast(SkippingDefinition, state.definition)
    columns = [
        FlintColumn(
            kind=shown.index.type,
            name=shown.column,
            data_type=shown.index.term.data_type,
            parameters=dict(shown.index.parameters),
        )
        for shown in indexes
    ]
    return FlintMetadata(
        source=definition.target.table or definition.target.uri,
        columns=tuple(columns),
        name=name,
        options=dict(definition.properties),
        state=state.phase.value,
        enabled=definition.enabled,
        form=form,
    )


def flint_fields(row: Row, shown: tuple[ShownIndex, ...]) -> dict[str, object]:
    """The fields of a row, nested as the document is; empty when it cannot be written whole."""
    document: dict[str, object] = {}
    try:
        for one in shown:
            for field, value in zip(one.fields, _shown_values(row, one), strict=True):
                _put(document, field, value)
    except (NotRepresentable, UnicodeDecodeError, OverflowError):
        return {}
    document[FILE_PATH] = file_uri(str(row["path"]))
    return document


def _put(document: dict[str, object], field: str, value: object) -> None:
    if value is None:
        return
    *outer, last = field.split(".")
    for name in outer:
        document = cast(dict[str, object], document.setdefault(name, {}))
    document[last] = value


def _shown_values(row: Row, shown: ShownIndex) -> tuple[object, ...]:
    index = shown.index
    values = row.get(values_column(index.index_id))
    if values is None:
        raise NotRepresentable
    kept = [row.get(field_column(index.index_id, name)) for name in _KEPT[index.type]]
    if index.type == "VALUE_SET":
        # Flint takes a missing set as "over the limit", which keeps the file.
        members = cast("list[object] | None", kept[0])
        return (members and [_field_value(index, member) for member in members],)
    if values and any(value is None for value in kept):
        raise NotRepresentable
    if index.type == "BLOOM_FILTER":
        return (None if kept[0] is None else base64.b64encode(cast(bytes, kept[0])).decode(),)
    if index.type == "PARTITION":
        return (None if kept[0] is None else _field_value(index, kept[0]),)
    least, greatest = kept
    return (
        None if least is None else _field_value(index, least, _floor),
        None if greatest is None else _field_value(index, greatest, _ceiling),
    )


_KEPT = {
    "PARTITION": ("value",),
    "VALUE_SET": ("set",),
    "BLOOM_FILTER": ("words",),
    "MIN_MAX": ("min", "max"),
}


def _floor(micros: int) -> int:
    return micros - micros % _MILLISECOND


def _ceiling(micros: int) -> int:
    return micros + -micros % _MILLISECOND


def _exactly(micros: int) -> int:
    return micros


def _field_value(
    index: IndexDefinition, value: object, rounded: Callable[[int], int] = _exactly
) -> object:
    data_type = index.term.data_type
    if isinstance(value, float) and not math.isfinite(value):
        raise NotRepresentable
    if data_type == "string":
        text = cast(bytes, value).decode()
        if len(text) > LONGEST_TERM:
            raise NotRepresentable
        return text
    if data_type == "date":
        ordinal = cast(int, value) + _DAY_ZERO
        if not 1 <= ordinal <= dt.date.max.toordinal():
            raise NotRepresentable
        return dt.date.fromordinal(ordinal).isoformat()
    if data_type in ("timestamp", "timestamp_ntz"):
        moment = _EPOCH + dt.timedelta(microseconds=rounded(cast(int, value)))
        return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
    return value
