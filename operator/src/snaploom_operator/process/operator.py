"""The operator process: the operator over any cluster, endpoints, leader election and shutdown."""

import asyncio
import gc
import logging
import math
import os
import random
import socket
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from prometheus_client import CollectorRegistry, Gauge

from snaploom.errors import SnaploomError
from snaploom.models import common
from snaploom.models.allowances import ALLOW_VARIABLE
from snaploom.models.common import NANOS_PER_SECOND, EpochNanos
from snaploom.models.fieldtransformer import MetadataApplicator
from snaploom.models.run import Submitter
from snaploom.policy.variables import NAMESPACE_VARIABLE, URL_VARIABLE
from snaploom.sources.databases.declared import ALLOW_URL_VARIABLE
from snaploom_operator.apply import executor
from snaploom_operator.apply.events import EventRecorder, queued_events
from snaploom_operator.apply.executor import ActionBackoff, Executor
from snaploom_operator.cluster.certificates import CertificateRotator
from snaploom_operator.cluster.client import account_reference, is_in_pod, open_cluster
from snaploom_operator.cluster.lease import LeaderElector, leading
from snaploom_operator.cluster.port import OURS, Cluster
from snaploom_operator.decide.decide import decide
from snaploom_operator.decide.runview import DecideSettings
from snaploom_operator.decision import Decision, ObservedResource, Unparsable
from snaploom_operator.errors import ApiUnavailable, ClusterError, NotAllowed, ResourceUnknown
from snaploom_operator.gather.gatherer import Gatherer, Unjudged
from snaploom_operator.objects import Ref, about
from snaploom_operator.process.process import Process
from snaploom_operator.queues import WorkQueue
from snaploom_operator.serve import health
from snaploom_operator.serve.http import serving
from snaploom_operator.serve.metrics import Metrics, Outcome, StateCollector
from snaploom_operator.settings import KUEUE, OperatorSettings
from snaploom_operator.store.feed import Feed, Watched, compare_kinds, watched_kinds
from snaploom_operator.store.store import Store
from snaploom_operator.submit.applications import FORMS
from snaploom_operator.submit.localrunner import LocalRunner, job_environment
from snaploom_operator.verdicts import TextVerdicts, running_workers

# The reconcile loop: workers that take keys from the queue, one pass each.

_log = logging.getLogger(__name__)


Decide = Callable[[ObservedResource | Unparsable], Decision]


SENTINEL = Ref("Sentinel", "", "")
"""A key without a resource: processing it is the loop's heartbeat."""
HEARTBEAT = 15.0
"""Interval of the heartbeat; liveness fails after sixty seconds without one."""


class Controller:
    """Reconciles resources; its clock is the queue's, in monotonic seconds.

    `backoff` requeues resources whose pass failed.
    """

    def __init__(
        self,
        gatherer: Gatherer,
        decide: Decide,
        executor: Executor,
        backoff: ActionBackoff,
        queue: WorkQueue[Ref],
        clock: Callable[[], float],
        metrics: Metrics,
    ) -> None:
        self._gatherer = gatherer
        self._decide = decide
        self._executor = executor
        self._backoff = backoff
        self._queue = queue
        self._clock = clock
        self._metrics = metrics
        self._workers: set[asyncio.Task[None]] = set()
        self._idle: set[asyncio.Task[None]] = set()
        self._is_stopping = False
        self._last_beat = clock()

    @property
    def seconds_since_heartbeat(self) -> float:
        """Seconds since the last heartbeat of the loop."""
        return self._clock() - self._last_beat

    def start(self, workers: int) -> None:
        self._last_beat = self._clock()
        self._queue.add(SENTINEL)
        for number in range(workers):
            task = asyncio.create_task(self._work(), name=f"worker {number}")
            self._workers.add(task)

    async def stop(self, timeout: float) -> None:
        """Finish the current passes, and start no others; cancel them after some seconds."""
        self._is_stopping = True
        for task in self._idle:
            task.cancel()
        if self._workers:
            _, late = await asyncio.wait(self._workers, timeout=timeout)
            for task in late:
                task.cancel()
            await asyncio.gather(*self._workers, return_exceptions=True)
        self._workers.clear()

    async def _work(self) -> None:
        task = asyncio.current_task()
        assert task is not None  # a coroutine that runs is in one
        while not self._is_stopping:
            self._idle.add(task)
            try:
                key = await self._queue.take()
            finally:
                self._idle.discard(task)
            try:
                await self.reconcile(key)
            finally:
                self._queue.done(key)
            # A pass without a request never awaits; probes and the Lease need their turn.
            await asyncio.sleep(0)

    async def reconcile(self, key: Ref) -> None:
        """One pass; raises only CancelledError."""
        if key == SENTINEL:
            self._last_beat = self._clock()
            self._queue.add_after(SENTINEL, HEARTBEAT)
            return
        started = time.perf_counter()
        try:
            outcome = await self._outcome(key)
        except Exception:  # noqa: BLE001 - a crash with one resource must not stop the others
            outcome = Outcome.CRASHED
            delay = self._queue.fail(key)
            _log.exception("reconciling crashed; retry in %.0f s", delay, extra=about(key))
        if outcome is Outcome.GONE:
            self._metrics.forget(key)
        self._metrics.passed(key.kind, outcome, time.perf_counter() - started)

    async def _outcome(self, key: Ref) -> Outcome:
        """Make a pass; raises only what nobody foresaw, and CancelledError."""
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


STOP_SECONDS = 20.0
"""Seconds to finish the current passes at shutdown: less than the thirty of a pod."""


@dataclass(frozen=True)
class Clocks:
    """Wall clock and monotonic clock."""

    now: Callable[[], EpochNanos] = common.now
    """Wall clock; it may jump."""
    seconds: Callable[[], float] = time.monotonic
    """Monotonic seconds."""


class Operator:
    """The composed operator; with `is_local` it runs jobs itself (rule R10).

    `chance` gives random numbers between 0 and 1, for jitter.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: OperatorSettings,
        recorder: executor.Recorder,
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
            on_watch=metrics.recoveries.watch_began,
            on_missed=metrics.recoveries.watch_missed,
        )
        refresh = executor.StoreRefresh(self.store, cluster, self.queue.add_all)
        actions = executor.ActionBackoff(
            self.store,
            self.queue,
            executor.ActionRunner(cluster, refresh),
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
            self._gatherer,
            partial(decide, settings=DecideSettings.of(settings, is_local=is_local)),
            executor.Executor(cluster, actions, refresh, self.queue, recorder, metrics),
            actions,
            self.queue,
            clocks.seconds,
            metrics,
        )
        self.metrics.registry.register(
            StateCollector(self.store, self.queue, self.feed.ages, clocks.now)
        )

    async def start(self) -> None:
        """List everything, and start the workers.

        Raises:
            ClusterError: a list failed, or our kinds are not installed.
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
    return watched_kinds(
        forms,
        is_namespaced=bool(settings.watch_namespaces),
        has_kueue=settings.queue_scheduler in KUEUE,
    )


CLOCK_CHECK_SECONDS = 20.0
"""Interval of checking for clock changes."""

LEADERSHIP_LOST = ClusterError(
    "leadership lost: another operator acquired the Lease, or the API server was unreachable",
    hint="nothing: the pod starts again and waits until it leads; if it repeats, check the network "
    "to the API server",
)


@dataclass(frozen=True)
class RunOptions:
    """The cluster, and how the operator runs there."""

    kubeconfig: Path | None = None
    context: str | None = None
    is_local: bool = False
    """Whether it runs jobs itself, without leader election."""
    local_workers: int = 1
    """Concurrent local jobs."""


@dataclass(frozen=True)
class Running:
    """A running operator."""

    operator: Operator
    metrics_port: int

    @property
    def feed(self) -> Feed:
        return self.operator.feed

    @property
    def trouble(self) -> str:
        seconds = self.operator.controller.seconds_since_heartbeat
        if seconds > health.HEARTBEAT_TIMEOUT:
            return f"no heartbeat of the reconcile loop for {seconds:.0f} seconds"
        return ""


@asynccontextmanager
async def running_operator(
    process: Process[Running],
    settings: OperatorSettings,
    options: RunOptions,
    clocks: Clocks | None = None,
) -> AsyncIterator[Running]:
    """Run the operator until the end of the context, then finish the current passes.

    Raises:
        SettingsInvalid: no cluster is configured, or a port is in use.
        ClusterError: a request failed, or our kinds are not installed.
    """
    metrics = Metrics(CollectorRegistry())
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(
            open_cluster(options.kubeconfig, metrics.requested, options.context)
        )
        identity = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        recorder = EventRecorder(cluster, socket.gethostname(), metrics.posted)
        operator = Operator(
            cluster,
            settings,
            await stack.enter_async_context(queued_events(recorder)),
            metrics,
            await stack.enter_async_context(running_workers()),
            is_local=options.is_local,
            clocks=clocks,
        )
        ready = health.readiness_application(
            lambda: "" if operator.store.is_synced else "the cache is not filled yet"
        )
        ports = []
        for name, application, port in (
            ("readiness", ready, settings.readiness_port),
            ("metrics", health.metrics_application(metrics.registry), settings.metrics_port),
        ):
            # With port 0 each address family would get another port.
            endpoint = serving(application, None if port else "127.0.0.1", port)
            ports.append(await stack.enter_async_context(endpoint))
            _log.info("%s on port %d", name, ports[-1])
        await _check_access(cluster, settings)
        if not options.is_local:
            owner = account_reference(settings.namespace) if is_in_pod(options.kubeconfig) else None
            elector = LeaderElector(cluster, settings.namespace, settings.lease, identity, owner)
            leads = metrics.recoveries.leads

            def on_lost() -> None:
                leads(is_leader=False)
                process.fail(LEADERSHIP_LOST)
                # At once: kopf ends its watches first, and another may lead meanwhile.
                process.spawn("stop", operator.controller.stop(STOP_SECONDS))

            await stack.enter_async_context(leading(elector, on_lost))
            leads(is_leader=True)
        await operator.start()
        stack.push_async_callback(operator.stop)
        process.spawn("resync", operator.feed.resync(settings.resync_seconds))
        process.spawn("clock", _watch_clock(operator))
        process.spawn("kinds", operator.follow_kinds())
        if options.is_local:
            environment = stack.enter_context(job_environment(options.kubeconfig, options.context))
            environment[ALLOW_VARIABLE] = settings.allow.dump_json()
            environment[ALLOW_URL_VARIABLE] = str(settings.allow_jdbc_url).lower()
            if settings.lineage.url:
                environment[URL_VARIABLE] = settings.lineage.url
                environment[NAMESPACE_VARIABLE] = settings.lineage.namespace
            jobs = LocalRunner(
                cluster, environment, settings.watch_namespaces, options.local_workers
            )
            process.spawn("jobs", jobs.run())
        else:
            process.spawn("certificate", _rotator(cluster, settings, metrics).run())
        # Listed objects are permanent: collecting ten thousand resources takes 0.3 s each time.
        gc.collect()
        gc.freeze()
        _log.info("the operator is running: %d resources", len(operator.store.refs()))
        yield Running(operator, ports[-1])
    _log.info("the operator has stopped")


async def _check_access(cluster: Cluster, settings: OperatorSettings) -> None:
    """Make one request before starting, so that configuration errors are reported at once."""
    rarest = OURS[MetadataApplicator.__name__]
    try:
        await cluster.list(rarest, namespace=next(iter(settings.watch_namespaces), None))
    except ResourceUnknown as error:
        raise ResourceUnknown(
            "Snaploom's CustomResourceDefinitions are not installed",
            found=error.message,
            expected="the CustomResourceDefinitions of snaploom.io",
        ) from error
    except NotAllowed as error:
        raise NotAllowed(
            "the operator's service account lacks a permission",
            found=error.message,
            expected="the rights that the chart grants",
            hint="with permissions in single namespaces only, set watchNamespaces (or --namespace)",
        ) from error
    except ApiUnavailable as error:
        raise ApiUnavailable(
            "the API server is unreachable",
            found=error.message,
            expected="an API server that can be reached",
            hint="try the same kubeconfig with kubectl",
        ) from error


async def _watch_clock(operator: Operator) -> None:
    while True:
        await asyncio.sleep(CLOCK_CHECK_SECONDS)
        # kopf's views of an object and the plans that are dropped are cycles: they hold megabytes
        # until the oldest generation is collected, which Python does rarely. An idle process has
        # none.
        if gc.get_count()[2]:
            gc.collect()
        jumped = operator.handle_clock_jump()
        if jumped:
            operator.metrics.recoveries.clock_jumped(jumped)


def _rotator(cluster: Cluster, settings: OperatorSettings, metrics: Metrics) -> CertificateRotator:
    ends = Gauge(
        "snaploom_webhook_certificate_expiry_timestamp_seconds",
        "Expiry of the webhook's certificate, in seconds since 1970.",
        registry=metrics.registry,
    )
    ends.set(math.nan)  # unknown if the certificate is managed elsewhere
    return CertificateRotator(cluster, settings, ends.set, metrics.recoveries.certificate_renewed)
