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
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from importlib.metadata import entry_points
from typing import Protocol, cast
from urllib.parse import urlencode

import pyarrow as pa

from snaploom import errors
from snaploom.files.objectstore import ObjectStore
from snaploom.models.common import EpochNanos, now
from snaploom.models.datasource import Credentials
from snaploom.models.skippingindex import OpenSearchAuth, OpenSearchStore
from snaploom.ondemand import load_registered
from snaploom.output.documents import PUT_ATTEMPTS
from snaploom.plan.bundles import user_and_password
from snaploom.skipping.core.definition import SkippingDefinition
from snaploom.skipping.core.filetable import IDENTITY_FIELDS, FileTable
from snaploom.skipping.formats.parquetfiles import ParquetKeys
from snaploom.skipping.formats.sidecar import SidecarFile, SidecarReader, write_sidecars
from snaploom.skipping.stores.port import IndexStore, Segment, StoredState
from snaploom.skipping.stores.segments import Part, assemble, checked, removed_paths, rewritten_from
from snaploom.skipping.stores.states import StateLog, target_key
from snaploom.skipping.stores.usage import UsageLog

_log = logging.getLogger(__name__)

LONGEST_SEGMENT = 512 * 1024 * 1024
"""Bytes of the longest segment that is read: four times the size at which writers begin another
one, which they notice after a row group."""

READS_AT_ONCE = 8
"""Segments that are fetched at the same time, to hide the latency of object stores."""


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
        except errors.ObjectNotFound as error:
            raise errors.IndexUnreadable(f"{name} is missing") from error
        except (errors.ObjectTooLarge, errors.NotAPlainFile) as error:
            raise errors.IndexUnreadable(
                f"{name} is damaged", found=error.message, expected="a file of Snaploom's"
            ) from error
        return Part(segment, checked(SidecarReader(data, name, self._keys), segment, definition))

    def _write(self, file: SidecarFile) -> Segment:
        name = f"{secrets.token_hex(16)}.parquet"
        key = f"{self._folder}segments/{name}"
        for attempt in range(PUT_ATTEMPTS):
            try:
                self._store.put_if_absent(key, file.data)
                break
            except errors.ObjectAlreadyExists:
                break  # nobody else knows the name: an earlier attempt did it, its answer was lost
            except errors.StorageError as error:
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


# Commits of this process, by which caches of a store become invalid.

_commits: Counter[str] = Counter()
_lock = threading.Lock()


def note_commit(store_uri: str) -> None:
    """Record a commit; every store calls it after its own."""
    with _lock:
        _commits[store_uri] += 1


def commits_noted(store_uri: str) -> int:
    """A number that changes with every commit to the store."""
    with _lock:
        return _commits[store_uri]


# URI of a declared OpenSearch: the same in every interface, without secrets.

SCHEME = "opensearch"
"""Scheme of such URIs."""

USERNAME_VARIABLE, PASSWORD_VARIABLE = "username_variable", "password_variable"
"""Options of a URI: the environment variables that hold user name and password."""


def is_opensearch(location: str) -> bool:
    """Whether a location is in OpenSearch."""
    return location.lower().startswith(f"{SCHEME}:")


def uri_of_store(store: OpenSearchStore) -> str:
    """URI of a declared store; `IndexNotPossible` if the declaration contains credentials."""
    options = {"scheme": store.scheme, "auth": store.auth.value.lower()}
    if store.region is not None:
        options["region"] = store.region
    if store.auth is OpenSearchAuth.BASIC and store.credentials is not None:
        options[USERNAME_VARIABLE], options[PASSWORD_VARIABLE] = _variables(store.credentials)
    host = f"[{store.host}]" if ":" in store.host else store.host
    return f"{SCHEME}://{host}:{store.port}?{urlencode(options)}"


def _variables(credentials: Credentials) -> tuple[str, str]:
    """Variables of user name and password: queries read them later, on any machine."""
    keys = user_and_password(credentials)
    if keys is not None:
        user, password = keys
        return user.variable, password.variable
    declared = credentials.from_environment
    if declared is None:
        raise errors.IndexNotPossible(
            "user and password of OpenSearch are read from environment variables",
            found="credentials in the declaration itself",
            expected="credentials.fromEnvironment or credentials.fromSecret",
            hint="take them out of the address, and set the variables",
        )
    return declared.user_variable, declared.password_variable


# Forms of folders: extra files for other programs, beside our rows.

ENTRY_POINTS = "snaploom.skipping.forms"
"""Entry-point group: the name is the form's, the value a `StoreForm`."""


class StoreForm(Protocol):
    """A form that a folder may have."""

    def check(self, definition: SkippingDefinition) -> None:
        """Raise `IndexNotPossible`, with all reasons, for a definition the form cannot hold."""
        ...

    def parameters(self, index_type: str, given: Mapping[str, str]) -> Mapping[str, str]:
        """Parameters of an index as the form needs them."""
        ...

    def store(
        self, native: IndexStore, base: ObjectStore, folder: str, keys: ParquetKeys | None
    ) -> IndexStore:
        """A store that also maintains the form of its indexes; others' indexes pass through."""
        ...


@cache
def registered_forms() -> Mapping[str, StoreForm]:
    """Every form by its name."""
    found = {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}
    return {
        name: cast(StoreForm, load_registered(found[name], "the form")) for name in sorted(found)
    }


def store_form(name: str) -> StoreForm:
    """The form of that name; `IndexNotPossible` if it is not registered here."""
    form = registered_forms().get(name)
    if form is None:
        raise errors.IndexNotPossible(
            f"the form {name} of a store is not registered here",
            found=name,
            expected=", ".join(("NATIVE", *registered_forms())),
            hint=f"install the package that registers it in the entry-point group {ENTRY_POINTS}; "
            "Snaploom's own are in snaploom.plugins",
        )
    return form
