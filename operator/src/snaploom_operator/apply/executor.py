"""Carries out decisions: actions, then the status, then events; and requeues the resource."""

from __future__ import annotations

import logging
from typing import Protocol

from snaploom.models.common import ResourceStatus
from snaploom.models.resource import Resource
from snaploom_operator.apply.actionbackoff import ActionBackoff
from snaploom_operator.apply.actionrunner import Done
from snaploom_operator.apply.statuswriter import write_status
from snaploom_operator.apply.storerefresh import StoreRefresh
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.decision import Decision, EventType, Note
from snaploom_operator.errors import ApiUnavailable, ClusterError
from snaploom_operator.logcontext import about
from snaploom_operator.objects import JsonObject, Ref
from snaploom_operator.observed import ObservedResource, Unparsable
from snaploom_operator.operatormetrics import Metrics, Outcome
from snaploom_operator.workqueue import WorkQueue

DELETED_SOON = 5.0
"""Seconds until a resource whose child was deleted is reconciled again without an event."""

_log = logging.getLogger(__name__)


class Recorder(Protocol):
    """Posts events about resources."""

    async def record(self, resource: Ref, uid: str, note: Note) -> None:
        """Post one event; errors of the cluster are not raised."""
        ...


class Executor:
    """Carries out decisions."""

    def __init__(
        self,
        cluster: Cluster,
        actions: ActionBackoff,
        refresh: StoreRefresh,
        queue: WorkQueue[Ref],
        recorder: Recorder,
        metrics: Metrics,
    ) -> None:
        self._cluster = cluster
        self._actions = actions
        self._refresh = refresh
        self._queue = queue
        self._recorder = recorder
        self._metrics = metrics

    async def execute(
        self, key: Ref, observed: ObservedResource | Unparsable, decision: Decision
    ) -> Outcome:
        """Carry out the decision of one pass.

        Raises:
            ClusterError: the status was not written.
        """
        self._refresh.claim(key, decision.status)  # before anything else runs
        done = Done()
        if decision.actions:
            done = await self._actions.perform(key, observed, decision.actions)
        if done.failure is not None:
            self._refresh.release(key)
            return Outcome.FAILED
        written = None
        if not done.is_gone and decision.status != observed.status:  # most are unchanged
            written = await self._write(key, done.owner or observed, decision.status)
        if written is not None:
            self._refresh.put(written)
            self._metrics.status_changed(key, observed.status, decision.status)
        await self._report(key, observed.uid, decision)
        if not done.wait:
            self._actions.forget(key)
        return self._requeue(key, decision, done, is_status_written=written is not None)

    async def _write(
        self, key: Ref, held: Resource | ObservedResource | Unparsable, status: ResourceStatus
    ) -> JsonObject | None:
        try:
            return await write_status(held, status, self._cluster)
        except ApiUnavailable:
            raise  # it may be written: what it claims stays claimed until the next pass
        except ClusterError:
            self._refresh.release(key)
            raise

    async def _report(self, key: Ref, uid: str, decision: Decision) -> None:
        for note in decision.notes:
            level = logging.WARNING if note.type is EventType.WARNING else logging.INFO
            _log.log(level, "%s", note.message, extra=about(key, reason=note.reason))
            await self._recorder.record(key, uid, note)

    def _requeue(
        self, key: Ref, decision: Decision, done: Done, *, is_status_written: bool
    ) -> Outcome:
        """Requeue the resource: immediately after a step, else by the decision."""
        if done.is_gone:
            return Outcome.CHANGED
        if done.is_news or is_status_written:
            self._queue.add(key)
        elif done.has_deleted:
            # The watch event of the deletion requeues the resource; this covers a missed one.
            self._queue.add_after(key, DELETED_SOON)
        if decision.requeue_after is not None:
            self._queue.add_after(key, decision.requeue_after)
        if done.wait:
            self._queue.add_after(key, done.wait)
        is_changed = done.is_news or done.has_deleted or is_status_written
        return Outcome.CHANGED if is_changed else Outcome.UNCHANGED
