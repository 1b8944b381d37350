"""From one index, and what a query demands, to the files that may have rows."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa

from snaploom.models.skippingindex import IndexState
from snaploom.skipping.core.definition import IndexDefinition, SkippingDefinition
from snaploom.skipping.core.filetable import FileTable, Listing, Mask, Matched, match
from snaploom.skipping.core.predicates import Predicate
from snaploom.skipping.evaluation import Evaluation, evaluate
from snaploom.skipping.spark.optimizer.requests import Known, Request, known_of
from snaploom.skipping.spark.optimizer.translation.subjects import root_names
from snaploom.skipping.spark.optimizer.usage import IndexOutcome, clauses_of, labels_of
from snaploom.skipping.spark.relations import fingerprint
from snaploom.skipping.spark.relations.hadoop import with_local_tags
from snaploom.skipping.stores.catalog import IndexCatalog, PinnedIndex, Problem
from snaploom.skipping.stores.port import NEVER, IndexStore, StoredState

# An LRU cache of expensive values; safe to use from several threads.

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class RecentlyUsed(Generic[K, V]):
    """Keeps the last used values; None is not a value."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, key: K) -> V | None:
        """The value of a key, or None if it is not there."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def get(self, key: K, make: Callable[[], V]) -> V:
        """The value of a key, made if it is not there; two threads may both make it."""
        found = self.find(key)
        if found is not None:
            return found
        value = make()
        with self._lock:
            self._values[key] = value
            while len(self._values) > self._most:
                self._values.popitem(last=False)
        return value


# Decides which indexes apply to files read in a certain way, with reasons for others.

_OF_THE_CATALOG = "is a partition column of a table, whose partitions Spark prunes by itself"


def usable_part(
    definition: SkippingDefinition, request: Request
) -> tuple[SkippingDefinition, tuple[str, ...]]:
    """Indexes that apply to files read as in a request, and why others do not.

    A column whose values come from paths here and from the files there, or the other way round, is
    not the same column although it has the same name. In a table the catalog decides which values
    files of a partition have, and may change that tomorrow for the same files.
    """
    now = fingerprint.fingerprint(request.header)
    foreign = fingerprint.differences(definition.fingerprint, now)
    if foreign:
        reasons = tuple(f"the reader has changed: {each}" for each in foreign)
        return replace(definition, indexes=()), reasons
    partitions = {name for name, _ in definition.partition_columns}
    unusable = {
        **dict.fromkeys(partitions if request.header.get("table") else (), _OF_THE_CATALOG),
        **dict.fromkeys(
            set(request.partition_columns) ^ partitions, "comes from paths or from files"
        ),
    }
    otherwise = fingerprint.evaluation_differences(definition.fingerprint, now)
    whys = {index: _why_not(index, unusable, otherwise) for index in definition.indexes}
    usable = tuple(index for index, why in whys.items() if not why)
    unused = tuple(f"{index.label}: {why}" for index, why in whys.items() if why)
    return (replace(definition, indexes=usable) if unused else definition), unused


def _why_not(
    index: IndexDefinition,
    unusable: Mapping[str, str],
    otherwise: Sequence[fingerprint.Difference],
) -> str:
    for name in sorted({name for term in index.terms for name in root_names(term)}):
        if name in unusable:
            return f"{name} {unusable[name]}"
    if index.is_outdated:
        return "an older Snaploom did not distinguish all expressions: refresh it"
    if otherwise and any(term.names is None for term in index.terms):
        return f"its values may be others here: {otherwise[0]}"
    return ""


def why_idle(state: StoredState) -> str:
    """Reason why no query uses an index; empty if queries do, or if there is none."""
    if state.may_skip or not state.exists or state.definition is None:
        return ""
    if not state.definition.enabled:
        return "it is disabled"
    if not state.trusted:
        return "it was imported and is not verified: import it with verification"
    if state.refreshed_at == NEVER:
        failed = f" ({state.message})" if state.phase is IndexState.FAILED else ""
        return f"it was never refreshed, so it knows no file{failed}"
    return f"it is in state {state.phase.value}"


# From one index and a query's condition to the files of the listing that it needs.

LISTINGS_KEPT = 16
"""Listings whose files were matched with an index: as many tables as a session works with."""
EVALUATIONS_KEPT = 64
"""Conditions whose files are remembered."""


@dataclass(frozen=True)
class Question:
    """A query's condition, as put to every index of its relation."""

    request: Request
    listing: Listing
    predicate: Predicate
    """Condition on each row."""
    is_traced: bool = False
    """Whether reasons are wanted, too."""


@dataclass(frozen=True)
class Judged:
    """Answer of one index."""

    outcome: IndexOutcome
    keep: Mask | None = None
    """For each file of the listing, whether it is needed; None where nothing was proved."""
    labels: tuple[str, ...] = ()
    """Indexes to which the outcome is due."""
    store: IndexStore | None = None
    """Location of the index; None where it was not asked."""
    tags: pa.Array | None = None
    """For each file of the listing, the tag that it had when it was indexed, or NULL."""
    problem: Problem | None = None
    """Reason why its rows could not be read."""


class IndexJudge:
    """Asks indexes, and caches the last answers; safe to use from several threads."""

    def __init__(self) -> None:
        self._matches: RecentlyUsed[tuple[int, str], tuple[FileTable, Matched]] = RecentlyUsed(
            LISTINGS_KEPT
        )
        self._evaluations: RecentlyUsed[
            tuple[int, SkippingDefinition, Predicate], tuple[FileTable, Evaluation]
        ] = RecentlyUsed(EVALUATIONS_KEPT)

    def judge(self, catalog: IndexCatalog, pinned: PinnedIndex, question: Question) -> Judged:
        """Ask an index, in its pinned state, about the files of a query."""
        started = time.perf_counter()
        outcome = IndexOutcome(
            pinned.store.uri,
            pinned.definition.target.table or pinned.definition.target.uri,
            tuple(index.label for index in pinned.definition.indexes),
        )
        definition, unused = usable_part(pinned.definition, question.request)
        outcome = replace(outcome, unused=unused)
        if not definition.indexes:
            return Judged(outcome, store=pinned.store)
        files = catalog.files(pinned)
        if isinstance(files, Problem):
            return Judged(replace(outcome, unused=(*unused, files.message)), problem=files)
        matched = self._matched(files, question)
        known = known_of(definition, files, matched, question.request)
        evaluation = self._evaluated(question.predicate, known)
        keep = known.keep(evaluation)
        outcome = replace(
            outcome,
            is_used=True,
            stale=matched.stale,
            missing=matched.missing,
            dropped=int(len(keep) - np.count_nonzero(keep)),
            dropped_bytes=int(question.listing.lengths[~keep].sum()),
            seconds=time.perf_counter() - started,
            clauses=clauses_of(question.predicate, known) if question.is_traced else (),
        )
        return Judged(outcome, keep, labels_of(evaluation), pinned.store, matched.tags(files))

    def _matched(self, files: FileTable, question: Question) -> Matched:
        listing = question.listing
        if question.is_traced:
            # Who asks for a reason is given one now; a query finds it when it is about to drop a
            # file.
            return match(files, with_local_tags(listing))
        # The table is kept beside, so that its id is nobody else's.
        _, matched = self._matches.get(
            (id(files), question.request.listing_name), lambda: (files, match(files, listing))
        )
        return matched

    def _evaluated(self, predicate: Predicate, known: Known) -> Evaluation:
        def make() -> tuple[FileTable, Evaluation]:
            return known.files, evaluate(predicate, known.definition, known.files)

        if known.matched is None:
            # Its rows are of this one request.
            return make()[1]
        return self._evaluations.get((id(known.files), known.definition, predicate), make)[1]
