"""The operator without its surroundings: its parts, put together over any cluster.

What is around it (kopf's watches, endpoints, signals) is `commands/run.py`'s. Tests put the same
parts over a cluster in memory, with clocks of their own.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from snaploom.models import times
from snaploom.models.run import Submitter
from snaploom.models.times import NANOS_PER_SECOND, EpochNanos
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.decide.deciding import decide
from snaploom_operator.decide.settings import DecideSettings
from snaploom_operator.knowledge.store import Store
from snaploom_operator.metrics import Metrics, StateCollector
from snaploom_operator.objects import Ref
from snaploom_operator.observing.gather import Gatherer
from snaploom_operator.process.controller import Controller, Recorder
from snaploom_operator.settings import OperatorSettings
from snaploom_operator.sqlverdicts import SqlVerdicts
from snaploom_operator.submitters.forms import FORMS
from snaploom_operator.watching.kinds import watched_kinds
from snaploom_operator.watching.synchronising import Synchroniser
from snaploom_operator.workqueue import WorkQueue

STOP_PATIENCE = 20.0
"""Seconds that passes in hand may take to end: less than the thirty of a pod."""


@dataclass(frozen=True)
class Clocks:
    """The time, twice."""

    now: Callable[[], EpochNanos] = times.now
    """What people call the time; it may jump."""
    seconds: Callable[[], float] = time.monotonic
    """Seconds that never go back."""


class Operator:
    """The parts.

    Args:
        cluster: where resources are, and runs are started.
        settings: what whoever installed it decided.
        recorder: posts events.
        metrics: what is counted.
        verdicts: has texts of SQL judged.
        is_local: whether it may run jobs itself (ruling D45).
        clocks: the time.
        chance: numbers between 0 and 1, for jitter.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: OperatorSettings,
        recorder: Recorder,
        metrics: Metrics,
        verdicts: SqlVerdicts,
        *,
        is_local: bool = False,
        clocks: Clocks | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        clocks = clocks or Clocks()
        allowed = allowed_submitters(settings.submitters, is_local=is_local)
        forms = {submitter: FORMS[submitter] for submitter in FORMS if submitter in allowed}
        self._settings = settings
        self._clocks = clocks
        self._drift = self._difference()
        self.metrics = metrics
        self.store = Store(forms.values(), settings.limits)
        self.queue: WorkQueue[Ref] = WorkQueue(clocks.seconds, chance=chance)
        self.synchroniser = Synchroniser(
            self.store,
            cluster,
            self.queue,
            watched_kinds(forms.values(), is_namespaced=bool(settings.watch_namespaces)),
            allowed,
            settings.watch_namespaces,
            self.metrics,
            clocks.seconds,
        )
        self._gatherer = Gatherer(
            self.store,
            clocks.now,
            verdicts,
            self.queue.add,
            allow_jdbc_url=settings.allow_jdbc_url,
            allow=settings.allow,
        )
        self.controller = Controller(
            self.store,
            cluster,
            self._gatherer,
            partial(decide, settings=DecideSettings.of(settings, is_local=is_local)),
            self.queue,
            recorder,
            clocks.seconds,
            self.metrics,
        )
        self.metrics.registry.register(
            StateCollector(self.store, self.queue, self.synchroniser.ages, clocks.now)
        )

    async def start(self) -> None:
        """List everything, and begin to work.

        Raises:
            ClusterError: the cluster does not answer, lacks our kinds, or refuses a list.
        """
        await self.synchroniser.synchronise()
        self.controller.start(self._settings.workers)

    async def stop(self) -> None:
        """Finish the passes in hand."""
        await self.controller.stop(STOP_PATIENCE)
        await self._gatherer.close()

    def notice_jump(self) -> float:
        """Look again at everything after the clock of people was set; the seconds that it jumped.

        What is due at a time was put off by seconds, which the jump has made wrong.
        """
        drift = self._difference()
        jumped, self._drift = drift - self._drift, drift
        if abs(jumped) >= SMALLEST_JUMP:
            self.queue.add_all(self.store.refs())
            return jumped
        return 0.0

    def _difference(self) -> float:
        return self._clocks.now() / NANOS_PER_SECOND - self._clocks.seconds()


SMALLEST_JUMP = 5.0
"""Seconds: clocks that are kept in step move by less between two looks."""


def allowed_submitters(asked: Iterable[Submitter], *, is_local: bool) -> frozenset[Submitter]:
    """Who may start jobs: the operator itself where it was started for that, and only there."""
    others = frozenset(asked) - {Submitter.LOCAL}
    return others | {Submitter.LOCAL} if is_local else others
