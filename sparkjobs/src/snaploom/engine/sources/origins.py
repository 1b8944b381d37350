"""The read column that each column of a source comes from, through its transformers.

It follows only declarations, step by step as `fieldtransformers` carries them out: no Spark.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from snaploom.engine.sources.fieldtransformers import is_in_effect, renamed
from snaploom.engine.sources.selectors import is_selected
from snaploom.models.fieldtransformer import FieldTransformer, Transformer
from snaploom.models.times import EpochNanos
from snaploom.planning.schemas import Struct


@dataclass(frozen=True)
class Origin:
    """Where a column comes from."""

    column: str
    is_same: bool = True
    """Whether its values are the same; casts and expressions change them."""


@dataclass(frozen=True)
class _Followed:
    name: str
    metadata: Mapping[str, object]
    origin: Origin


def origins(
    read: Struct, transformers: Iterable[FieldTransformer], time: EpochNanos
) -> Mapping[str, Origin]:
    """The origin of each column, by its name after all transformers."""
    columns = [
        _Followed(field.name, json.loads(field.metadata), Origin(field.name))
        for field in read.fields
    ]
    for transformer in transformers:
        for change in transformer.spec.transformers:
            if is_in_effect(change, time):
                columns = [made for column in columns for made in _changed(column, change)]
    return {column.name: column.origin for column in columns}


def _changed(column: _Followed, change: Transformer) -> Iterator[_Followed]:
    if not is_selected(change.selectors, column.name, column.metadata):
        yield column
    elif change.rename is not None:
        name = renamed(column.name, change.rename)
        if name == column.name or not change.replace_inputs:
            yield column
        if name != column.name:
            yield replace(column, name=name)
    elif change.drop is None:
        yield replace(column, origin=replace(column.origin, is_same=False))
