"""Parses documents of a folder within bounds: the writer of a folder may be hostile.

Three bounds hold before memory is taken. The store reads no more bytes than a document of its kind
may have. No more values are built from them than it may have: `[[],[],...]` takes twenty times its
length. And nesting ends where the parsers end it: pydantic's at 200 levels, Python's at those that
its stack has left, a few hundred to a thousand; documents of ours have fewer than 10.

A document is typed when it is parsed, with `storage.pathnames` for whatever becomes a path. A key
that is there twice is refused, since two readers could take it for two documents.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TypeVar

from pydantic import JsonValue, ValidationError

from snaploom.errors import FormatTooNew, ManifestCorrupt
from snaploom.models.base import ApiModel
from snaploom.storage.objectstore import ObjectStore
from snaploom.visibletext import visible

MANIFEST_FORMAT = 1
"""Format of entries, checkpoints and the marker; a newer one is refused (rule P8)."""

Model = TypeVar("Model", bound=ApiModel)

LONGEST_FAULT = 1000
"""Characters of a message about a damaged document: it may quote what it found."""


@dataclass(frozen=True)
class Bounds:
    """Upper bounds of a document of one kind."""

    length: int
    """Bytes."""
    values: int
    """Values: numbers, texts, lists and objects."""


ENTRY = Bounds(64 * 2**20, 2_000_000)
"""Of an entry: one file takes 130 bytes and 3 values (list members and keys), so that it lists
400,000 files, or ends 100,000 snapshots of 3 files each."""
CHECKPOINT = Bounds(256 * 2**20, 6_000_000)
"""Of a checkpoint's index: 6 values a version, so that it lists a million; 100,000 are promised."""
HINT = Bounds(4096, 20)
"""Of a hint, notice or marker: some 200 bytes."""
DOCUMENT = Bounds(16 * 2**20, 1_000_000)
"""Of a schema or data model: Spark's own limits end far below 100,000 columns of 100 bytes."""
LISTING = Bounds(128 * 2**20, 2_000_000)
"""Of facts about a source's files: at most 250,000 files and their values, and schemas."""
TABLE_VERSION = Bounds(256 * 2**20, 6_000_000)
"""Of an Iceberg table's metadata: some 20 values and 600 bytes a snapshot that it has not
forgotten, so that it lists 200,000."""
MEANING = Bounds(ENTRY.length + DOCUMENT.length, ENTRY.values + 10)
"""Of the meaning of a table commit: an entry, and a schema as one text."""


def get_bounded(store: ObjectStore, key: str, bounds: Bounds) -> bytes:
    """Read an object that has no more bytes than its kind may have.

    Raises:
        ObjectNotFound: it is not there.
        ObjectTooLarge: it is longer.
    """
    return store.get(key, bounds.length)


def parse_json(document: bytes, name: str, bounds: Bounds) -> JsonValue:
    """Parse a JSON document; `name` is the file, for messages, and `bounds` are of its kind.

    Raises:
        ManifestCorrupt: it is no JSON, has a key twice, too many values or too deep ones.
    """
    refuse_many(document, name, bounds)
    try:
        raw: JsonValue = json.loads(
            document, object_pairs_hook=_unique, parse_constant=_refuse_constant
        )
    except RecursionError:
        raise corrupt(name, "values nested too deep") from None
    except ValueError as error:
        raise corrupt(name, f"not JSON: {error}") from error
    return raw


def parse_object(document: bytes, name: str, bounds: Bounds) -> dict[str, JsonValue]:
    """A JSON object; raises as `parse_json`, also for other values."""
    raw = parse_json(document, name, bounds)
    if not isinstance(raw, dict):
        raise corrupt(name, "no JSON object")
    return raw


def parse_versioned(document: bytes, name: str, bounds: Bounds) -> dict[str, JsonValue]:
    """A JSON object with a `format` that this version knows.

    Raises:
        FormatTooNew: it was written by a newer Snaploom.
        ManifestCorrupt: it is not such an object.
    """
    raw = parse_json(document, name, bounds)
    version = raw.get("format") if isinstance(raw, dict) else None
    if not isinstance(raw, dict) or not isinstance(version, int) or isinstance(version, bool):
        raise corrupt(name, "no format version")
    if version < 1:
        raise corrupt(name, "no format version")
    if version > MANIFEST_FORMAT:
        raise FormatTooNew(
            f"{visible(name)} was written by a newer Snaploom",
            found=f"format {str(version)[:20]}",
            expected=f"format {MANIFEST_FORMAT} or older",
            hint="upgrade Snaploom",
        )
    return raw


def parse_hint(document: bytes, name: str, model: type[Model]) -> Model:
    """Parse a small document that nothing depends on; `ManifestCorrupt` if it is damaged."""
    parse_json(document, name, HINT)
    try:
        return model.model_validate_json(document, strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        raise corrupt(name, first_fault(error)) from error


def refuse_many(document: bytes, name: str, bounds: Bounds) -> None:
    """Raise `ManifestCorrupt` for more values than a kind may have; counts at memory's speed."""
    # Every value but the first follows a comma or an opening bracket.
    most = document.count(b",") + document.count(b"[") + document.count(b"{") + 1
    if len(document) > bounds.length or most > bounds.values:
        raise corrupt(name, f"{len(document):,} bytes with up to {most:,} values")


def corrupt(name: str, found: str) -> ManifestCorrupt:
    """Build the error for a document that cannot have the meaning of its name."""
    return ManifestCorrupt(
        f"{visible(name)} is damaged",
        found=visible(found[:LONGEST_FAULT]),
        expected="a document as Snaploom wrote it",
        hint="restore the file from a backup; nothing was changed",
    )


def first_fault(error: ValidationError) -> str:
    """Return the first fault of a document, and where it is."""
    fault = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in fault["loc"])
    return f"{place}: {fault['msg']}" if place else fault["msg"]


def _unique(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _refuse_constant(name: str) -> JsonValue:
    raise ValueError(f"{name} is no JSON")
