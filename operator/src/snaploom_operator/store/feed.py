"""Keeps the store in step with the cluster: lists of everything, and what watches report.

kopf watches; it reports neither the end of its first list nor what vanished while a watch was away.
So everything is listed at the start and in each resync. A list that finds what no watch reports
afterwards proves that a watch is dead, and ends the process. Known versions requeue nothing, so
that a restart among thousands of unchanged resources writes nothing.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import cache

from pydantic import JsonValue

from snaploom.models.common import GROUP
from snaploom.models.kinds import KIND_BY_NAME, KINDS
from snaploom.models.run import Submitter
from snaploom.models.schemas import crd_name, structural_schema
from snaploom_operator import objects
from snaploom_operator.cluster import port
from snaploom_operator.errors import ClusterError, ResourceUnknown
from snaploom_operator.store.store import NOTHING, Store
from snaploom_operator.submit.applications import ApplicationForm

_log = logging.getLogger(__name__)

OF_RUNS = objects.LABEL_OWNER
"""Selects objects with the label, of any value."""
DRIVERS = f"{objects.LABEL_OWNER},spark-role=driver"
JITTER = 0.2
"""Random share of the resync interval, so that processes do not resync simultaneously."""
TURN_SECONDS = 0.02
"""Seconds of parsing after which the event loop runs other tasks: some 50 objects, or a single one
that is hard to parse."""
WATCH_LAG_SECONDS = 100.0
"""Seconds in which a watch must report what a list found: longer than kopf takes to notice a silent
connection (70), and to retry after an outage (13)."""
QUIET_SECONDS = 2.0
"""Seconds without a line of a watch, from which a change that a list found counts as missed."""
FIRST_RETRY_SECONDS = 0.5
LONGEST_RETRY_SECONDS = 15.0
"""Seconds before a failed first list is retried."""


@dataclass(frozen=True)
class Watched:
    """One kind that is watched."""

    resource: port.ApiResource
    selector: str = ""
    """Label selector, which the API server applies."""
    submitter: Submitter | None = None
    """The submitter of these applications, whose kind is optional."""
    is_optional: bool = False
    """True if the cluster may do without the kind."""

    @property
    def key(self) -> str:
        return objects.kind_key(self.resource.group, self.resource.kind)


DECLARATIONS = tuple(Watched(resource) for resource in port.OURS.values())
"""The kinds of declarations, in the order of dependence: all that the webhook watches."""


def watched_kinds(
    forms: Iterable[ApplicationForm], *, is_namespaced: bool, has_kueue: bool
) -> tuple[Watched, ...]:
    """Every kind to watch, declarations first, in the order of dependence.

    With permissions in single namespaces only, Namespaces themselves are not watched: a terminating
    one is noticed by a refused write.
    """
    applications = (
        Watched(form.resource, OF_RUNS, form.submitter, is_optional=True)
        for form in forms
        if form.resource != port.CONFIG_MAPS
    )
    return (
        *(() if is_namespaced else (Watched(port.NAMESPACES),)),
        *DECLARATIONS,
        Watched(port.CONFIG_MAPS, OF_RUNS),
        *applications,
        Watched(port.PODS, DRIVERS),
        *((Watched(port.WORKLOADS, OF_RUNS, is_optional=True),) if has_kueue else ()),
    )


class Feed:
    """Fills the store with the objects of some namespaces; none named: of all.

    `on_change` receives the resources to reconcile, once everything was listed; `on_watch` the kind
    of a watch that started; `on_missed` a kind, and how many changes of it only a list found.
    """

    def __init__(
        self,
        store: Store,
        cluster: port.Cluster,
        kinds: Iterable[Watched],
        namespaces: Iterable[str],
        clock: Callable[[], float],
        *,
        on_change: Callable[[Iterable[objects.Ref]], None] = lambda woken: None,
        submitters: Iterable[Submitter] = (),
        on_watch: Callable[[str], None] = lambda kind: None,
        on_missed: Callable[[str, int], None] = lambda kind, changes: None,
    ) -> None:
        self.kinds = tuple(kinds)
        self.namespaces = tuple(namespaces)
        self._store = store
        self._cluster = cluster
        self._clock = clock
        self._on_change = on_change
        self._submitters = frozenset(submitters)
        self._on_watch = on_watch
        self._on_missed = on_missed
        self._heard: dict[tuple[str, str | None], float] = {}
        """By kind and namespace, None for all: each has a watch of its own."""
        self._versions: dict[tuple[str, str | None], str] = {}
        """Of the first lists, from which watches start; empty of those that have."""
        self._absent: set[str] = set()
        self._unreported: set[objects.Ref] = set()
        self._is_due = asyncio.Event()

    @property
    def is_synced(self) -> bool:
        """True once every kind was listed."""
        return self._store.is_synced

    @property
    def size(self) -> int:
        return len(self._store.refs())

    @property
    def age(self) -> float:
        """Seconds since the slowest watch was heard; 0 before the first list."""
        return max(self.ages().values(), default=0.0)

    def ages(self) -> dict[str, float]:
        """Seconds since the last list, event or bookmark of each installed kind."""
        now, ages = self._clock(), dict[str, float]()
        for (key, _), at in self._heard.items():
            if key not in self._absent:
                ages[key] = max(ages.get(key, 0.0), now - at)
        return ages

    def hear(self, group: str, plural: str, namespace: str | None, *, is_new: bool) -> None:
        """Take note that a watch of a kind, in a namespace or all, received a line or began."""
        key = self._key(group, plural)
        if not key:
            return
        self._heard[key, namespace] = self._clock()
        if key in self._absent:
            self._is_due.set()  # the kind was installed: its submitter is usable now
        if is_new:
            self._on_watch(key)

    def take_version(self, group: str, plural: str, namespace: str | None) -> str:
        """The version of the first list of a kind for its first watch; empty if there is none.

        The store holds all that there was then, so that a watch from there misses nothing. One that
        starts again has seen more, and must not show the past again.
        """
        key = (self._key(group, plural), namespace)
        version = self._versions.get(key, "")
        self._versions[key] = ""
        return version

    def _key(self, group: str, plural: str) -> str:
        """Key of a kind; empty of what is not followed here."""
        meant = (group, plural)
        found = (one for one in self.kinds if (one.resource.group, one.resource.plural) == meant)
        return next((one.key for one in found), "")

    def take(self, stored: objects.JsonObject, *, is_deleted: bool) -> None:
        """Put what a watch reported into the store, and requeue whom it concerns."""
        metadata = stored.get("metadata")
        if isinstance(metadata, dict):
            metadata.pop("managedFields", None)  # half of an object, and costly to parse
        ref = objects.ref_of(stored)
        self._unreported.discard(ref)
        if is_deleted:
            woken = self._store.remove(ref, objects.text_in(objects.metadata_of(stored), "uid"))
        else:
            woken = self._store.put(stored)
        if self._store.is_synced:
            self._on_change(woken)

    async def list_all(self, *, needs_all: bool = True) -> None:
        """List everything; with `needs_all`, missing kinds are an error, but for optional ones.

        The first time every resource is requeued; later changed ones, and those with a run.

        Raises:
            ClusterError: a list failed, or our kinds are not installed.
        """
        for watched in self.kinds:
            for namespace in self.namespaces or (None,):
                try:
                    await self._list(watched, namespace)
                except ResourceUnknown:
                    if needs_all and not watched.is_optional:
                        raise
                    self._absent.add(watched.key)
                    self._remove(ref for ref, _, _ in self._known(watched, namespace))
        installed = {each.submitter for each in self.kinds if each.key not in self._absent}
        optional = {each.submitter for each in self.kinds if each.submitter is not None}
        available = self._submitters - (optional - installed)
        self._wake(self._store.set_available(available))
        if not self._store.is_synced:
            self._store.is_synced = True
            self._on_change(self._store.refs())
        self._on_change(self._store.queue.all)

    async def follow(self, interval: float) -> None:
        """List until it succeeds, and resync from then on: for a process that waits for nothing.

        Raises:
            ClusterError: a watch reports no changes.
        """
        pause = FIRST_RETRY_SECONDS
        while not self.is_synced:
            try:
                await self.list_all(needs_all=False)
            except ClusterError as error:
                _log.warning("cannot list: %s", error.message)
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))
                pause = min(pause * 2, LONGEST_RETRY_SECONDS)
        await self.resync(interval)

    async def resync(self, interval: float) -> None:
        """List every `interval` seconds, and when a kind was installed, until cancelled.

        Raises:
            ClusterError: a watch reports no changes.
        """
        while True:
            with suppress(TimeoutError):
                pause = interval * (1 + JITTER * random.uniform(-1, 1))
                await asyncio.wait_for(self._is_due.wait(), pause)
            self._is_due.clear()
            self._unreported.clear()
            try:
                await self.list_all(needs_all=False)
            except ClusterError as error:
                _log.warning("resync failed: %s", error.message)
            await self._require_reports()

    async def _require_reports(self) -> None:
        deadline = self._clock() + WATCH_LAG_SECONDS
        while self._unreported:
            if self._clock() >= deadline:
                kind = min(self._unreported).kind
                raise ClusterError(
                    f"the watch of {kind} reports no changes",
                    hint="nothing: the pod starts again; if it repeats, check the network to the "
                    "API server",
                )
            await asyncio.sleep(min(1.0, WATCH_LAG_SECONDS / 10))

    async def _list(self, watched: Watched, namespace: str | None) -> None:
        """List one kind page by page, since raw objects take much memory."""
        listed: set[objects.Ref] = set()
        version = ""
        missed = 0
        turn = time.perf_counter()
        pages = self._cluster.pages(
            watched.resource, namespace=namespace, selector=watched.selector
        )
        async with aclosing(pages):
            async for page in pages:
                version = page.resource_version
                if page.is_first:
                    listed.clear()
                for stored in page.items:
                    listed.add(objects.ref_of(stored))
                    missed += self._put_listed(stored)
                    if time.perf_counter() - turn > TURN_SECONDS:
                        await asyncio.sleep(0)
                        turn = time.perf_counter()
        self._absent.discard(watched.key)
        key = (watched.key, namespace)
        if not self._store.is_synced and self._versions.get(key) != "":
            self._versions[key] = version
        silent = self._clock() - self._heard.setdefault(key, self._clock())
        newest = objects.version_of({"metadata": {"resourceVersion": version}})
        vanished = [
            ref
            for ref, known, _ in self._known(watched, namespace)
            if ref not in listed and known <= newest
        ]
        self._remove(vanished)
        missed += len(vanished)
        is_missed = missed and silent > QUIET_SECONDS  # or the watch is about to report it
        if self._store.is_synced and is_missed:
            self._on_missed(watched.key, missed)
            _log.info("a list of %s found %d missed changes", watched.key, missed)

    def _put_listed(self, stored: objects.JsonObject) -> bool:
        """Put one object of a list into the store; whether it was not known."""
        if self._store.is_known(stored):
            return False
        if self._store.is_synced:
            self._unreported.add(objects.ref_of(stored))
        self._wake(self._store.put(stored))
        return True

    def _remove(self, refs: Iterable[objects.Ref]) -> None:
        for ref in tuple(refs):
            self._unreported.discard(ref)
            self._wake(self._store.remove(ref))

    def _known(
        self, watched: Watched, namespace: str | None
    ) -> Iterable[tuple[objects.Ref, int, str]]:
        known = self._store.known_refs(watched.key)
        return (each for each in known if namespace in (None, each[0].namespace))

    def _wake(self, woken: Iterable[objects.Ref]) -> None:
        if self._store.is_synced:
            self._on_change(woken)


LISTED = 5
"""Fields in a message; the others are counted."""
UPDATE = "snaploom crds | kubectl apply --server-side --force-conflicts -f -"

_KEEPS_ALL = "x-kubernetes-preserve-unknown-fields"


async def compare_kinds(cluster: port.Cluster, store: Store) -> frozenset[objects.Ref]:
    """Note in the store which served kinds are outdated; the resources to reconcile.

    A failure leaves what was found before: it is logged, and the next call tries again.
    """
    try:
        served = await cluster.schemas()
    except ClusterError as error:
        _log.warning(
            "cannot compare the CustomResourceDefinitions of %s with this version: %s; fields that "
            "they lack would be dropped unnoticed",
            GROUP,
            error.message,
        )
        return NOTHING
    found = await asyncio.to_thread(outdated_kinds, served)
    for kind in sorted(found.keys() | store.outdated.keys()):
        if kind not in found:
            _log.info("%s: the CustomResourceDefinition is not outdated any more", kind)
        elif found[kind] != store.outdated.get(kind):
            _log.warning("%s: %s", kind, found[kind])
    return store.set_outdated(found)


def outdated_kinds(served: Mapping[str, objects.JsonObject]) -> dict[str, str]:
    """Faults of outdated CustomResourceDefinitions, by kind; the others are left out."""
    found = {}
    for kind in served.keys() & KIND_BY_NAME.keys():
        fields = sorted(_dropped(_known()[kind], served[kind], ""))
        if fields:
            more = f" and {len(fields) - LISTED} more" if len(fields) > LISTED else ""
            found[kind] = (
                f"{crd_name(KIND_BY_NAME[kind])} is older than the operator: the API server drops "
                f"{', '.join(fields[:LISTED])}{more}, and no run is started; update it with "
                f"`{UPDATE}` or the chart's crds.enabled, then apply again what has such fields"
            )
    return found


@cache
def _known() -> dict[str, objects.JsonObject]:
    """The schemas of this version: spec and status, a quarter of a second's work."""
    return {kind.name: structural_schema(kind.model, ("spec", "status")) for kind in KINDS}


def _dropped(known: objects.JsonObject, served: objects.JsonObject, path: str) -> Iterator[str]:
    """Paths of fields that a schema has and another drops, the outermost ones only."""
    if served.get(_KEEPS_ALL) is True:
        return
    others = served.get("additionalProperties")
    if known.get(_KEEPS_ALL) is True or (known.get("additionalProperties") and not others):
        yield f"{path}.*"
    of_served = objects.mapping_in(served, "properties")
    for name, schema in objects.mapping_in(known, "properties").items():
        field = f"{path}.{name}" if path else name
        if name in of_served or others:
            yield from _both(schema, of_served.get(name, others), field)
        else:
            yield field
    yield from _both(known.get("items"), served.get("items"), f"{path}[]")
    yield from _both(known.get("additionalProperties"), others, f"{path}.*")


def _both(known: JsonValue, served: JsonValue, path: str) -> Iterator[str]:
    if isinstance(known, Mapping) and isinstance(served, Mapping):
        yield from _dropped(known, served, path)
