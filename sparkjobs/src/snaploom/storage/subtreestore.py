"""Folded subtrees in a folder of their own, so that the next run need not fold them (rule W29).

```
<sha256>.json                         one subtree: what it is, its counts, and exactly its files
<sha256>.used                         touched whenever a run takes it
<sha256>/<run>-<attempt>/part-….parquet
```

The hash covers everything that its rows depend on, so that a change of a source, a declaration or a
version gives another name; the content of the document must agree as well, to the size of every
file, or it is not believed. It is a cache: nothing is lost with it. A subtree that no run took
for some time is removed; its document goes first.
"""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Annotated, Self

from annotated_types import MinLen
from pydantic import ValidationError, model_validator

from snaploom.errors import (
    ManifestCorrupt,
    ObjectAlreadyExists,
    ObjectNotFound,
    ObjectTooLarge,
)
from snaploom.models.base import ApiModel
from snaploom.models.times import EpochNanos
from snaploom.storage import layout
from snaploom.storage.documentparser import DOCUMENT, get_bounded, parse_json
from snaploom.storage.objectstore import ObjectStore, refuse_links
from snaploom.storage.pathnames import Count, Hash, RelativePath

SUBTREE_FORMAT = 1
"""Format of a subtree's document; another one is not believed."""
KEPT_FOR = 14 * 24 * 3600 * 1_000_000_000
"""Nanoseconds after which a subtree that no run took is removed: two weeks span the gaps of what
runs daily or weekly; what runs less often folds again, as it would without."""

_NAME = re.compile(r"([0-9a-f]{64})(\.json|\.used|/.+)")
_log = logging.getLogger(__name__)


class SubtreeCounts(ApiModel):
    """Row counts at one place inside a subtree."""

    number: Count
    """Number of the node."""
    is_out: bool
    """After its joins, rather than before."""
    counts: dict[str, Count]
    """Numbers by name."""


class SubtreeFile(ApiModel):
    """One file of a subtree."""

    path: RelativePath
    """Key in the folder, such as `<sha256>/<run>-<attempt>/part-….parquet`."""
    bytes: Count
    """Size."""


class SubtreeDocument(ApiModel):
    """One folded subtree."""

    format: int = SUBTREE_FORMAT
    """Format of this document."""
    signature: Hash
    """Its name."""
    tool_version: str
    """Version of Snaploom that folded it."""
    spark_version: str
    """Version of Spark that did."""
    columns: Annotated[str, MinLen(1)]
    """Its schema, as `StructType.json()` gives it."""
    counts: tuple[SubtreeCounts, ...]
    """The proof of its joins."""
    files: tuple[SubtreeFile, ...]
    """Its files, and no others."""

    @model_validator(mode="after")
    def _own(self) -> Self:
        if not all(file.path.startswith(f"{self.signature}/") for file in self.files):
            raise ValueError("a file that is not the subtree's")
        return self


class SubtreeStore:
    """The subtrees in one folder."""

    def __init__(self, store: ObjectStore, versions: tuple[str, str]) -> None:
        self._store = store
        self._versions = versions

    @property
    def uri(self) -> str:
        """URI of the folder."""
        return self._store.uri

    def find(self, signature: str) -> SubtreeDocument | None:
        """Return a valid subtree and mark it as used; None when there is none."""
        key = _document_key(signature)
        try:
            content = get_bounded(self._store, key, DOCUMENT)
            parse_json(content, key, DOCUMENT)
            document = SubtreeDocument.model_validate_json(
                content, strict=True, by_alias=True, by_name=False
            )
        except (ObjectNotFound, ObjectTooLarge, ManifestCorrupt, ValidationError):
            return None
        if not self._agrees(document, signature):
            return None
        self._store.put(_used_key(signature), b"")
        return document

    def folder(self, signature: str, run_id: str) -> str:
        """URI of a folder of this run only; `NotAPlainFile` if a link is there (local disks)."""
        refuse_links(self._store, [signature])
        return f"{self._store.uri}{signature}/{run_id}-{layout.new_attempt()}/"

    def commit(
        self,
        signature: str,
        uri: str,
        columns: str,
        counts: Mapping[tuple[int, bool], Mapping[str, int]],
    ) -> None:
        """Publish a written subtree; where another run was faster, remove it."""
        files = self._files(uri.removeprefix(self._store.uri))
        document = SubtreeDocument(
            signature=signature,
            tool_version=self._versions[0],
            spark_version=self._versions[1],
            columns=columns,
            counts=tuple(
                SubtreeCounts(number=number, is_out=is_out, counts=dict(found))
                for (number, is_out), found in counts.items()
            ),
            files=files,
        )
        self._store.put(_used_key(signature), b"")
        try:
            text = document.dump_json().encode() + b"\n"
            self._store.put_if_absent(_document_key(signature), text)
        except ObjectAlreadyExists:
            if self.find(signature) is None:
                self._store.put(_document_key(signature), text)
            else:
                self._store.delete([file.path for file in files])

    def remove_unused(self, kept_for: int = KEPT_FOR) -> int:
        """Remove subtrees unused for some time, by the store's own clock; returns their number.

        Call it after this run has taken or written one: the newest mark gives the time.

        Args:
            kept_for: nanoseconds.
        """
        keys: dict[str, list[str]] = defaultdict(list)
        newest: dict[str, EpochNanos] = {}
        for info in self._store.list(""):
            match = _NAME.fullmatch(info.key)
            if match:
                keys[match[1]].append(info.key)
                newest[match[1]] = max(newest.get(match[1], info.modified), info.modified)
        present = max(newest.values(), default=EpochNanos(0))
        unused = [name for name, time in newest.items() if present - time > kept_for]
        for name in unused:
            self._store.delete([_document_key(name)])
            self._store.delete(keys[name])
            self._store.prune(f"{name}/")
        return len(unused)

    def _agrees(self, document: SubtreeDocument, signature: str) -> bool:
        versions = (document.tool_version, document.spark_version)
        if (document.format, document.signature, versions) != (
            SUBTREE_FORMAT,
            signature,
            self._versions,
        ):
            return False
        for file in document.files:
            info = self._store.head(file.path)
            if info is None or info.size != file.bytes:
                _log.warning("%s%s is not as it was written", self._store.uri, file.path)
                return False
        return True

    def _files(self, prefix: str) -> tuple[SubtreeFile, ...]:
        found = [
            SubtreeFile(path=info.key, bytes=info.size)
            for info in self._store.list(prefix)
            if layout.is_data_file(info.key.rsplit("/", 1)[-1])
        ]
        return tuple(sorted(found, key=lambda file: file.path))


def _document_key(signature: str) -> str:
    return f"{signature}.json"


def _used_key(signature: str) -> str:
    return f"{signature}.used"
