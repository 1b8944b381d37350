"""Finding, importing and exporting metadata stores of Xskipper."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from snaploom.errors import IndexAlreadyExists, IndexNotFound, IndexNotPossible
from snaploom.files.objectstore import ObjectStore
from snaploom.models.skippingindex import IndexState
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
    row_column,
)
from snaploom.plugins.xskipper.indexstore import rows_of
from snaploom.plugins.xskipper.storefiles import StoredMetadata, XskipperDirectory, part_keys
from snaploom.plugins.xskipper.translation import BLOOM_TYPES, STORE_NAMES
from snaploom.skipping.core.definition import (
    IndexDefinition,
    SkippingDefinition,
    Target,
    Term,
    Value,
    arrow_type,
)
from snaploom.skipping.core.filetable import field_column, nulls_column, values_column
from snaploom.skipping.core.hashes import BloomFilter
from snaploom.skipping.core.valueorder import key_of
from snaploom.skipping.formats.parquetfiles import ParquetKeys
from snaploom.skipping.indexes.base import index_type
from snaploom.skipping.indexes.bloomfilter import ITEMS
from snaploom.skipping.indexes.valueset import DEFAULT_LIMIT, MOST
from snaploom.skipping.lifecycle import declaration
from snaploom.skipping.lifecycle.interchange import (
    CatalogProperties,
    Import,
    Imported,
    ImportResult,
    Written,
)
from snaploom.skipping.lifecycle.operations import USUAL, available, declared, silent
from snaploom.skipping.stores.port import IndexStore, StoredState

# Conversion of rows from and to the Parquet metadata store.

Verify = Callable[[pa.Table, Sequence[IndexDefinition]], Iterable[pa.Table]]
"""Builds rows about listed files (identity columns) from the files themselves."""

_OWN_NAMES = {name: own for own, name in STORE_NAMES.items()}


@dataclass(frozen=True)
class ImportPlan:
    """Importable indexes of a store."""

    indexes: tuple[tuple[int, IndexDefinition], ...]
    """Position in the store, and the index as ours."""
    refused: tuple[str, ...]
    """Indexes that cannot, and why."""


def plan_import(
    metadata: StoredMetadata, column: Callable[[str], Term], index_ids: Callable[[int], str]
) -> ImportPlan:
    """Plan indexes of ours for those of a store, with ids by position."""
    taken: list[tuple[int, IndexDefinition]] = []
    refused: list[str] = []
    for position, stored in enumerate(metadata.layout.indexes):
        try:
            term = column(".".join(stored.columns))
        except IndexNotPossible as error:
            refused.append(f"{stored.label}: {error.message}")
            continue
        reason = _refusal(stored, term, metadata.layout.version)
        if reason:
            refused.append(f"{stored.label}: {reason}")
            continue
        parameters = _parameters(stored, position, metadata)
        definition = IndexDefinition(
            index_id=index_ids(len(taken)),
            type=_OWN_NAMES[stored.name],
            terms=(term,),
            parameters=parameters,
            key_label=stored.key_label,
        )
        try:
            index_type(definition.type).check(definition)
        except IndexNotPossible as error:
            refused.append(f"{stored.label}: {error.message}")
            continue
        taken.append((position, definition))
    return ImportPlan(tuple(taken), (*refused, *metadata.left_out))


def import_rows(
    metadata: StoredMetadata,
    plan: ImportPlan,
    listing: pa.Table,
    verify: Verify | None,
) -> Imported:
    """Convert rows of a store; each is compared with `verify`'s unless that is None."""
    definitions = tuple(definition for _, definition in plan.indexes)
    files, places = _matched(metadata, listing)
    rows = _rows(metadata.rows.take(places), files, plan, metadata.layout.version)
    rejected: list[str] = []
    if verify is not None:
        rows, rejected = _verified(rows, files, definitions, verify)
    return Imported(
        indexes=definitions,
        rows=rows,
        rejected=tuple(rejected),
        unmatched=metadata.rows.num_rows - files.num_rows,
        not_covered=listing.num_rows - files.num_rows,
        refused=plan.refused,
    )


def follows(
    definition: IndexDefinition, imported: Mapping[str, object], verified: Mapping[str, object]
) -> bool:
    """Whether an imported row contradicts nothing that the verified one proves about an index.

    Values that the verified row leaves unknown contradict nothing: it is the one that is kept.
    """
    index_id, data_type = definition.index_id, definition.term.data_type
    known, values = imported[values_column(index_id)], verified[values_column(index_id)]
    if known is None or not isinstance(values, int) or values == 0:
        return True
    if known == 0:
        return False

    def fields(name: str) -> tuple[object, object]:
        column = field_column(index_id, name)
        return imported[column], verified[column]

    match definition.type:
        case "MIN_MAX":
            low, real_low = fields("min")
            high, real_high = fields("max")
            return _at_most(low, real_low, data_type) and _at_most(real_high, high, data_type)
        case "VALUE_SET":
            return _holds_all(*fields("set"), data_type)
        case "BLOOM_FILTER":
            return _has_all_bits(*fields("words"))
    return False


def _refusal(stored: layout.StoredIndex, term: Term, version: int) -> str:
    if stored.name not in _OWN_NAMES or len(stored.columns) != 1:
        return "there is no such index type here"
    if arrow_type(term.data_type) is None:
        return f"no index is kept about a column of type {term.data_type}"
    if stored.name == layout.BLOOM:
        return "" if term.data_type in BLOOM_TYPES else f"no blooms of type {term.data_type}"
    is_old_decimal = version == 0 and (stored.data_type or "").startswith("decimal(")
    if is_old_decimal and term.data_type.startswith("decimal("):
        return ""
    if stored.data_type != term.data_type:
        return f"it was made of {stored.data_type}, and the column is {term.data_type} now"
    return ""


def _parameters(
    stored: layout.StoredIndex, position: int, metadata: StoredMetadata
) -> tuple[tuple[str, str], ...]:
    if stored.name == layout.BLOOM:
        parameters = dict(stored.parameters)
        named = {
            "fpp": parameters.get(layout.FPP, layout.DEFAULT_FPP),
            # Doubles in old stores, whole numbers all the same.
            "ndv": parameters.get(layout.NDV, layout.DEFAULT_NDV).removesuffix(".0"),
            ITEMS: "VALUES",
        }
        return tuple(sorted(named.items()))
    if stored.name == layout.VALUE_LIST:
        # The reference keeps every value; a verified set must not be too long where theirs is not.
        lengths = pc.list_value_length(metadata.rows[row_column(position, SET)])
        longest = pc.max(lengths).as_py() or 0
        return (("limit", str(min(max(longest, DEFAULT_LIMIT), MOST))),)
    return ()


def _matched(metadata: StoredMetadata, listing: pa.Table) -> tuple[pa.Table, pa.Array]:
    """Listed files with a row of their time, and the places of the rows."""
    pairs = zip(metadata.rows[PATH].to_pylist(), metadata.rows[MODIFIED].to_pylist(), strict=True)
    places = {pair: place for place, pair in enumerate(pairs)}
    files: list[int] = []
    found: list[int] = []
    listed = zip(listing["path"].to_pylist(), listing["modified"].to_pylist(), strict=True)
    for number, (path, modified) in enumerate(listed):
        possible = names.possible_names(path, metadata.layout.version)
        place = next((places[(n, modified)] for n in possible if (n, modified) in places), None)
        if place is not None:
            files.append(number)
            found.append(place)
    return listing.take(pa.array(files, pa.int64())), pa.array(found, pa.int64())


def _rows(stored: pa.Table, files: pa.Table, plan: ImportPlan, version: int) -> pa.Table:
    columns: dict[str, pa.ChunkedArray | pa.Array] = {
        name: files[name] for name in files.column_names
    }
    for position, definition in plan.indexes:
        index_id = definition.index_id

        def part(name: str, position: int = position) -> pa.ChunkedArray:
            return stored[row_column(position, name)]

        # How many rows have a value is not stored: one stands for "at least one".
        present = pc.if_else(part(PRESENT), 1, 0).cast(pa.int64())
        columns[values_column(index_id)] = pc.if_else(part(KNOWN), present, None)
        columns[nulls_column(index_id)] = pa.nulls(files.num_rows, pa.int64())
        kept_as = arrow_type(definition.term.data_type)
        if definition.type == "MIN_MAX":
            for own, name in (("min", MINIMUM), ("max", MAXIMUM)):
                columns[field_column(index_id, own)] = part(name).cast(kept_as)
        elif definition.type == "VALUE_SET":
            columns[field_column(index_id, "set")] = part(SET).cast(pa.list_(kept_as))
        else:
            columns[field_column(index_id, "words")] = part(FILTER)
    return pa.table(columns)


def _verified(
    rows: pa.Table, files: pa.Table, definitions: Sequence[IndexDefinition], verify: Verify
) -> tuple[pa.Table, list[str]]:
    accepted: list[pa.Table] = []
    rejected: list[str] = []
    by_path = {path: place for place, path in enumerate(rows["path"].to_pylist())}
    for piece in verify(files, definitions):
        keep: list[bool] = []
        places = pa.array([by_path[path] for path in piece["path"].to_pylist()], pa.int64())
        pairs = zip(piece.to_pylist(), rows.take(places).to_pylist(), strict=True)
        for verified, imported in pairs:
            is_sound = all(follows(each, imported, verified) for each in definitions)
            keep.append(is_sound)
            if not is_sound:
                rejected.append(verified["path"])
        accepted.append(piece.filter(pa.array(keep, pa.bool_())))
    return (pa.concat_tables(accepted) if accepted else rows.slice(0, 0)), rejected


def _at_most(lower: object, upper: object, data_type: str) -> bool:
    """Whether a bound is at most another one; an absent one contradicts none."""
    if lower is None or upper is None:
        return True
    low, high = _key(lower, data_type), _key(upper, data_type)
    if isinstance(low, int) and isinstance(high, int):
        return low <= high
    return isinstance(low, bytes) and isinstance(high, bytes) and low <= high


def _key(value: object, data_type: str) -> int | bytes:
    return key_of(cast(Value, value), data_type)


def _holds_all(imported: object, verified: object, data_type: str) -> bool:
    if not isinstance(imported, list) or not isinstance(verified, list):
        return True
    held = {_key(value, data_type) for value in imported}
    return all(_key(value, data_type) in held for value in verified)


def _has_all_bits(imported: object, verified: object) -> bool:
    if not isinstance(imported, bytes) or not isinstance(verified, bytes):
        return True
    theirs, ours = BloomFilter.parsed(imported), BloomFilter.parsed(verified)
    if (theirs.functions, len(theirs.bits)) != (ours.functions, len(ours.bits)):
        # Of another size: its bits are others, and show nothing about ours. A store of our own has
        # such filters, each sized by what its file holds.
        return True
    return bool((theirs.bits | ~ours.bits).all())


# Imports a metadata store as a new index of ours, and exports an index as such a store.


def import_index(
    store: IndexStore,
    target: declaration.IndexableTarget,
    metadata: StoredMetadata,
    *,
    is_trusted: bool = False,
    progress: declaration.Progress = silent,
) -> ImportResult:
    """Make a new index from a metadata store, in one commit; untrusted rows are verified."""
    _refuse_other_table(metadata, target.target)
    state = _vacant(store.read(), store)
    plan = plan_import(metadata, target.column, lambda number: f"i{state.next_index + number}")
    indexes = tuple(index for _, index in plan.indexes)
    if not indexes:
        raise IndexNotPossible(
            "none of the indexes can be imported",
            found="; ".join(plan.refused) or "no indexes",
            expected="minmax, valuelist or bloomfilter over a column",
            hint="create the index anew instead of importing it",
        )
    definition = _store_definition(metadata, target, indexes)

    def verify(files: pa.Table, chosen: Sequence[IndexDefinition]) -> Iterable[pa.Table]:
        return target.build(chosen, files, progress)

    chosen: Verify | None = None if is_trusted else verify
    imported = import_rows(metadata, plan, target.list_files(""), chosen)
    _refuse_nothing(metadata, imported)
    segments = tuple(store.write_rows([imported.rows], definition))

    def build(current: StoredState) -> StoredState:
        before = _vacant(current, store)
        if before.next_index != state.next_index:
            raise _taken(store)
        at = USUAL.clock()
        return StoredState(
            version=before.version,
            phase=IndexState.ACTIVE,
            definition=definition,
            segments=segments,
            committed_at=at,
            refreshed_at=at,
            checked_at=at,
            next_index=before.next_index + len(indexes),
        )

    return ImportResult(imported, store.commit(build))


def export_index(store: IndexStore, folder: ObjectStore, directory: XskipperDirectory) -> Written:
    """Write the rows of an index as a metadata store of version 4; the index stays as it is."""
    state = store.read()
    definition = declared(state, store)
    if part_keys(folder):
        _refuse_other_table(directory.read(), definition.target)
    return directory.write([rows_of(store.open(state), definition)], definition)


def _store_definition(
    metadata: StoredMetadata,
    target: declaration.IndexableTarget,
    indexes: tuple[IndexDefinition, ...],
) -> SkippingDefinition:
    """Definition of an import, which stays as encrypted as the store was."""
    encryption = metadata.layout.encryption
    definition = replace(
        declaration.define(declaration.Declaration(()), target, 1),
        indexes=indexes,
        footer_key_label="" if encryption is None else encryption.footer_key,
        plaintext_footer=encryption is not None and encryption.plaintext_footer,
    )
    declaration.check_form(definition)
    return definition


def _refuse_nothing(metadata: StoredMetadata, imported: Imported) -> None:
    if imported.rows.num_rows:
        return
    raise IndexNotPossible(
        f"none of the {metadata.rows.num_rows} rows of the metadata can be taken over",
        found="; ".join((*imported.left_out, *imported.refused)) or "no rows",
        expected="rows about files that are there, with the time of modification that they had",
        hint="build an index of the files instead (snaploom index build); a folder that was copied "
        "is matched when the copy keeps times (cp -p)",
    )


def _refuse_other_table(metadata: StoredMetadata, target: Target) -> None:
    layout = metadata.layout
    if not names.names_table(layout.table_identifier, target.uri, target.table, layout.version):
        raise IndexNotPossible(
            "the metadata are about another table",
            found=layout.table_identifier,
            expected=target.label,
            hint="name the metadata of this table, or the table that they are about",
        )


def _vacant(state: StoredState, store: IndexStore) -> StoredState:
    if state.exists:
        raise _taken(store)
    return available(state, store, USUAL)


def _taken(store: IndexStore) -> IndexAlreadyExists:
    return IndexAlreadyExists("the target has a skipping index already", found=store.uri)


# Finding, importing and exporting metadata stores of Xskipper: `lifecycle.interchange` for them.

_CATALOG = "spark_catalog."


@dataclass(frozen=True)
class XskipperInterchange:
    """Implementation of the port `Interchange`."""

    property_names: tuple[str, ...] = (names.LOCATION, names.OLD_LOCATION)

    def base(self, properties: CatalogProperties) -> str:
        own = names.property_in(properties.table)
        if own is not None:
            return str(PurePosixPath(own.rstrip("/")).parent) if "/" in own else ""
        return names.property_in(properties.database) or ""

    def find(
        self,
        target: Target,
        directory: str,
        properties: CatalogProperties,
        opened: Callable[[str], ObjectStore],
        keys: ParquetKeys | None,
        *,
        is_trusted: bool,
        progress: declaration.Progress,
    ) -> Import:
        folders = _folders(target, directory, properties)
        for folder in folders:
            try:
                metadata = XskipperDirectory(opened(folder), keys).read()
            except IndexNotFound:
                continue
            return partial(
                import_index, metadata=metadata, is_trusted=is_trusted, progress=progress
            )
        raise IndexNotFound(
            "there is no metadata store",
            found=f"no Parquet files in {' or '.join(folders)}",
            expected="the folder of a metadata store, or the one that holds those of many tables",
            hint="look for a folder with files part-*.parquet in it",
        )

    def export(self, store: IndexStore, folder: ObjectStore, keys: ParquetKeys | None) -> Written:
        return export_index(store, folder, XskipperDirectory(folder, keys))


def _folders(target: Target, directory: str, properties: CatalogProperties) -> list[str]:
    table = target.table.removeprefix(_CATALOG)
    identifiers = [name for name in (table, names.table_identifier(target.uri)) if name]
    if directory:
        return [directory, *(names.below_base(directory, name) for name in identifiers)]
    if not table:
        raise IndexNotFound(
            "the location of the metadata store is not set",
            found="files that are no table, so that no property names it",
            expected="the folder of the store",
            hint="name it: `snaploom index import TARGET DIRECTORY`",
        )
    kind = names.LocationKind.HIVE_TABLE_NAME
    found = [
        names.resolve(kind, "", name, properties.table, properties.database) for name in identifiers
    ]
    return list(dict.fromkeys(found))


XSKIPPER = XskipperInterchange()
