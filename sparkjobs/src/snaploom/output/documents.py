"""Documents of a folder, parsed within bounds, and logs of numbered ones (rules P1, P2)."""

import json
import logging
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from pydantic import JsonValue, ValidationError

from snaploom import errors
from snaploom.confidential import visible
from snaploom.files.objectstore import STORE_FAILURES, ObjectStore
from snaploom.models.base import ApiModel

_log = logging.getLogger(__name__)


# Parses documents of a folder within bounds: the writer of a folder may be hostile.

MANIFEST_FORMAT = 1
"""Format of entries, checkpoints and the marker; a newer one is refused (rule P8)."""
NEWEST_ENTRY = 2
"""Format of an entry that moves a table to a catalog: an older Snaploom calls it too new."""

# A manifest is made anew from a table, and the table's own documents from nothing.
_OF_TABLE = re.compile(r"(?:^|/)(?:data/_delta_log|iceberg(?:/metadata)?|commits)/[^/]+\Z")
_LOST = "restore it from a backup, or publish to a new folder"

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
RUNS = Bounds(4 * 2**20, 200_000)
"""Of the last runs: 20, each with a message, some failures and at most 500 findings about data."""
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


def parse_versioned(
    document: bytes, name: str, bounds: Bounds, newest: int = MANIFEST_FORMAT
) -> dict[str, JsonValue]:
    """A JSON object with a `format` that this version knows.

    Raises:
        ManifestCorrupt: it is not such an object.
    """
    raw = parse_json(document, name, bounds)
    version = raw.get("format") if isinstance(raw, dict) else None
    if not isinstance(raw, dict) or not isinstance(version, int) or isinstance(version, bool):
        raise corrupt(name, "no format version")
    if version < 1:
        raise corrupt(name, "no format version")
    if version > newest:
        raise errors.FormatTooNew(
            f"{visible(name)} was written by a newer Snaploom",
            found=f"format {str(version)[:20]}",
            expected=f"format {newest} or older",
        )
    return raw


def refuse_many(document: bytes, name: str, bounds: Bounds) -> None:
    """Raise `ManifestCorrupt` for more values than a kind may have; counts at memory's speed."""
    # Every value but the first follows a comma or an opening bracket.
    most = document.count(b",") + document.count(b"[") + document.count(b"{") + 1
    if len(document) > bounds.length or most > bounds.values:
        raise corrupt(name, f"{len(document):,} bytes with up to {most:,} values")


def corrupt(name: str, found: str) -> errors.ManifestCorrupt:
    """Build the error for a document that cannot have the meaning of its name."""
    return errors.ManifestCorrupt(
        f"{visible(name)} is damaged",
        found=visible(found[:LONGEST_FAULT]),
        expected="a document as Snaploom wrote it",
        hint=_LOST if _OF_TABLE.search(name) else None,
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


# Log of numbered documents: one commit is one put-if-absent of the next number (rules P1, P4).

COMMIT_ATTEMPTS = 100
"""Lost races before a commit gives up. Every lost race is another writer's success, so that only
a stream of them could reach it; twenty writers at once need at most twenty."""

PUT_ATTEMPTS = 5
"""Puts of one document whose answer is lost before its outcome is called unknown."""

FIRST_PAUSE, LONGEST_PAUSE = 0.005, 0.5
"""Seconds before the next attempt, doubled each time and multiplied by a random factor: from the
time of one local commit to that of one on an object store."""

Result = TypeVar("Result")
Hint = TypeVar("Hint", bound=ApiModel)


class NumberedLog:
    """Documents under numbers from 1, in one folder of a store."""

    def __init__(
        self,
        store: ObjectStore,
        key: Callable[[int], str],
        longest: int,
        unknown: Callable[[str], errors.SnaploomError],
    ) -> None:
        """Open the log; `unknown` makes the error of a put with an unknown outcome."""
        self._store = store
        self._key = key
        self._longest = longest
        self._unknown = unknown

    def document(self, number: int) -> bytes | None:
        """The document with a number; None where there is none.

        Raises:
            ObjectTooLarge: it is longer than one may be.
            NotAPlainFile: it is a link, or what else is no file.
        """
        try:
            return self._store.get(self._key(number), self._longest)
        except errors.ObjectNotFound:
            return None

    def after(self, number: int) -> Iterator[bytes]:
        """Documents after a number, up to the first absent one; raises as `document`."""
        while (document := self.document(number := number + 1)) is not None:
            yield document

    def append(self, number: int, document: bytes) -> bool:
        """Put a document, unlike any other writer's, under the next number; False if taken."""
        key = self._key(number)
        is_unanswered = False
        for attempt in range(PUT_ATTEMPTS):
            try:
                self._store.put_if_absent(key, document)
            except errors.ObjectAlreadyExists:
                return self._holds(key, document)
            except STORE_FAILURES as error:
                if (
                    isinstance(error, errors.FolderNotWritable | errors.NotAPlainFile)
                    and not is_unanswered
                ):
                    raise  # a refusal is an answer, but not about earlier puts
                is_unanswered = True
                _log.warning("no answer to the commit of %s: %s", key, error.message)
                pause(attempt)
            else:
                return True
        uri = self._store.uri
        raise self._unknown(f"{uri}{key} may or may not be written: the store does not answer")

    def _holds(self, key: str, document: bytes) -> bool:
        """Whether a name has this very document: one run may have several committers."""
        for attempt in range(PUT_ATTEMPTS):
            try:
                return self._store.get(key, len(document)) == document
            except (errors.NotAPlainFile, errors.ObjectTooLarge):
                return False
            except errors.StorageError as error:
                _log.warning("cannot read %s: %s", key, error.message)
                pause(attempt)
        uri = self._store.uri
        raise self._unknown(f"{uri}{key} is written, but cannot be read to see by whom")


def rebased(
    attempt: Callable[[], Result | None], contended: Callable[[int], errors.SnaploomError]
) -> Result:
    """Repeat an attempt that gives None after a lost race, and return its result (rule P3)."""
    for number in range(COMMIT_ATTEMPTS):
        result = attempt()
        if result is not None:
            return result
        pause(number)
    raise contended(COMMIT_ATTEMPTS)


def pause(attempt: int) -> None:
    """Wait a random time before the next attempt, which grows with the attempts."""
    time.sleep(min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(attempt, 10)) * random.random())


def read_hint(store: ObjectStore, key: str, model: type[Hint]) -> Hint | None:
    """The hint beside a log, its last known position; None where it is absent or damaged."""
    try:
        document = get_bounded(store, key, HINT)
        parse_json(document, key, HINT)
        return model.model_validate_json(document, strict=True, by_alias=True, by_name=False)
    except errors.ObjectNotFound:
        return None
    except (errors.ManifestCorrupt, errors.ObjectTooLarge, ValidationError):
        _log.warning("ignoring the hint %s, which is damaged", key)
        return None


def write_hint(store: ObjectStore, key: str, hint: Mapping[str, int]) -> None:
    """Help later readers; nothing needs a hint, so that a failure is only a warning."""
    try:
        store.put(key, json.dumps(hint).encode())
    except STORE_FAILURES as error:
        _log.warning("no hint in %s: %s", key, error.message)
