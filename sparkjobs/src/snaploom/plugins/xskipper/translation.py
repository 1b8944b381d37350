"""Converts a skipping index to a store of version 4, or lists the reasons why it cannot be."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from snaploom.errors import IndexNotPossible
from snaploom.plugins.xskipper import layout, names
from snaploom.plugins.xskipper.columns import (
    FILTER,
    KNOWN,
    MAXIMUM,
    MINIMUM,
    MODIFIED,
    PATH,
    PRESENT,
    SET,
    kept_type,
    partition_column,
    partition_values,
    row_column,
)
from snaploom.skipping.core.definition import IndexDefinition, SkippingDefinition, arrow_type
from snaploom.skipping.core.filetable import field_column, values_column
from snaploom.skipping.indexes.bloomfilter import ITEMS
from snaploom.types.schemas import INTEGER_BITS

STORE_NAMES = {
    "MIN_MAX": layout.MIN_MAX,
    "VALUE_SET": layout.VALUE_LIST,
    "BLOOM_FILTER": layout.BLOOM,
}
"""Index types that the store has, and its names for them."""

PARTITION = "PARTITION"
"""Columns that the store keeps as its own, `virtual_<column>`."""

INTEGRALS = frozenset(INTEGER_BITS)
BLOOM_TYPES = INTEGRALS | {"string"}
"""Spark types of which the reference makes blooms."""

_TYPES = INTEGRALS | {"float", "double", "string", "binary", "boolean", "date", "timestamp"}
_DEFAULT_CATALOG = "spark_catalog."


def layout_of(definition: SkippingDefinition) -> layout.Layout:
    """Layout of a version 4 store for an index."""
    kept = [index for index in definition.indexes if not _is_partition(index, definition)]
    refused = [f"{index.label}: {why}" for index in kept for why in _reasons(index)]
    refused += [
        f"partition column {name}: no values of type {data_type}"
        for name, data_type in definition.partition_columns
        if not _is_stored(data_type)
    ]
    if refused:
        raise IndexNotPossible(
            "the Parquet metadata store cannot hold this",
            found="; ".join(refused),
            expected="MIN_MAX, VALUE_SET or BLOOM_FILTER (items VALUES) over a column",
            hint="keep these indexes in the NATIVE form",
        )
    indexes = tuple(_stored_index(index) for index in kept)
    partitions = definition.partition_columns
    names.check_names(
        {index.column: layout.leaf_paths(index) for index in indexes},
        [names.OBJECT_NAME, *(names.virtual_name(name) for name, _ in partitions)],
    )
    return layout.Layout(
        version=names.NEWEST_VERSION,
        table_identifier=_identifier(definition),
        indexes=indexes,
        partitions=partitions,
        encryption=_encryption(definition, indexes),
    )


def stored_rows(rows: pa.Table, definition: SkippingDefinition, written: layout.Layout) -> pa.Table:
    """Rows of ours as `storedrows` describes them, for the layout of the same definition."""
    paths = rows["path"].to_pylist()
    columns: dict[str, pa.Array | pa.ChunkedArray] = {
        PATH: pa.array([names.bare_path(path) for path in paths], pa.large_string()),
        MODIFIED: rows["modified"],
    }
    for position, (name, data_type) in enumerate(written.partitions):
        found = (
            index
            for index in definition.indexes
            if index.type == PARTITION and [term.names for term in index.terms] == [(name,)]
        )
        own = next(found, None)
        source = own and field_column(own.index_id, "value")
        if source and source in rows.column_names:
            columns[partition_column(position)] = rows[source]
        else:
            values = partition_values(paths, name, data_type)
            columns[partition_column(position)] = values
    kept = [index for index in definition.indexes if not _is_partition(index, definition)]
    for position, (index, stored) in enumerate(zip(kept, written.indexes, strict=True)):
        columns |= dict(_index_columns(rows, position, index, stored))
    return pa.table(columns)


def _index_columns(
    rows: pa.Table, position: int, index: IndexDefinition, stored: layout.StoredIndex
) -> Iterator[tuple[str, pa.Array | pa.ChunkedArray]]:
    def own(name: str, kept_as: pa.DataType) -> pa.Array:
        if name not in rows.column_names:
            return pa.nulls(rows.num_rows, kept_as)
        return rows[name].combine_chunks().cast(kept_as)

    counts = own(values_column(index.index_id), pa.int64())
    yield row_column(position, KNOWN), counts.is_valid()
    yield row_column(position, PRESENT), pc.fill_null(pc.greater(counts, 0), False)
    kept_as = kept_type(index.term.data_type)
    is_text = index.term.data_type == "string"
    if stored.name == layout.MIN_MAX:
        for part in (MINIMUM, MAXIMUM):
            values = own(field_column(index.index_id, part), kept_as)
            yield row_column(position, part), _texts(values) if is_text else values
    elif stored.name == layout.VALUE_LIST:
        sets = own(field_column(index.index_id, "set"), pa.large_list(kept_as))
        yield row_column(position, SET), _text_sets(sets) if is_text else sets
    else:
        filters = own(field_column(index.index_id, "words"), pa.large_binary())
        yield row_column(position, FILTER), filters


def _is_text(values: pa.Array) -> bool:
    try:
        values.cast(pa.large_string())
    except pa.ArrowInvalid:
        return False
    return True


def _texts(values: pa.Array) -> pa.Array:
    """Values without invalid UTF-8, which Spark keeps and Parquet's strings do not."""
    if _is_text(values):
        return values
    sound = [_is_text(values.slice(at, 1)) for at in range(len(values))]
    return pc.if_else(pa.array(sound), values, None)


def _text_sets(sets: pa.Array) -> pa.Array:
    if _is_text(pc.list_flatten(sets)):
        return sets
    sound = [_is_text(pc.list_flatten(sets.slice(at, 1))) for at in range(len(sets))]
    return pc.if_else(pa.array(sound), sets, None)


def _is_partition(index: IndexDefinition, definition: SkippingDefinition) -> bool:
    partitions = {name for name, _ in definition.partition_columns}
    return index.type == PARTITION and {term.label for term in index.terms} <= partitions


def _is_stored(data_type: str) -> bool:
    return data_type in _TYPES or (
        data_type.startswith("decimal(") and arrow_type(data_type) is not None
    )


def _reasons(index: IndexDefinition) -> Iterator[str]:
    if index.type not in STORE_NAMES:
        yield f"the type {index.type} is none of the store's"
        return
    if len(index.terms) != 1 or index.term.names is None:
        yield "an expression is no column"
        return
    data_type = index.term.data_type
    if not _is_stored(data_type):
        yield f"no values of type {data_type}"
    if index.type == "BLOOM_FILTER":
        if index.parameter(ITEMS, "HASHES") != "VALUES":
            yield "its filters hold hashes, the store's hold values"
        if data_type not in BLOOM_TYPES:
            yield f"the store's blooms hold integers and strings, not {data_type}"


def _stored_index(index: IndexDefinition) -> layout.StoredIndex:
    column = ".".join(index.term.names or ()).lower()
    name = STORE_NAMES[index.type]
    parameters: tuple[tuple[str, str], ...] = ()
    if name == layout.BLOOM:
        fpp = index.parameter("fpp", layout.DEFAULT_FPP)
        parameters = (
            (layout.FPP, fpp),
            (layout.NDV, index.parameter("ndv", "") or layout.DEFAULT_NDV),
        )
    return layout.StoredIndex(
        name=name,
        columns=(column,),
        column=names.column_name((column,), name),
        data_type=None if name == layout.BLOOM else index.term.data_type,
        parameters=parameters,
        key_label=index.key_label,
    )


def _identifier(definition: SkippingDefinition) -> str:
    target = definition.target
    return target.table.removeprefix(_DEFAULT_CATALOG) or names.table_identifier(target.uri)


def _encryption(
    definition: SkippingDefinition, indexes: tuple[layout.StoredIndex, ...]
) -> layout.Encryption | None:
    is_encrypted = any(index.key_label for index in indexes)
    footer = definition.footer_key_label
    if is_encrypted != bool(footer):
        raise IndexNotPossible(
            "the Parquet metadata store has a key for footers exactly when it has one for an index",
            found="no key of an index" if footer else "no key of footers",
            expected="both or neither",
            hint="name a key label of at least one index, and one of the footers",
        )
    if not is_encrypted:
        return None
    columns: dict[str, tuple[str, ...]] = {}
    for index in indexes:
        if index.key_label:
            columns[index.key_label] = columns.get(index.key_label, ()) + layout.leaf_paths(index)
    others = (
        names.OBJECT_NAME,
        *(names.virtual_name(name) for name, _ in definition.partition_columns),
    )
    columns[footer] = columns.get(footer, ()) + others
    names.check_key_list(columns, [leaf for leaves in columns.values() for leaf in leaves])
    return layout.Encryption(footer, columns, definition.plaintext_footer)
