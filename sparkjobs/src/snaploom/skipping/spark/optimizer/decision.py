"""Files that a query may leave out: from the optimizer rule's request to its answer."""

from __future__ import annotations

import logging
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from snaploom.errors import SkippingError
from snaploom.skipping.core.filetable import Listing, tags_of_dropped
from snaploom.skipping.core.predicates import normal_form, predicate_text
from snaploom.skipping.formats.parquetfiles import ParquetKeys, open_keys
from snaploom.skipping.spark.optimizer import usage
from snaploom.skipping.spark.optimizer.judgement import (
    IndexJudge,
    Judged,
    Question,
    RecentlyUsed,
    why_idle,
)
from snaploom.skipping.spark.optimizer.requests import FORGOTTEN, Request, SkippingSettings
from snaploom.skipping.spark.optimizer.translation import catalyst
from snaploom.skipping.spark.optimizer.translation.conditions import indexed_conditions
from snaploom.skipping.spark.relations import fingerprint
from snaploom.skipping.stores.catalog import IndexCatalog, open_base, with_above
from snaploom.spark.hadoopstore import hadoop_stores

_log = logging.getLogger("snaploom.skipping")


# Index catalogs of a Spark application, by its sessions' locations and keys.


class IndexCatalogs:
    """One catalog for all sessions with the same locations and keys; safe to use from threads."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._bases: tuple[tuple[str, ParquetKeys | None], ...] = ()
        self._catalogs: dict[tuple[str, tuple[str, ...]], IndexCatalog] = {}
        self._lock = threading.Lock()

    @property
    def bases(self) -> tuple[str, ...]:
        """Folders below which indexes are looked for, in every session."""
        return tuple(uri for uri, _ in self._bases)

    def add_bases(self, uris: Sequence[str], keys: ParquetKeys | None) -> None:
        """Look for indexes below these folders, too; `StorageError` for unknown schemes."""
        for uri in uris:
            open_base(uri, keys, hadoop_stores())
        with self._lock:
            given = dict(self._bases)
            given.update(dict.fromkeys(uris, keys))
            self._bases = tuple(given.items())
            self._catalogs.clear()

    def forget(self) -> None:
        """Read every state anew with the next query."""
        with self._lock:
            self._catalogs.clear()

    def of_session(self, settings: SkippingSettings) -> IndexCatalog:
        """The catalog for a session with these settings."""
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
                self._warn(f"no skipping index of {uri} is used: {first_line(error)}")
        catalog = IndexCatalog(opened)
        with self._lock:
            return self._catalogs.setdefault(wanted, catalog)

    def _keys(self, settings: SkippingSettings) -> ParquetKeys | None:
        try:
            return open_keys(settings.key_service)
        except Exception as error:  # noqa: BLE001 -- indexes in plain text may well be used
            self._warn(f"no encrypted skipping index is used: {first_line(error)}")
            return None


def first_line(error: Exception) -> str:
    """The first line of an error, without its hint."""
    return getattr(error, "message", "") or str(error)


# Decides which files a query skips: from the optimizer rule's request to its answer.

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
        self.counting = usage.Counting()
        self.recorder = usage.UsageRecorder()
        self._catalogs = IndexCatalogs(self._warn_once)
        self._judge = IndexJudge()
        self._listings: RecentlyUsed[str, Listing] = RecentlyUsed(LISTINGS_KEPT)
        self._traces: dict[str, list[usage.RelationOutcome]] = {}
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
    def tracing(self, name: str) -> Iterator[list[usage.RelationOutcome]]:
        """Collect what is decided for sessions whose setting `TRACE` has this name."""
        outcomes: list[usage.RelationOutcome] = []
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
        outcome = usage.RelationOutcome(
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
        dropping = [each for each in judged if each.outcome.dropped] or judged
        labels = tuple(dict.fromkeys(label for each in dropping for label in each.labels))
        more = f" and {len(labels) - MOST_LABELS} more" if len(labels) > MOST_LABELS else ""
        names = textwrap.shorten(", ".join(labels[:MOST_LABELS]), LONGEST_LABEL, placeholder=" ...")
        label = f"{names}{more}"
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
            Judged(usage.IndexOutcome(problem.uri, "", unused=(problem.message,)))
            for problem in found.problems
        ]
        if is_traced:
            judged += [Judged(each) for each in _idle(catalog, request.targets)]
        reasons = () if judged else (_nothing_found(catalog),)
        return judged, reasons, predicate_text(predicate) if is_traced else ""

    def _record(
        self, judged: Sequence[Judged], outcome: usage.RelationOutcome, settings: SkippingSettings
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


def _idle(catalog: IndexCatalog, targets: Sequence[str]) -> list[usage.IndexOutcome]:
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
                outcomes.append(usage.IndexOutcome(store.uri, uri, unused=(reason,)))
    return outcomes


def _nothing_found(catalog: IndexCatalog) -> str:
    places = ", ".join(base.uri for base in catalog.bases)
    return f"no skipping index of these files in {places}" if places else "no location of indexes"
