"""From the URI of a folder to its store."""

from __future__ import annotations

import re
from pathlib import Path

from obstore.store import MemoryStore

from snaploom.errors import StorageError
from snaploom.storage.local import LocalObjectStore
from snaploom.storage.objectstore import ObjectStore
from snaploom.storage.obstore_adapter import ObstoreObjectStore

_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*):(.*)$", re.DOTALL)


class UnsupportedStore(StorageError):
    """No store is known for the scheme of a URI."""

    reason = "UnsupportedStore"
    retryable = False


def open_store(uri: str, create: bool) -> ObjectStore:
    """The store of a folder: `file:///path`, an absolute path, or `memory:` (new at each call).

    Like Hadoop's paths, a `file:` URI is taken literally: `%20` is three characters, not a space,
    so that Spark and Snaploom mean the same directory.

    Args:
        uri: the folder.
        create: make a local directory that does not exist; without, an absent one reads as empty.

    Raises:
        UnsupportedStore: any other scheme, a relative path, or a host in a `file:` URI.
        FolderNotWritable: the directory is to be made and cannot be.
    """
    match = _SCHEME.match(uri)
    scheme, rest = (match[1].lower(), match[2]) if match else ("", uri)
    if scheme == "memory":
        return ObstoreObjectStore(MemoryStore(), "memory:///")
    if scheme not in ("", "file"):
        raise _unsupported(uri, f"the scheme {scheme}:")
    path = rest.removeprefix("//") if rest.startswith("///") else rest
    if path.startswith("//"):
        raise _unsupported(uri, f"the host {path[2:].split('/')[0]!r}")
    if not path.startswith("/"):
        raise _unsupported(uri, "a relative path")
    return LocalObjectStore(Path(path), create=create)


def _unsupported(uri: str, found: str) -> UnsupportedStore:
    return UnsupportedStore(
        f"no store for the folder {uri}",
        found=found,
        expected="file:///absolute/path, /absolute/path or memory:",
        hint="use a local folder",
    )
