"""Log of numbered documents: one commit is one put-if-absent of the next number (rules P1, P4).

The manifest log, the states of a skipping index and the versions of an Iceberg table are such logs.
What stands under a number never changes, and no number is skipped, so that a reader goes on from
any document to the newest by asking for the next. What a document means is its owner's affair.

A put whose answer is lost is settled before anything else happens: the same document is put again
until the store reports that the name is taken, and then the document that is there has won. This
also covers clients that retry by themselves and report their own success as a refusal.
"""

from __future__ import annotations

import json
import logging
import random
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from snaploom.errors import (
    FolderNotWritable,
    ManifestCorrupt,
    NotAPlainFile,
    ObjectAlreadyExists,
    ObjectNotFound,
    ObjectTooLarge,
    SnaploomError,
    StorageError,
)
from snaploom.models.base import ApiModel
from snaploom.storage.documentparser import HINT, get_bounded, parse_hint
from snaploom.storage.objectstore import STORE_FAILURES, ObjectStore

COMMIT_ATTEMPTS = 100
"""Lost races before a commit gives up. Every lost race is another writer's success, so that only
a stream of them could reach it; twenty writers at once need at most twenty."""

PUT_ATTEMPTS = 5
"""Puts of one document whose answer is lost before its outcome is called unknown."""

FIRST_PAUSE, LONGEST_PAUSE = 0.005, 0.5
"""Seconds before the next attempt, doubled each time and multiplied by a random factor: from the
time of one local commit to that of one on an object store."""

_log = logging.getLogger(__name__)

Result = TypeVar("Result")
Hint = TypeVar("Hint", bound=ApiModel)


class NumberedLog:
    """Documents under numbers from 1, in one folder of a store."""

    def __init__(
        self,
        store: ObjectStore,
        key: Callable[[int], str],
        longest: int,
        unknown: Callable[[str], SnaploomError],
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
        except ObjectNotFound:
            return None

    def after(self, number: int) -> Iterator[bytes]:
        """Documents after a number, up to the first absent one; raises as `document`."""
        while (document := self.document(number := number + 1)) is not None:
            yield document

    def append(self, number: int, document: bytes) -> bool:
        """Put a document, unlike any other writer's, under the next number; False if taken.

        Raises:
            FolderNotWritable: the store refuses, and nothing was written.
            SnaploomError: the error from `unknown`.
        """
        key = self._key(number)
        is_unanswered = False
        for attempt in range(PUT_ATTEMPTS):
            try:
                self._store.put_if_absent(key, document)
            except ObjectAlreadyExists:
                return self._holds(key, document)
            except STORE_FAILURES as error:
                if isinstance(error, FolderNotWritable | NotAPlainFile) and not is_unanswered:
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
            except (NotAPlainFile, ObjectTooLarge):
                return False
            except StorageError as error:
                _log.warning("cannot read %s: %s", key, error.message)
                pause(attempt)
        uri = self._store.uri
        raise self._unknown(f"{uri}{key} is written, but cannot be read to see by whom")


def rebased(
    attempt: Callable[[], Result | None], contended: Callable[[int], SnaploomError]
) -> Result:
    """Repeat an attempt that gives None after a lost race, and return its result (rule P3).

    Raises:
        SnaploomError: the error from `contended`.
    """
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
        return parse_hint(get_bounded(store, key, HINT), key, model)
    except ObjectNotFound:
        return None
    except (ManifestCorrupt, ObjectTooLarge):
        _log.warning("ignoring the hint %s, which is damaged", key)
        return None


def write_hint(store: ObjectStore, key: str, hint: Mapping[str, int]) -> None:
    """Help later readers; nothing needs a hint, so that a failure is only a warning."""
    try:
        store.put(key, json.dumps(hint).encode())
    except STORE_FAILURES as error:
        _log.warning("no hint in %s: %s", key, error.message)
