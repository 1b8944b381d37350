"""The port to object stores, the proof that a store is safe, and failures without secrets."""

import secrets
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from snaploom import errors
from snaploom.models.common import EpochNanos

# The port to object stores, and the proof at start-up that a store is safe to publish in.

TEMPORARY_PREFIX = ".snaploom-tmp/"
"""Folder of unfinished writes and of the self-test. Files that are found here later were left by a
process that died; they are ours, never data, and `snaploom gc` removes it."""

STORE_FAILURES = (errors.StorageError, errors.FolderNotWritable)
"""Everything that a store raises: what best-effort work may survive. Not `SnaploomError`, which
would swallow an interruption."""


@dataclass(frozen=True)
class ObjectInfo:
    """Metadata of one object."""

    key: str
    """Key relative to the store's URI."""
    size: int
    """Length in bytes."""
    modified: EpochNanos
    """Last modification by the store's own clock (rule P18)."""
    etag: str | None
    """The store's tag of this content, where it has one."""
    is_plain: bool = True
    """Whether it is a file; not for links, pipes, sockets and devices, which local disks have."""


class ObjectStore(Protocol):
    """A folder of objects: each whole or absent under its key, never half written.

    Refused writes (read-only, full, not allowed) raise `FolderNotWritable`; other failures raise
    `StorageError`, after which a write may or may not have happened. On local disks no operation
    follows a link below the folder: all raise `NotAPlainFile`, which names it, but for `list`,
    which lists links (`is_plain`), and `delete`, which removes the link itself.
    """

    @property
    def uri(self) -> str:
        """URI of the folder as Spark's Hadoop client takes it: ends in `/`, nothing encoded."""

    def put_if_absent(self, key: str, data: bytes) -> None:
        """Write a new object; of any number of concurrent writers exactly one succeeds.

        Raises:
            ObjectAlreadyExists: there is an object under this key; it is unchanged.
        """

    def put(self, key: str, data: bytes) -> None:
        """Write an object, replacing what is there: for hints only, never for truth."""

    def get(self, key: str, limit: int | None = None) -> bytes:
        """Content of an object; `limit` bounds its bytes.

        Raises:
            ObjectNotFound: there is none under this key.
            ObjectTooLarge: it is longer than `limit`.
        """

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """Bytes from a place on; fewer where the object ends, `ObjectNotFound` if it is absent."""

    def head(self, key: str) -> ObjectInfo | None:
        """Return metadata of an object; None when there is none under this key."""

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Every object below a folder (`""`, or a prefix that ends in `/`), in no order."""

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects; one that is absent already is fine."""

    def move_if_absent(self, source: str, target: str) -> None:
        """Give an object another key. Not atomic: a crash may leave it under both.

        Raises:
            ObjectNotFound: there is no source.
            ObjectAlreadyExists: there is a target; both are unchanged.
        """

    def prune(self, prefix: str) -> None:
        """Remove directories below (and at) a folder that hold no object, where a store has any."""


def check_key(key: str) -> str:
    """Return a valid key; `ValueError` if it is empty or absolute, or has `.` or `..` segments."""
    if any(segment in ("", ".", "..") for segment in key.split("/")) or "\0" in key:
        raise ValueError(f"not an object key: {key!r}")
    return key


def too_large(place: str, size: int, limit: int) -> errors.ObjectTooLarge:
    """Build the error for an object at `place` that is longer than `limit` bytes."""
    return errors.ObjectTooLarge(
        f"{place} is longer than Snaploom writes it, and was not read",
        found=f"{size:,} bytes or more",
        expected=f"at most {limit:,} bytes",
    )


def absent(place: str) -> errors.ObjectNotFound:
    """Build the error for an object that is absent at a URI."""
    return errors.ObjectNotFound(
        f"{place} does not exist", found="nothing", expected="a file of this name"
    )


def exists_already(place: str) -> errors.ObjectAlreadyExists:
    """The error for an object, by its URI, that is there and should not be."""
    return errors.ObjectAlreadyExists(
        f"{place} exists already", found="an object of this name", expected="none"
    )


def refuse_links(store: ObjectStore, keys: Iterable[str]) -> None:
    """Raise `NotAPlainFile` for links among keys that others, such as Spark, open by path.

    Nothing is asked of other stores than local disks: they have no links.
    """
    if store.uri.startswith("file:"):
        for key in keys:
            store.head(key)


def check_prefix(prefix: str) -> str:
    """Return a valid prefix, empty or a key followed by `/`; else `ValueError`."""
    if prefix:
        if not prefix.endswith("/"):
            raise ValueError(f"not a folder prefix: {prefix!r}")
        check_key(prefix[:-1])
    return prefix


def self_test(store: ObjectStore) -> None:
    """Watch one success and one refusal of `put_if_absent`, and that the refusal changed nothing.

    Raises:
        StoreNotSafe: the store let the second writer win, or kept another content.
        FolderNotWritable: the store refuses writes altogether.
    """
    key = f"{TEMPORARY_PREFIX}self-test-{secrets.token_hex(8)}"
    try:
        # A refusal under a name that nobody else has: the answer to our own success was lost.
        with suppress(errors.ObjectAlreadyExists):
            store.put_if_absent(key, b"first")
        refused = _refuses(store, key)
        if not refused or store.get(key) != b"first":
            raise errors.StoreNotSafe(
                f"{store.uri} let a second writer replace an object that was to be written once",
                found="put-if-absent succeeded twice under one key",
                expected="one success and one refusal",
            )
    finally:
        store.delete([key])


def _refuses(store: ObjectStore, key: str) -> bool:
    try:
        store.put_if_absent(key, b"second")
    except errors.ObjectAlreadyExists:
        return True
    return False
