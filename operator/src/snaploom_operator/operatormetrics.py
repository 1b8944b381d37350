"""The operator's Prometheus metrics; `docs/reference/metrics.md` lists them.

Counters and histograms are updated as events happen. Gauges that follow from the store (runs in
flight, metrics of single resources) are computed at scrape time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import StrEnum
from itertools import product

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from snaploom.models.common import ResourceStatus
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.run import LastPhase
from snaploom.models.skippingindex import SkippingIndex
from snaploom.models.times import EpochNanos
from snaploom.version import VERSION
from snaploom_operator.endedruns import ended_run
from snaploom_operator.objects import Ref
from snaploom_operator.recoveries import Recoveries
from snaploom_operator.remedies import EVERY_REMEDY
from snaploom_operator.resourcemetrics import resource_metrics
from snaploom_operator.store.store import Store
from snaploom_operator.workqueue import WorkQueue

PASS_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Seconds: a pass without a request takes one millisecond, one with several some ten."""
RUN_BUCKETS = (10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 14_400.0, 43_200.0)
"""Seconds: from a small job, of which most is its start, to half a day."""
RUNNABLE = (OutputDataset.__name__, SkippingIndex.__name__)
EVENT_OUTCOMES = ("new", "counted", "left-out", "failed")
"""Label values of `snaploom_events`; see `snaploom_operator.apply.eventrecorder`."""
REQUEST_BUCKETS = (0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)

OTHER_REASON = "Other"
"""Label of runs that failed for an undocumented reason."""


class Outcome(StrEnum):
    """The outcome of a reconcile pass."""

    UNCHANGED = "unchanged"
    """There was nothing to do."""
    CHANGED = "changed"
    """An action or a status was written."""
    GONE = "gone"
    """The resource is gone."""
    FAILED = "failed"
    """The cluster refused something, or did not answer."""
    CRASHED = "crashed"
    """Snaploom's own code failed."""


class Metrics:
    """Counters and histograms that are updated as events happen.

    Args:
        registry: the registry of the process.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.recoveries = Recoveries(registry)
        """Metrics of outages, restarts and leadership."""
        build = Gauge(
            "snaploom_build_info",
            "Constant 1, with the version as a label.",
            ["version"],
            registry=registry,
        )
        build.labels(VERSION).set(1)
        self._passes = Histogram(
            "snaploom_reconcile_seconds",
            "Duration of a reconcile pass.",
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
        self._runs = Histogram(
            "snaploom_run_seconds",
            "Duration of a run that ended.",
            ["kind", "phase"],
            buckets=RUN_BUCKETS,
            registry=registry,
        )
        self._run_failures = Counter(
            "snaploom_run_failures",
            "Failed runs, by reason.",
            ["kind", "reason"],
            registry=registry,
        )
        self._snapshots = Counter(
            "snaploom_published_snapshots",
            "Snapshots that runs published.",
            ["namespace", "name"],
            registry=registry,
        )
        self._rows = Counter(
            "snaploom_published_rows",
            "Rows of snapshots that runs published.",
            ["namespace", "name"],
            registry=registry,
        )
        self._bytes = Counter(
            "snaploom_published_bytes",
            "Size of snapshots that runs published.",
            ["namespace", "name"],
            registry=registry,
        )
        self._events = Counter(
            "snaploom_events",
            "Kubernetes events, by outcome.",
            ["outcome"],
            registry=registry,
        )
        # Initialized with 0: Prometheus sees no increase in a series that begins with 1.
        for outcome in EVENT_OUTCOMES:
            self._events.labels(outcome)
        for kind, phase in product(RUNNABLE, LastPhase):
            self._runs.labels(kind, phase.value)

    def passed(self, kind: str, outcome: Outcome, seconds: float) -> None:
        """Count a reconcile pass."""
        self._passes.labels(kind, outcome.value).observe(seconds)

    def failed(self, reason: str) -> None:
        """Count a failed pass by reason."""
        self._failures.labels(reason).inc()

    def requested(self, verb: str, resource: str, code: int, seconds: float) -> None:
        """Count an API request; code 0 means no answer."""
        self._requests.labels(verb, resource, str(code)).observe(seconds)
        if code:
            self.recoveries.answered()
        else:
            self.recoveries.not_answered()

    def status_changed(
        self, resource: Ref, before: ResourceStatus | None, after: ResourceStatus
    ) -> None:
        """Count the run that ended between two statuses of a resource, and what it published."""
        ended = ended_run(before, after)
        if ended is None:
            return
        self.run_ended(resource.kind, ended.phase, ended.reason, ended.seconds)
        if ended.published:
            place = resource.namespace, resource.name
            self._snapshots.labels(*place).inc(ended.published)
            self._rows.labels(*place).inc(ended.rows)
            self._bytes.labels(*place).inc(ended.bytes)

    def forget(self, resource: Ref) -> None:
        """Drop the series of an output that is gone: names come and go without end."""
        if resource.kind != OutputDataset.__name__:
            return
        for series in (self._snapshots, self._rows, self._bytes):
            with suppress(KeyError):
                series.remove(resource.namespace, resource.name)

    def run_ended(self, kind: str, phase: str, reason: str, seconds: float | None) -> None:
        """Count an ended run; `reason` of a failure, `seconds` None if its end was not observed."""
        if seconds is not None:
            self._runs.labels(kind, phase).observe(seconds)
        if phase != LastPhase.SUCCEEDED:
            # Reasons come from Reports: anyone with write access to ConfigMaps could create series.
            known = reason if reason in EVERY_REMEDY else OTHER_REASON
            self._run_failures.labels(kind, known).inc()

    def posted(self, outcome: str) -> None:
        """Count an event by what happened to it."""
        self._events.labels(outcome).inc()


class StateCollector(Collector):
    """Gauges that are computed from the store at scrape time.

    Args:
        store: the observed objects.
        queue: the work queue.
        watch_ages: seconds since the last event of each watch, by kind.
        clock: the current time.
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
        """The current metrics."""
        yield _single(
            "snaploom_queue_depth", "Resources that wait in the work queue.", self._queue.depth
        )
        yield _single(
            "snaploom_queue_age_seconds",
            "Seconds that the first of them has waited.",
            self._queue.age,
        )
        runs = self._store.queue
        yield _single("snaploom_runs_in_flight", "Runs submitted or running.", runs.in_flight)
        yield _single("snaploom_runs_waiting", "Runs that wait for a slot.", runs.waiting)
        ages = GaugeMetricFamily(
            "snaploom_watch_age_seconds",
            "Seconds since the last event of a watch.",
            labels=["kind"],
        )
        for kind, age in self._watch_ages().items():
            ages.add_metric([kind], age)
        yield ages
        unreadable = GaugeMetricFamily(
            "snaploom_unreadable_objects",
            "Objects that are kept though they cannot be read, by kind.",
            labels=["kind"],
        )
        for kind, count in self._store.unreadable().items():
            unreadable.add_metric([kind], count)
        yield unreadable
        yield from resource_metrics(self._store, self._clock())


def _single(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)
