"""One reconcile pass: gather -> decide -> execute.

It is level-based: a key names the resource to reconcile, never what happened. Each pass makes one
step and requeues the resource if it changed anything. So after a crash at any point the next
process continues from the state of the cluster.
"""

from __future__ import annotations

from collections.abc import Callable

from snaploom.errors import SnaploomError
from snaploom_operator.apply.actionbackoff import ActionBackoff
from snaploom_operator.apply.executor import Executor
from snaploom_operator.decision import Decision
from snaploom_operator.gather.gatherer import Gatherer, Unjudged
from snaploom_operator.objects import Ref
from snaploom_operator.observed import ObservedResource, Unparsable
from snaploom_operator.operatormetrics import Outcome

Decide = Callable[[ObservedResource | Unparsable], Decision]


class Reconciler:
    """Makes passes.

    Args: gatherer: observes resources. decide: decides about an observation. executor: carries
        decisions out. backoff: requeues resources whose pass failed.
    """

    def __init__(
        self, gatherer: Gatherer, decide: Decide, executor: Executor, backoff: ActionBackoff
    ) -> None:
        self._gatherer = gatherer
        self._decide = decide
        self._executor = executor
        self._backoff = backoff

    async def reconcile(self, key: Ref) -> Outcome:
        """One pass; raises only what nobody foresaw, and CancelledError."""
        try:
            observed = await self._gatherer.observe(key)
            if observed is None:
                self._backoff.forget(key)
                return Outcome.GONE
            if isinstance(observed, Unjudged):
                return Outcome.UNCHANGED
            return await self._executor.execute(key, observed, self._decide(observed))
        except SnaploomError as error:
            await self._backoff.retry(key, error)
            return Outcome.FAILED
