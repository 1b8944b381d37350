"""What one review must know of other resources, taken from the store at one moment.

Collecting it is a walk over dictionaries, done where the store is fed; what comes of it is frozen,
so that judging can go on in a thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, takewhile
from typing import Protocol

from snaploom.models.datasource import DataSource
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.resource import Resource
from snaploom_operator.knowledge.entries import Entry
from snaploom_operator.knowledge.references import references_of
from snaploom_operator.objects import Ref

DEPENDANTS_JUDGED = 300
"""Resources that are looked at for what a change breaks in them; so many take about a second, and
the API server waits for five."""
LARGEST_DEPENDANTS = 2_000_000
"""Characters of the specs of these, about: judging so many takes some 0.7 seconds (ten of half a
million took 1.9)."""


class Known(Protocol):
    """What is asked of the store."""

    def entry(self, ref: Ref) -> Entry | None:
        """A resource as it was last seen."""
        ...

    def referrers(self, ref: Ref) -> frozenset[Ref]:
        """The resources whose spec names an object, whether it exists or not."""
        ...

    def overlapping(self, output: OutputDataset) -> tuple[OutputDataset, ...]:
        """Outputs whose folders may overlap with that of one."""
        ...

    def upstream(
        self, output: OutputDataset
    ) -> tuple[tuple[OutputDataset, ...], tuple[DataSource, ...]]:
        """Outputs whose files one may read, directly or through others, and the sources of all."""
        ...


@dataclass(frozen=True)
class Surroundings:
    """What one review must know of other resources."""

    near: tuple[Resource, ...] = ()
    """All that the resource and its dependants refer to, directly or not, and the dependants; not
    the resource itself."""
    broken: frozenset[str] = frozenset()
    """Identities of resources that exist but cannot be read."""
    dependants: tuple[str, ...] = ()
    """Identities of the resources that name it, as far as they are judged."""
    unjudged: int = 0
    """How many more there are."""
    overlapping: tuple[OutputDataset, ...] = ()
    """Other outputs whose folders may overlap with its own."""
    upstream: tuple[OutputDataset, ...] = ()
    """Outputs whose files it may read, directly or through others."""
    upstream_sources: tuple[DataSource, ...] = ()
    """The sources of these."""


def ref_to(resource: Resource) -> Ref:
    """The key of a resource."""
    return Ref(resource.kind, resource.metadata.namespace or "", resource.name)


def surroundings_of(resource: Resource, known: Known) -> Surroundings:
    """What is to be known for judging a resource as it is to be."""
    ref = ref_to(resource)
    users = sorted(known.referrers(ref) - {ref})
    judged = _judged(users, known)
    entries = _reached([*references_of(resource), *judged], known, without=ref)
    readable = {
        entry.ref: entry.content for entry in entries if isinstance(entry.content, Resource)
    }
    overlapping: tuple[OutputDataset, ...] = ()
    upstream: tuple[OutputDataset, ...] = ()
    sources: tuple[DataSource, ...] = ()
    if isinstance(resource, OutputDataset):
        overlapping = known.overlapping(resource)
        upstream, sources = known.upstream(resource)
    return Surroundings(
        near=tuple(readable[key] for key in sorted(readable)),
        broken=frozenset(_identity(e.ref) for e in entries if e.ref not in readable),
        dependants=tuple(_identity(user) for user in judged if user in readable),
        unjudged=len(users) - len(judged),
        overlapping=tuple(other for other in overlapping if other.name != resource.name),
        upstream=tuple(other for other in upstream if other.name != resource.name),
        upstream_sources=sources,
    )


def _judged(users: Sequence[Ref], known: Known) -> list[Ref]:
    """The first resources, as many as may be looked at."""
    sizes = (entry.size if (entry := known.entry(user)) else 0 for user in users)
    many = takewhile(
        lambda each: each[0] <= LARGEST_DEPENDANTS, zip(accumulate(sizes), users, strict=True)
    )
    return [user for _, user in islice(many, DEPENDANTS_JUDGED)]


def users_of(ref: Ref, known: Known) -> tuple[str, ...]:
    """Identities of the resources that name one and are not about to go themselves."""
    entries = (known.entry(user) for user in sorted(known.referrers(ref) - {ref}))
    return tuple(_identity(entry.ref) for entry in entries if entry and not _is_going(entry))


def _is_going(entry: Entry) -> bool:
    content = entry.content
    return isinstance(content, Resource) and content.metadata.deletion_timestamp is not None


def _reached(refs: Iterable[Ref], known: Known, without: Ref) -> tuple[Entry, ...]:
    """Everything that is referred to, and what that refers to, and so on."""
    found: dict[Ref, Entry] = {}
    seen = {without}
    waiting = list(refs)
    while waiting:
        ref = waiting.pop()
        if ref in seen:
            continue
        seen.add(ref)
        entry = known.entry(ref)
        if entry is not None:
            found[ref] = entry
            waiting.extend(entry.references)
    return tuple(found.values())


def _identity(ref: Ref) -> str:
    return f"{ref.kind}/{ref.name}"
