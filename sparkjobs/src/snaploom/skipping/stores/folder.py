"""The native store: one folder of an object store for each skipping index (rule S24).

```
<base>/<sha256 of the target's URI>/manifest/<20 digits>.json   states; the newest number counts
<base>/<sha256 of the target's URI>/_latest                     hint: a number that was reached
<base>/<sha256 of the target's URI>/segments/<token>.parquet    rows, each file named once for ever
<base>/<sha256 of the target's URI>/usage/<token>.json          what queries of one session did
```
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa

from snaploom.errors import (
    IndexUnreadable,
    NotAPlainFile,
    ObjectAlreadyExists,
    ObjectNotFound,
    ObjectTooLarge,
    StorageError,
)
from snaploom.models.times import EpochNanos, now
from snaploom.skipping.core.definition import SkippingDefinition
from snaploom.skipping.core.filetable import IDENTITY_FIELDS, FileTable
from snaploom.skipping.formats.keys import ParquetKeys
from snaploom.skipping.formats.sidecar import SidecarFile, SidecarReader, write_sidecars
from snaploom.skipping.stores.assembly import Part, assemble, removed_paths
from snaploom.skipping.stores.changes import note_commit
from snaploom.skipping.stores.compaction import rewritten_from
from snaploom.skipping.stores.port import Segment, StoredState
from snaploom.skipping.stores.segmentcheck import checked
from snaploom.skipping.stores.statedocument import target_key
from snaploom.skipping.stores.statelog import StateLog
from snaploom.skipping.stores.usage import UsageLog
from snaploom.storage.numberedlog import PUT_ATTEMPTS
from snaploom.storage.objectstore import ObjectStore

LONGEST_SEGMENT = 512 * 1024 * 1024
"""Bytes of the longest segment that is read: four times the size at which writers begin another
one, which they notice after a row group."""

READS_AT_ONCE = 8
"""Segments that are fetched at the same time, to hide the latency of object stores."""

_log = logging.getLogger(__name__)


def folder_name(target_uri: str) -> str:
    """Name of the folder of an index below a base: SHA-256 of the target's URI, in hex."""
    return target_key(target_uri)


class FolderIndexStore:
    """One skipping index in a folder; behind the port `IndexStore`."""

    def __init__(
        self, store: ObjectStore, folder: str = "", keys: ParquetKeys | None = None
    ) -> None:
        """Open the folder at a key prefix, empty or ending in `/`; nothing is read yet."""
        self._store = store
        self._folder = folder
        self._keys = keys
        self._log = StateLog(store, folder)

    @property
    def uri(self) -> str:
        """URI of the folder."""
        return f"{self._store.uri}{self._folder}"

    @property
    def usage(self) -> UsageLog:
        """Usage of the index by queries."""
        return UsageLog(self._store, self._folder)

    def read(self) -> StoredState:
        """The newest committed state."""
        return self._log.read()

    def commit(self, build: Callable[[StoredState], StoredState | None]) -> StoredState:
        """Append a state by put-if-absent."""
        try:
            return self._log.commit(build)
        finally:
            note_commit(self.uri)

    def write_rows(self, rows: Iterable[pa.Table], definition: SkippingDefinition) -> list[Segment]:
        """Write rows as segments of bounded size."""
        return [self._write(file) for file in write_sidecars(rows, definition, self._keys)]

    def write_removed(self, paths: Sequence[str], definition: SkippingDefinition) -> Segment:
        """Write paths that are gone."""
        table = pa.table({"path": pa.array(paths, pa.large_string())})
        (file,) = write_sidecars([table], definition, self._keys)
        return replace(self._write(file), removed=True)

    def open(self, state: StoredState) -> FileTable:
        """Rows of a state; the files are fetched now, their columns decoded when needed."""
        if state.definition is None:
            identity = pa.schema(list(IDENTITY_FIELDS))
            return FileTable.of(identity.empty_table())
        parts = self._parts(state.segments, state.definition)
        return assemble(parts, state.definition)

    def sweep(self, keep: StoredState, older_than: EpochNanos) -> tuple[int, int]:
        """Remove segments that are not needed and old usage, and empty old states."""
        candidates = [
            info
            for info in list(self._store.list(f"{self._folder}segments/"))
            if info.modified < older_than
        ]
        # states are read after the listing: a segment that they do not name is not among theirs
        needed = {
            segment.name
            for state in (keep, *self._log.states_from(keep.version))
            for segment in state.segments
        }
        dead = [info for info in candidates if self._name(info.key) not in needed]
        self._store.delete(info.key for info in dead)
        self._log.prune(keep.version)
        self.usage.sweep(now())
        return len(dead), sum(info.size for info in dead)

    def destroy(self) -> None:
        """Remove all segments and usage, and empty all states but the newest."""
        segments = list(self._store.list(f"{self._folder}segments/"))
        self._store.delete(info.key for info in segments)
        self.usage.destroy()
        self._log.prune(self._log.read().version)

    def compact(self, state: StoredState) -> tuple[Segment, ...]:
        """Rewrite the newest segments as far back as they are small."""
        start = rewritten_from(state.segments)
        if state.definition is None or start == len(state.segments):
            return state.segments
        parts = self._parts(state.segments[start:], state.definition)
        rows = _all_columns(assemble(parts, state.definition), parts, state.definition)
        written = self.write_rows([rows], state.definition)
        gone = removed_paths(parts)
        if start and len(gone):
            written.insert(0, self.write_removed(gone.to_pylist(), state.definition))
        return (*state.segments[:start], *written)

    def _parts(self, segments: Sequence[Segment], definition: SkippingDefinition) -> list[Part]:
        if len(segments) < 2:
            return [self._part(segment, definition) for segment in segments]
        with ThreadPoolExecutor(READS_AT_ONCE, thread_name_prefix="snaploom-segments") as pool:
            return list(pool.map(lambda segment: self._part(segment, definition), segments))

    def _part(self, segment: Segment, definition: SkippingDefinition) -> Part:
        name = f"{self.uri}segments/{segment.name}"
        try:
            data = self._store.get(f"{self._folder}segments/{segment.name}", LONGEST_SEGMENT)
        except ObjectNotFound as error:
            raise IndexUnreadable(
                f"{name} is missing", hint="refresh the index with mode FULL"
            ) from error
        except (ObjectTooLarge, NotAPlainFile) as error:
            raise IndexUnreadable(
                f"{name} is damaged",
                found=error.message,
                expected="a file of Snaploom's",
                hint="refresh the index in full, or drop it and create it again",
            ) from error
        return Part(segment, checked(SidecarReader(data, name, self._keys), segment, definition))

    def _write(self, file: SidecarFile) -> Segment:
        name = f"{secrets.token_hex(16)}.parquet"
        key = f"{self._folder}segments/{name}"
        for attempt in range(PUT_ATTEMPTS):
            try:
                self._store.put_if_absent(key, file.data)
                break
            except ObjectAlreadyExists:
                break  # nobody else knows the name: an earlier attempt did it, its answer was lost
            except StorageError as error:
                if attempt == PUT_ATTEMPTS - 1:
                    raise
                _log.warning("no answer to the write of %s: %s", key, error.message)
        return Segment(name, file.rows, len(file.data), indexes=file.indexes)

    def _name(self, key: str) -> str:
        return key.removeprefix(f"{self._folder}segments/")


def _all_columns(
    files: FileTable, parts: Sequence[Part], definition: SkippingDefinition
) -> pa.Table:
    ids = {index.index_id for index in definition.indexes}
    names = dict.fromkeys(name for name, _ in IDENTITY_FIELDS)
    for part in parts:
        kept = (name for name in part.reader.columns if name.split(".")[0] in ids)
        names.update(dict.fromkeys(kept))
    return pa.table({name: files.column(name) for name in names})
