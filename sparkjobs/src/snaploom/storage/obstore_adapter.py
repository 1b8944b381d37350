"""Stores that obstore knows, behind the object store port.

Tried with obstore 0.12: keys are taken literally (`%3A` stays `%3A`); `put(mode="create")` and
`rename(overwrite=False)` refuse an existing target; `delete` of an absent key raises on some
stores and not on others; absent objects raise the built-in `FileNotFoundError`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from obstore.store import ObjectStore as Backend

from snaploom.errors import FolderNotWritable, ObjectAlreadyExists, ObjectNotFound, StorageError
from snaploom.models.times import NANOS_PER_MICROSECOND, EpochNanos
from snaploom.storage.objectstore import ObjectInfo, check_key, check_prefix

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ObstoreObjectStore:
    """Any store of obstore, with its failures told as Snaploom's."""

    def __init__(self, backend: Backend, uri: str) -> None:
        """Wrap a store whose root is the folder that `uri` names; `uri` ends in `/`."""
        self._backend = backend
        self._uri = uri

    @property
    def uri(self) -> str:
        """URI of the folder."""
        return self._uri

    def put_if_absent(self, key: str, data: bytes) -> None:
        """Conditional put."""
        with self._told(check_key(key), writing=True):
            obstore.put(self._backend, key, data, mode="create")

    def put(self, key: str, data: bytes) -> None:
        """Unconditional put."""
        with self._told(check_key(key), writing=True):
            obstore.put(self._backend, key, data, mode="overwrite")

    def get(self, key: str) -> bytes:
        """Read a whole object."""
        with self._told(check_key(key), writing=False):
            return bytes(obstore.get(self._backend, key).bytes())

    def head(self, key: str) -> ObjectInfo | None:
        """Ask for the object's properties."""
        try:
            with self._told(check_key(key), writing=False):
                found = obstore.head(self._backend, key)
        except ObjectNotFound:
            return None
        return ObjectInfo(key, found["size"], _nanos(found["last_modified"]), found["e_tag"])

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """List page by page."""
        check_prefix(prefix)
        with self._told(prefix, writing=False):
            for page in obstore.list(self._backend, prefix=prefix or None):
                for found in page:
                    modified = _nanos(found["last_modified"])
                    yield ObjectInfo(found["path"], found["size"], modified, found["e_tag"])

    def delete(self, keys: Iterable[str]) -> None:
        """Delete one by one, so that an absent key does not end the others' deletion."""
        for key in keys:
            try:
                with self._told(check_key(key), writing=True):
                    obstore.delete(self._backend, key)
            except ObjectNotFound:
                continue

    def move_if_absent(self, source: str, target: str) -> None:
        """Conditional rename; a copy and a delete on stores without renaming."""
        if self.head(source) is None:
            raise ObjectNotFound(f"{self._uri}{source} does not exist")
        with self._told(check_key(target), writing=True):
            obstore.rename(self._backend, source, target, overwrite=False)

    def prune(self, prefix: str) -> None:
        """Nothing: these stores have no directories."""
        check_prefix(prefix)

    @contextmanager
    def _told(self, key: str, *, writing: bool) -> Iterator[None]:
        place = f"{self._uri}{key}"
        try:
            yield
        except FileNotFoundError as error:
            raise ObjectNotFound(f"{place} does not exist") from error
        except AlreadyExistsError as error:
            raise ObjectAlreadyExists(f"{place} exists already") from error
        except (PermissionDeniedError, UnauthenticatedError) as error:
            kind = FolderNotWritable if writing else StorageError
            raise kind(
                f"{place} may not be {'written' if writing else 'read'} with these credentials",
                found=_first_line(error),
            ) from error
        except (BaseError, OSError) as error:
            verb = "writing" if writing else "reading"
            raise StorageError(f"{verb} {place} failed: {_first_line(error)}") from error


def _nanos(moment: datetime) -> EpochNanos:
    passed = moment - _EPOCH
    micros = (passed.days * 86_400 + passed.seconds) * 1_000_000 + passed.microseconds
    return EpochNanos(micros * NANOS_PER_MICROSECOND)


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]
