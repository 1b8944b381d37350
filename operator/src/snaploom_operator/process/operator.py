"""Composes the operator over any cluster.

Endpoints and the Lease are added in `operatorprocess`, watches and signals by kopf in `handlers`.
Tests compose the same parts over a cluster in memory, with clocks of their own.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from snaploom.models import times
from snaploom.models.run import Submitter
from snaploom.models.times import NANOS_PER_SECOND, EpochNanos
from snaploom_operator.apply.actionbackoff import ActionBackoff
from snaploom_operator.apply.actionrunner import ActionRunner
from snaploom_operator.apply.executor import Executor, Recorder
from snaploom_operator.apply.storerefresh import StoreRefresh
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.decide.decide import decide
from snaploom_operator.decide.decisionsettings import DecideSettings
from snaploom_operator.gather.gatherer import Gatherer
from snaploom_operator.gather.servedkinds import compare_kinds
from snaploom_operator.objects import Ref
from snaploom_operator.operatormetrics import Metrics, StateCollector
from snaploom_operator.operatorsettings import OperatorSettings
from snaploom_operator.process.controller import Controller
from snaploom_operator.process.reconciler import Reconciler
from snaploom_operator.store.feed import Feed, Watched, watched_kinds
from snaploom_operator.store.store import Store
from snaploom_operator.submitters.forms import FORMS
from snaploom_operator.textverdicts import TextVerdicts
from snaploom_operator.workqueue import WorkQueue

STOP_SECONDS = 20.0
"""Seconds to finish the current passes at shutdown: less than the thirty of a pod."""


@dataclass(frozen=True)
class Clocks:
    """Wall clock and monotonic clock."""

    now: Callable[[], EpochNanos] = times.now
    """Wall clock; it may jump."""
    seconds: Callable[[], float] = time.monotonic
    """Monotonic seconds."""


class Operator:
    """The composed operator.

    Args: cluster: the cluster. settings: the operator's settings. recorder: posts events. metrics:
        the operator's metrics. verdicts: computes verdicts. is_local: whether it runs jobs
        itself (rule R10). clocks: the clocks. chance: random numbers between 0 and 1, for jitter.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: OperatorSettings,
        recorder: Recorder,
        metrics: Metrics,
        verdicts: TextVerdicts,
        *,
        is_local: bool = False,
        clocks: Clocks | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        clocks = clocks or Clocks()
        allowed = allowed_submitters(settings.submitters, is_local=is_local)
        forms = [FORMS[submitter] for submitter in FORMS if submitter in allowed]
        self._settings = settings
        self._cluster = cluster
        self._clocks = clocks
        self._drift = self._difference()
        self.metrics = metrics
        self.store = Store(forms, settings.limits)
        self.queue: WorkQueue[Ref] = WorkQueue(clocks.seconds, chance=chance)
        self.feed = Feed(
            self.store,
            cluster,
            operator_kinds(settings, is_local=is_local),
            settings.watch_namespaces,
            clocks.seconds,
            on_change=self.queue.add_all,
            submitters=allowed,
            observer=metrics.recoveries,
        )
        refresh = StoreRefresh(self.store, cluster, self.queue.add_all)
        actions = ActionBackoff(
            self.store,
            self.queue,
            ActionRunner(cluster, refresh),
            refresh,
            clocks.seconds,
            metrics,
        )
        self._gatherer = Gatherer(
            self.store,
            clocks.now,
            verdicts,
            self.queue.add,
            actions.refusal,
            allow_jdbc_url=settings.allow_jdbc_url,
            allow=settings.allow,
        )
        self.controller = Controller(
            Reconciler(
                self._gatherer,
                partial(decide, settings=DecideSettings.of(settings, is_local=is_local)),
                Executor(cluster, actions, refresh, self.queue, recorder, metrics),
                actions,
            ),
            self.queue,
            clocks.seconds,
            metrics,
        )
        self.metrics.registry.register(
            StateCollector(self.store, self.queue, self.feed.ages, clocks.now)
        )

    async def start(self) -> None:
        """List everything, and start the workers.

        Raises: ClusterError: a list failed, or our kinds are not installed.
        """
        await compare_kinds(self._cluster, self.store)
        await self.feed.list_all()
        self.controller.start(self._settings.workers)

    async def follow_kinds(self) -> None:
        """Compare the served kinds in the interval of resyncs, and while one is outdated sooner."""
        while True:
            often = OUTDATED_SECONDS if self.store.outdated else math.inf
            await asyncio.sleep(min(often, self._settings.resync_seconds))
            self.queue.add_all(await compare_kinds(self._cluster, self.store))

    async def stop(self) -> None:
        """Finish the current passes."""
        await self.controller.stop(STOP_SECONDS)
        await self._gatherer.close()

    def handle_clock_jump(self) -> float:
        """Requeue everything after a change of the wall clock; the seconds of the jump.

        Keys that are due at a wall-clock time were delayed by monotonic seconds, which are wrong
        now.
        """
        drift = self._difference()
        jumped, self._drift = drift - self._drift, drift
        if abs(jumped) >= SMALLEST_JUMP:
            self.queue.add_all(self.store.refs())
            return jumped
        return 0.0

    def _difference(self) -> float:
        return self._clocks.now() / NANOS_PER_SECOND - self._clocks.seconds()


OUTDATED_SECONDS = 20.0
"""Interval of looking at served kinds while one of them is outdated."""
SMALLEST_JUMP = 5.0
"""Seconds: synchronized clocks are adjusted by less between two checks."""


def allowed_submitters(asked: Iterable[Submitter], *, is_local: bool) -> frozenset[Submitter]:
    """The usable submitters: `Local` is added with `--local`, and removed without it."""
    others = frozenset(asked) - {Submitter.LOCAL}
    return others | {Submitter.LOCAL} if is_local else others


def operator_kinds(settings: OperatorSettings, *, is_local: bool) -> tuple[Watched, ...]:
    """The kinds that the operator watches."""
    allowed = allowed_submitters(settings.submitters, is_local=is_local)
    forms = (FORMS[submitter] for submitter in FORMS if submitter in allowed)
    return watched_kinds(forms, is_namespaced=bool(settings.watch_namespaces))
