"""Port to the place of one skipping index, and its states as documents in a numbered log.

A store holds *rows* (tables as `snaploom.skipping.core.filetable` describes them) in *segments*,
which never change, and *states*, of which the newest counts. A commit is one compare-and-swap of
the state: a put-if-absent of the next number on object stores, a conditional write on OpenSearch.
Rows that are written and never committed are garbage, not data: a failed build changes nothing.
"""

import hashlib
import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Protocol

import pyarrow as pa
from annotated_types import Ge, Le, MaxLen
from pydantic import BaseModel, StringConstraints, ValidationError

from snaploom.errors import IndexBusy, IndexUnreadable, NotAPlainFile, ObjectTooLarge, SkippingError
from snaploom.files.objectstore import ObjectStore
from snaploom.models.base import ApiModel
from snaploom.models.common import EpochNanos
from snaploom.models.skippingindex import IndexState
from snaploom.output.documents import NumberedLog, read_hint, rebased, write_hint
from snaploom.skipping.core.definition import SkippingDefinition, is_sound
from snaploom.skipping.core.filetable import FileTable
from snaploom.skipping.indexes.base import index_type, registered_types

NEVER = EpochNanos(0)

LATEST = EpochNanos(253_402_300_799_999_999_999)
"""The end of the year 9999, up to which times can be written."""

StoredTime = Annotated[EpochNanos, Ge(0), Le(LATEST)]
"""A time in a document, which anybody may have written."""

Count = Annotated[int, Ge(0), Le(1 << 50)]
"""A number of rows, bytes or queries there."""

SegmentName = Annotated[str, StringConstraints(pattern=r"^[0-9a-z][0-9a-z.-]{0,79}$")]
"""Names a segment in its store, and nothing elsewhere: no folder, no other document."""

StateNumber = Annotated[int, Ge(0), Le(10**15)]
"""Number of a state: more than can be counted to."""

IndexId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_]{1,32}$")]
"""Id of an index: begins names of columns, which have a dot behind it."""


@dataclass(frozen=True)
class Segment:
    """Some rows, written once. A later segment's row for a path hides an earlier segment's."""

    name: SegmentName
    rows: Count
    bytes: Count
    """Size in the store; 0 where the store does not report it."""
    removed: bool = False
    """The rows have `path` only: these files are gone, and earlier rows about them do not count."""
    indexes: Annotated[tuple[IndexId, ...], MaxLen(1024)] = ()
    """Ids of the indexes about which the segment has columns."""
    merges: bool = False
    """Rows complete earlier rows of the same path and identity with the columns of `indexes` (an
    index was added) instead of hiding them."""


@dataclass(frozen=True)
class StoredState:
    """One committed state of a skipping index."""

    version: StateNumber
    """Number of the commit, from 1; 0 when there is no index."""
    phase: IndexState = IndexState.EMPTY
    """State of Flint's machine (rule S25)."""
    definition: SkippingDefinition | None = None
    """Definition; None when there is no index, or it is vacuumed."""
    segments: tuple[Segment, ...] = ()
    """Rows that count, oldest first."""
    committed_at: StoredTime = NEVER
    """Time at which this state was committed, by the writer's clock."""
    refreshed_at: StoredTime = NEVER
    """Time at which rows were last brought up to date; an index that never was prunes nothing (rule
    S8)."""
    checked_at: StoredTime = NEVER
    """Time of the last comparison of files and rows; later than `refreshed_at` where that found
    nothing to do."""
    next_index: Annotated[int, Ge(1), Le(10**9)] = 1
    """Number of the next `index_id`: ids are never used twice, not even after a drop."""
    operation: str = ""
    """Token of the operation in flight, in transient phases."""
    heartbeat_at: StoredTime = NEVER
    """Last sign of life of the operation in flight."""
    message: str = ""
    """The message of the last operation: the error in FAILED."""
    trusted: bool = True
    """False for imports that are not verified: they are never used for skipping (rule S28)."""

    @property
    def exists(self) -> bool:
        """Whether there is a skipping index, in any condition."""
        return self.definition is not None and self.phase not in _GONE

    @property
    def may_skip(self) -> bool:
        """Whether queries may use the rows; failed and running operations leave the former ones."""
        definition = self.definition
        is_used = definition is not None and definition.enabled and self.phase not in _GONE
        return is_used and self.trusted and self.refreshed_at != NEVER


_GONE = (IndexState.DELETING, IndexState.DELETED, IndexState.VACUUMING)

NOTHING = StoredState(version=0)
"""The state where there is no index."""


class IndexStore(Protocol):
    """Place of one skipping index."""

    @property
    def uri(self) -> str:
        """URI for people and logs; no secrets in it."""

    def read(self) -> StoredState:
        """The newest committed state; `NOTHING` where there is none.

        Raises:
            IndexUnreadable: the state is damaged or from a newer Snaploom (rule S14).
        """

    def commit(self, build: Callable[[StoredState], StoredState | None]) -> StoredState:
        """Replace the state, rebased on other commits.

        Args:
            build: from the newest state, its successor (`version` is set here), or None to leave
                it; called again after a lost race. Its exceptions end the commit.

        Raises:
            IndexBusy: too many lost races.
        """

    def write_rows(self, rows: Iterable[pa.Table], definition: SkippingDefinition) -> list[Segment]:
        """Write rows (in bounded pieces) as new segments, which nobody sees until committed."""

    def write_removed(self, paths: Sequence[str], definition: SkippingDefinition) -> Segment:
        """Write a segment that lists the files that are gone; encrypted as rows are."""

    def open(self, state: StoredState) -> FileTable:
        """The rows of a state, hidden and removed ones left out, columns read when needed.

        Raises:
            IndexUnreadable: a segment is damaged or absent.
            KeyUnavailable: it is encrypted, and the key is unavailable.
        """

    def sweep(self, keep: StoredState, older_than: EpochNanos) -> tuple[int, int]:
        """Remove old segments no state from `keep` on needs; returns files and bytes removed."""

    def destroy(self) -> None:
        """Remove everything but the newest state (VACUUM)."""

    def compact(self, state: StoredState) -> tuple[Segment, ...]:
        """Write rows in fewer segments, invisible until committed; the same if nothing is gained.

        Only what pays is rewritten. A store whose segments are no pieces has nothing to do.

        Raises:
            IndexUnreadable: a segment is damaged or absent.
            KeyUnavailable: it is encrypted, and the key is unavailable.
        """


# Document of a state: definition, segments, and progress of an operation.

STATE_FORMAT = 2
"""Format of the documents: 2 has `evaluation` in fingerprints. A newer one is refused. Each field
that is added to `StoredState` or to a definition makes a new format, since older versions refuse
what they do not know."""

LONGEST_STATE = 4 * 1024 * 1024
"""Bytes of the longest document: 20,000 segments, or 256 indexes of 16 KB each."""

PRUNED = b'{"pruned":true}\n'
"""Document in the place of a pruned state."""


class StateDocument(ApiModel):
    """One state, with the type of its document."""

    format: Annotated[int, Ge(1)] = STATE_FORMAT
    commit: str
    """Token of the commit: no two commits write equal bytes, so that a lost answer is settled by
    comparing them (rule P4)."""
    state: StoredState


def format_state(state: StoredState, commit: str) -> bytes:
    """Format a state as canonical JSON and a newline."""
    return StateDocument(commit=commit, state=state).dump_json().encode() + b"\n"


def target_key(target_uri: str) -> str:
    """Key of a target's index: SHA-256 of the target's URI, in hex."""
    return hashlib.sha256(target_uri.encode("utf-8", "surrogatepass")).hexdigest()


def parse_state(document: bytes, name: str, key: str = "") -> StoredState:
    """Parse an untrusted state; `key` must match the target's URI."""
    _check_format(document, name)
    try:
        state = StateDocument.model_validate_json(
            document, strict=True, by_alias=True, by_name=False
        ).state
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in fault["loc"])
        raise damaged_state(name, f"{place}: {fault['msg']}") from error
    impossible = _impossible(state, key)
    if impossible:
        raise damaged_state(name, impossible)
    return state


def damaged_state(name: str, found: str) -> IndexUnreadable:
    """Build the error for a document that contradicts its name."""
    return IndexUnreadable(
        f"{name} is damaged", found=found, expected="a document as Snaploom wrote it"
    )


def _check_format(document: bytes, name: str) -> None:
    try:
        version = _Format.model_validate_json(document, strict=True).format
    except ValidationError as error:
        is_json = error.errors(include_url=False, include_input=False)[0]["type"] != "json_invalid"
        found = "no format version" if is_json else "not JSON"
        raise damaged_state(name, found) from error
    if version > STATE_FORMAT:
        raise IndexUnreadable(
            f"{name} was written by a newer Snaploom",
            found=f"format {version}",
            expected=f"format {STATE_FORMAT} or older",
        )


class _Format(BaseModel):
    format: Annotated[int, Ge(1), Le(10**9)]


def _impossible(state: StoredState, key: str) -> str:
    """Contradictions between fields of a state; empty if consistent.

    A folder, or a document, belongs to the target whose hash names it: what speaks of another one
    would have that one's files removed, or its queries answered.
    """
    definition = state.definition
    if definition is None:
        return "segments of nothing" if state.segments else ""
    if _IS_HASH.fullmatch(key) and key != target_key(definition.target.uri):
        return f"an index of {definition.target.uri}, which is kept elsewhere"
    if len({segment.name for segment in state.segments}) != len(state.segments):
        return "a segment that is listed twice"
    if len({index.index_id for index in definition.indexes}) != len(definition.indexes):
        return "two indexes of one id"
    for index in definition.indexes:
        if not index.terms or not all(map(is_sound, index.terms)):
            return f"an index of nothing that can be indexed: {index.index_id}"
        if not _IS_ID.fullmatch(index.index_id) or not _IS_TYPE.fullmatch(index.type):
            return "an index of no type"
        if index.type in registered_types():
            try:
                index_type(index.type).check(index)
            except SkippingError as error:
                return f"{index.index_id}, which cannot be: {error.message}"
    return ""


_IS_HASH = re.compile(r"[0-9a-f]{64}")
_IS_ID = re.compile(r"[A-Za-z0-9_]{1,32}")
_IS_TYPE = re.compile(r"[A-Z][A-Z0-9_]{0,63}")


# States of a skipping index in a numbered log, of which the newest counts (rules P1, P4, S24).

KEPT_STATES = 5
"""Newest states that pruning leaves for people to investigate."""

MOST_PRUNED = 100
"""Pruned states in a row that are asked for one by one; beyond them the log is listed."""

_NAME = re.compile(r"(\d{20})\.json")


class _Hint(ApiModel):
    version: StateNumber


class IndexCommitUnknown(SkippingError):
    """The store does not answer, so that a state may or may not have been written."""


class StateLog:
    """The states of one skipping index, below one folder of a store."""

    def __init__(self, store: ObjectStore, folder: str) -> None:
        """Open the log below a key prefix, empty or ending in `/`; nothing is read yet."""
        self._store = store
        self._folder = f"{folder}manifest/"
        self._hint_key = f"{folder}_latest"
        self._log = NumberedLog(store, self._key, LONGEST_STATE, IndexCommitUnknown)
        self._key_of_target = folder.rstrip("/").rpartition("/")[2]
        self._known = NOTHING

    def read(self) -> StoredState:
        """The newest state; `NOTHING` where there is none."""
        hint = 0
        state = self._known
        if state.version == 0:
            hint = self._read_hint()
            state = (self._state(hint) if hint else None) or self._listed()
        while (following := self._following(state)) is not None:
            state = following
        if state.version < hint:
            raise damaged_state(f"{self._store.uri}{self._key(hint)}", "nothing, though it existed")
        self._known = state
        return state

    def commit(self, build: Callable[[StoredState], StoredState | None]) -> StoredState:
        busy = "other writers took {} states in a row in {}"
        return rebased(
            lambda: self._attempt(build),
            lambda races: IndexBusy(busy.format(races, self._store.uri)),
        )

    def _attempt(self, build: Callable[[StoredState], StoredState | None]) -> StoredState | None:
        state = self.read()
        successor = build(state)
        if successor is None:
            return state
        committed = replace(successor, version=state.version + 1)
        if not self._log.append(committed.version, format_state(committed, secrets.token_hex(8))):
            return None
        self._known = committed
        write_hint(self._store, self._hint_key, {"version": committed.version})
        return committed

    def states_from(self, version: int) -> list[StoredState]:
        """The states from one on that still stand, oldest first."""
        newest = self.read()
        # Listed: numbers that somebody made up may be very far from one another.
        names = (info.key.rpartition("/")[2] for info in self._store.list(self._folder))
        numbers = sorted(n for n in map(_number, names) if max(version, 1) <= n < newest.version)
        found = (self._state(number) for number in numbers)
        return [state for state in found if state is not None] + [newest]

    def prune(self, before: int) -> None:
        """Empty the states before one; the newest few always stay."""
        newest = self.read().version
        for info in list(self._store.list(self._folder)):
            number = _number(info.key.rpartition("/")[2])
            is_old = 0 < number < before and number <= newest - KEPT_STATES
            if is_old and info.size != len(PRUNED):
                self._store.put(info.key, PRUNED)

    def _following(self, state: StoredState) -> StoredState | None:
        number = state.version + 1
        while (document := self._document(number)) is not None:
            if document != PRUNED:
                return self._parsed(document, number)
            number += 1
            if number > state.version + MOST_PRUNED:
                return self._beyond(state)
        if number > state.version + 1:  # the newest state is never pruned
            raise damaged_state(f"{self._store.uri}{self._key(number)}", "nothing after old states")
        return None

    def _beyond(self, state: StoredState) -> StoredState:
        found = self._listed()
        if found.version <= state.version or (found.definition is None and not found.committed_at):
            raise damaged_state(f"{self._store.uri}{self._folder}", "nothing after old states")
        return found

    def _listed(self) -> StoredState:
        keys = [info.key.rpartition("/")[2] for info in self._store.list(self._folder)]
        number = max(map(_number, keys), default=0)
        return (self._state(number) or replace(NOTHING, version=number - 1)) if number else NOTHING

    def _state(self, number: int) -> StoredState | None:
        document = self._document(number)
        if document is None or document == PRUNED:
            return None
        return self._parsed(document, number)

    def _parsed(self, document: bytes, number: int) -> StoredState:
        name = f"{self._store.uri}{self._key(number)}"
        state = parse_state(document, name, self._key_of_target)
        if state.version != number:
            raise damaged_state(name, f"state {state.version}")
        return state

    def _document(self, number: int) -> bytes | None:
        try:
            return self._log.document(number)
        except (ObjectTooLarge, NotAPlainFile) as error:
            raise damaged_state(f"{self._store.uri}{self._key(number)}", error.message) from error

    def _read_hint(self) -> int:
        try:
            hint = read_hint(self._store, self._hint_key, _Hint)
        except NotAPlainFile:
            return 0
        return hint.version if hint else 0

    def _key(self, number: int) -> str:
        return f"{self._folder}{number:020d}.json"


def _number(name: str) -> int:
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else 0
