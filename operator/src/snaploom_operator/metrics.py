"""What Prometheus can ask of the operator; `docs/reference` explains each metric.

Counters and durations are counted as things happen. What follows from the store (runs in flight,
resources that are not ready, ages of snapshots) is read when it is asked for.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterator
from enum import StrEnum

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from snaploom.models.outputdataset import OutputDataset
from snaploom.models.report import LatestSnapshot
from snaploom.models.resource import Resource
from snaploom.models.run import LastPhase
from snaploom.models.skippingindex import SkippingIndex
from snaploom.models.times import NANOS_PER_SECOND, EpochNanos
from snaploom_operator.conditions import ConditionType
from snaploom_operator.instants import known_instant
from snaploom_operator.knowledge.parsing import Refused
from snaploom_operator.knowledge.store import Store
from snaploom_operator.objects import Ref
from snaploom_operator.recoveries import Recoveries
from snaploom_operator.workqueue import WorkQueue

PASS_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Seconds: a pass without a request takes one millisecond, one with several some ten."""
RUN_BUCKETS = (10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 14_400.0, 43_200.0)
"""Seconds: from a small job, of which most is its start, to half a day."""
REQUEST_BUCKETS = (0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)


class Outcome(StrEnum):
    """How a pass ended."""

    UNCHANGED = "unchanged"
    """There was nothing to do."""
    CHANGED = "changed"
    """It made a step."""
    GONE = "gone"
    """The resource is gone."""
    FAILED = "failed"
    """The cluster refused something, or did not answer."""
    CRASHED = "crashed"
    """Our own code failed."""


class Metrics:
    """What is counted as it happens.

    Args:
        registry: where it is counted; one a process.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.recoveries = Recoveries(registry)
        """What happened from outside."""
        self._passes = Histogram(
            "snaploom_reconcile_seconds",
            "Duration of a look at one resource.",
            ["kind", "outcome"],
            buckets=PASS_BUCKETS,
            registry=registry,
        )
        self._failures = Counter(
            "snaploom_reconcile_failures",
            "Passes that failed, by reason.",
            ["reason"],
            registry=registry,
        )
        self._requests = Histogram(
            "snaploom_api_request_seconds",
            "Duration of a request to the API server.",
            ["verb", "resource", "code"],
            buckets=REQUEST_BUCKETS,
            registry=registry,
        )
        self._missed = Counter(
            "snaploom_watch_missed",
            "Changes that a list found and no watch had told of.",
            ["kind"],
            registry=registry,
        )
        self._restarts = Counter(
            "snaploom_watch_restarts",
            "Times that all watches were begun anew, since one was dead or they gave up.",
            registry=registry,
        )
        self._runs = Histogram(
            "snaploom_run_seconds",
            "Duration of a run that ended.",
            ["kind", "phase"],
            buckets=RUN_BUCKETS,
            registry=registry,
        )
        self._run_failures = Counter(
            "snaploom_run_failures",
            "Runs that did not end well, by reason.",
            ["kind", "reason"],
            registry=registry,
        )
        self._events = Counter(
            "snaploom_events",
            "Events about resources, by what became of them.",
            ["outcome"],
            registry=registry,
        )

    def passed(self, kind: str, outcome: Outcome, seconds: float) -> None:
        """A pass ended."""
        self._passes.labels(kind, outcome.value).observe(seconds)

    def failed(self, reason: str) -> None:
        """A pass failed."""
        self._failures.labels(reason).inc()

    def requested(self, verb: str, resource: str, code: int, seconds: float) -> None:
        """A request was answered; code 0 for none."""
        self._requests.labels(verb, resource, str(code)).observe(seconds)
        if code:
            self.recoveries.answered()
        else:
            self.recoveries.not_answered()

    def missed(self, kind: str, count: int) -> None:
        """A list found changes that no watch had told of."""
        self._missed.labels(kind).inc(count)

    def restarted(self) -> None:
        """All watches were begun anew."""
        self._restarts.inc()

    def run_ended(self, kind: str, phase: str, reason: str, seconds: float | None) -> None:
        """A run ended; a reason where not well, no seconds where its end was not seen."""
        if seconds is not None:
            self._runs.labels(kind, phase).observe(seconds)
        if phase != LastPhase.SUCCEEDED:
            self._run_failures.labels(kind, reason).inc()

    def posted(self, outcome: str) -> None:
        """An event was written, counted up, left out, or could not be written."""
        self._events.labels(outcome).inc()


class StateCollector(Collector):
    """What follows from what the operator knows now.

    Args:
        store: what was last seen of the cluster.
        queue: the keys.
        watch_ages: seconds since each watch last told anything, by kind.
        clock: the time.
    """

    def __init__(
        self,
        store: Store,
        queue: WorkQueue[Ref],
        watch_ages: Callable[[], dict[str, float]],
        clock: Callable[[], EpochNanos],
    ) -> None:
        self._store = store
        self._queue = queue
        self._watch_ages = watch_ages
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        """The metrics, as of now."""
        yield _single("snaploom_queue_depth", "Resources that wait for a look.", self._queue.depth)
        yield _single(
            "snaploom_queue_age_seconds", "How long the first of them waits.", self._queue.age
        )
        runs = self._store.queue
        yield _single("snaploom_runs_in_flight", "Runs submitted or running.", runs.in_flight)
        yield _single("snaploom_runs_waiting", "Runs that wait for a slot.", runs.waiting)
        ages = GaugeMetricFamily(
            "snaploom_watch_age_seconds", "Since a watch last told anything.", labels=["kind"]
        )
        for kind, age in self._watch_ages().items():
            ages.add_metric([kind], age)
        yield ages
        yield from self._resources()

    def _resources(self) -> Iterator[Metric]:
        tally: Tally[tuple[str, str]] = Tally()
        snapshots = GaugeMetricFamily(
            "snaploom_snapshot_age_seconds",
            "Since the newest snapshot of an output was published.",
            labels=["namespace", "name"],
        )
        rows = GaugeMetricFamily(
            "snaploom_snapshot_rows", "Rows of the newest snapshot.", labels=["namespace", "name"]
        )
        size = GaugeMetricFamily(
            "snaploom_snapshot_bytes", "Size of the newest snapshot.", labels=["namespace", "name"]
        )
        covered = GaugeMetricFamily(
            "snaploom_index_covered_ratio",
            "Share of the target's files that queries may skip: those that the index knows.",
            labels=["namespace", "name"],
        )
        for ref, content in self._store.resources():
            tally[ref.kind, _ready(content)] += 1
            latest = _latest(content)
            if latest is not None:
                since = known_instant(latest.published_at) or self._clock()
                age = (self._clock() - since) / NANOS_PER_SECOND
                snapshots.add_metric([ref.namespace, ref.name], max(0.0, age))
                rows.add_metric([ref.namespace, ref.name], latest.rows)
                size.add_metric([ref.namespace, ref.name], latest.bytes)
            share = _covered(content)
            if share is not None:
                covered.add_metric([ref.namespace, ref.name], share)
        resources = GaugeMetricFamily(
            "snaploom_resources", "Resources by the reason of Ready.", labels=["kind", "reason"]
        )
        for (kind, reason), count in sorted(tally.items()):
            resources.add_metric([kind, reason], count)
        yield from (resources, snapshots, rows, size, covered)


def _single(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _ready(content: Resource | Refused) -> str:
    """The reason of its condition Ready; empty before it was looked at."""
    status = getattr(content, "status", None)
    if status is not None:
        for condition in status.conditions:
            if condition.type == ConditionType.READY:
                return str(condition.reason)
    return ""


def _latest(content: Resource | Refused) -> LatestSnapshot | None:
    if not isinstance(content, OutputDataset) or content.status is None:
        return None
    return content.status.latest_snapshot


def _covered(content: Resource | Refused) -> float | None:
    """The share of files that an index knows as they are; None without an index, or files."""
    if not isinstance(content, SkippingIndex) or content.status is None:
        return None
    files = content.status.files
    total = 0 if files is None else files.indexed + files.stale + files.missing
    return None if files is None or total == 0 else files.indexed / total
