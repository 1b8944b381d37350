"""All columns that a source may give to an output, as far as declarations show.

A source whose `schemaFields` are declared is read with these columns and those that its path
captures. What its transformers add is counted in, so that a name that is not here is nowhere in the
data. Where a name may be made by a pattern or a query, nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from snaploom.models.datasource import DataSource
from snaploom.models.fieldtransformer import FieldTransformer, Transformer
from snaploom.planning.declaredcolumns import DeclaredColumns
from snaploom.planning.sources.registry import declared


def shaped_columns(
    source: DataSource, transformers: Mapping[str, FieldTransformer]
) -> DeclaredColumns | None:
    """The columns that a source may give to an output; None where that is not known.

    A column that is dropped or renamed is counted in: the job reports what is left out.
    """
    read = declared(source).columns
    used = [transformers.get(name) for name in source.spec.variant.field_transformers]
    if read is None or any(one is None for one in used):
        return None
    changes = [change for one in used if one is not None for change in one.spec.transformers]
    added = _added(changes)
    if added is None:
        return None
    is_retyped = any(one.cast is not None or one.expression is not None for one in changes)
    types = {name: None if is_retyped else type_ for name, type_ in read.types.items()}
    return DeclaredColumns((*read.names, *added), types | {name.lower(): None for name in added})


def _added(changes: Iterable[Transformer]) -> tuple[str, ...] | None:
    """Names that transformers give; None where a pattern makes them."""
    renames = [change.rename for change in changes if change.rename is not None]
    if any(rename.to is None for rename in renames):
        return None
    return tuple(rename.to for rename in renames if rename.to is not None)
