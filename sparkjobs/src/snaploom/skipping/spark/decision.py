"""Which files a query may leave out: from the optimizer rule's request to its answer.

A file is dropped when any usable index proves that it is not needed. Whatever goes wrong here keeps
every file, is counted, and is told once for each cause (trap 14).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from snaploom.errors import SkippingError
from snaploom.models.skippingindex import IndexState
from snaploom.skipping.core.definition import IndexDefinition, SkippingDefinition
from snaploom.skipping.core.filetable import FileTable, Mask
from snaploom.skipping.core.listing import Listing, Matched, match
from snaploom.skipping.core.normalform import conjuncts, normal_form
from snaploom.skipping.core.predicates import And, Constant, Not, Or, Predicate, Unknown
from snaploom.skipping.core.text import predicate_text
from snaploom.skipping.evaluation import Evaluation, evaluate
from snaploom.skipping.formats.keys import ParquetKeys
from snaploom.skipping.spark import catalyst, fingerprint
from snaploom.skipping.spark.caching import RecentlyUsed
from snaploom.skipping.spark.counting import Counting
from snaploom.skipping.spark.outcomes import ClauseOutcome, IndexOutcome, RelationOutcome
from snaploom.skipping.spark.requests import Request
from snaploom.skipping.spark.settings import SkippingSettings
from snaploom.skipping.spark.subjects import hint_of, root_names
from snaploom.skipping.stores.bases import open_base
from snaploom.skipping.stores.catalog import IndexCatalog, PinnedIndex, Problem, with_above
from snaploom.skipping.stores.port import NEVER, StoredState

_log = logging.getLogger("snaploom.skipping")

LISTINGS_KEPT = 16
"""Listings whose files were matched with an index: as many tables as a session works with."""
EVALUATIONS_KEPT = 64
"""Conditions whose files are remembered."""

_ZERO = ord("0")


@dataclass(frozen=True)
class _Judged:
    outcome: IndexOutcome
    keep: Mask | None = None


class Decider:
    """Answers the requests of one Spark application; safe to use from several threads."""

    def __init__(self) -> None:
        """Begin without bases: nothing is skipped."""
        self.counting = Counting()
        self._bases: tuple[tuple[str, ParquetKeys | None], ...] = ()
        self._catalogs: dict[tuple[str, ...], IndexCatalog] = {}
        self._matches: RecentlyUsed[tuple[int, bytes], tuple[FileTable, Matched]] = RecentlyUsed(
            LISTINGS_KEPT
        )
        self._listings: RecentlyUsed[bytes, Listing] = RecentlyUsed(LISTINGS_KEPT)
        self._evaluations: RecentlyUsed[
            tuple[int, SkippingDefinition, Predicate], tuple[FileTable, Evaluation]
        ] = RecentlyUsed(EVALUATIONS_KEPT)
        self._traces: dict[str, list[RelationOutcome]] = {}
        self._told: set[str] = set()
        self._lock = threading.Lock()

    def add_bases(self, uris: Sequence[str], keys: ParquetKeys | None = None) -> None:
        """Look for indexes below these folders, too.

        Raises:
            StorageError: no store is known for a URI's scheme.
        """
        for uri in uris:
            open_base(uri, keys)
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
                self._tell(f"the skipping index {problem.uri} is not used: {problem.message}")
            return bool(found.indexes)
        except Exception as error:  # noqa: BLE001 -- no query fails by an index (trap 14)
            self._fail(error)
            return False

    def __call__(self, text: str) -> str | None:
        """Answer a request: one sign a file, or None to keep all."""
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
        else:
            trace.append(outcome)
        if settings.is_evaluated_only or not any(each.keep is not None for each in judged):
            return None
        return (keep.view(np.uint8) + _ZERO).tobytes().decode("ascii")

    def _judge(
        self, request: Request, listing: Listing, settings: SkippingSettings, is_traced: bool
    ) -> tuple[list[_Judged], tuple[str, ...], str]:
        if not settings.is_enabled:
            return [], (f"{settings.switched_off_by} is false",), ""
        unusable = fingerprint.unusable(request.header)
        if unusable:
            return [], (unusable,), ""
        predicate = normal_form(
            catalyst.predicate(request.filters, fingerprint.columns(request.header))
        )
        catalog = self._catalog(settings)
        found = catalog.find(request.targets)
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
        outcome = IndexOutcome(
            pinned.store.uri,
            pinned.definition.target.table or pinned.definition.target.uri,
            tuple(index.label for index in pinned.definition.indexes),
        )
        definition, unused = usable_part(pinned.definition, request)
        outcome = replace(outcome, unused=unused)
        if not definition.indexes:
            return _Judged(outcome)
        files = catalog.files(pinned)
        if isinstance(files, Problem):
            self._tell(f"the skipping index {files.uri} is not used: {files.message}")
            return _Judged(replace(outcome, unused=(*unused, files.message)))
        matched = self._matched(files, request, listing)
        keep = matched.keep(self._evaluated(predicate, definition, files).keep)
        outcome = replace(
            outcome,
            is_used=True,
            stale=matched.stale,
            missing=matched.missing,
            dropped=int(len(keep) - np.count_nonzero(keep)),
            clauses=_clauses(predicate, definition, files, matched) if is_traced else (),
        )
        return _Judged(outcome, keep)

    def _matched(self, files: FileTable, request: Request, listing: Listing) -> Matched:
        # The table is kept beside, so that its id is nobody else's.
        _, matched = self._matches.get(
            (id(files), request.digest), lambda: (files, match(files, listing))
        )
        return matched

    def _evaluated(
        self, predicate: Predicate, definition: SkippingDefinition, files: FileTable
    ) -> Evaluation:
        _, evaluation = self._evaluations.get(
            (id(files), definition, predicate),
            lambda: (files, evaluate(predicate, definition, files)),
        )
        return evaluation

    def _catalog(self, settings: SkippingSettings) -> IndexCatalog:
        given = dict(self._bases)
        uris = tuple(dict.fromkeys((*given, *settings.locations)))
        with self._lock:
            if uris in self._catalogs:
                return self._catalogs[uris]
        opened = []
        for uri in uris:
            try:
                opened.append(open_base(uri, given.get(uri)))
            except Exception as error:  # noqa: BLE001 -- another location may well be right
                self._tell(f"no skipping index of {uri} is used: {_told(error)}")
        catalog = IndexCatalog(opened)
        with self._lock:
            return self._catalogs.setdefault(uris, catalog)

    def _fail(self, error: Exception) -> None:
        message = f"{type(error).__name__}: {_told(error)}"
        self.counting.fail(message)
        self._tell(f"deciding which files to skip failed, so every file is read: {message}")

    def _tell(self, message: str) -> None:
        with self._lock:
            is_new = message not in self._told
            self._told.add(message)
        if is_new:
            _log.warning("%s", message)


def usable_part(
    definition: SkippingDefinition, request: Request
) -> tuple[SkippingDefinition, tuple[str, ...]]:
    """The indexes that can speak for files that are read as a request says, and why others cannot.

    A column whose values come from paths here and from the files there, or the other way round, is
    not the same column although it has the same name. In a table the catalog says what values the
    files of a partition have, and may say otherwise tomorrow of the same files.
    """
    now = fingerprint.fingerprint(request.header)
    differing = fingerprint.differences(definition.fingerprint, now)
    foreign = [each for each in differing if not each.is_for_expressions]
    if foreign:
        reasons = tuple(f"the reader has changed: {each}" for each in foreign)
        return replace(definition, indexes=()), reasons
    partitions = {name for name, _ in definition.partition_columns}
    unusable = {
        **dict.fromkeys(partitions if request.header.get("table") else (), _OF_THE_CATALOG),
        **dict.fromkeys(request.partition_names ^ partitions, "comes from paths or from files"),
    }
    whys = {index: _why_not(index, unusable, differing) for index in definition.indexes}
    usable = tuple(index for index, why in whys.items() if not why)
    unused = tuple(f"{index.label}: {why}" for index, why in whys.items() if why)
    return (replace(definition, indexes=usable) if unused else definition), unused


_OF_THE_CATALOG = "is a partition column of a table, whose partitions Spark prunes by itself"


def _why_not(
    index: IndexDefinition,
    unusable: Mapping[str, str],
    differing: Sequence[fingerprint.Difference],
) -> str:
    for name in sorted({name for term in index.terms for name in root_names(term)}):
        if name in unusable:
            return f"{name} {unusable[name]}"
    if differing and any(term.names is None for term in index.terms):
        return f"the reader has changed: {differing[0]}"
    return ""


def _clauses(
    predicate: Predicate, definition: SkippingDefinition, files: FileTable, matched: Matched
) -> tuple[ClauseOutcome, ...]:
    outcomes = []
    for part in conjuncts(predicate):
        evaluation = evaluate(part, definition, files)
        keep = matched.keep(evaluation.keep)
        dropped = int(len(keep) - np.count_nonzero(keep))
        (report,) = evaluation.clauses
        hints = () if report.served_by else tuple(dict.fromkeys(_hints(part)))
        outcomes.append(ClauseOutcome(report.text, report, dropped, hints))
    return tuple(outcomes)


def _hints(predicate: Predicate) -> Iterator[str]:
    match predicate:
        case And(parts) | Or(parts):
            for part in parts:
                yield from _hints(part)
        case Constant() | Not() | Unknown():
            return
        case leaf:
            yield hint_of(leaf.term)


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


def why_idle(state: StoredState) -> str:
    """Why no query uses an index; empty if queries do, or if there is none."""
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


def _nothing_found(catalog: IndexCatalog) -> str:
    places = ", ".join(base.uri for base in catalog.bases)
    return f"no skipping index of these files in {places}" if places else "no location of indexes"


def _told(error: Exception) -> str:
    return getattr(error, "message", "") or str(error)
