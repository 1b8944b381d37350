"""The document of a state: what is declared, which segments count, and how far an operation is.

Each state is a whole: canonical JSON, never changed, so that a reader needs one document. Its
fields are those of `StoredState` and what that holds. A state that was pruned leaves `PRUNED` in
its place, because a number that became free could be taken a second time by a writer that slept
meanwhile.
"""

from __future__ import annotations

import json
from typing import Annotated

from annotated_types import Ge
from pydantic import ValidationError

from snaploom.errors import IndexUnreadable
from snaploom.models.base import ApiModel
from snaploom.skipping.stores.port import StoredState

STATE_FORMAT = 1
"""Format of the documents; a newer one is refused. Each field that is added to `StoredState` or to
a definition makes a new format, since older versions refuse what they do not know."""

PRUNED = b'{"pruned":true}\n'
"""What stands where a state was that nobody needs any more."""


class StateDocument(ApiModel):
    """One state, with what makes the document one of a kind."""

    format: Annotated[int, Ge(1)] = STATE_FORMAT
    """Format version of this document."""
    commit: str
    """Token of the commit: no two commits write equal bytes, so that a lost answer is settled by
    comparing them (ruling D26)."""
    state: StoredState
    """The state."""


def format_state(state: StoredState, commit: str) -> bytes:
    """The document of a state: canonical JSON and a newline."""
    return StateDocument(commit=commit, state=state).dump_json().encode() + b"\n"


def parse_state(document: bytes, name: str) -> StoredState:
    """Parse a state; `name` is the file, for messages.

    Raises:
        IndexUnreadable: it is damaged, or was written by a newer Snaploom.
    """
    _check_format(document, name)
    try:
        return StateDocument.model_validate_json(
            document, strict=True, by_alias=True, by_name=False
        ).state
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in fault["loc"])
        raise damaged_state(name, f"{place}: {fault['msg']}") from error


def damaged_state(name: str, found: str) -> IndexUnreadable:
    """The error for a document that cannot be what its name says."""
    return IndexUnreadable(
        f"{name} is damaged",
        found=found,
        expected="a document as Snaploom wrote it",
        hint="queries read every file meanwhile; remove the folder and create the index again",
    )


def _check_format(document: bytes, name: str) -> None:
    try:
        raw = json.loads(document)
    except ValueError as error:
        raise damaged_state(name, f"not JSON: {error}") from error
    version = raw.get("format") if isinstance(raw, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise damaged_state(name, "no format version")
    if version > STATE_FORMAT:
        raise IndexUnreadable(
            f"{name} was written by a newer Snaploom",
            found=f"format {version}",
            expected=f"format {STATE_FORMAT} or older",
            hint="upgrade Snaploom",
        )
