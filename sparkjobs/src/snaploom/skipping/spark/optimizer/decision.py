"""Files that a query may leave out: from the optimizer rule's request to its answer."""

import logging
import textwrap
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa

from snaploom.errors import SkippingError
from snaploom.models.skippingindex import IndexState
from snaploom.skipping.core.definition import IndexDefinition, SkippingDefinition
from snaploom.skipping.core.filetable import (
    FileTable,
    Listing,
    Mask,
    Matched,
    match,
    tags_of_dropped,
)
from snaploom.skipping.core.predicates import Predicate, normal_form, predicate_text
from snaploom.skipping.formats.parquetfiles import ParquetKeys, open_keys
from snaploom.skipping.indexes.base import Evaluation, evaluate
from snaploom.skipping.spark.optimizer import usage
from snaploom.skipping.spark.optimizer.requests import (
    FORGOTTEN,
    Known,
    Request,
    SkippingSettings,
    known_of,
)
from snaploom.skipping.spark.optimizer.translation import catalyst
from snaploom.skipping.spark.optimizer.translation.conditions import indexed_conditions, root_names
from snaploom.skipping.spark.optimizer.usage import IndexOutcome, clauses_of, labels_of
from snaploom.skipping.spark.relations import fingerprint
from snaploom.skipping.spark.relations.hadoop import with_local_tags
from snaploom.skipping.stores.catalog import (
    IndexCatalog,
    PinnedIndex,
    Problem,
    open_base,
    with_above,
)
from snaploom.skipping.stores.port import NEVER, IndexStore, StoredState
from snaploom.spark.hadoopstore import hadoop_stores

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
"""Listings that are remembered, and matched with indexes: as many tables as a session has."""
EVALUATIONS_KEPT = 64
"""Conditions whose files are remembered."""


@dataclass(frozen=True)
class Question:
    """A query's condition, as put to every index of its relation."""

    request: Request
    listing: Listing
    predicate: Predicate
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
            pinned.definition.target.label,
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
        self._catalogs.add_bases(uris, keys)

    @property
    def bases(self) -> tuple[str, ...]:
        return self._catalogs.bases

    def forget(self) -> None:
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
        if not request.body:  # the files were sent with an earlier request
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
