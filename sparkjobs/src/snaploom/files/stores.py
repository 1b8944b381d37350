"""Opens the store of a folder by its URI."""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from pkgutil import resolve_name

from obstore.store import MemoryStore

from snaploom.errors import StorageError
from snaploom.files.cloud import ObstoreObjectStore
from snaploom.files.local import LocalObjectStore
from snaploom.files.objectstore import ObjectStore
from snaploom.policy.addresses import store_kind

_OTHER_SCHEMES = "other schemes, as hdfs:, are opened by commands that may start Spark"
_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*):(.*)$", re.DOTALL)


StoreOpener = Callable[[str, bool], ObjectStore]
"""Opens the store of a URI, which is to be made where it is absent or not."""


class UnsupportedStore(StorageError):
    """No store is known for the scheme of a URI."""


def open_store(uri: str, create: bool, others: StoreOpener | None = None) -> ObjectStore:
    """Open the store of a folder, by the scheme of its URI.

    `file:///path` or an absolute path; `s3:`, `gs:` and `az:` with the spellings that Hadoop has
    for them; `memory:`, which is new at each call. Like Hadoop's paths, a URI is taken literally:
    `%20` is three characters, not a space, so that Spark and Snaploom mean the same place.

    Args:
        uri: the folder.
        create: make a local directory that does not exist; without, an absent one reads as empty.
        others: opens what is not known here, as Spark's Hadoop client does (rule P6).
    """
    match = _SCHEME.match(uri)
    scheme, rest = (match[1].lower(), match[2]) if match else ("", uri)
    if scheme == "memory":
        return ObstoreObjectStore(MemoryStore(), "memory:///")
    kind = store_kind(scheme)
    if kind is not None and kind.opener:
        opener: Callable[[str, Mapping[str, str]], ObjectStore] = resolve_name(kind.opener)
        return opener(uri, os.environ)
    if scheme not in ("", "file"):
        if others is not None:
            return others(uri, create)
        raise _unsupported(uri, f"the scheme {scheme}:", _OTHER_SCHEMES)
    path = rest.removeprefix("//") if rest.startswith("///") else rest
    if path.startswith("//"):
        host = path[2:].split("/")[0]
        found = f"the host {host!r}" if host else "no path behind //"
        raise _unsupported(uri, found, "leave out the host: write file:/// and the path")
    if not path.startswith("/"):
        raise _unsupported(uri, "a relative path", "write the path from / on")
    if "\0" in path:
        raise _unsupported(uri, "a NUL character", "remove it; no file system has such names")
    return LocalObjectStore(Path(path), create=create)


def _unsupported(uri: str, found: str, hint: str) -> UnsupportedStore:
    return UnsupportedStore(
        f"no store for the folder {uri}",
        found=found,
        expected="file:///absolute/path, /absolute/path, s3:, gs:, az: or memory:",
        hint=hint,
    )
