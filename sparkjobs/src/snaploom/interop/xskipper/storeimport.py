"""Imports a metadata store as a new index of ours, and exports an index as such a store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from snaploom.errors import IndexAlreadyExists, IndexNotPossible
from snaploom.interop.xskipper.directory import XskipperDirectory
from snaploom.interop.xskipper.importedrows import Verify, import_rows, plan_import
from snaploom.interop.xskipper.indexstore import rows_of
from snaploom.interop.xskipper.objectnames import names_table
from snaploom.interop.xskipper.storereader import StoredMetadata, part_keys
from snaploom.models.skippingindex import IndexState
from snaploom.skipping.core.definition import IndexDefinition, SkippingDefinition, Target
from snaploom.skipping.lifecycle.declaration import Declaration, define
from snaploom.skipping.lifecycle.forms import check_form
from snaploom.skipping.lifecycle.interchange import Imported, ImportResult, Written
from snaploom.skipping.lifecycle.machine import USUAL, Timing, available, declared
from snaploom.skipping.lifecycle.operations import silent
from snaploom.skipping.lifecycle.target import IndexableTarget, Progress
from snaploom.skipping.stores.port import IndexStore, StoredState
from snaploom.storage.objectstore import ObjectStore


def import_index(
    store: IndexStore,
    target: IndexableTarget,
    metadata: StoredMetadata,
    *,
    is_trusted: bool = False,
    progress: Progress = silent,
    timing: Timing = USUAL,
) -> ImportResult:
    """Make a new index from a metadata store, in one commit; untrusted rows are verified.

    Raises:
        IndexAlreadyExists: the target has an index.
        IndexNotPossible: the metadata are about another table, or no index or no row of theirs can
            be taken over; nothing is left.
        KeyUnavailable: they are encrypted, and a key is unavailable.
    """
    _refuse_other_table(metadata, target.target)
    state = _vacant(store.read(), store, timing)
    plan = plan_import(metadata, target.column, lambda number: f"i{state.next_index + number}")
    indexes = tuple(index for _, index in plan.indexes)
    if not indexes:
        raise IndexNotPossible(
            "none of the indexes can be imported",
            found="; ".join(plan.refused) or "no indexes",
            expected="minmax, valuelist or bloomfilter over a column",
            hint="create the index anew instead of importing it",
        )
    definition = _definition(metadata, target, indexes)

    def verify(files: pa.Table, chosen: Sequence[IndexDefinition]) -> Iterable[pa.Table]:
        return target.build(chosen, files, progress)

    chosen: Verify | None = None if is_trusted else verify
    imported = import_rows(metadata, plan, target.list_files(""), chosen)
    _refuse_nothing(metadata, imported)
    segments = tuple(store.write_rows([imported.rows], definition))

    def build(current: StoredState) -> StoredState:
        before = _vacant(current, store, timing)
        if before.next_index != state.next_index:
            raise _taken(store)
        at = timing.clock()
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
    """Write the rows of an index as a metadata store of version 4; the index stays as it is.

    Raises:
        IndexNotFound: there is no index.
        IndexNotPossible: version 4 cannot hold it, or the folder is another table's.
        IndexUnreadable: the folder holds something else, which is left as it is.
        KeyUnavailable: the index is encrypted, and a key is unavailable.
    """
    state = store.read()
    definition = declared(state, store)
    if part_keys(folder):
        _refuse_other_table(directory.read(), definition.target)
    return directory.write([rows_of(store.open(state), definition)], definition)


def _definition(
    metadata: StoredMetadata, target: IndexableTarget, indexes: tuple[IndexDefinition, ...]
) -> SkippingDefinition:
    """Definition of an import, which stays as encrypted as the store was."""
    encryption = metadata.layout.encryption
    definition = replace(
        define(Declaration(()), target, 1),
        indexes=indexes,
        footer_key_label="" if encryption is None else encryption.footer_key,
        plaintext_footer=encryption is not None and encryption.plaintext_footer,
    )
    check_form(definition)
    return definition


def _refuse_nothing(metadata: StoredMetadata, imported: Imported) -> None:
    """Refuse an import without any known file: the index would skip nothing."""
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
    if not names_table(layout.table_identifier, target.uri, target.table, layout.version):
        raise IndexNotPossible(
            "the metadata are about another table",
            found=layout.table_identifier,
            expected=target.table or target.uri,
            hint="name the metadata of this table, or the table that they are about",
        )


def _vacant(state: StoredState, store: IndexStore, timing: Timing) -> StoredState:
    if state.exists:
        raise _taken(store)
    return available(state, store, timing)


def _taken(store: IndexStore) -> IndexAlreadyExists:
    return IndexAlreadyExists(
        "the target has a skipping index already",
        found=store.uri,
        hint="drop it first, or import below another location",
    )
