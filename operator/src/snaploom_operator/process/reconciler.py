"""One reconcile pass: gather -> decide -> perform -> report.

It is level-based: a key names the resource to reconcile, never what happened. Each pass makes one
step and requeues the resource if it changed anything. So after a crash at any point the next
process continues from the state of the cluster.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from snaploom.errors import SnaploomError
from snaploom_operator.apply.executor import Done, Executor
from snaploom_operator.cluster.apiresources import OURS
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.decision import Decision
from snaploom_operator.errors import ObjectMissing
from snaploom_operator.gather.gatherer import Gatherer, Unjudged
from snaploom_operator.logcontext import about
from snaploom_operator.objects import Ref
from snaploom_operator.observed import ObservedResource, Unparsable
from snaploom_operator.operatormetrics import Outcome
from snaploom_operator.process.actionbackoff import OUTDATED, ActionBackoff
from snaploom_operator.store.store import Store
from snaploom_operator.workqueue import WorkQueue

DELETED_SOON = 5.0
"""Seconds until a resource whose child was deleted is reconciled again without an event."""

_log = logging.getLogger(__name__)

Decide = Callable[[ObservedResource | Unparsable], Decision]


class Reconciler:
    """Makes passes.

    Args: store: the observed objects. cluster: the cluster. gatherer: observes resources. decide:
        decides about an observation. executor: carries decisions out. backoff: the resources whose
        actions wait. queue: the work queue.
    """

    def __init__(
        self,
        store: Store,
        cluster: Cluster,
        gatherer: Gatherer,
        decide: Decide,
        executor: Executor,
        backoff: ActionBackoff,
        queue: WorkQueue[Ref],
    ) -> None:
        self._store = store
        self._cluster = cluster
        self._gatherer = gatherer
        self._decide = decide
        self._executor = executor
        self._backoff = backoff
        self._queue = queue

    async def reconcile(self, key: Ref) -> Outcome:
        """One pass; raises only what nobody foresaw, and CancelledError."""
        try:
            return await self._pass(key)
        except SnaploomError as error:
            self._backoff.retry(key, error)
            await self._refresh_outdated(key, error)
            return Outcome.FAILED

    async def _pass(self, key: Ref) -> Outcome:
        observed = await self._gatherer.observe(key, self._backoff.refusal(key))
        if observed is None:
            self._backoff.forget(key)
            return Outcome.GONE
        if isinstance(observed, Unjudged):
            return Outcome.UNCHANGED
        decision = self._decide(observed)
        wait = self._backoff.left(key) if decision.actions else 0.0
        done = Done()
        if not wait:
            done = await self._executor.perform(key, observed, decision.actions)
            if done.failure is not None:
                self._backoff.hold(key, done.failure)
                await self._refresh_outdated(key, done.failure)
                return Outcome.FAILED
            self._backoff.release(key)
        is_reported = await self._executor.report(key, observed, decision, done)
        return self._requeue(key, decision, done, wait, is_reported=is_reported)

    def _requeue(
        self, key: Ref, decision: Decision, done: Done, wait: float, *, is_reported: bool
    ) -> Outcome:
        """Requeue the resource: immediately after a step, else by the decision."""
        if not wait:
            self._backoff.forget(key)
        if done.is_gone:
            return Outcome.CHANGED
        if done.is_news or is_reported:
            self._queue.add(key)
        elif done.has_deleted:
            # The watch event of the deletion requeues the resource; this covers a missed one.
            self._queue.add_after(key, DELETED_SOON)
        if decision.requeue_after is not None:
            self._queue.add_after(key, decision.requeue_after)
        if wait:
            self._queue.add_after(key, wait)
        is_changed = done.is_news or done.has_deleted or is_reported
        return Outcome.CHANGED if is_changed else Outcome.UNCHANGED

    async def _refresh_outdated(self, key: Ref, error: SnaploomError) -> None:
        """Read an outdated resource from the API server: its watch may be late or broken."""
        if not isinstance(error, OUTDATED):
            return
        try:
            stored = await self._cluster.get(OURS[key.kind], key.namespace, key.name)
        except ObjectMissing:
            self._queue.add_all(self._store.remove(key))
        except SnaploomError as failure:
            _log.info("cannot refresh: %s", failure.message, extra=about(key))
        else:
            self._executor.take_in(stored)
