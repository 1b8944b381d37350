"""Common parts of index types that take rows from footers, many files at once."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from snaploom.skipping.core.filetable import Mask
from snaploom.skipping.indexes.base import FooterColumn
from snaploom.skipping.indexes.columns import as_mask


def without_values(column: FooterColumn) -> Mask:
    """Files in which the term is proved NULL in every row."""
    return as_mask(pc.equal(column.values, 0))


def with_one_value(column: FooterColumn) -> Mask:
    """Files in which the term has values, all proved equal in Spark's order."""
    is_same = pc.equal(column.minimum, column.maximum)
    if pa.types.is_floating(column.minimum.type):
        is_same = pc.or_(is_same, pc.and_(pc.is_nan(column.minimum), pc.is_nan(column.maximum)))
    return as_mask(is_same) & as_mask(pc.greater(column.values, 0))


def only_where(files: Mask, values: pa.Array) -> pa.Array:
    """Values of some files, and null for the others."""
    if files.all():
        return values
    return values.take(pa.array(np.arange(len(files)), mask=~files))


def same_in(
    files: Mask, row: Mapping[str, object], fields: Mapping[str, pa.DataType]
) -> dict[str, pa.Array]:
    """Fields that are the same in some files, and null for the others."""
    places = pa.array(np.zeros(len(files), dtype=np.int64), mask=~files)
    return {name: pa.array([row[name]], kind).take(places) for name, kind in fields.items()}


def short_lists(values: pa.Array, with_value: Mask, known: Mask) -> pa.Array:
    """Lists of one value in the files `with_value`, of none in other `known` ones; else null."""
    offsets = np.concatenate([[0], np.cumsum(with_value, dtype=np.int32)]).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)
    return only_where(known, lists)
