"""Caches of enumeration and of folded subtrees, for the next run."""

import json
import logging
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Self

from annotated_types import MinLen
from pydantic import ValidationError, model_validator

from snaploom.confidential import visible
from snaploom.errors import ManifestCorrupt, ObjectAlreadyExists, ObjectNotFound, ObjectTooLarge
from snaploom.files.objectstore import STORE_FAILURES, ObjectStore, refuse_links
from snaploom.models.base import ApiModel
from snaploom.models.common import EpochNanos
from snaploom.output import layout
from snaploom.output.documents import DOCUMENT, HINT, LISTING, get_bounded, parse_json, parse_object
from snaploom.output.layout import Count, Hash, RelativePath

_log = logging.getLogger(__name__)


# Cache of facts about files of sources, for the next run.

LISTING_FORMAT = 1
"""Format of the document; another one is not believed."""
MOST_KEPT = 250_000
"""Files and values that one document holds at most, together: some ten megabytes. Of more, those
files are kept that have the fewest values."""
SETTLED_AFTER = 60 * 1_000_000_000
"""Nanoseconds without a change after which a file is kept. Stores keep times of up to two seconds'
grain, and their clocks differ from ours by less than a minute where anybody sets them."""

Value = str | int
"""A value of a snapshot column as it is in the files: text, or a whole number."""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """Facts about one file, valid while the file does not change."""

    schema: str | None = None
    """Its schema as `StructType.json()` gives it; None where nobody asked."""
    column: str | None = None
    """Name and type of the snapshot column as it was read; None where nobody asked."""
    values: tuple[Value, ...] = ()
    """All its values, none of them NULL."""


class KnownFiles(ApiModel):
    """Files with the same facts."""

    schema_number: Count | None = None
    """Place of their schema among those of the document."""
    column: str | None = None
    """Name and type of their snapshot column."""
    values: tuple[Value, ...] = ()
    files: tuple[str, ...]


class ListingDocument(ApiModel):
    """Facts about the files of one source."""

    format: int = LISTING_FORMAT
    about: str
    """Hash over everything that decides how the files are read."""
    schemas: tuple[str, ...]
    """Schemas of files, as `StructType.json()` gives them."""
    known: tuple[KnownFiles, ...]


class SourceListing:
    """Facts about the files of one source: those of earlier runs, and those of this run."""

    def __init__(self, about: str, before: Mapping[str, FileFacts], settled: EpochNanos) -> None:
        """Begin with earlier facts; files that changed later than `settled` are not kept."""
        self.about = about
        self._before = before
        self._settled = settled
        self._seen: dict[str, FileFacts] = {}

    def find(self, fingerprint: str) -> FileFacts:
        """Return the known facts about a file."""
        return self._before.get(fingerprint, FileFacts())

    def learn(self, fingerprint: str, changed: EpochNanos, facts: FileFacts) -> None:
        """Keep facts of this run about a file, if they will still be true in the next."""
        if changed <= self._settled:
            self._seen[fingerprint] = facts

    @property
    def is_new(self) -> bool:
        """Whether this run's facts differ from those it began with."""
        return dict(_bounded(self._seen)) != self._before

    def document(self) -> ListingDocument:
        """Facts for the next run, about files that exist."""
        schemas: dict[str, int] = {}
        groups: dict[FileFacts, list[str]] = defaultdict(list)
        for fingerprint, facts in _bounded(self._seen):
            groups[facts].append(fingerprint)
            if facts.schema is not None:
                schemas.setdefault(facts.schema, len(schemas))
        known = (
            KnownFiles(
                schema_number=None if facts.schema is None else schemas[facts.schema],
                column=facts.column,
                values=facts.values,
                files=tuple(files),
            )
            for facts, files in groups.items()
        )
        return ListingDocument(about=self.about, schemas=tuple(schemas), known=tuple(known))


class Listings:
    """Facts about the files of all sources of one output."""

    def __init__(self, store: ObjectStore, present: EpochNanos) -> None:
        self._store = store
        self._settled = EpochNanos(present - SETTLED_AFTER)
        self._opened: dict[str, SourceListing] = {}

    def of(self, source: str, about: str) -> SourceListing:
        """Facts about a source; none where the cached ones are not valid."""
        before = self._read(source, about)
        opened = self._opened[source] = SourceListing(about, before, self._settled)
        return opened

    def keep(self) -> None:
        """Write the facts of this run; the folder must be the output's."""
        for source, listing in self._opened.items():
            if listing.is_new:
                text = listing.document().dump_json().encode()
                head = json.dumps({"sha256": layout.content_hash(text)}).encode()
                self._store.put(layout.listing_key(source), b"\n".join((head, text, b"")))
        known = {layout.listing_key(source) for source in self._opened}
        found = [info.key for info in self._store.list(layout.LISTINGS)]
        self._store.delete([key for key in found if key not in known])

    def _read(self, source: str, about: str) -> Mapping[str, FileFacts]:
        key = layout.listing_key(source)
        try:
            return _believed(get_bounded(self._store, key, LISTING), key, about)
        except ObjectNotFound:
            return {}
        except (ValueError, LookupError, *STORE_FAILURES) as error:
            _log.info("%s%s is not used: %s", self._store.uri, key, visible(str(error)))
            return {}


def _believed(content: bytes, key: str, about: str) -> Mapping[str, FileFacts]:
    """Facts in a document by fingerprint; none when it is about something else.

    Raises `ValueError`, `LookupError` or `ManifestCorrupt` for a damaged document.
    """
    head, text, _ = content.split(b"\n", 3)
    if parse_json(head, key, HINT) != {"sha256": layout.content_hash(text)}:
        raise ValueError("its content does not match the hash in its first line")
    if parse_object(text, key, LISTING).get("format") != LISTING_FORMAT:
        return {}
    document = ListingDocument.model_validate_json(text, by_alias=True, by_name=False)
    if document.about != about:
        return {}
    return {
        fingerprint: FileFacts(
            None if each.schema_number is None else document.schemas[each.schema_number],
            each.column,
            each.values,
        )
        for each in document.known
        for fingerprint in each.files
    }


def _bounded(facts: Mapping[str, FileFacts]) -> Iterable[tuple[str, FileFacts]]:
    room = MOST_KEPT
    for fingerprint, each in sorted(facts.items(), key=lambda item: (_size(item[1]), item[0])):
        room -= _size(each)
        if room < 0:
            return
        yield fingerprint, each


def _size(facts: FileFacts) -> int:
    return 1 + len(facts.values)


# Folded subtrees in a folder of their own, so that the next run need not fold them (rule W29).

SUBTREE_FORMAT = 1
"""Format of a subtree's document; another one is not believed."""
KEPT_FOR = 14 * 24 * 3600 * 1_000_000_000
"""Nanoseconds after which a subtree that no run took is removed: two weeks span the gaps of what
runs daily or weekly; what runs less often folds again, as it would without."""

_NAME = re.compile(r"([0-9a-f]{64})(\.json|\.used|/.+)")


class SubtreeCounts(ApiModel):
    """Row counts at one place inside a subtree."""

    number: Count
    is_out: bool
    """After its joins, rather than before."""
    counts: dict[str, Count]


class SubtreeFile(ApiModel):
    """One file of a subtree."""

    path: RelativePath
    """Key in the folder, such as `<sha256>/<run>-<attempt>/part-….parquet`."""
    bytes: Count


class SubtreeDocument(ApiModel):
    """One folded subtree."""

    format: int = SUBTREE_FORMAT
    signature: Hash
    tool_version: str
    """Version of Snaploom that folded it."""
    spark_version: str
    columns: Annotated[str, MinLen(1)]
    """Its schema, as `StructType.json()` gives it."""
    counts: tuple[SubtreeCounts, ...]
    files: tuple[SubtreeFile, ...]

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
        return self._store.uri

    def find(self, signature: str) -> SubtreeDocument | None:
        """Return a valid subtree and mark it as used; None when there is none."""
        key = f"{signature}.json"
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
        self._store.put(f"{signature}.used", b"")
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
        self._store.put(f"{signature}.used", b"")
        try:
            text = document.dump_json().encode() + b"\n"
            self._store.put_if_absent(f"{signature}.json", text)
        except ObjectAlreadyExists:
            if self.find(signature) is None:
                self._store.put(f"{signature}.json", text)
            else:
                self._store.delete([file.path for file in files])

    def remove_unused(self) -> int:
        """Remove subtrees unused for `KEPT_FOR`, by the store's own clock; returns their number.

        Call it after this run has taken or written one: the newest mark gives the time.
        """
        keys: dict[str, list[str]] = defaultdict(list)
        newest: dict[str, EpochNanos] = {}
        for info in self._store.list(""):
            match = _NAME.fullmatch(info.key)
            if match:
                keys[match[1]].append(info.key)
                newest[match[1]] = max(newest.get(match[1], info.modified), info.modified)
        present = max(newest.values(), default=EpochNanos(0))
        unused = [name for name, time in newest.items() if present - time > KEPT_FOR]
        for name in unused:
            self._store.delete([f"{name}.json"])
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
