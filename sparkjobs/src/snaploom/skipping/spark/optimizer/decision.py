"""Which files a query may leave out: from the optimizer rule's request to its answer.

A file is dropped when any usable index proves that it is not needed. Whatever goes wrong here keeps
every file, is counted, and is logged once for each cause (rule S14).
"""

from __future__ import annotations

import logging
import textwrap
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from snaploom.errors import SkippingError
from snaploom.hadoop.store import hadoop_stores
from snaploom.skipping.core.definition import SkippingDefinition
from snaploom.skipping.core.filetable import FileTable, Mask
from snaploom.skipping.core.listedfiles import Listing, Matched, match, tags_of_dropped
from snaploom.skipping.core.normalform import normal_form
from snaploom.skipping.core.predicates import Predicate
from snaploom.skipping.core.text import predicate_text
from snaploom.skipping.evaluation import Evaluation, evaluate
from snaploom.skipping.formats.keys import ParquetKeys
from snaploom.skipping.formats.keyservices import open_keys
from snaploom.skipping.spark.optimizer.lrucache import RecentlyUsed
from snaploom.skipping.spark.optimizer.outcomes import (
    IndexOutcome,
    RelationOutcome,
    clauses_of,
    labels_of,
)
from snaploom.skipping.spark.optimizer.partitions import Known, known_of
from snaploom.skipping.spark.optimizer.requests import Request
from snaploom.skipping.spark.optimizer.settings import SkippingSettings
from snaploom.skipping.spark.optimizer.translation import catalyst
from snaploom.skipping.spark.optimizer.translation.conditions import indexed_conditions
from snaploom.skipping.spark.optimizer.usability import usable_part, why_idle
from snaploom.skipping.spark.optimizer.usagecounters import Counting
from snaploom.skipping.spark.optimizer.usagerecorder import UsageRecorder
from snaploom.skipping.spark.relations import fingerprint
from snaploom.skipping.spark.relations.hadoop import with_local_tags
from snaploom.skipping.stores.bases import open_base
from snaploom.skipping.stores.catalog import IndexCatalog, PinnedIndex, Problem, with_above
from snaploom.skipping.stores.port import IndexStore

_log = logging.getLogger("snaploom.skipping")

LISTINGS_KEPT = 16
"""Listings whose files were matched with an index: as many tables as a session works with."""
EVALUATIONS_KEPT = 64
"""Conditions whose files are remembered."""

MOST_LABELS = 3
"""Indexes that an answer names."""
LONGEST_LABEL = 120
"""Characters of their names."""

_ZERO = ord("0")


@dataclass(frozen=True)
class _Judged:
    outcome: IndexOutcome
    keep: Mask | None = None
    labels: tuple[str, ...] = ()
    """Indexes to which the outcome is due."""
    store: IndexStore | None = None
    """Where the index is; None where it was not asked."""
    tags: pa.Array | None = None
    """For each file of the listing, the tag that it had when it was indexed, or NULL."""


class Decider:
    """Answers the requests of one Spark application; safe to use from several threads."""

    def __init__(self) -> None:
        """Begin without bases: nothing is skipped."""
        self.counting = Counting()
        self.recorder = UsageRecorder()
        self._bases: tuple[tuple[str, ParquetKeys | None], ...] = ()
        self._catalogs: dict[tuple[str, tuple[str, ...]], IndexCatalog] = {}
        self._matches: RecentlyUsed[tuple[int, bytes], tuple[FileTable, Matched]] = RecentlyUsed(
            LISTINGS_KEPT
        )
        self._listings: RecentlyUsed[bytes, Listing] = RecentlyUsed(LISTINGS_KEPT)
        self._evaluations: RecentlyUsed[
            tuple[int, SkippingDefinition, Predicate], tuple[FileTable, Evaluation]
        ] = RecentlyUsed(EVALUATIONS_KEPT)
        self._traces: dict[str, list[RelationOutcome]] = {}
        self._warned: set[str] = set()
        self._lock = threading.Lock()

    def add_bases(self, uris: Sequence[str], keys: ParquetKeys | None = None) -> None:
        """Look for indexes below these folders, too.

        Raises:
            StorageError: no store is known for a URI's scheme.
        """
        for uri in uris:
            open_base(uri, keys, hadoop_stores())
        with self._lock:
            given = dict(self._bases)
            given.update(dict.fromkeys(uris, keys))
            self._bases = tuple(given.items())
            self._catalogs.clear()

    @property
    def bases(self) -> tuple[str, ...]:
        """Folders below which indexes are looked for, in every session."""
        return tuple(uri for uri, _ in self._bases)

    def forget(self) -> None:
        """Read every state anew with the next query."""
        with self._lock:
            self._catalogs.clear()

    def concerns(self, header: str) -> bool:
        """Whether there may be an index of a relation; asked before its files are listed."""
        try:
            request = Request.parse(header)
            settings = SkippingSettings.of(request.settings)
            if settings.trace:
                return True
            if not settings.is_enabled or fingerprint.unusable(request.header):
                return False
            found = self._catalog(settings).find(request.targets)
            for problem in found.problems:
                self._warn_once(f"the skipping index {problem.uri} is not used: {problem.message}")
            return bool(found.indexes)
        except Exception as error:  # noqa: BLE001 -- no query fails by an index (rule S14)
            self._fail(error)
            return False

    def __call__(self, text: str) -> str | None:
        """Answer a request, as `rule.Decider` specifies."""
        try:
            return self._answer(Request.parse(text))
        except Exception as error:  # noqa: BLE001 -- as above
            self._fail(error)
            return None

    @contextmanager
    def tracing(self, name: str) -> Iterator[list[RelationOutcome]]:
        """Collect what is decided for sessions whose setting `TRACE` has this name."""
        outcomes: list[RelationOutcome] = []
        with self._lock:
            self._traces[name] = outcomes
        try:
            yield outcomes
        finally:
            with self._lock:
                del self._traces[name]

    def _answer(self, request: Request) -> str | None:
        started = time.perf_counter()
        settings = SkippingSettings.of(request.settings)
        trace = self._traces.get(settings.trace)
        listing = self._listings.get(request.digest, request.listing)
        judged, reasons, condition = self._judge(request, listing, settings, trace is not None)
        keep = np.ones(len(listing), dtype=np.bool_)
        for each in judged:
            if each.keep is not None:
                keep &= each.keep
        outcome = RelationOutcome(
            name=request.name,
            mode=str(request.header.get("mode", "")),
            files=len(listing),
            bytes=int(listing.lengths.sum()),
            kept_files=int(np.count_nonzero(keep)),
            kept_bytes=int(listing.lengths[keep].sum()),
            seconds=time.perf_counter() - started,
            condition=condition,
            indexes=tuple(each.outcome for each in judged),
            reasons=reasons,
            is_evaluated_only=settings.is_evaluated_only,
        )
        if trace is None:
            self.counting.add(outcome)
            self._record(judged, outcome, settings)
        else:
            trace.append(outcome)
        label = _label(judged)
        if settings.is_evaluated_only or (not label and keep.all()):
            return None
        signs = (keep.view(np.uint8) + _ZERO).tobytes().decode("ascii")
        tags = tags_of_dropped(listing, [(each.keep, each.tags) for each in judged])
        return "\n".join((signs, label, tags) if tags else (signs, label) if label else (signs,))

    def _judge(
        self, request: Request, listing: Listing, settings: SkippingSettings, is_traced: bool
    ) -> tuple[list[_Judged], tuple[str, ...], str]:
        if not settings.is_enabled:
            return [], (f"{settings.switched_off_by} is false",), ""
        unusable = fingerprint.unusable(request.header)
        if unusable:
            return [], (unusable,), ""
        catalog = self._catalog(settings)
        found = catalog.find(request.targets)
        indexed = indexed_conditions(each.definition for each in found.indexes)
        columns = fingerprint.columns(request.header)
        predicate = normal_form(catalyst.predicate(request.filters, columns, indexed))
        judged = [
            self._judge_index(catalog, pinned, request, listing, predicate, is_traced)
            for pinned in found.indexes
        ]
        judged += [_Judged(_unread(problem)) for problem in found.problems]
        if is_traced:
            judged += [_Judged(each) for each in _idle(catalog, request.targets)]
        reasons = () if judged else (_nothing_found(catalog),)
        return judged, reasons, predicate_text(predicate) if is_traced else ""

    def _judge_index(
        self,
        catalog: IndexCatalog,
        pinned: PinnedIndex,
        request: Request,
        listing: Listing,
        predicate: Predicate,
        is_traced: bool,
    ) -> _Judged:
        started = time.perf_counter()
        outcome = IndexOutcome(
            pinned.store.uri,
            pinned.definition.target.table or pinned.definition.target.uri,
            tuple(index.label for index in pinned.definition.indexes),
        )
        definition, unused = usable_part(pinned.definition, request)
        outcome = replace(outcome, unused=unused)
        if not definition.indexes:
            return _Judged(outcome, store=pinned.store)
        files = catalog.files(pinned)
        if isinstance(files, Problem):
            self._warn_once(f"the skipping index {files.uri} is not used: {files.message}")
            return _Judged(replace(outcome, unused=(*unused, files.message)))
        # Who asks for a reason is given one now; a query finds it when it is about to drop a file.
        matched = (
            match(files, with_local_tags(listing))
            if is_traced
            else self._matched(files, request, listing)
        )
        known = known_of(definition, files, matched, request)
        evaluation = self._evaluated(predicate, known)
        keep = known.keep(evaluation)
        outcome = replace(
            outcome,
            is_used=True,
            stale=matched.stale,
            missing=matched.missing,
            dropped=int(len(keep) - np.count_nonzero(keep)),
            dropped_bytes=int(listing.lengths[~keep].sum()),
            seconds=time.perf_counter() - started,
            clauses=clauses_of(predicate, known) if is_traced else (),
        )
        return _Judged(outcome, keep, labels_of(evaluation), pinned.store, matched.tags(files))

    def _record(
        self, judged: Sequence[_Judged], outcome: RelationOutcome, settings: SkippingSettings
    ) -> None:
        if settings.is_usage_recorded:
            for each in judged:
                if each.store is not None:
                    self.recorder.add(each.store, each.outcome, outcome)

    def _matched(self, files: FileTable, request: Request, listing: Listing) -> Matched:
        # The table is kept beside, so that its id is nobody else's.
        _, matched = self._matches.get(
            (id(files), request.digest), lambda: (files, match(files, listing))
        )
        return matched

    def _evaluated(self, predicate: Predicate, known: Known) -> Evaluation:
        def make() -> tuple[FileTable, Evaluation]:
            return known.files, evaluate(predicate, known.definition, known.files)

        if known.matched is None:
            # Its rows are of this one request.
            return make()[1]
        return self._evaluations.get((id(known.files), known.definition, predicate), make)[1]

    def _catalog(self, settings: SkippingSettings) -> IndexCatalog:
        given = dict(self._bases)
        uris = tuple(dict.fromkeys((*given, *settings.locations)))
        wanted = (settings.key_service, uris)
        with self._lock:
            if wanted in self._catalogs:
                return self._catalogs[wanted]
        service = self._keys(settings)
        opened = []
        for uri in uris:
            try:
                opened.append(open_base(uri, given.get(uri) or service, hadoop_stores()))
            except Exception as error:  # noqa: BLE001 -- another location may well be right
                self._warn_once(f"no skipping index of {uri} is used: {_first_line(error)}")
        catalog = IndexCatalog(opened)
        with self._lock:
            return self._catalogs.setdefault(wanted, catalog)

    def _keys(self, settings: SkippingSettings) -> ParquetKeys | None:
        try:
            return open_keys(settings.key_service)
        except Exception as error:  # noqa: BLE001 -- indexes in plain text may well be used
            self._warn_once(f"no encrypted skipping index is used: {_first_line(error)}")
            return None

    def _fail(self, error: Exception) -> None:
        message = f"{type(error).__name__}: {_first_line(error)}"
        self.counting.fail(message)
        self._warn_once(f"deciding which files to skip failed, so every file is read: {message}")

    def _warn_once(self, message: str) -> None:
        with self._lock:
            is_new = message not in self._warned
            self._warned.add(message)
        if is_new:
            _log.warning("%s", message)


def _label(judged: Sequence[_Judged]) -> str:
    """Names the indexes in Spark's EXPLAIN, in one line."""
    dropping = [each for each in judged if each.outcome.dropped] or judged
    labels = tuple(dict.fromkeys(label for each in dropping for label in each.labels))
    more = f" and {len(labels) - MOST_LABELS} more" if len(labels) > MOST_LABELS else ""
    names = textwrap.shorten(", ".join(labels[:MOST_LABELS]), LONGEST_LABEL, placeholder=" ...")
    return f"{names}{more}"


def _unread(problem: Problem) -> IndexOutcome:
    return IndexOutcome(problem.uri, "", unused=(problem.message,))


def _idle(catalog: IndexCatalog, targets: Sequence[str]) -> list[IndexOutcome]:
    """Indexes that are there and that no query uses, with the reason; damaged ones are known."""
    outcomes = []
    for uri in dict.fromkeys(above for target in targets for above in with_above(target)):
        for base in catalog.bases:
            store = base.index(uri)
            try:
                state = store.read()
            except SkippingError:
                continue
            reason = why_idle(state)
            if reason:
                outcomes.append(IndexOutcome(store.uri, uri, unused=(reason,)))
    return outcomes


def _nothing_found(catalog: IndexCatalog) -> str:
    places = ", ".join(base.uri for base in catalog.bases)
    return f"no skipping index of these files in {places}" if places else "no location of indexes"


def _first_line(error: Exception) -> str:
    return getattr(error, "message", "") or str(error)
