"""The files below a URI with their sizes, listed once and never opened."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from snaploom.confidential import without_secrets
from snaploom.discovery.thresholds import MOST_FILES
from snaploom.errors import ArgumentInvalid, ObjectNotFound, SourceNotReadable
from snaploom.planning.secretdetection import secret_form
from snaploom.storage.objectstore import ObjectInfo, ObjectStore
from snaploom.storage.stores import open_store

SPECIAL = re.compile(r"[{}\[\]*?\\\"]")
"""Letters that globs, prefixes or YAML would take for their own."""
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass(frozen=True)
class FoundFile:
    """A file below one of the URIs."""

    place: Place
    key: str
    """Relative to the place, `/`-separated."""
    size: int

    @property
    def uri(self) -> str:
        """As declarations name it."""
        return self.place.uri + self.key


@dataclass(frozen=True)
class Place:
    """A folder that was named, opened."""

    uri: str
    """Ends in `/`."""
    store: ObjectStore = field(compare=False, repr=False)


@dataclass(frozen=True)
class LeftOut:
    """Something that is there and is not declared."""

    what: str
    """File, folder, table or relationship."""
    why: str


@dataclass(frozen=True)
class Listing:
    """All files below the URIs."""

    files: tuple[FoundFile, ...]
    left_out: tuple[LeftOut, ...]


def list_files(uris: Iterable[str]) -> Listing:
    """The files below URIs, sorted by URI, each once.

    Raises:
        ArgumentInvalid: a URI has a secret in it, or letters that globs take for their own.
        SourceNotReadable: there is nothing at a URI.
        StorageError: a store cannot be asked.
    """
    found: dict[str, FoundFile] = {}
    left_out: list[LeftOut] = []
    for uri in uris:
        files, others = _below(uri)
        found.update((file.uri, file) for file in files)
        left_out.extend(others)
    return Listing(tuple(found[uri] for uri in sorted(found)), tuple(dict.fromkeys(left_out)))


def _below(uri: str) -> tuple[list[FoundFile], list[LeftOut]]:
    refuse_secret(uri)
    _refuse_other_kinds(uri)
    whole = uri if _SCHEME.match(uri) else os.path.normpath(Path(uri).absolute())
    if SPECIAL.search(whole):
        raise ArgumentInvalid(
            "this URI has letters that mean something else in a glob",
            path="--from",
            found=uri,
            expected="a folder or a file without { } [ ] * ? \\ and quotes",
            hint="name the folder above, whose files are found by themselves",
        )
    one = _as_file(whole)
    if one is not None:
        return [one], []
    store = open_store(whole.rstrip("/") + "/", create=False)
    place = Place(store.uri, store)
    listed = sorted(islice(store.list(""), MOST_FILES + 1), key=lambda info: info.key)
    if not listed:
        raise SourceNotReadable(
            "there are no files here",
            path="--from",
            found=f"nothing at {store.uri}",
            expected="a folder with files, or a file",
            hint="check the spelling; for a bucket, check endpoint and credentials in the "
            "environment as well",
        )
    left_out = [
        LeftOut(place.uri, f"only the first {MOST_FILES:,} files were looked at")
        for _ in listed[MOST_FILES:]
    ]
    files = []
    for info in listed[:MOST_FILES]:
        reason = _not_readable(info)
        if reason:
            left_out.append(LeftOut(place.uri + info.key, reason))
        else:
            files.append(FoundFile(place, info.key, info.size))
    return files, left_out


def _not_readable(info: ObjectInfo) -> str:
    if not info.is_plain:
        return "a link, pipe or device, which is not followed"
    if SPECIAL.search(info.key):
        return "its name has letters that globs take for their own"
    return ""


def _as_file(whole: str) -> FoundFile | None:
    """The one file that a URI names; None for a folder or a missing file."""
    head, _, name = whole.rstrip("/").rpartition("/")
    path = re.sub(r"^file:(?://)?(?=/)", "", whole)
    if path.startswith("/"):
        if not os.path.isfile(path):
            return None
    elif whole.endswith("/") or "." not in name or head.endswith(("/", ":")):
        return None
    store = open_store(head + "/", create=False)
    try:
        info = store.head(name)
    except ObjectNotFound:
        return None
    return None if info is None else FoundFile(Place(store.uri, store), name, info.size)


_OF_HADOOP = frozenset({"hdfs", "webhdfs", "viewfs", "abfs", "abfss", "wasb", "wasbs"})
"""File systems that only Hadoop's client reaches."""


def _refuse_other_kinds(uri: str) -> None:
    scheme = uri.partition(":")[0].lower()
    if scheme in _OF_HADOOP:
        raise ArgumentInvalid(
            f"{scheme}: is not looked into",
            path="--from",
            found=without_secrets(uri.partition("?")[0]),
            expected="a path, a URI with file:, s3:, gs: or az:, or a database (jdbc:)",
            hint="copy the newest files, with their folders, to a disk (`hdfs dfs -get`), start "
            "from the copy, and write the URI instead of its path into what was written",
        )


def refuse_secret(uri: str) -> None:
    """Refuse a URI with a user, a password or a signature in it, which declarations would show.

    Raises:
        ArgumentInvalid: there is one; it is not shown.
    """
    form = secret_form(uri)
    if form:
        raise ArgumentInvalid(
            f"there is {form} in this URI, and declarations are read by many",
            path="--from",
            found=without_secrets(re.sub(r"//[^/@]*@", "//***@", uri.partition("?")[0])),
            expected="a URI without user, password and signature",
            hint="leave them out; buckets take AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of the "
            "environment, a database <NAME>_DB_USER and <NAME>_DB_PASSWORD",
        )
