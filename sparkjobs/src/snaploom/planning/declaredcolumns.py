"""All columns that a source can have, as far as declarations show.

A source whose `schemaFields` are declared is read with these columns and those that its path
captures. What its transformers add is counted in, so that a name that is not here is nowhere in the
data. Where a name may be made by a pattern or a query, nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from snaploom.models.common import DataType, SchemaField
from snaploom.models.datasource import DataSource, HdfsLike, Jdbc
from snaploom.models.fieldtransformer import FieldTransformer, Transformer
from snaploom.planning.fieldpaths import split_path
from snaploom.planning.prefix import PrefixInvalid, UriPrefix

_MADE_BY_OPTIONS = frozenset({"basepath", "columnnameofcorruptrecord", "singlevariantcolumn"})
"""Options of formats that add columns, in lower case."""


@dataclass(frozen=True, slots=True)
class DeclaredColumns:
    """The columns of a source, and none besides."""

    names: tuple[str, ...]
    """In the order of the declaration."""
    types: Mapping[str, DataType | None]
    """By name in lower case; None where the type is not known."""

    def missing_part(self, parts: Sequence[str]) -> str | None:
        """The first name of a path that no column or field has; None when all are there.

        Several names together may be one column whose own name has points.

        Args:
            parts: names from the column down.
        """
        for count in range(1, len(parts) + 1):
            column = ".".join(parts[:count]).lower()
            if column in self.types:
                return _missing_inside(self.types[column], parts[count:])
        return parts[0]

    def missing_of(self, path: str) -> str | None:
        """As `missing_part`, of a path as text; None as well where it is no path."""
        parts = split_path(path)
        return None if parts is None else self.missing_part(parts)


def read_columns(source: DataSource) -> DeclaredColumns | None:
    """The columns with which a source is read; None where they are not declared."""
    variant = source.spec.variant
    if not isinstance(variant, HdfsLike | Jdbc) or variant.schema_fields is None:
        return None
    captures: tuple[str, ...] = ()
    if isinstance(variant, HdfsLike):
        if _MADE_BY_OPTIONS & {name.lower() for name in variant.format_options}:
            return None
        try:
            prefix = variant.source_uri_prefix
            captures = UriPrefix.parse(prefix).names if prefix is not None else ()
        except PrefixInvalid:
            return None
    return _columns(variant.schema_fields, captures)


def shaped_columns(
    source: DataSource, transformers: Mapping[str, FieldTransformer]
) -> DeclaredColumns | None:
    """The columns that a source may give to an output; None where that is not known.

    A column that is dropped or renamed is counted in: the job reports what is left out.

    Args:
        source: the source.
        transformers: by name, those of its namespace.
    """
    read = read_columns(source)
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


def _columns(fields: Sequence[SchemaField], captures: Iterable[str]) -> DeclaredColumns:
    types: dict[str, DataType | None] = {field.name.lower(): field.data_type for field in fields}
    captured = tuple(captures)
    return DeclaredColumns(
        (*(field.name for field in fields), *captured),
        {name.lower(): None for name in captured} | types,
    )


def _added(changes: Iterable[Transformer]) -> tuple[str, ...] | None:
    """Names that transformers give; None where a pattern makes them."""
    renames = [change.rename for change in changes if change.rename is not None]
    if any(rename.to is None for rename in renames):
        return None
    return tuple(rename.to for rename in renames if rename.to is not None)


def _missing_inside(data_type: DataType | None, parts: Sequence[str]) -> str | None:
    if not parts or data_type is None or data_type.map_ is not None:
        return None
    if data_type.array is not None:
        return _missing_inside(data_type.array.element_type, parts)
    if data_type.struct is None:
        return parts[0]
    return _columns(data_type.struct.fields_, ()).missing_part(parts)
