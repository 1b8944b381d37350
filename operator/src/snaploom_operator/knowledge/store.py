"""The objects of the cluster as they were last seen, and who has to look again when one changes.

It replaces `kopf.index`, whose start is quadratic (`operator.md` section 5, trap 1). Everything is
parsed once, when it arrives. An event that is no news, because a list or our own write was quicker,
costs a look at its resourceVersion. Nothing here waits, so that what is read between two `await`s
belongs together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from snaploom.models.datasource import DataSource, LastSeen
from snaploom.models.kinds import KIND_BY_NAME
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.resource import Resource
from snaploom.models.run import Submitter
from snaploom_operator.knowledge.children import Child, ChildReader
from snaploom_operator.knowledge.entries import (
    RUNNABLE,
    Entry,
    current_run,
    declared,
    may_go,
    published,
    size_of,
)
from snaploom_operator.knowledge.folders import Folders
from snaploom_operator.knowledge.lastseen import LastSeenIndex
from snaploom_operator.knowledge.parsing import Refused, parse_resource
from snaploom_operator.knowledge.references import ref_of, references_of, version_of
from snaploom_operator.knowledge.runqueue import RunQueue
from snaploom_operator.metadata import mapping_in, metadata_of, text_in
from snaploom_operator.objects import JsonObject, Ref
from snaploom_operator.observed import Queue
from snaploom_operator.settings import Limits
from snaploom_operator.submitters.base import ApplicationForm

NOTHING: frozenset[Ref] = frozenset()
NAMESPACE_KIND = "Namespace"
TERMINATING = "Terminating"


class Store:
    """What was last seen of every object that matters.

    Args:
        forms: how the submitters that may be used write applications.
        limits: how many runs may be in flight.
    """

    def __init__(self, forms: Iterable[ApplicationForm] = (), limits: Limits | None = None) -> None:
        self.is_synced = False
        """Whether everything was listed once; before that nothing is to be decided."""
        self.queue = RunQueue(limits or Limits())
        self._available: frozenset[Submitter] = frozenset()
        self._reader = ChildReader(forms)
        self._entries: dict[Ref, Entry] = {}
        self._by_uid: dict[str, Ref] = {}
        self._in_namespace: defaultdict[str, dict[Ref, None]] = defaultdict(dict)
        self._referrers: defaultdict[Ref, set[Ref]] = defaultdict(set)
        self._folders: defaultdict[str, Folders] = defaultdict(Folders)
        self._children: dict[Ref, Child] = {}
        self._children_of: defaultdict[str, dict[Ref, None]] = defaultdict(dict)
        self._last_seen = LastSeenIndex()
        self._namespaces: dict[str, int] = {}
        self._terminating: set[str] = set()

    # What arrives

    def is_known(self, stored: JsonObject) -> bool:
        """Whether an object, or a newer state of it, was taken in already."""
        held, version = self._version_of(ref_of(stored)), version_of(stored)
        return held is not None and 0 <= version <= held

    def put(self, stored: JsonObject) -> frozenset[Ref]:
        """Take in an object, of whatever kind.

        Returns:
            The resources to look at again: itself, or its owner, and whoever depends on what
            changed. Empty where it is known already.
        """
        if self.is_known(stored):
            return NOTHING
        ref, version = ref_of(stored), version_of(stored)
        if ref.kind in KIND_BY_NAME:
            return self._put_resource(ref, version, stored)
        if ref.kind == NAMESPACE_KIND:
            return self._put_namespace(ref.name, version, stored)
        return self._put_child(ref, self._reader.read(stored, version))

    def remove(self, ref: Ref, uid: str = "") -> frozenset[Ref]:
        """Forget an object that is gone.

        Args:
            ref: its key.
            uid: its UID; one that came after it under the same name is kept. Empty for any.

        Returns:
            The resources to look at again.
        """
        if ref.kind == NAMESPACE_KIND:
            self._namespaces.pop(ref.name, None)
            self._terminating.discard(ref.name)
            return NOTHING
        held = self._entries.get(ref) or self._children.get(ref)
        if held is None or (uid and held.uid != uid):
            return NOTHING
        if isinstance(held, Child):
            return self._put_child(ref, None)
        return self._replaced(ref, held, None) - {ref}

    def set_available(self, submitters: frozenset[Submitter]) -> frozenset[Ref]:
        """Take in which submitters may be used here; the resources to look at again."""
        if submitters == self._available:
            return NOTHING
        self._available = submitters
        return frozenset(ref for ref in self._entries if ref.kind in RUNNABLE)

    # What is asked

    @property
    def available(self) -> frozenset[Submitter]:
        """Submitters that are allowed here and whose kind the cluster has."""
        return self._available

    def entry(self, ref: Ref) -> Entry | None:
        """A resource as it was last seen, with what the store knows about it."""
        return self._entries.get(ref)

    def get(self, ref: Ref) -> Resource | Refused | None:
        """A resource as it was last seen; None when there is none."""
        entry = self._entries.get(ref)
        return None if entry is None else entry.content

    def refs(self, namespace: str | None = None) -> tuple[Ref, ...]:
        """Every resource of ours; None for all namespaces."""
        return tuple(self._entries if namespace is None else self._in_namespace.get(namespace, ()))

    def resources(self) -> Iterator[tuple[Ref, Resource | Refused]]:
        """Every resource of ours as it was last seen."""
        for ref, entry in self._entries.items():
            yield ref, entry.content

    def known_refs(self, kind: str) -> Iterator[tuple[Ref, int, str]]:
        """Key, version and UID of every object of a kind, children included."""
        for entry in self._entries.values():
            if entry.ref.kind == kind:
                yield entry.ref, entry.version, entry.uid
        for child in self._children.values():
            if child.ref.kind == kind:
                yield child.ref, child.version, child.uid
        if kind == NAMESPACE_KIND:
            for name, version in self._namespaces.items():
                yield Ref(NAMESPACE_KIND, "", name), version, ""

    def owner(self, uid: str) -> Ref | None:
        """The resource with a UID."""
        return self._by_uid.get(uid)

    def referrers(self, ref: Ref) -> frozenset[Ref]:
        """The resources whose spec names an object, whether it exists or not."""
        return frozenset(self._referrers.get(ref, ()))

    def dependants(self, ref: Ref) -> frozenset[Ref]:
        """The resources that an object has an influence on: referrers, theirs, and so on.

        Outputs that may read the files of another output belong to them.
        """
        found: set[Ref] = set()
        waiting = [ref]
        while waiting:
            current = waiting.pop()
            near = self._referrers.get(current, set()) | self._readers(current)
            waiting.extend(near - found)
            found |= near
        found.discard(ref)
        return frozenset(found)

    def closure(self, ref: Ref) -> tuple[Entry, ...]:
        """A resource and everything that it refers to, directly or not, in the order of keys."""
        found: dict[Ref, Entry] = {}
        waiting = [ref]
        while waiting:
            current = waiting.pop()
            entry = self._entries.get(current)
            if entry is not None and current not in found:
                found[current] = entry
                waiting.extend(entry.references)
        return tuple(found[key] for key in sorted(found))

    def overlapping(self, output: OutputDataset) -> tuple[OutputDataset, ...]:
        """Outputs of the same namespace whose folders may overlap with that of one; it included."""
        folders = self._folders_of(output)
        return self._outputs(folders.overlapping(output)) if folders else ()

    def outputs_read_by(self, sources: Iterable[DataSource]) -> tuple[OutputDataset, ...]:
        """Outputs of the same namespace whose files sources may read."""
        refs: set[Ref] = set()
        for source in sources:
            folders = self._folders_of(source)
            refs |= folders.published_below(source) if folders else set()
        return self._outputs(refs)

    def upstream(
        self, output: OutputDataset
    ) -> tuple[tuple[OutputDataset, ...], tuple[DataSource, ...]]:
        """Outputs whose files one may read, directly or through others, and the sources of all.

        The output itself is among them where it is a circle.
        """
        outputs: dict[str, OutputDataset] = {}
        sources: dict[str, DataSource] = {}
        waiting = [output]
        while waiting:
            read = self._sources_of(waiting.pop())
            sources |= {source.name: source for source in read}
            for other in self.outputs_read_by(read):
                if other.name not in outputs:
                    outputs[other.name] = other
                    waiting.append(other)
        return (tuple(outputs.values()), tuple(sources.values())) if outputs else ((), ())

    def children(self, uid: str) -> tuple[Child, ...]:
        """The applications, ConfigMaps and driver pods of the resource with a UID."""
        return tuple(self._children[ref] for ref in self._children_of.get(uid, ()))

    def last_seen(self, source: Ref) -> LastSeen | None:
        """What the newest report that is here says of a DataSource."""
        return self._last_seen.newest(source)

    def place_of(self, ref: Ref) -> Queue:
        """Where the run of a resource stands among all runs."""
        return self.queue.place_of(ref)

    def is_terminating(self, namespace: str) -> bool:
        """Whether a namespace is being deleted, as far as that can be seen."""
        return namespace in self._terminating

    # How it is kept

    def _version_of(self, ref: Ref) -> int | None:
        if ref.kind == NAMESPACE_KIND:
            return self._namespaces.get(ref.name)
        held = self._entries.get(ref) or self._children.get(ref)
        return None if held is None else held.version

    def _put_resource(self, ref: Ref, version: int, stored: JsonObject) -> frozenset[Ref]:
        content = parse_resource(stored)
        references = NOTHING if isinstance(content, Refused) else references_of(content)
        uid = text_in(metadata_of(stored), "uid")
        entry = Entry(ref, version, uid, content, references, size_of(stored.get("spec")))
        return self._replaced(ref, self._entries.get(ref), entry)

    def _replaced(self, ref: Ref, before: Entry | None, after: Entry | None) -> frozenset[Ref]:
        """Put one state of a resource in the place of another; who has to look again."""
        woken = {ref}
        declares_anew = declared(before) != declared(after)
        if declares_anew and before is not None:
            woken |= self._touched(before)
            self._unlink(before)
        if after is None:
            self._entries.pop(ref, None)
        else:
            self._entries[ref] = after
            self._by_uid[after.uid] = ref
        if declares_anew and after is not None:
            self._link(after)
            woken |= self._touched(after)
        # What is referred to tells who uses it: whether it is named, not what else is declared.
        named, names = (NOTHING if each is None else each.references for each in (before, after))
        woken |= {reference for reference in named ^ names if reference in self._entries}
        if published(before) != published(after):
            woken |= self._readers(ref) | self._referrers.get(ref, set())
        if self._queue(ref, after):
            woken |= self.queue.next()
        return frozenset(woken)

    def _link(self, entry: Entry) -> None:
        self._in_namespace[entry.ref.namespace][entry.ref] = None
        for reference in entry.references:
            self._referrers[reference].add(entry.ref)
        if isinstance(entry.content, Resource):
            self._folders[entry.ref.namespace].add(entry.ref, entry.content)

    def _unlink(self, entry: Entry) -> None:
        del self._in_namespace[entry.ref.namespace][entry.ref]
        if self._by_uid.get(entry.uid) == entry.ref:
            del self._by_uid[entry.uid]
        for reference in entry.references:
            self._referrers[reference].discard(entry.ref)
            if not self._referrers[reference]:
                del self._referrers[reference]
        if isinstance(entry.content, Resource):
            self._folders[entry.ref.namespace].discard(entry.ref, entry.content)

    def _touched(self, entry: Entry) -> set[Ref]:
        """Who depends on what a resource declares."""
        touched = set(self.dependants(entry.ref))
        if isinstance(entry.content, OutputDataset):
            touched |= self._folders[entry.ref.namespace].overlapping(entry.content)
        return touched

    def _readers(self, ref: Ref) -> set[Ref]:
        """The sources that may read what an output publishes, without those who read sources."""
        content = self.get(ref) if ref.kind == OutputDataset.__name__ else None
        if not isinstance(content, OutputDataset):
            return set()
        sources = self._folders[ref.namespace].readers(content)
        return {user for source in sources for user in self._users(source)}

    def _users(self, source: Ref) -> set[Ref]:
        """The outputs and indexes that read a source, directly or through virtual ones."""
        found: set[Ref] = set()
        seen = {source}
        waiting = [source]
        while waiting:
            near = self._referrers.get(waiting.pop(), set())
            found |= {ref for ref in near if ref.kind in RUNNABLE}
            further = {ref for ref in near if ref.kind == DataSource.__name__} - seen
            seen |= further
            waiting.extend(further)
        return found

    def _sources_of(self, output: OutputDataset) -> tuple[DataSource, ...]:
        """The sources of an output, and those that virtual ones read."""
        found: dict[Ref, DataSource] = {}
        waiting = list(references_of(output))  # the output may be one that is not stored yet
        while waiting:
            ref = waiting.pop()
            content = self.get(ref)
            if isinstance(content, DataSource) and ref not in found:
                found[ref] = content
                waiting.extend(self._entries[ref].references)
        return tuple(found.values())

    def _queue(self, ref: Ref, entry: Entry | None) -> bool:
        if ref.kind not in RUNNABLE:
            return False
        content = None if entry is None else entry.content
        return self.queue.put(ref, current_run(content), may_go=may_go(content))

    def _folders_of(self, resource: Resource) -> Folders | None:
        return self._folders.get(resource.metadata.namespace or "")

    def _outputs(self, refs: Iterable[Ref]) -> tuple[OutputDataset, ...]:
        contents = (self.get(ref) for ref in sorted(refs))
        return tuple(content for content in contents if isinstance(content, OutputDataset))

    def _put_child(self, ref: Ref, child: Child | None) -> frozenset[Ref]:
        before = self._children.pop(ref, None)
        woken = set() if before is None else self._forget_child(before)
        if child is not None:
            self._children[ref] = child
            self._children_of[child.owner_uid][ref] = None
            woken |= self._owner_of(child)
            woken |= self._last_seen.put(ref.namespace, child.report)
        return frozenset(ref for ref in woken if ref in self._entries)

    def _forget_child(self, child: Child) -> set[Ref]:
        siblings = self._children_of[child.owner_uid]
        siblings.pop(child.ref, None)
        if not siblings:
            del self._children_of[child.owner_uid]
        return self._owner_of(child)

    def _owner_of(self, child: Child) -> set[Ref]:
        """The resource that a child belongs to; one in another namespace cannot be its owner."""
        owner = self._by_uid.get(child.owner_uid)
        return {owner} if owner is not None and owner.namespace == child.ref.namespace else set()

    def _put_namespace(self, name: str, version: int, stored: JsonObject) -> frozenset[Ref]:
        self._namespaces[name] = version
        was = name in self._terminating
        if (text_in(mapping_in(stored, "status"), "phase") == TERMINATING) == was:
            return NOTHING
        self._terminating.symmetric_difference_update({name})
        return frozenset(self._in_namespace.get(name, ()))
