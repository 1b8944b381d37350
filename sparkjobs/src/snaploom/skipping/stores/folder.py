"""The native store: one folder of an object store for each skipping index (rule S24).

```
<base>/<sha256 of the target's URI>/manifest/<20 digits>.json   states; the newest number counts
<base>/<sha256 of the target's URI>/_latest                     hint: a number that was reached
<base>/<sha256 of the target's URI>/segments/<token>.parquet    rows, each file named once for ever
<base>/<sha256 of the target's URI>/usage/<token>.json          what queries of one session did
```
"""

import logging
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import entry_points
from typing import Protocol, cast
from urllib.parse import urlencode

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from snaploom import errors
from snaploom.errors import IndexNotPossible, IndexUnreadable
from snaploom.files.objectstore import ObjectStore
from snaploom.installed import load_registered
from snaploom.models.common import EpochNanos, now
from snaploom.models.datasource import Credentials
from snaploom.models.skippingindex import OpenSearchAuth, OpenSearchStore
from snaploom.output.documents import PUT_ATTEMPTS
from snaploom.plan.bundles import user_and_password
from snaploom.skipping.core.definition import SkippingDefinition
from snaploom.skipping.core.filetable import IDENTITY_FIELDS, FileTable, Mask, whole_column
from snaploom.skipping.formats.parquetfiles import (
    ParquetKeys,
    SidecarFile,
    SidecarReader,
    write_sidecars,
)
from snaploom.skipping.indexes.base import index_type
from snaploom.skipping.stores.port import IndexStore, Segment, StateLog, StoredState
from snaploom.skipping.stores.usage import UsageLog

# Checks a segment's columns against its state, once before any is used.

_ALWAYS_THERE = ("path", "length", "modified")


def checked(
    reader: SidecarReader, segment: Segment, definition: SkippingDefinition
) -> SidecarReader:
    """Return the segment if it is valid."""
    if reader.rows != segment.rows:
        raise _damaged(reader, f"{reader.rows} rows", f"{segment.rows} rows")
    if len(set(reader.columns)) != len(reader.columns):
        raise _damaged(reader, "a column that is there twice", "every column once")
    wanted = dict(IDENTITY_FIELDS)
    if segment.removed:
        wanted = {"path": wanted["path"]}
    for name, data_type in wanted.items():
        if name not in reader.columns:
            raise _damaged(reader, f"no column {name}", "all columns of an identity")
        _check_type(reader, name, data_type)
    found: dict[str, pa.DataType] = {}
    for index in definition.indexes:
        for position in range(len(index.terms)):
            suffix = f".{position}" if position else ""
            found[f"{index.index_id}.values{suffix}"] = pa.int64()
            found[f"{index.index_id}.nulls{suffix}"] = pa.int64()
        try:
            fields = index_type(index.type).fields(index)
        except IndexNotPossible:
            continue  # nobody here asks it
        found.update({f"{index.index_id}.{name}": kind for name, kind in fields.items()})
    for name, data_type in found.items():
        if name in reader.columns:
            _check_type(reader, name, data_type)
    present = [name for name in _ALWAYS_THERE if name in wanted]
    # Read one by one, as everybody else does: encrypted columns may have keys of their own.
    for name in present:
        if reader.read([name]).column(name).null_count:
            raise _damaged(reader, f"rows without {name}", "rows about files")
    return reader


def _check_type(reader: SidecarReader, name: str, data_type: pa.DataType) -> None:
    found = reader.type_of(name)
    if found != data_type:
        raise _damaged(reader, f"{name} of type {found}", f"{name} of type {data_type}")


def _damaged(reader: SidecarReader, found: str, expected: str) -> IndexUnreadable:
    return IndexUnreadable(f"{reader.name} is damaged", found=found, expected=expected)


# Chooses segments to rewrite: the newest ones, as far back as they are small.

GROWTH = 4
"""Largest ratio of an older segment to all newer ones with which it still joins them."""

SMALL_ROWS = 10_000
"""A segment of no more rows joins in any case: rewriting it takes milliseconds."""


def rewritten_from(segments: Sequence[Segment]) -> int:
    """Number of the first segment to rewrite; the number of all if nothing is gained."""
    start, newer = len(segments), 0
    for number in reversed(range(len(segments))):
        rows = segments[number].rows
        if rows > max(SMALL_ROWS, GROWTH * newer) and newer:
            break
        start, newer = number, newer + rows
    if any(segment.merges for segment in segments[start:]):
        start = 0  # it completes rows of older segments, which only a whole rewrite can place
    is_one_clean = start == 0 and len(segments) == 1 and not segments[0].removed
    return len(segments) if is_one_clean or len(segments) - start < 2 else start


# Assembles segments to one table of files, reading no more than needed.

Numbers = npt.NDArray[np.int64]

_IDENTITY = tuple(name for name, _ in IDENTITY_FIELDS)


class SegmentReader(Protocol):
    """Columns of one segment."""

    @property
    def columns(self) -> Sequence[str]:
        """Names of the columns it has."""

    def type_of(self, column: str) -> pa.DataType:
        """Type of a column."""

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Some columns of all rows."""


@dataclass(frozen=True)
class Part:
    """A segment and its content."""

    segment: Segment
    reader: SegmentReader


@dataclass(frozen=True)
class _Visible:
    visible: Mask
    """For each row of the showing segments, whether it counts."""
    parts: Numbers
    """For each row that counts, the number of its segment."""
    removed: pa.Array
    """Paths that are gone and not shown again."""


@dataclass(frozen=True)
class _Completion:
    part: Part
    source: Numbers
    """For each row that counts, the row of the segment that completes it; -1 for none."""


def assemble(parts: Sequence[Part], definition: SkippingDefinition) -> FileTable:
    """The rows that count, in order of segments, oldest first."""
    shown = [part for part in parts if not part.segment.removed and not part.segment.merges]
    if len(parts) == len(shown) == 1:
        columns = _Columns(shown, None, (), definition)
        return FileTable(shown[0].segment.rows, columns.load)
    newest = _visible(parts)
    merging = [(number, part) for number, part in enumerate(parts) if part.segment.merges]
    completions: list[_Completion] = []
    if merging:
        rows = _Columns(shown, newest.visible, (), definition).load(_IDENTITY)
        completions = [_completion(part, number, newest, rows) for number, part in merging]
    columns = _Columns(shown, newest.visible, completions, definition)
    return FileTable(len(newest.parts), columns.load)


def removed_paths(parts: Sequence[Part]) -> pa.Array:
    """Paths that these segments mark as removed and no later one shows."""
    return _visible(parts).removed


def _visible(parts: Sequence[Part]) -> _Visible:
    own = [(number, part) for number, part in enumerate(parts) if not part.segment.merges]
    paths = pa.chunked_array(
        [chunk for _, part in own for chunk in part.reader.read(["path"]).column("path").chunks],
        pa.large_string(),
    )
    numbers = np.repeat(
        np.array([number for number, _ in own], dtype=np.int64),
        np.array([part.segment.rows for _, part in own], dtype=np.int64),
    )
    encoded = whole_column(pc.dictionary_encode(paths))
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    places = np.arange(len(codes), dtype=np.int64)
    last = np.zeros(len(encoded.dictionary), dtype=np.int64)
    last[codes] = places  # of equal indices the last one is kept
    is_last = last[codes] == places
    removing = np.array([part.segment.removed for part in parts], dtype=np.bool_)
    is_removal = removing[numbers] if len(numbers) else np.zeros(0, dtype=np.bool_)
    return _Visible(
        visible=is_last[~is_removal],
        parts=numbers[is_last & ~is_removal],
        removed=whole_column(paths.filter(pa.array(is_last & is_removal))),
    )


def _completion(part: Part, number: int, newest: _Visible, rows: pa.Table) -> _Completion:
    """Match by path and identity; only rows that are older than the segment are completed."""
    own = part.reader.read(_IDENTITY)
    found = pc.index_in(
        whole_column(rows.column("path")), value_set=whole_column(own.column("path"))
    )
    matches = pc.and_(found.is_valid(), pa.array(newest.parts < number))
    for name in _IDENTITY[1:]:
        mine, theirs = whole_column(rows.column(name)), whole_column(own.column(name)).take(found)
        is_equal = pc.fill_null(pc.equal(mine, theirs), False)
        matches = pc.and_(matches, pc.or_(is_equal, pc.and_(mine.is_null(), theirs.is_null())))
    source = pc.if_else(matches, pc.fill_null(found.cast(pa.int64()), -1), -1)
    return _Completion(part, source.to_numpy(zero_copy_only=False))


class _Columns:
    def __init__(
        self,
        shown: Sequence[Part],
        visible: Mask | None,
        completions: Sequence[_Completion],
        definition: SkippingDefinition,
    ) -> None:
        self._shown = shown
        self._visible = visible
        self._completions = completions
        self._definition = definition

    def load(self, names: Sequence[str]) -> pa.Table:
        """Some columns of the rows that count."""
        return pa.table({name: self._column(name) for name in names})

    def _column(self, name: str) -> pa.ChunkedArray:
        data_type = self._type(name)
        chunks = [_column(part, name, data_type) for part in self._shown]
        column = pa.chunked_array([c for chunk in chunks for c in chunk.chunks], data_type)
        if self._visible is not None:
            column = column.filter(pa.array(self._visible))
        if name in _IDENTITY:
            return column
        for completion in self._completions:
            if name in completion.part.reader.columns:
                added = _column(completion.part, name, data_type)
                both = pa.chunked_array([*column.chunks, *added.chunks], data_type)
                own = np.arange(len(column), dtype=np.int64)
                places = np.where(completion.source >= 0, len(column) + completion.source, own)
                column = both.take(pa.array(places))
        return column

    def _type(self, name: str) -> pa.DataType:
        if name in _IDENTITY:
            return dict(IDENTITY_FIELDS)[name]
        sources = [*self._shown, *(completion.part for completion in self._completions)]
        for part in sources:
            if name in part.reader.columns:
                return part.reader.type_of(name)
        index_id, _, field = name.partition(".")
        for index in self._definition.indexes:
            if index.index_id == index_id:
                if field.split(".")[0] in ("values", "nulls"):
                    return pa.int64()
                return index_type(index.type).fields(index)[field]
        raise KeyError(name)


def _column(part: Part, name: str, data_type: pa.DataType) -> pa.ChunkedArray:
    if name not in part.reader.columns:
        return pa.chunked_array([pa.nulls(part.segment.rows, data_type)])
    return part.reader.read([name]).column(name).cast(data_type)


_log = logging.getLogger(__name__)

LONGEST_SEGMENT = 512 * 1024 * 1024
"""Bytes of the longest segment that is read: four times the size at which writers begin another
one, which they notice after a row group."""

READS_AT_ONCE = 8
"""Segments that are fetched at the same time, to hide the latency of object stores."""


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
        return f"{self._store.uri}{self._folder}"

    @property
    def usage(self) -> UsageLog:
        return UsageLog(self._store, self._folder)

    def read(self) -> StoredState:
        return self._log.read()

    def commit(self, build: Callable[[StoredState], StoredState | None]) -> StoredState:
        try:
            return self._log.commit(build)
        finally:
            note_commit(self.uri)

    def write_rows(self, rows: Iterable[pa.Table], definition: SkippingDefinition) -> list[Segment]:
        return [self._write(file) for file in write_sidecars(rows, definition, self._keys)]

    def write_removed(self, paths: Sequence[str], definition: SkippingDefinition) -> Segment:
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
        listed = list(self._store.list(f"{self._folder}segments/"))
        candidates = [info for info in listed if info.modified < older_than]
        # states are read after the listing: a segment that they do not name is not among theirs
        needed = {
            segment.name
            for state in (keep, *self._log.states_from(keep.version))
            for segment in state.segments
        }
        prefix = f"{self._folder}segments/"
        dead = [info for info in candidates if info.key.removeprefix(prefix) not in needed]
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

    def parameters(self, index_type: str, given: Mapping[str, str]) -> Mapping[str, str]:
        """Parameters of an index as the form needs them."""

    def store(
        self, native: IndexStore, base: ObjectStore, folder: str, keys: ParquetKeys | None
    ) -> IndexStore:
        """A store that also maintains the form of its indexes; others' indexes pass through."""


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
