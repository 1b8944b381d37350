"""Stores that obstore knows, behind the object store port.

Tried with obstore 0.12: keys are taken literally (`%3A` stays `%3A`); `put(mode="create")` and
`rename(overwrite=False)` refuse an existing target, in memory, on versitygw and on moto; absent
objects raise the built-in `FileNotFoundError`. Its client sends a request again when the answer is
lost: a put that succeeded may then be refused, which the manifest log settles by reading what is
there (rule P4). It does not when the answer is "409", which is neither success nor refusal.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice

import obstore
from obstore.exceptions import BaseError
from obstore.store import ObjectStore as Backend

from snaploom.errors import ObjectNotFound
from snaploom.models.times import NANOS_PER_MICROSECOND, EpochNanos
from snaploom.storage.objectstore import ObjectInfo, absent, check_key, check_prefix, too_large
from snaploom.storage.storeerrors import FileTooLong, WritersMet, store_error

DELETED_TOGETHER = 1000
"""Keys of one request: S3's limit."""

MEETINGS, LONGEST_PAUSE = 5, 0.2
"""Times that a conditional write is tried while others write the same key, and the longest pause
in between in seconds: a multiple of what one such write takes."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ObstoreObjectStore:
    """Any store of obstore, with its failures translated to Snaploom's errors."""

    def __init__(
        self,
        backend: Backend,
        uri: str,
        variables: str = "the environment",
        longest: int | None = None,
    ) -> None:
        """Wrap a store whose root is `uri`, as Hadoop takes it; `variables` are for messages."""
        self._backend = backend
        self._uri = uri
        self._variables = variables
        self._longest = longest

    @property
    def uri(self) -> str:
        """URI of the folder."""
        return self._uri

    def put_if_absent(self, key: str, data: bytes) -> None:
        """Conditional put."""
        check_key(key)
        self._insist(key, lambda: obstore.put(self._backend, key, data, mode="create"))

    def put(self, key: str, data: bytes) -> None:
        """Unconditional put."""
        with self._translated(check_key(key), writing=True):
            obstore.put(self._backend, key, data, mode="overwrite")

    def get(self, key: str, limit: int | None = None) -> bytes:
        """Read a whole object; its length is known before its content is asked for."""
        with self._translated(check_key(key), writing=False):
            found = obstore.get(self._backend, key)
            if limit is not None and found.meta["size"] > limit:
                raise too_large(f"{self._uri}{key}", found.meta["size"], limit)
            return bytes(found.bytes())

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """Read a part of an object."""
        with self._translated(check_key(key), writing=False):
            return bytes(obstore.get_range(self._backend, key, start=start, length=length))

    def head(self, key: str) -> ObjectInfo | None:
        """Ask for the object's properties."""
        try:
            with self._translated(check_key(key), writing=False):
                found = obstore.head(self._backend, key)
        except ObjectNotFound:
            return None
        return ObjectInfo(key, found["size"], _nanos(found["last_modified"]), found["e_tag"])

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """List page by page; empty objects by which Hadoop's client marks folders are none."""
        check_prefix(prefix)
        with self._translated(prefix, writing=False):
            for page in obstore.list(self._backend, prefix=prefix or None):
                for found in page:
                    key, modified = found["path"], _nanos(found["last_modified"])
                    # `a/` is listed as `a`, and is then not to be had under that name.
                    if found["size"] or self.head(key) is not None:
                        yield ObjectInfo(key, found["size"], modified, found["e_tag"])

    def list_folder(self, folder: str) -> tuple[Sequence[ObjectInfo], Sequence[str]]:
        """Objects directly below a folder (a key that ends in `/`, or empty), and folder names."""
        mark = folder.removesuffix("/")  # an empty object by which Hadoop's client marks a folder
        with self._translated(check_prefix(folder), writing=False):
            found = obstore.list_with_delimiter(self._backend, prefix=mark or None)
        objects = [
            ObjectInfo(one["path"], one["size"], _nanos(one["last_modified"]), one["e_tag"])
            for one in found["objects"]
            if one["path"] != mark
        ]
        return objects, [place.rpartition("/")[2] for place in found["common_prefixes"]]

    def delete(self, keys: Iterable[str]) -> None:
        """Delete many in one request; one by one where an absent key ends the others' deletion."""
        remaining = iter(keys)
        while batch := [check_key(key) for key in islice(remaining, DELETED_TOGETHER)]:
            try:
                self._delete(batch)
            except ObjectNotFound:
                self._delete_each(batch)

    def move_if_absent(self, source: str, target: str) -> None:
        """Conditional rename; a copy by the server and a delete on stores without renaming."""
        info = self.head(source)
        if info is None:
            raise absent(f"{self._uri}{source}")
        if self._longest is not None and info.size > self._longest:
            raise FileTooLong(
                f"{self._uri}{source} is too long to be published in one piece",
                found=f"{info.size:,} bytes",
                expected=f"at most {self._longest:,} bytes a file",
                hint="write more and shorter files: raise spark.sql.shuffle.partitions, or set "
                "spark.sql.files.maxRecordsPerFile",
            )
        check_key(target)
        self._insist(target, lambda: obstore.rename(self._backend, source, target, overwrite=False))

    def prune(self, prefix: str) -> None:
        """Nothing: these stores have no directories."""
        check_prefix(prefix)

    def _delete(self, keys: Sequence[str]) -> None:
        with self._translated(keys[0], writing=True):
            obstore.delete(self._backend, keys)

    def _delete_each(self, keys: Iterable[str]) -> None:
        for key in keys:
            try:
                self._delete([key])
            except ObjectNotFound:
                continue

    def _insist(self, key: str, operation: Callable[[], object]) -> None:
        """Retry an operation while another writer of the same key is in the way."""
        for attempt in range(MEETINGS):
            try:
                with self._translated(key, writing=True):
                    operation()
            except WritersMet:
                if attempt == MEETINGS - 1:
                    raise
                time.sleep(LONGEST_PAUSE * random.random())
            else:
                return

    @contextmanager
    def _translated(self, key: str, *, writing: bool) -> Iterator[None]:
        try:
            yield
        except (BaseError, OSError) as error:
            place = f"{self._uri}{key}"
            raise store_error(error, place, self._variables, writing=writing) from None


def _nanos(moment: datetime) -> EpochNanos:
    passed = moment - _EPOCH
    micros = (passed.days * 86_400 + passed.seconds) * 1_000_000 + passed.microseconds
    return EpochNanos(micros * NANOS_PER_MICROSECOND)
