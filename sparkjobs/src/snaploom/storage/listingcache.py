"""Cache of facts about files of sources, for the next run.

```
metadata/listing/<sha256 of the source's name>.json
```

Two lines: the SHA-256 of the second, and what is known.

A file is known by its fingerprint: path, length, time of modification, and tag where its store has
one. It is a cache in the output's own folder: nothing is lost with it, and what is damaged, of
another version, or about files that were read otherwise is not believed, and written anew. A file
that changed so short a time ago that it may change again without looking different is not kept.
"""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from snaploom.errors import ObjectNotFound
from snaploom.models.base import ApiModel
from snaploom.models.times import EpochNanos
from snaploom.storage import layout
from snaploom.storage.documentparser import HINT, LISTING, get_bounded, parse_json, parse_object
from snaploom.storage.objectstore import STORE_FAILURES, ObjectStore
from snaploom.storage.pathnames import Count
from snaploom.visibletext import visible

LISTING_FORMAT = 1
"""Format of the document; another one is not believed."""
MOST_KEPT = 250_000
"""Files and values that one document holds at most, together: some ten megabytes. Of more, those
files are kept that have the fewest values."""
SETTLED_AFTER = 60 * 1_000_000_000
"""Nanoseconds without a change after which a file is kept. Stores keep times of up to two seconds'
grain, and their clocks differ from ours by less than a minute where anybody sets them."""

_log = logging.getLogger(__name__)

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
    """Its values."""
    files: tuple[str, ...]
    """Their fingerprints."""


class ListingDocument(ApiModel):
    """Facts about the files of one source."""

    format: int = LISTING_FORMAT
    """Format of this document."""
    about: str
    """Hash over everything that decides how the files are read."""
    schemas: tuple[str, ...]
    """Schemas of files, as `StructType.json()` gives them."""
    known: tuple[KnownFiles, ...]
    """The files."""


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
