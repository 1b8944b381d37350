"""Checks a segment's columns against its state, once before any is used.

What reads rows afterwards relies on their types, and on identities that are there.
"""

from __future__ import annotations

import pyarrow as pa

from snaploom.errors import IndexNotPossible, IndexUnreadable
from snaploom.skipping.core.definition import SkippingDefinition
from snaploom.skipping.core.filetable import IDENTITY_FIELDS
from snaploom.skipping.formats.sidecar import SidecarReader
from snaploom.skipping.indexes.registry import index_type
from snaploom.skipping.stores.port import Segment

_ALWAYS_THERE = ("path", "length", "modified")


def checked(
    reader: SidecarReader, segment: Segment, definition: SkippingDefinition
) -> SidecarReader:
    """Return the segment if it is valid.

    Raises:
        IndexUnreadable: it has other columns, types or rows than it must have.
        KeyUnavailable: it is encrypted, and the key is unavailable.
    """
    if reader.rows != segment.rows:
        raise _damaged(reader, f"{reader.rows} rows", f"{segment.rows} rows")
    if len(set(reader.columns)) != len(reader.columns):
        raise _damaged(reader, "a column that is there twice", "every column once")
    wanted = dict(IDENTITY_FIELDS)
    if segment.removed:
        wanted = {"path": wanted["path"]}
    for name, data_type in wanted.items():
        if name not in reader.columns:
            raise _damaged(reader, f"no column {name}", "all columns of an identity")
        _check_type(reader, name, data_type)
    for name, data_type in _index_columns(definition).items():
        if name in reader.columns:
            _check_type(reader, name, data_type)
    present = [name for name in _ALWAYS_THERE if name in wanted]
    # Read one by one, as everybody else does: encrypted columns may have keys of their own.
    for name in present:
        if reader.read([name]).column(name).null_count:
            raise _damaged(reader, f"rows without {name}", "rows about files")
    return reader


def _check_type(reader: SidecarReader, name: str, data_type: pa.DataType) -> None:
    found = reader.type_of(name)
    if found != data_type:
        raise _damaged(reader, f"{name} of type {found}", f"{name} of type {data_type}")


def _index_columns(definition: SkippingDefinition) -> dict[str, pa.DataType]:
    found: dict[str, pa.DataType] = {}
    for index in definition.indexes:
        for position in range(len(index.terms)):
            suffix = f".{position}" if position else ""
            found[f"{index.index_id}.values{suffix}"] = pa.int64()
            found[f"{index.index_id}.nulls{suffix}"] = pa.int64()
        try:
            fields = index_type(index.type).fields(index)
        except IndexNotPossible:
            continue  # nobody here asks it
        found.update({f"{index.index_id}.{name}": kind for name, kind in fields.items()})
    return found


def _damaged(reader: SidecarReader, found: str, expected: str) -> IndexUnreadable:
    return IndexUnreadable(
        f"{reader.name} is damaged",
        found=found,
        expected=expected,
        hint="refresh the index with mode FULL",
    )
