"""Bases that hold the skipping indexes of many targets, and what they have for a query."""

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol, cast

from snaploom.errors import SkippingError
from snaploom.files.objectstore import ObjectStore
from snaploom.files.stores import StoreOpener, UnsupportedStore, open_store
from snaploom.skipping.core.definition import SkippingDefinition
from snaploom.skipping.core.filetable import FileTable
from snaploom.skipping.formats.parquetfiles import ParquetKeys
from snaploom.skipping.stores import folder
from snaploom.skipping.stores.port import NOTHING, IndexStore, StoredState, target_key

# Time limit of stores: short while a query is planned, since reading all files is safe.

WAITING_SECONDS = 10.0
"""Longest time for one answer of a remote store while somebody waits."""

_IS_AWAITED: ContextVar[bool] = ContextVar("is_awaited", default=False)


@contextmanager
def while_somebody_waits() -> Iterator[None]:
    """Let stores asked in this block, by this thread, give up early."""
    before = _IS_AWAITED.set(True)
    try:
        yield
    finally:
        _IS_AWAITED.reset(before)


def somebody_waits() -> bool:
    """Whether the store should fail soon rather than succeed late."""
    return _IS_AWAITED.get()


# Bases: places that hold the skipping indexes of many targets, and how they are opened.

ENTRY_POINTS = "snaploom.skipping.stores"
"""Entry-point group: the name is the URI's scheme, the value a `BaseOpener`."""

LOCATIONS = "spark.snaploom.skipping.locations"
"""Folders below which indexes are, separated by commas, beside those given to `enable`."""
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_STATE = re.compile(r"([0-9a-f]{64})/manifest/\d{20}\.json")


def locations_in(value: object) -> tuple[str, ...]:
    """Locations in the value of `spark.snaploom.skipping.locations`."""
    parts = (part.strip() for part in str(value or "").split(","))
    return tuple(dict.fromkeys(part for part in parts if part))


class IndexBase(Protocol):
    """A place that holds skipping indexes."""

    @property
    def uri(self) -> str:
        """URI for people and logs; no secrets in it."""

    def index(self, target_uri: str) -> IndexStore:
        """The store of a target's index, existing or not; no call goes out."""

    def indexes(self) -> list[IndexStore]:
        """Stores of all indexes, dropped ones included.

        Raises:
            StorageError: the base cannot be listed.
        """


BaseOpener = Callable[[str, ParquetKeys | None], IndexBase]
"""From a URI and keys to a base."""


class FolderBase:
    """A folder of an object store with one folder for each index (rule S24)."""

    def __init__(self, store: ObjectStore, keys: ParquetKeys | None = None) -> None:
        self._store = store
        self._keys = keys
        self._opened: dict[str, IndexStore] = {}

    @property
    def uri(self) -> str:
        return self._store.uri

    def index(self, target_uri: str) -> IndexStore:
        """The store of a target's index; the same object each time, because it caches."""
        return self._open(target_key(target_uri))

    def indexes(self) -> list[IndexStore]:
        matches = (_STATE.fullmatch(info.key) for info in self._store.list(""))
        names = sorted({match[1] for match in matches if match})
        return [self._open(name) for name in names]

    def _open(self, name: str) -> IndexStore:
        place = f"{name}/"
        store: IndexStore = folder.FolderIndexStore(self._store, place, self._keys)
        for form in folder.registered_forms().values():
            store = form.store(store, self._store, place, self._keys)
        return self._opened.setdefault(name, store)


def open_base(
    uri: str, keys: ParquetKeys | None = None, others: StoreOpener | None = None
) -> IndexBase:
    """Open the base at a URI; `others` opens folders only Hadoop's client knows (rule P6)."""
    match = _SCHEME.match(uri)
    scheme = match[1].lower() if match is not None else ""
    openers = {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}
    if scheme in openers:
        return _loaded(openers[scheme])(uri, keys)
    if folder.is_opensearch(uri):
        raise _not_installed(scheme, "no package that registers the scheme")
    return FolderBase(open_store(uri, create=False, others=others), keys)


def _loaded(entry: EntryPoint) -> BaseOpener:
    try:
        return cast(BaseOpener, entry.load())
    except ImportError as failure:
        raise _not_installed(entry.name, str(failure)) from failure


def _not_installed(scheme: str, found: str) -> UnsupportedStore:
    return UnsupportedStore(
        f"skipping indexes cannot be kept in {scheme}: here",
        found=found,
        expected=f"a store in the entry-point group {ENTRY_POINTS}, and what it needs",
        hint=f"pip install 'snaploom[{scheme}]', or the package that registers {scheme}:",
    )


# Catalog of the skipping indexes of a query's relations; asked at each planning, so cheap.

BELIEVED_SECONDS = 3.0
"""Time for which a state is believed: what another process commits is seen after that."""

OUTAGE_SECONDS = 30.0
"""Time for which a silent place is not asked again: queries wait once, not each of them."""

_ROOTED = re.compile(r"((?:[A-Za-z][A-Za-z0-9+.-]*:)?(?://[^/]*)?)(/.*)?", re.DOTALL)


@dataclass(frozen=True)
class PinnedIndex:
    """An index in the state that the catalog read."""

    store: IndexStore
    state: StoredState
    """Its state; `may_skip` holds."""
    definition: SkippingDefinition


@dataclass(frozen=True)
class Problem:
    """An index that cannot be used."""

    uri: str
    message: str
    """Reason: `unreadable: ...`."""


@dataclass(frozen=True)
class Found:
    """Indexes and problems of some targets."""

    indexes: tuple[PinnedIndex, ...] = ()
    """Indexes that queries may use: nearest target first, bases in their order."""
    problems: tuple[Problem, ...] = ()
    """Indexes that are there and cannot be used."""


@dataclass(frozen=True)
class _Seen:
    at: float
    commits: int
    state: StoredState
    problem: str = ""


class IndexCatalog:
    """Finds indexes below one base or several; safe to use from several threads."""

    def __init__(
        self,
        bases: Sequence[IndexBase],
        *,
        clock: Callable[[], float] = time.monotonic,
        believed_seconds: float = BELIEVED_SECONDS,
    ) -> None:
        self._bases = tuple(bases)
        self._clock = clock
        self._believed_seconds = believed_seconds
        self._lock = threading.RLock()
        self._seen: dict[str, _Seen] = {}
        self._files: dict[str, tuple[object, FileTable]] = {}
        self._outages: dict[str, tuple[float, str]] = {}

    @property
    def bases(self) -> tuple[IndexBase, ...]:
        return self._bases

    def find(self, target_uris: Iterable[str]) -> Found:
        """Indexes of targets and of every folder above them."""
        indexes: list[PinnedIndex] = []
        problems: list[Problem] = []
        for uri in dict.fromkeys(above for target in target_uris for above in with_above(target)):
            for base in self._bases:
                if self._outage(base.uri):
                    continue
                store = base.index(uri)
                seen = self._look(store, base)
                definition = seen.state.definition
                if seen.problem and not self._outage(base.uri):
                    problems.append(Problem(store.uri, seen.problem))
                elif definition is not None and seen.state.may_skip:
                    indexes.append(PinnedIndex(store, seen.state, definition))
        outages = ((base.uri, self._outage(base.uri)) for base in self._bases)
        problems += [Problem(place, outage) for place, outage in outages if outage]
        return Found(tuple(indexes), tuple(problems))

    def files(self, pinned: PinnedIndex) -> FileTable | Problem:
        """The rows of an index, kept for the next query; or why they cannot be read."""
        store, definition = pinned.store, pinned.definition
        rows = (pinned.state.segments, definition.indexes)
        with self._lock:
            kept = self._files.get(store.uri)
        if kept is not None and kept[0] == rows:
            return kept[1]
        outage = self._outage(store.uri)
        if outage:
            return Problem(store.uri, outage)
        try:
            with while_somebody_waits():
                files = store.open(pinned.state)
        except Exception as error:  # noqa: BLE001 # the query goes on whatever happens (rule S14)
            return Problem(store.uri, self._failed(store.uri, error))
        with self._lock:
            self._files[store.uri] = (rows, files)
        return files

    def forget(self) -> None:
        with self._lock:
            self._seen.clear()
            self._files.clear()
            self._outages.clear()

    def _outage(self, place: str) -> str:
        with self._lock:
            at, message = self._outages.get(place, (0.0, ""))
            return message if message and self._clock() - at < OUTAGE_SECONDS else ""

    def _failed(self, place: str, error: Exception) -> str:
        """Remember a place that did not answer; damage costs no time to look at again."""
        message = f"unreadable: {_message(error)}"
        if isinstance(error, SkippingError) and error.retryable:
            with self._lock:
                self._outages[place] = (self._clock(), message)
        return message

    def _look(self, store: IndexStore, base: IndexBase) -> _Seen:
        at, commits = self._clock(), folder.commits_noted(store.uri)
        with self._lock:
            seen = self._seen.get(store.uri)
        is_fresh = seen is not None and at - seen.at < self._believed_seconds
        if seen is not None and is_fresh and seen.commits == commits:
            return seen
        try:
            with while_somebody_waits():
                seen = _Seen(at, commits, store.read())
        except Exception as error:  # noqa: BLE001 # as above
            seen = _Seen(at, commits, NOTHING, self._failed(base.uri, error))
        with self._lock:
            self._seen[store.uri] = seen
        return seen


def with_above(uri: str) -> list[str]:
    """A path and every folder above it, nearest first: `file:/a/b`, `file:/a`, `file:/`."""
    match = _ROOTED.fullmatch(uri)
    root, path = (match[1], match[2] or "") if match else ("", uri)
    names = [name for name in path.split("/") if name]
    found = [f"{root}/{'/'.join(names[:count])}" for count in range(len(names), 0, -1)]
    return [*found, f"{root}/"]


def _message(error: Exception) -> str:
    return getattr(error, "message", "") or str(error) or type(error).__name__
