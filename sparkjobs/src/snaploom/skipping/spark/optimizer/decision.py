"""Decides which files a query skips: from the optimizer rule's request to its answer.

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

import numpy as np

from snaploom.errors import SkippingError
from snaploom.skipping.core.listedfiles import Listing, tags_of_dropped
from snaploom.skipping.core.normalform import normal_form
from snaploom.skipping.core.text import predicate_text
from snaploom.skipping.formats.keys import ParquetKeys
from snaploom.skipping.spark.optimizer.indexcatalogs import IndexCatalogs, first_line
from snaploom.skipping.spark.optimizer.judgement import IndexJudge, Judged, Question
from snaploom.skipping.spark.optimizer.lrucache import RecentlyUsed
from snaploom.skipping.spark.optimizer.outcomes import (
    IndexOutcome,
    RelationOutcome,
)
from snaploom.skipping.spark.optimizer.requests import FORGOTTEN, Request
from snaploom.skipping.spark.optimizer.settings import SkippingSettings
from snaploom.skipping.spark.optimizer.translation import catalyst
from snaploom.skipping.spark.optimizer.translation.conditions import indexed_conditions
from snaploom.skipping.spark.optimizer.usability import why_idle
from snaploom.skipping.spark.optimizer.usagecounters import Counting
from snaploom.skipping.spark.optimizer.usagerecorder import UsageRecorder
from snaploom.skipping.spark.relations import fingerprint
from snaploom.skipping.stores.catalog import IndexCatalog, with_above

_log = logging.getLogger("snaploom.skipping")

LISTINGS_KEPT = 16
"""Listings that are remembered: as many tables as a session works with."""

MOST_LABELS = 3
"""Indexes that an answer names."""
LONGEST_LABEL = 120
"""Characters of their names."""

_ZERO = ord("0")


class Decider:
    """Answers the requests of one Spark application; safe to use from several threads."""

    def __init__(self) -> None:
        self.counting = Counting()
        self.recorder = UsageRecorder()
        self._catalogs = IndexCatalogs(self._warn_once)
        self._judge = IndexJudge()
        self._listings: RecentlyUsed[str, Listing] = RecentlyUsed(LISTINGS_KEPT)
        self._traces: dict[str, list[RelationOutcome]] = {}
        self._warned: set[str] = set()
        self._lock = threading.Lock()

    def add_bases(self, uris: Sequence[str], keys: ParquetKeys | None = None) -> None:
        """Look for indexes below these folders, too; `StorageError` for unknown schemes."""
        self._catalogs.add_bases(uris, keys)

    @property
    def bases(self) -> tuple[str, ...]:
        """Folders below which indexes are looked for, in every session."""
        return self._catalogs.bases

    def forget(self) -> None:
        """Read every state anew with the next query."""
        self._catalogs.forget()

    def concerns(self, header: str) -> bool:
        """Whether there may be an index of a relation; asked before its files are listed."""
        try:
            request = Request.parse(header)
            settings = SkippingSettings.of(request.settings)
            if settings.trace:
                return True
            if not settings.is_enabled or fingerprint.unusable(request.header):
                return False
            found = self._catalogs.of_session(settings).find(request.targets)
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
        if request.is_without_files:
            known = self._listings.find(request.listing_name)
            if known is None:
                return FORGOTTEN
            listing = known
        else:
            listing = self._listings.get(request.listing_name, request.listing)
        judged, reasons, condition = self._judged(request, listing, settings, trace is not None)
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

    def _judged(
        self, request: Request, listing: Listing, settings: SkippingSettings, is_traced: bool
    ) -> tuple[list[Judged], tuple[str, ...], str]:
        """Answers of each index, reasons why none was asked, and the condition as text."""
        if not settings.is_enabled:
            return [], (f"{settings.switched_off_by} is false",), ""
        unusable = fingerprint.unusable(request.header)
        if unusable:
            return [], (unusable,), ""
        catalog = self._catalogs.of_session(settings)
        found = catalog.find(request.targets)
        predicate = normal_form(
            catalyst.predicate(
                request.filters,
                fingerprint.columns(request.header),
                indexed_conditions([each.definition for each in found.indexes]),
            )
        )
        question = Question(request, listing, predicate, is_traced)
        judged = [self._judge.judge(catalog, pinned, question) for pinned in found.indexes]
        for outdated in filter(None, (each.definition.why_outdated for each in found.indexes)):
            self._warn_once(outdated)
        for problem in (each.problem for each in judged if each.problem is not None):
            self._warn_once(f"the skipping index {problem.uri} is not used: {problem.message}")
        judged += [
            Judged(IndexOutcome(problem.uri, "", unused=(problem.message,)))
            for problem in found.problems
        ]
        if is_traced:
            judged += [Judged(each) for each in _idle(catalog, request.targets)]
        reasons = () if judged else (_nothing_found(catalog),)
        return judged, reasons, predicate_text(predicate) if is_traced else ""

    def _record(
        self, judged: Sequence[Judged], outcome: RelationOutcome, settings: SkippingSettings
    ) -> None:
        if settings.is_usage_recorded:
            for each in judged:
                if each.store is not None:
                    self.recorder.add(each.store, each.outcome, outcome)

    def _fail(self, error: Exception) -> None:
        message = f"{type(error).__name__}: {first_line(error)}"
        self.counting.fail(message)
        self._warn_once(f"deciding which files to skip failed, so every file is read: {message}")

    def _warn_once(self, message: str) -> None:
        with self._lock:
            is_new = message not in self._warned
            self._warned.add(message)
        if is_new:
            _log.warning("%s", message)


def _label(judged: Sequence[Judged]) -> str:
    dropping = [each for each in judged if each.outcome.dropped] or judged
    labels = tuple(dict.fromkeys(label for each in dropping for label in each.labels))
    more = f" and {len(labels) - MOST_LABELS} more" if len(labels) > MOST_LABELS else ""
    names = textwrap.shorten(", ".join(labels[:MOST_LABELS]), LONGEST_LABEL, placeholder=" ...")
    return f"{names}{more}"


def _idle(catalog: IndexCatalog, targets: Sequence[str]) -> list[IndexOutcome]:
    """Existing indexes that no query uses, with the reason; damaged ones are known already."""
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
