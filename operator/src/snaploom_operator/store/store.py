"""The cache of cluster objects, and which resources to reconcile when one changes.

Objects are parsed once, when they arrive (rule R11); one that cannot be read is kept as such, so
that it ends neither a list nor a watch, and nothing but itself. An outdated event, because a list
or our own write was faster, costs a comparison of its resourceVersion. Nothing here awaits, so that
reads between two `await`s are consistent.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice

import networkx as nx

from snaploom.confidential import visible
from snaploom.loading.nearmisses import Guesses
from snaploom.models.common import Resource, ResourceStatus
from snaploom.models.datasource import DataSource, LastSeen
from snaploom.models.kinds import KIND_BY_NAME
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.run import CurrentPhase, CurrentRun, Submitter
from snaploom.models.skippingindex import SkippingIndex
from snaploom.validate.outputs import places_of
from snaploom_operator import objects
from snaploom_operator.conditions import ConditionType, Reason
from snaploom_operator.decision import Unparsable
from snaploom_operator.queues import RunQueue
from snaploom_operator.settings import Limits
from snaploom_operator.store.entries import (
    Child,
    ChildReader,
    Entry,
    read_entry,
    read_folders,
    references_of,
    take_seen,
)
from snaploom_operator.submit.applications import ApplicationForm

_log = logging.getLogger(__name__)

NOTHING: frozenset[objects.Ref] = frozenset()
NAMESPACE_KIND = "Namespace"
TERMINATING = "Terminating"

_MOST_STALLED = 64
"""Stalled resources of a namespace that a new name is compared with: the event loop does it."""
_MOST_COMPARED = 40_000
"""Pairs of characters that these comparisons take: 100 names of 20 characters, in milliseconds."""

_LONGEST_TROUBLE = 300
"""Characters of a log line about an object that cannot be read: it may quote what it has."""


class Store:
    """The cache of our resources and of their runs' objects."""

    def __init__(self, forms: Iterable[ApplicationForm] = (), limits: Limits | None = None) -> None:
        self.is_synced = False
        """True once everything was listed; nothing is decided before."""
        self.queue = RunQueue(limits or Limits())
        self.available: frozenset[Submitter] = frozenset()
        """Submitters that are allowed here and whose kind the cluster has."""
        self.outdated: Mapping[str, str] = {}
        """Kinds whose CustomResourceDefinition is older than this operator, and the details."""
        self._reader = ChildReader(forms)
        self._entries: dict[objects.Ref, Entry] = {}
        self._by_uid: dict[str, objects.Ref] = {}
        self._in_namespace: defaultdict[str, dict[objects.Ref, None]] = defaultdict(dict)
        self._graph = nx.DiGraph()
        """From each resource to what it refers to, whether that exists or not."""
        # A hundred thousand nodes and edges without attributes share one mapping.
        nothing: dict[str, object] = {}
        self._graph.edge_attr_dict_factory = lambda: nothing
        self._graph.node_attr_dict_factory = lambda: nothing
        self._stalled: defaultdict[str, set[objects.Ref]] = defaultdict(set)
        """By namespace: resources that stall for a missing reference."""
        self._name_changes: Counter[tuple[str, str]] = Counter()
        """Names that were added or removed, by namespace and kind."""
        self.declared_changes: Counter[str] = Counter()
        """Changes of the declarations of each namespace, which references never leave."""
        self._folders: defaultdict[str, Folders] = defaultdict(Folders)
        self._children: dict[objects.Ref, Child] = {}
        self._children_of: defaultdict[str, dict[objects.Ref, None]] = defaultdict(dict)
        self._unreadable: dict[objects.Ref, None] = {}
        self._last_seen: dict[objects.Ref, LastSeen] = {}
        self._namespaces: dict[str, int] = {}
        self.terminating: set[str] = set()
        """Namespaces that are being deleted."""

    # Writes

    def is_known(self, stored: objects.JsonObject) -> bool:
        """Return whether this version of an object, or a newer one, is cached."""
        return self._has(objects.ref_of(stored), objects.version_of(stored))

    def put(self, stored: objects.JsonObject) -> frozenset[objects.Ref]:
        """Add an object of any kind; the resources to reconcile, none if it is known."""
        ref, version = objects.ref_of(stored), objects.version_of(stored)
        if self._has(ref, version):
            return NOTHING
        if ref.kind == NAMESPACE_KIND:
            phase = objects.text_in(objects.mapping_in(stored, "status"), "phase")
            return self._put_namespace(ref.name, version, is_ending=phase == TERMINATING)
        if ref.kind in KIND_BY_NAME:
            before = self._entries.get(ref)
            return self._replaced(ref, before, read_entry(ref, version, stored, before))
        return self._put_child(ref, self._reader.read(ref, version, stored))

    def remove(self, ref: objects.Ref, uid: str = "") -> frozenset[objects.Ref]:
        """Remove a deleted object, unless recreated with another UID; the resources to reconcile.

        It is one of them, so that what is known of it is forgotten.
        """
        if ref.kind == NAMESPACE_KIND:
            self._namespaces.pop(ref.name, None)
            self.terminating.discard(ref.name)
            return NOTHING
        held = self._entries.get(ref) or self._children.get(ref)
        if held is None or (uid and held.uid != uid):
            return NOTHING
        if isinstance(held, Child):
            return self._put_child(ref, None)
        return self._replaced(ref, held, None)

    def claim(self, ref: objects.Ref, run: CurrentRun | None) -> frozenset[objects.Ref]:
        """Count a run as in flight before its status is written; the resources to reconcile.

        Two passes, of which each waits for its write, never start one run too many this way.
        Without a run, a claim that came to nothing is given back.
        """
        if ref.kind not in RUNNABLE:
            return NOTHING
        content = self.get(ref)
        is_begun = run is not None and run.phase is not CurrentPhase.QUEUED
        counted = run if is_begun else current_run(content)
        is_moved = self.queue.put(ref, counted, may_start=may_start(content))
        return self.queue.next() if is_moved else NOTHING

    def set_available(self, submitters: frozenset[Submitter]) -> frozenset[objects.Ref]:
        """Set the usable submitters; the resources to reconcile."""
        if submitters == self.available:
            return NOTHING
        self.available = submitters
        return frozenset(ref for ref in self._entries if ref.kind in RUNNABLE)

    def set_outdated(self, kinds: Mapping[str, str]) -> frozenset[objects.Ref]:
        """Set the outdated kinds (see `outdated`); the resources to reconcile."""
        if kinds == self.outdated:
            return NOTHING
        self.outdated = kinds
        return frozenset(self._entries)

    # Reads

    def entry(self, ref: objects.Ref) -> Entry | None:
        return self._entries.get(ref)

    def get(self, ref: objects.Ref) -> Resource | Unparsable | None:
        entry = self._entries.get(ref)
        return None if entry is None else entry.content

    def entries(self, refs: Iterable[objects.Ref]) -> tuple[Entry, ...]:
        """The entries that exist, in the order of keys."""
        found = (self._entries.get(ref) for ref in sorted(refs))
        return tuple(entry for entry in found if entry is not None)

    def references(self, ref: objects.Ref) -> frozenset[objects.Ref]:
        """The references of a resource; none if it does not exist."""
        entry = self._entries.get(ref)
        return NOTHING if entry is None else entry.references

    def refs(self, namespace: str | None = None) -> tuple[objects.Ref, ...]:
        """Every resource of ours; None for all namespaces."""
        return tuple(self._entries if namespace is None else self._in_namespace.get(namespace, ()))

    def names(self, namespace: str, kind: str) -> tuple[str, ...]:
        """Names of the resources of a kind in a namespace; thread-safe."""
        return tuple(ref.name for ref in self.refs(namespace) if ref.kind == kind)

    def name_changes(self, entry: Entry) -> int:
        """Count the changes of the names that the missing references of a resource may mean.

        Suggestions for misspelt names depend on them. 0 without a missing reference.
        """
        missing = {each.kind for each in entry.references if each not in self._entries}
        return sum(self._name_changes[entry.ref.namespace, kind] for kind in missing)

    def resources(self) -> Iterator[tuple[objects.Ref, Resource | Unparsable]]:
        """All cached resources of ours, as of one moment; thread-safe."""
        for ref, entry in self._entries.copy().items():
            yield ref, entry.content

    def unreadable(self) -> Counter[str]:
        """Count the unreadable objects of each kind; thread-safe."""
        return Counter(ref.kind for ref in tuple(self._unreadable))

    def known_refs(self, kind: str) -> Iterator[tuple[objects.Ref, int, str]]:
        """Key, version and UID of every object of a kind, children included."""
        for entry in self._entries.values():
            if entry.ref.kind == kind:
                yield entry.ref, entry.version, entry.uid
        for child in self._children.values():
            if child.ref.kind == kind:
                yield child.ref, child.version, child.uid
        if kind == NAMESPACE_KIND:
            for name, version in self._namespaces.items():
                yield objects.Ref(NAMESPACE_KIND, "", name), version, ""

    def owner(self, uid: str) -> objects.Ref | None:
        """The resource with a UID."""
        return self._by_uid.get(uid)

    def referrers(self, ref: objects.Ref) -> frozenset[objects.Ref]:
        """The resources that refer to an object, whether it exists or not."""
        return frozenset(self._graph.predecessors(ref)) if ref in self._graph else NOTHING

    def dependants(self, ref: objects.Ref) -> frozenset[objects.Ref]:
        """The transitive referrers of an object.

        They include outputs that may read the files of another output.
        """
        if ref not in self._graph:
            return NOTHING
        edges = nx.generic_bfs_edges(
            self._graph, ref, lambda each: iter(self.referrers(each) | self._readers(each))
        )
        return frozenset(user for _, user in edges)

    def closure(self, ref: objects.Ref) -> tuple[Entry, ...]:
        """A resource and its transitive references, in the order of keys."""
        return self.entries({ref, *nx.descendants(self._graph, ref)} if ref in self._graph else ())

    def needed(self, ref: objects.Ref) -> tuple[Entry, ...]:
        """The entries that a resource needs, in the order of keys.

        A relationship names sources that an output may not read, and an index needs only the folder
        of an output: their references are not followed.
        """
        return self.entries(self._with_reads(self.references(ref)) - {ref})

    def related(self, ref: objects.Ref, starts: Iterable[objects.Ref]) -> tuple[Entry, ...]:
        """Some resources and their transitive references, without those of one, and without it."""
        graph = nx.restricted_view(self._graph, [ref], [])
        layers = nx.bfs_layers(graph, [each for each in starts if each in graph])
        return self.entries(chain.from_iterable(layers))

    def overlapping(self, output: OutputDataset) -> tuple[OutputDataset, ...]:
        """Outputs of the namespace whose places may overlap with those of one; itself included."""
        folders = self._folders_of(output)
        return self._outputs(folders.overlapping(output)) if folders else ()

    def outputs_read_by(self, sources: Iterable[DataSource]) -> tuple[OutputDataset, ...]:
        """Outputs of the same namespace whose files sources may read."""
        refs: set[objects.Ref] = set()
        for source in sources:
            folders = self._folders_of(source)
            refs |= folders.published_below(source) if folders else set()
        return self._outputs(refs)

    def upstream(
        self, output: OutputDataset
    ) -> tuple[tuple[OutputDataset, ...], tuple[DataSource, ...]]:
        """Outputs whose files one may read, directly or through others, and the sources of all.

        The output itself is included in a cycle.
        """
        outputs: dict[str, OutputDataset] = {}
        sources: dict[str, DataSource] = {}

        def read_by(name: str) -> Iterator[str]:
            read = self._sources_of(outputs.get(name, output))
            sources.update((source.name, source) for source in read)
            found = {each.name: each for each in self.outputs_read_by(read)}
            outputs.update(found)
            return iter(found)

        list(nx.generic_bfs_edges(self._graph, output.name, read_by))
        return (tuple(outputs.values()), tuple(sources.values())) if outputs else ((), ())

    def children(self, uid: str) -> tuple[Child, ...]:
        """The applications, ConfigMaps and driver pods of the resource with a UID."""
        return tuple(self._children[ref] for ref in self._children_of.get(uid, ()))

    def last_seen(self, source: objects.Ref) -> LastSeen | None:
        """The newest observation of a DataSource in the cached reports."""
        return self._last_seen.get(source)

    # Internals

    def _has(self, ref: objects.Ref, version: int) -> bool:
        if ref.kind == NAMESPACE_KIND:
            return 0 <= version <= self._namespaces.get(ref.name, -1)
        held = self._entries.get(ref) or self._children.get(ref)
        return held is not None and 0 <= version <= held.version

    def _replaced(
        self, ref: objects.Ref, before: Entry | None, after: Entry | None
    ) -> frozenset[objects.Ref]:
        woken = {ref}
        declares_anew = declared(before) != declared(after)
        if declares_anew or _generation(before) != _generation(after):
            self.declared_changes[ref.namespace] += 1
        if declares_anew and before is not None:
            woken |= self._affected(before)
            self._unlink(before)
        self._note_unreadable(ref, "" if after is None else after.trouble)
        if after is None:
            self._entries.pop(ref, None)
        else:
            self._entries[ref] = after
            self._by_uid[after.uid] = ref
        if declares_anew and after is not None:
            self._link(after)
            woken |= self._affected(after)
        if is_stalled_by_reference(after):
            self._stalled[ref.namespace].add(ref)
        elif ref.namespace in self._stalled:
            self._stalled[ref.namespace].discard(ref)
        if (before is None) != (after is None):
            self._name_changes[ref.namespace, ref.kind] += 1
        if before is None:
            woken |= self._misspelling(ref)
            self._see(ref)
        if after is None:
            self._last_seen.pop(ref, None)
        # `status.usedBy` of referenced resources changes only with the set of references.
        named, names = (NOTHING if each is None else each.references for each in (before, after))
        woken |= {reference for reference in named ^ names if reference in self._entries}
        if published(before) != published(after):
            woken |= self._readers(ref) | self.referrers(ref)
        if self._queue(ref, after):
            woken |= self.queue.next()
        return frozenset(woken)

    def _note_unreadable(self, ref: objects.Ref, trouble: str) -> None:
        """Count an object while it cannot be read, and log it the first time."""
        if not trouble:
            self._unreadable.pop(ref, None)
        elif ref not in self._unreadable:
            self._unreadable[ref] = None
            _log.warning("%s", visible(trouble[:_LONGEST_TROUBLE]), extra=objects.about(ref))

    def _link(self, entry: Entry) -> None:
        self._in_namespace[entry.ref.namespace][entry.ref] = None
        self._graph.add_node(entry.ref)
        self._graph.add_edges_from((entry.ref, reference) for reference in entry.references)
        self._folders[entry.ref.namespace].add(entry.ref, entry.folders)

    def _unlink(self, entry: Entry) -> None:
        del self._in_namespace[entry.ref.namespace][entry.ref]
        if self._by_uid.get(entry.uid) == entry.ref:
            del self._by_uid[entry.uid]
        self._graph.remove_edges_from([(entry.ref, reference) for reference in entry.references])
        left = [each for each in (entry.ref, *entry.references) if not self._graph.degree(each)]
        self._graph.remove_nodes_from(left)
        self._folders[entry.ref.namespace].discard(entry.ref, entry.folders)

    def _affected(self, entry: Entry) -> set[objects.Ref]:
        if not self.is_synced:  # every resource is due then
            return set()
        affected = set(self.dependants(entry.ref))
        if isinstance(entry.content, OutputDataset):
            affected |= self._folders[entry.ref.namespace].overlapping(entry.content)
        return affected

    def _misspelling(self, new: objects.Ref) -> set[objects.Ref]:
        """The stalled resources that may have meant a new one, which their status then suggests."""
        guesses = Guesses(_MOST_COMPARED)
        return {
            ref
            for ref in islice(self._stalled.get(new.namespace, ()), _MOST_STALLED)
            for each in self._entries[ref].references
            if each.kind == new.kind
            and each not in self._entries
            and guesses.did_you_mean(each.name, (new.name,))
        }

    def _see(self, new: objects.Ref) -> None:
        """Find what runs saw of a source before it was listed, or under the same name."""
        if new.kind != DataSource.__name__:
            return
        for child in self._children.values():
            if child.ref.namespace == new.namespace:
                take_seen(self._last_seen, new.namespace, child.report, {new})

    def _readers(self, ref: objects.Ref) -> set[objects.Ref]:
        """The outputs and indexes whose sources may read what an output publishes."""
        content = self.get(ref) if ref.kind == OutputDataset.__name__ else None
        if not isinstance(content, OutputDataset):
            return set()
        sources = self._folders[ref.namespace].readers(content)
        return {user for source in sources for user in self._users(source)}

    def _users(self, source: objects.Ref) -> set[objects.Ref]:
        def virtual(ref: objects.Ref) -> Iterator[objects.Ref]:
            return (each for each in self.referrers(ref) if each.kind == DataSource.__name__)

        edges = nx.generic_bfs_edges(self._graph, source, virtual)
        sources = (source, *(reader for _, reader in edges))
        return {u for each in sources for u in self.referrers(each) if u.kind in RUNNABLE}

    def _sources_of(self, output: OutputDataset) -> tuple[DataSource, ...]:
        # The output may be one that is not stored yet.
        contents = map(self.get, sorted(self._with_reads(references_of(output))))
        return tuple(content for content in contents if isinstance(content, DataSource))

    def _with_reads(self, refs: Iterable[objects.Ref]) -> set[objects.Ref]:
        """Some resources, and all that the sources among them refer to."""
        named = set(refs)
        known = (each for each in named if each in self._graph)
        sources = [each for each in known if each.kind == DataSource.__name__]
        return named.union(*nx.bfs_layers(self._graph, sources))

    def _queue(self, ref: objects.Ref, entry: Entry | None) -> bool:
        if ref.kind not in RUNNABLE:
            return False
        content = None if entry is None else entry.content
        return self.queue.put(ref, current_run(content), may_start=may_start(content))

    def _folders_of(self, resource: Resource) -> Folders | None:
        return self._folders.get(resource.metadata.namespace or "")

    def _outputs(self, refs: Iterable[objects.Ref]) -> tuple[OutputDataset, ...]:
        contents = (self.get(ref) for ref in sorted(refs))
        return tuple(content for content in contents if isinstance(content, OutputDataset))

    def _put_child(self, ref: objects.Ref, child: Child | None) -> frozenset[objects.Ref]:
        before = self._children.pop(ref, None)
        self._note_unreadable(ref, "" if child is None else child.trouble)
        woken = set() if before is None else self._forget_child(before)
        if child is not None:
            self._children[ref] = child
            self._children_of[child.owner_uid][ref] = None
            woken |= self._owner_of(child)
            woken |= take_seen(self._last_seen, ref.namespace, child.report, self._entries)
        return frozenset(ref for ref in woken if ref in self._entries)

    def _forget_child(self, child: Child) -> set[objects.Ref]:
        siblings = self._children_of[child.owner_uid]
        siblings.pop(child.ref, None)
        if not siblings:
            del self._children_of[child.owner_uid]
        return self._owner_of(child)

    def _owner_of(self, child: Child) -> set[objects.Ref]:
        """The owner of a child; an owner in another namespace is ignored."""
        owner = self._by_uid.get(child.owner_uid)
        return {owner} if owner is not None and owner.namespace == child.ref.namespace else set()

    def _put_namespace(self, name: str, version: int, *, is_ending: bool) -> frozenset[objects.Ref]:
        self._namespaces[name] = version
        if is_ending == (name in self.terminating):
            return NOTHING
        self.terminating.symmetric_difference_update({name})
        return frozenset(self._in_namespace.get(name, ()))


def _generation(entry: Entry | None) -> int:
    return -1 if entry is None else entry.generation


RUNNABLE = frozenset({OutputDataset.__name__, SkippingIndex.__name__})
"""Kinds that run jobs."""


def declared(entry: Entry | None) -> object:
    """The part that other resources depend on, for comparison."""
    if entry is None:
        return None
    if isinstance(entry.content, Unparsable):
        return entry.uid, entry.content.generation
    return entry.uid, getattr(entry.content, "spec", None)


def published(entry: Entry | None) -> tuple[str, int] | None:
    """UID and manifest sequence of an output, which start runs of its readers and indexes."""
    content = None if entry is None else entry.content
    if entry is None or not isinstance(content, OutputDataset) or content.status is None:
        return None
    manifest = content.status.manifest
    return None if manifest is None else (entry.uid, manifest.sequence)


def current_run(content: Resource | Unparsable | None) -> CurrentRun | None:
    """The queued or submitted run of a resource."""
    if isinstance(content, OutputDataset | SkippingIndex) and content.status is not None:
        return content.status.current_run
    return None


def is_stalled_by_reference(entry: Entry | None) -> bool:
    """Return whether a resource is stalled because a reference leads to nothing."""
    status: object = getattr(entry.content, "status", None) if entry is not None else None
    return isinstance(status, ResourceStatus) and any(
        each.type == ConditionType.STALLED and each.reason == Reason.REFERENCE_MISSING
        for each in status.conditions
    )


def may_start(content: Resource | Unparsable | None) -> bool:
    """Return whether a resource is neither paused nor suspended."""
    if not isinstance(content, OutputDataset | SkippingIndex):
        return False
    paused = objects.is_pause(content.metadata.annotations)
    return not paused and not content.spec.run.suspend


class PathIndex:
    """Objects by folder path; every path ends with `/`."""

    def __init__(self) -> None:
        self._at: defaultdict[str, set[objects.Ref]] = defaultdict(set)
        self._below: defaultdict[str, set[objects.Ref]] = defaultdict(set)

    def add(self, path: str, ref: objects.Ref) -> None:
        self._at[path].add(ref)
        for above in _above(path):
            self._below[above].add(ref)

    def discard(self, path: str, ref: objects.Ref) -> None:
        _drop(self._at, path, ref)
        for above in _above(path):
            _drop(self._below, above, ref)

    def touching(self, path: str) -> set[objects.Ref]:
        """Objects at a path, above it, or below it."""
        found = {ref for place in (path, *_above(path)) for ref in self._at.get(place, ())}
        return found | self._below.get(path, set())


class Folders:
    """Outputs and sources of one namespace by their folders."""

    def __init__(self) -> None:
        self._outputs = PathIndex()
        self._sources = PathIndex()

    def add(self, ref: objects.Ref, folders: Iterable[str]) -> None:
        index = self._outputs if ref.kind == OutputDataset.__name__ else self._sources
        for path in folders:
            index.add(path, ref)

    def discard(self, ref: objects.Ref, folders: Iterable[str]) -> None:
        index = self._outputs if ref.kind == OutputDataset.__name__ else self._sources
        for path in folders:
            index.discard(path, ref)

    def overlapping(self, output: OutputDataset) -> set[objects.Ref]:
        """Outputs that may publish to the same place as this one; itself included."""
        return {ref for place in places_of(output) for ref in self._outputs.touching(place)}

    def readers(self, output: OutputDataset) -> set[objects.Ref]:
        """Sources that may read what an output publishes."""
        return {ref for place in places_of(output) for ref in self._sources.touching(place)}

    def published_below(self, source: DataSource) -> set[objects.Ref]:
        """Outputs whose files a source may read."""
        return {ref for path in read_folders(source) for ref in self._outputs.touching(path)}


def _above(path: str) -> list[str]:
    """Every folder that a folder lies in, the nearest first."""
    found = []
    end = path.rfind("/", 0, -1)
    while end >= 0:
        found.append(path[: end + 1])
        end = path.rfind("/", 0, end)
    return found


def _drop(index: defaultdict[str, set[objects.Ref]], path: str, ref: objects.Ref) -> None:
    index[path].discard(ref)
    if not index[path]:
        del index[path]
