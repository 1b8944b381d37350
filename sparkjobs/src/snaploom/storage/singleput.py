"""One document under a name that is free: who wrote it in the end, whatever the store answers.

A put whose answer is lost is settled before anything else happens: the same document is put again
until the store reports that the name is taken, and then the document that is there has won (rule
P4). This also covers clients that retry by themselves and report their own success as a refusal.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable

from snaploom.errors import (
    FolderNotWritable,
    NotAPlainFile,
    ObjectAlreadyExists,
    ObjectTooLarge,
    SnaploomError,
    StorageError,
)
from snaploom.storage.objectstore import STORE_FAILURES, ObjectStore

PUT_ATTEMPTS = 5
"""Puts of one document whose answer is lost before its outcome is called unknown."""

FIRST_PAUSE, LONGEST_PAUSE = 0.005, 0.5
"""Seconds before the next attempt, doubled each time and multiplied by a random factor: from the
time of one local commit to that of one on an object store."""

_log = logging.getLogger(__name__)


def put_once(
    store: ObjectStore, key: str, document: bytes, unknown: Callable[[str], SnaploomError]
) -> bool:
    """Whether the document is there; False when another one has its name.

    Args:
        store: where.
        key: the name.
        document: no other writer ever has the same.
        unknown: makes the error of an outcome that cannot be learnt, from a sentence about it.

    Raises:
        FolderNotWritable: the store refuses, and nothing was written.
        SnaploomError: what `unknown` made.
    """
    is_unanswered = False
    for attempt in range(PUT_ATTEMPTS):
        try:
            store.put_if_absent(key, document)
        except ObjectAlreadyExists:
            return _is_ours(store, key, document, unknown)
        except STORE_FAILURES as error:
            if isinstance(error, FolderNotWritable | NotAPlainFile) and not is_unanswered:
                raise  # a refusal is an answer, but not about earlier puts
            is_unanswered = True
            _log.warning("no answer to the commit of %s: %s", key, error.message)
            pause(attempt)
        else:
            return True
    raise unknown(f"{store.uri}{key} may or may not be written: the store does not answer")


def pause(attempt: int) -> None:
    """Wait a random time before the next attempt, which grows with the attempts."""
    time.sleep(min(LONGEST_PAUSE, FIRST_PAUSE * 2**attempt) * random.random())


def _is_ours(
    store: ObjectStore, key: str, document: bytes, unknown: Callable[[str], SnaploomError]
) -> bool:
    """More than the run id is compared: a run may have several committers."""
    for attempt in range(PUT_ATTEMPTS):
        try:
            return store.get(key, len(document)) == document
        except (NotAPlainFile, ObjectTooLarge):
            return False
        except StorageError as error:
            _log.warning("cannot read %s: %s", key, error.message)
            pause(attempt)
    raise unknown(f"{store.uri}{key} is written, but cannot be read to see by whom")
