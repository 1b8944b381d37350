"""Carries out decisions: actions, status and events; our own writes go into the store at once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from snaploom.errors import SnaploomError
from snaploom.models.resource import Resource
from snaploom_operator.actions import Action, Delete
from snaploom_operator.apply.apply import apply
from snaploom_operator.apply.statuswriter import write_status
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.decision import Decision, EventType, Note
from snaploom_operator.logcontext import about
from snaploom_operator.objectmetadata import Metadata
from snaploom_operator.objects import JsonObject, Ref
from snaploom_operator.observed import ObservedResource, Unparsable
from snaploom_operator.operatormetrics import Metrics
from snaploom_operator.store.references import ref_of
from snaploom_operator.store.resourceparser import parse_resource
from snaploom_operator.store.store import Store

_log = logging.getLogger(__name__)


class Recorder(Protocol):
    """Posts events about resources."""

    async def record(self, resource: Ref, uid: str, note: Note) -> None:
        """Post one event; errors of the cluster are not raised."""
        ...


@dataclass(frozen=True)
class Done:
    """The result of the actions of a pass."""

    is_news: bool = False
    """Whether an action changed an object in the store."""
    has_deleted: bool = False
    owner: Resource | None = None
    """The resource, if its finalizers were changed."""
    is_gone: bool = False
    """Whether the resource was removed."""
    failure: SnaploomError | None = None
    """Why the last of them failed."""


class Executor:
    """Carries out decisions.

    Args: store: the observed objects. cluster: the cluster. recorder: posts events. metrics: the
        operator's metrics. wake: requeues resources that our own writes affect.
    """

    def __init__(
        self,
        store: Store,
        cluster: Cluster,
        recorder: Recorder,
        metrics: Metrics,
        wake: Callable[[Iterable[Ref]], None],
    ) -> None:
        self._store = store
        self._cluster = cluster
        self._recorder = recorder
        self._metrics = metrics
        self._wake = wake

    async def perform(
        self, key: Ref, observed: ObservedResource | Unparsable, actions: Iterable[Action]
    ) -> Done:
        """Perform actions in order; the first that fails ends the pass."""
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
                self._wake(self._store.remove(key, held.uid))
                return replace(done, is_gone=True)
            done = replace(done, is_news=self.take_in(stored) or done.is_news)
            content = parse_resource(stored) if is_owner else None
            if isinstance(content, Resource):
                owner = content
                done = replace(done, owner=content)
        return done

    async def report(
        self, key: Ref, observed: ObservedResource | Unparsable, decision: Decision, done: Done
    ) -> bool:
        """Write the status, log the notes and post them as events; whether the status changed.

        Raises:
            ClusterError: the status was not written.
        """
        written = None
        if not done.is_gone and decision.status != observed.status:  # most are unchanged
            held = done.owner or observed
            written = await write_status(held, decision.status, self._cluster)
        if written is not None:
            self.take_in(written)
            self._metrics.status_changed(key, observed.status, decision.status)
        for note in decision.notes:
            level = logging.WARNING if note.type is EventType.WARNING else logging.INFO
            _log.log(level, "%s", note.message, extra=about(key, reason=note.reason))
            await self._recorder.record(key, observed.uid, note)
        return written is not None

    def take_in(self, stored: JsonObject) -> bool:
        """Put an object that was just written or read into the store; whether it was new."""
        if self._store.is_known(stored):
            return False
        self._wake(self._store.put(stored))
        return True
