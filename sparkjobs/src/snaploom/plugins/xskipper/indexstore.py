"""The form XSKIPPER: the native store, and beside it a version 4 directory for other programs.

```
<base>/<sha256 of the target's URI>/...           the native store: what Snaploom's queries read
<base>/<sha256 of the target's URI>/_xskipper     what the directory was last written from
<base>/<sha256 of the table's identifier>/*.parquet   the directory, replaced after each change
<base>/<sha256 of the table's identifier>/_snaploom   whose it is: the folder of the native store
```

The directory follows a commit and is no part of it: when it cannot be written, the operation logs
that, the index counts all the same, and the next refresh writes the directory even where it finds
nothing else to do.

Where the directory lies follows from the name of the table, which a state may only name. So each
directory has an owner, and no other index replaces or removes it.
"""

import hashlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa

from snaploom import errors
from snaploom.files.objectstore import ObjectStore
from snaploom.models.common import EpochNanos
from snaploom.models.skippingindex import IndexState
from snaploom.plugins.xskipper.names import below_base
from snaploom.plugins.xskipper.storefiles import XskipperDirectory
from snaploom.plugins.xskipper.translation import layout_of
from snaploom.skipping.core import filetable
from snaploom.skipping.core.definition import SkippingDefinition
from snaploom.skipping.formats.parquetfiles import ParquetKeys
from snaploom.skipping.indexes.base import index_type
from snaploom.skipping.indexes.bloomfilter import ITEMS, VALUES
from snaploom.skipping.stores.port import IndexStore, Segment, StoredState
from snaploom.skipping.stores.usage import UsageLog, usage_log

_log = logging.getLogger(__name__)

FORM = "XSKIPPER"
"""`SkippingDefinition.form` of such an index."""

MARK = "_xskipper"
"""Object that identifies what the directory was last written from."""

OWNER = "_snaploom"
"""Object of the directory that names the folder of the index that it belongs to."""

_LONGEST_MARK = 4096

ATTEMPTS = 4
"""So often the directory is written anew when the index changes meanwhile."""

_AT_REST = (IndexState.EMPTY, IndexState.ACTIVE)


@dataclass(frozen=True)
class XskipperForm:
    """Implementation of the port `StoreForm`."""

    def check(self, definition: SkippingDefinition) -> None:
        layout_of(definition)

    def parameters(self, index_type: str, given: Mapping[str, str]) -> Mapping[str, str]:
        return {ITEMS: VALUES, **given} if index_type == "BLOOM_FILTER" else given

    def store(
        self, native: IndexStore, base: ObjectStore, folder: str, keys: ParquetKeys | None
    ) -> IndexStore:
        return XskipperIndexStore(native, base, folder, keys)


class XskipperIndexStore:
    """A native store whose indexes of the form XSKIPPER have a directory; all others pass through.

    Behind the port `IndexStore`.
    """

    def __init__(
        self, native: IndexStore, base: ObjectStore, folder: str, keys: ParquetKeys | None = None
    ) -> None:
        self._native = native
        self._base = base
        self._mark = f"{folder}{MARK}"
        self._owner = folder.rstrip("/").encode()
        self._keys = keys

    @property
    def uri(self) -> str:
        return self._native.uri

    @property
    def usage(self) -> UsageLog | None:
        return usage_log(self._native)

    def read(self) -> StoredState:
        return self._native.read()

    def commit(self, build: Callable[[StoredState], StoredState | None]) -> StoredState:
        """Commit natively; then write the directory, where the form asks for one."""
        before: list[SkippingDefinition | None] = []
        is_left = False

        def watched(state: StoredState) -> StoredState | None:
            nonlocal is_left
            before[:] = [state.definition]
            built = build(state)
            is_left = built is None
            return built

        committed = self._native.commit(watched)
        if is_left:
            return committed
        former = before[0] if before else None
        if _has_directory(former) and committed.phase in _AT_REST:
            now = committed.definition
            if not _has_directory(now) or _place(former) != _place(now):
                self._remove(former)
        if _has_directory(committed.definition) and committed.phase in _AT_REST:
            self._write()
        return committed

    def write_rows(self, rows: Iterable[pa.Table], definition: SkippingDefinition) -> list[Segment]:
        return self._native.write_rows(rows, definition)

    def write_removed(self, paths: Sequence[str], definition: SkippingDefinition) -> Segment:
        return self._native.write_removed(paths, definition)

    def open(self, state: StoredState) -> filetable.FileTable:
        return self._native.open(state)

    def sweep(self, keep: StoredState, older_than: EpochNanos) -> tuple[int, int]:
        return self._native.sweep(keep, older_than)

    def destroy(self) -> None:
        self._remove(self._native.read().definition)
        self._native.destroy()

    def compact(self, state: StoredState) -> tuple[Segment, ...]:
        return self._native.compact(state)

    def _write(self) -> None:
        for _ in range(ATTEMPTS):
            state = self._native.read()
            definition = state.definition
            if definition is None or not _has_directory(definition) or self._is_written(state):
                return
            with suppress(errors.ObjectAlreadyExists):
                self._base.put_if_absent(f"{_place(definition)}/{OWNER}", self._owner)
            owner = self._owner_of(definition)
            if owner != self._owner:
                raise errors.IndexNotPossible(
                    "the directory of this table belongs to another skipping index",
                    found=f"{self._base.uri}{(owner or b'nobody').decode('ascii', 'replace')}",
                    expected=f"{self._base.uri}{self._owner.decode()}",
                    hint="drop and vacuum the other index, or keep this one in the NATIVE form",
                )
            directory = self._directory(definition)
            directory.write([rows_of(self._native.open(state), definition)], definition)
            self._base.put(self._mark, _digest(state))

    def _is_written(self, state: StoredState) -> bool:
        try:
            return self._base.get(self._mark, _LONGEST_MARK) == _digest(state)
        except (errors.ObjectNotFound, errors.ObjectTooLarge, errors.NotAPlainFile):
            return False

    def _remove(self, definition: SkippingDefinition | None) -> None:
        if definition is None or not _has_directory(definition):
            return
        owner = self._owner_of(definition)
        if owner == self._owner:
            self._directory(definition).remove()
            self._base.delete([f"{_place(definition)}/{OWNER}"])
        elif owner is not None:
            _log.warning("%s/%s is left: it is another index's", self._base.uri, _place(definition))
        self._base.delete([self._mark])

    def _owner_of(self, definition: SkippingDefinition) -> bytes | None:
        try:
            return self._base.get(f"{_place(definition)}/{OWNER}", _LONGEST_MARK)
        except errors.ObjectNotFound:
            return None

    def _directory(self, definition: SkippingDefinition) -> XskipperDirectory:
        return XskipperDirectory(self._base, self._keys, f"{_place(definition)}/")


def rows_of(files: filetable.FileTable, definition: SkippingDefinition) -> pa.Table:
    """All columns of every index for the files."""
    names = [name for name, _ in filetable.IDENTITY_FIELDS]
    for index in definition.indexes:
        names += [filetable.values_column(index.index_id), filetable.nulls_column(index.index_id)]
        names += [
            filetable.field_column(index.index_id, field)
            for field in index_type(index.type).fields(index)
        ]
    return pa.table({name: files.column(name) for name in names})


def _has_directory(definition: SkippingDefinition | None) -> bool:
    return definition is not None and definition.form == FORM


def _place(definition: SkippingDefinition | None) -> str:
    if definition is None:
        return ""
    return below_base("", layout_of(definition).table_identifier).lstrip("/")


def _digest(state: StoredState) -> bytes:
    """Hash that is equal for states that would give the same directory."""
    definition = state.definition
    facts = (
        definition
        and (
            [(i.index_id, i.type, i.terms, i.parameters, i.key_label) for i in definition.indexes],
            definition.partition_columns,
            definition.footer_key_label,
            definition.plaintext_footer,
        ),
        state.segments,
    )
    return hashlib.sha256(repr(facts).encode()).hexdigest().encode()


XSKIPPER = XskipperForm()
