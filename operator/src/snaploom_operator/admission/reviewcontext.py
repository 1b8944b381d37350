"""The related resources of a review, collected from the store at one moment.

Collecting is fast and runs in the event loop that fills the store; the result is frozen, so that
the review can run in a thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, islice, takewhile

from snaploom.models.datasource import DataSource
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.resource import Resource
from snaploom.planning.commonchecks.scope import NamesOfKind, no_names
from snaploom_operator.objects import Ref
from snaploom_operator.observed import Unparsable
from snaploom_operator.store.references import reached, references_of
from snaploom_operator.store.store import Store

DEPENDANTS_JUDGED = 300
"""Dependants that are checked for breaking changes; so many take about a second, and the API server
waits for five."""
LARGEST_DEPENDANTS = 2_000_000
"""Approximate characters of their specs: so many take some 0.7 seconds (ten of half a million took
1.9)."""


@dataclass(frozen=True)
class ReviewContext:
    """The related resources of a review."""

    near: tuple[Resource, ...] = ()
    """Everything that the resource and its dependants refer to, directly or not, and the
    dependants; without the resource itself."""
    broken: frozenset[str] = frozenset()
    """Identities of unparsable resources."""
    dependants: tuple[str, ...] = ()
    """Identities of the dependants that are checked."""
    unjudged: int = 0
    """Number of dependants that are not checked."""
    overlapping: tuple[OutputDataset, ...] = ()
    """Other outputs whose folders may overlap with its own."""
    upstream: tuple[OutputDataset, ...] = ()
    """Outputs whose files it may read, directly or through others."""
    upstream_sources: tuple[DataSource, ...] = ()
    """The sources of those outputs."""
    others: NamesOfKind = no_names
    """Names of the namespace by kind, for suggestions about misspelt references."""


def review_context(resource: Resource, known: Store) -> ReviewContext:
    """Collect the related resources of a submitted resource."""
    ref = Ref.to(resource)
    users = sorted(known.referrers(ref) - {ref})
    judged = _judged(users, known)
    starts = (*references_of(resource), *judged)
    refs = reached(starts, lambda each: () if each == ref else known.references(each))
    entries = known.entries(refs - {ref})
    readable = {
        entry.ref: entry.content for entry in entries if isinstance(entry.content, Resource)
    }
    overlapping: tuple[OutputDataset, ...] = ()
    upstream: tuple[OutputDataset, ...] = ()
    sources: tuple[DataSource, ...] = ()
    if isinstance(resource, OutputDataset):
        overlapping = known.overlapping(resource)
        upstream, sources = known.upstream(resource)
    return ReviewContext(
        near=tuple(readable.values()),
        broken=frozenset(e.ref.identity for e in entries if e.ref not in readable),
        dependants=tuple(user.identity for user in judged if user in readable),
        unjudged=len(users) - len(judged),
        overlapping=tuple(other for other in overlapping if other.name != resource.name),
        upstream=tuple(other for other in upstream if other.name != resource.name),
        upstream_sources=sources,
        others=partial(known.names, ref.namespace),
    )


def _judged(users: Sequence[Ref], known: Store) -> list[Ref]:
    sizes = (entry.size if (entry := known.entry(user)) else 0 for user in users)
    many = takewhile(
        lambda each: each[0] <= LARGEST_DEPENDANTS, zip(accumulate(sizes), users, strict=True)
    )
    return [user for _, user in islice(many, DEPENDANTS_JUDGED)]


def users_of(ref: Ref, known: Store) -> tuple[str, ...]:
    """Identities of the resources that refer to one and are not being deleted."""
    users = known.entries(known.referrers(ref) - {ref})
    return tuple(each.ref.identity for each in users if not _is_deleted(each.content))


def _is_deleted(content: Resource | Unparsable) -> bool:
    return isinstance(content, Resource) and content.metadata.deletion_timestamp is not None
