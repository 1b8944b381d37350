"""Performs the actions of one decision, in order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from snaploom.errors import SnaploomError
from snaploom.models.resource import Resource
from snaploom_operator.actions import Action, Delete
from snaploom_operator.apply.apply import apply
from snaploom_operator.apply.storerefresh import StoreRefresh
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.objectmetadata import Metadata
from snaploom_operator.objects import Ref
from snaploom_operator.observed import ObservedResource, Unparsable
from snaploom_operator.store.references import ref_of
from snaploom_operator.store.resourceparser import parse_resource


@dataclass(frozen=True)
class Done:
    """The result of the actions of a pass."""

    is_news: bool = False
    """True if an action changed an object in the store."""
    has_deleted: bool = False
    owner: Resource | None = None
    """The resource, if its finalizers were changed."""
    is_gone: bool = False
    """True if the resource was removed."""
    failure: SnaploomError | None = None
    """The failure of the last of them."""
    wait: float = 0.0
    """Seconds for which the actions wait, where none was performed; 0 otherwise."""


class ActionRunner:
    """Performs actions, and takes what was written into the store."""

    def __init__(self, cluster: Cluster, refresh: StoreRefresh) -> None:
        self._cluster = cluster
        self._refresh = refresh

    async def perform(
        self, key: Ref, observed: ObservedResource | Unparsable, actions: Iterable[Action]
    ) -> Done:
        """Perform actions; the first that fails ends the pass."""
        owner = observed if isinstance(observed, Unparsable) else observed.resource
        done = Done()
        for action in actions:
            try:
                stored = await apply(action, owner, self._cluster)
            except SnaploomError as error:
                return replace(done, failure=error)
            if isinstance(action, Delete):
                done = replace(done, has_deleted=True)
            if stored is None:
                continue
            is_owner = ref_of(stored) == key
            held = Metadata.of(stored)
            if is_owner and held.is_deleting and not held.finalizers:  # the API server removes it
                self._refresh.remove(key, held.uid)
                return replace(done, is_gone=True)
            done = replace(done, is_news=self._refresh.put(stored) or done.is_news)
            content = parse_resource(stored) if is_owner else None
            if isinstance(content, Resource):
                owner = content
                done = replace(done, owner=content)
        return done
