"""Usage of a skipping index by queries: one small document for each session, beside its rows.

`<folder of the index>/usage/<token>.json` sums up what one session did; the session replaces it as
it goes on, and nobody else writes it, so that no two writers meet. Documents are hints, never
truth: sessions that cannot write them go on, and what cannot be read is left out. Counts and
times only are kept: no query, no user, no value.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Protocol, runtime_checkable

from annotated_types import Ge, Le, MaxLen
from pydantic import StringConstraints, ValidationError

from snaploom.errors import NotAPlainFile, ObjectNotFound, ObjectTooLarge, StorageError
from snaploom.files.objectstore import ObjectInfo, ObjectStore
from snaploom.models.base import ApiModel
from snaploom.models.common import NANOS_PER_SECOND, EpochNanos
from snaploom.skipping.stores.port import NEVER, Count, StoredTime

USAGE_FORMAT = 1
"""Format of the documents; newer ones are left out."""

KEPT_DAYS = 90
"""Documents that nobody wrote for so long are removed by the next refresh, but the newest one."""

MOST_SESSIONS = 1_000
"""Documents that are kept and read; the newest ones."""

LONGEST_DOCUMENT = 64 * 1024
"""Bytes of the longest document: all reasons in four bytes a character take 16 KB."""

MOST_REASONS = 20
"""Different reasons that are counted; later ones are counted as `OTHER_REASONS`."""

LONGEST_REASON = 200
"""Characters of a reason."""

OTHER_REASONS = "other reasons"

Reason = Annotated[str, StringConstraints(max_length=LONGEST_REASON)]

_FOLDER = "usage/"
_DAY = 86_400 * NANOS_PER_SECOND


@dataclass(frozen=True)
class Usage:
    """Sums over reads: relations of files in queries, of which an index was asked."""

    reads: Count = 0
    """Reads that asked the index; one that is planned anew when it runs counts twice."""
    served: Count = 0
    """Reads of which it dropped at least one file."""
    files: Count = 0
    """Files of these reads before skipping."""
    dropped_files: Count = 0
    """Files that the index proved are not needed."""
    bytes: Count = 0
    """Bytes of the files of these reads."""
    dropped_bytes: Count = 0
    """Bytes of the files that it dropped."""
    seconds: Annotated[float, Ge(0), Le(1e12)] = 0.0
    first_used: StoredTime = NEVER
    last_used: StoredTime = NEVER
    """The first and the last read, by the clocks of the sessions."""
    why_not: Annotated[Mapping[Reason, Count], MaxLen(MOST_REASONS + 1)] = field(
        default_factory=dict
    )
    """Number of times the index, or a part of it, was not used, by reason."""

    def __add__(self, other: Usage) -> Usage:
        firsts = [each for each in (self.first_used, other.first_used) if each != NEVER]
        return Usage(
            reads=self.reads + other.reads,
            served=self.served + other.served,
            files=self.files + other.files,
            dropped_files=self.dropped_files + other.dropped_files,
            bytes=self.bytes + other.bytes,
            dropped_bytes=self.dropped_bytes + other.dropped_bytes,
            seconds=self.seconds + other.seconds,
            first_used=min(firsts, default=NEVER),
            last_used=max(self.last_used, other.last_used),
            why_not=_counted(self.why_not, other.why_not),
        )


@dataclass(frozen=True)
class Recorded:
    """The sum of the documents of an index."""

    total: Usage = Usage()
    sessions: int = 0
    left_out: int = 0
    """Documents that are damaged, or of a newer Snaploom."""


class UsageDocument(ApiModel):
    """Usage by one session."""

    format: Annotated[int, Ge(1)] = USAGE_FORMAT
    usage: Usage


class UsageLog:
    """The usage documents of one skipping index, below its folder."""

    def __init__(self, store: ObjectStore, folder: str) -> None:
        """Open the log below a key prefix, empty or ending in `/`; nothing is read yet."""
        self._store = store
        self._folder = f"{folder}{_FOLDER}"

    def write(self, session: str, usage: Usage) -> None:
        """Write a session's sums, replacing its earlier ones."""
        document = UsageDocument(usage=usage).dump_json().encode() + b"\n"
        self._store.put(f"{self._folder}{session}.json", document)

    def read(self) -> Recorded:
        newest = self._newest()
        documents = [self._document(info) for info in newest]
        found = [usage for usage in documents if usage is not None]
        return Recorded(sum(found, Usage()), len(found), len(documents) - len(found))

    def last_used(self) -> EpochNanos:
        """Time of the last use by a query; `NEVER` when no session recorded one."""
        for info in self._newest():
            usage = self._document(info)
            if usage is not None:
                return usage.last_used
        return NEVER

    def sweep(self, now: EpochNanos) -> None:
        """Remove old and excess documents; the newest always stays."""
        newest = self._newest()
        fresh = newest[:1] + [i for i in newest[1:] if i.modified >= now - KEPT_DAYS * _DAY]
        kept = {info.key for info in fresh}
        listed = [info.key for info in self._store.list(self._folder)]
        self._store.delete(key for key in listed if key not in kept)

    def destroy(self) -> None:
        self._store.delete([info.key for info in self._store.list(self._folder)])

    def _newest(self) -> list[ObjectInfo]:
        found = self._store.list(self._folder)
        return heapq.nlargest(MOST_SESSIONS, found, key=lambda info: (info.modified, info.key))

    def _document(self, info: ObjectInfo) -> Usage | None:
        try:
            found = UsageDocument.model_validate_json(self._store.get(info.key, LONGEST_DOCUMENT))
        except (ObjectNotFound, ObjectTooLarge, NotAPlainFile, ValidationError):
            return None
        return found.usage if found.format <= USAGE_FORMAT else None


@runtime_checkable
class KeepsUsage(Protocol):
    """A store beside which usage can be kept."""

    @property
    def usage(self) -> UsageLog | None:
        """Log of usage; None where none can be kept."""


def usage_log(store: object) -> UsageLog | None:
    """Log of usage of a store's index; None where none is recorded (OpenSearch)."""
    return store.usage if isinstance(store, KeepsUsage) else None


def recorded_usage(store: object) -> Recorded | None:
    """Known usage of a store's index; None where none can be known."""
    log = usage_log(store)
    try:
        return None if log is None else log.read()
    except StorageError:
        return None


def with_reasons(usage: Usage, reasons: Sequence[str]) -> Usage:
    """Usage with each reason counted once more."""
    cut = [reason[:LONGEST_REASON] for reason in reasons]
    return replace(usage, why_not=_counted(usage.why_not, Counter(cut))) if cut else usage


def _counted(one: Mapping[str, int], other: Mapping[str, int]) -> Mapping[str, int]:
    counts = Counter(one)
    for reason, times in other.items():
        is_known = reason in counts or len(counts) < MOST_REASONS
        counts[reason if is_known else OTHER_REASONS] += times
    return dict(counts)
