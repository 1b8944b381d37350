"""From one index and a query's condition to the files of the listing that it needs.

An index may speak only for files that are read as it read them, and only about those that have not
changed since. What it proves then is one mask.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from snaploom.skipping.core.definition import SkippingDefinition
from snaploom.skipping.core.filetable import FileTable, Mask
from snaploom.skipping.core.listedfiles import Listing, Matched, match
from snaploom.skipping.core.predicates import Predicate
from snaploom.skipping.evaluation import Evaluation, evaluate
from snaploom.skipping.spark.optimizer.lrucache import RecentlyUsed
from snaploom.skipping.spark.optimizer.outcomes import IndexOutcome, clauses_of, labels_of
from snaploom.skipping.spark.optimizer.partitions import Known, known_of
from snaploom.skipping.spark.optimizer.requests import Request
from snaploom.skipping.spark.optimizer.usability import usable_part
from snaploom.skipping.spark.relations.hadoop import with_local_tags
from snaploom.skipping.stores.catalog import IndexCatalog, PinnedIndex, Problem
from snaploom.skipping.stores.port import IndexStore

LISTINGS_KEPT = 16
"""Listings whose files were matched with an index: as many tables as a session works with."""
EVALUATIONS_KEPT = 64
"""Conditions whose files are remembered."""


@dataclass(frozen=True)
class Question:
    """A query's condition, as put to every index of its relation."""

    request: Request
    listing: Listing
    """The files of the request."""
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
    """Where the index is; None where it was not asked."""
    tags: pa.Array | None = None
    """For each file of the listing, the tag that it had when it was indexed, or NULL."""
    problem: Problem | None = None
    """Why its rows could not be read."""


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
