"""Document of a state: definition, segments, and progress of an operation.

Each state is a whole: canonical JSON, never changed, so that a reader needs one document. Its
fields are those of `StoredState` and what that holds. A state that was pruned leaves `PRUNED` in
its place, because a number that became free could be taken a second time by a writer that slept
meanwhile.
"""

from __future__ import annotations

import hashlib
import re
from typing import Annotated

from annotated_types import Ge, Le
from pydantic import BaseModel, ValidationError

from snaploom.errors import IndexUnreadable, SkippingError
from snaploom.models.base import ApiModel
from snaploom.skipping.core.terms import is_sound
from snaploom.skipping.indexes.registry import index_type, registered_types
from snaploom.skipping.stores.port import StoredState

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
    """Format version of this document."""
    commit: str
    """Token of the commit: no two commits write equal bytes, so that a lost answer is settled by
    comparing them (rule P4)."""
    state: StoredState
    """The state."""


def format_state(state: StoredState, commit: str) -> bytes:
    """Format a state as canonical JSON and a newline."""
    return StateDocument(commit=commit, state=state).dump_json().encode() + b"\n"


def target_key(target_uri: str) -> str:
    """Key of a target's index: SHA-256 of the target's URI, in hex."""
    return hashlib.sha256(target_uri.encode("utf-8", "surrogatepass")).hexdigest()


def parse_state(document: bytes, name: str, key: str = "") -> StoredState:
    """Parse an untrusted state; `key` must match the target's URI.

    Raises:
        IndexUnreadable: it is damaged, or was written by a newer Snaploom.
    """
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
        f"{name} is damaged",
        found=found,
        expected="a document as Snaploom wrote it",
        hint="queries read every file meanwhile; remove the folder and create the index again",
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
            hint="upgrade Snaploom",
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
