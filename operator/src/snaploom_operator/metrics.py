"""What Prometheus can ask of the operator; `docs/reference/metrics.md` lists all of it.

Counters and durations are counted as things happen. What follows from the store (runs in flight,
and the figures of single resources) is read when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from itertools import product

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

import snaploom
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.run import LastPhase
from snaploom.models.skippingindex import SkippingIndex
from snaploom.models.times import EpochNanos
from snaploom_operator.figures import resource_figures
from snaploom_operator.knowledge.store import Store
from snaploom_operator.objects import Ref
from snaploom_operator.recoveries import Recoveries
from snaploom_operator.remedies import EVERY_REMEDY
from snaploom_operator.workqueue import WorkQueue

PASS_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Seconds: a pass without a request takes one millisecond, one with several some ten."""
RUN_BUCKETS = (10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 14_400.0, 43_200.0)
"""Seconds: from a small job, of which most is its start, to half a day."""
RUNNABLE = (OutputDataset.__name__, SkippingIndex.__name__)
EVENT_OUTCOMES = ("new", "counted", "left-out", "failed")
"""What becomes of events; `snaploom_operator.acting.events` says which is which."""
REQUEST_BUCKETS = (0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)

OTHER_REASON = "Other"
"""Label of runs that failed for a reason that is none of ours."""


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
        build = Gauge(
            "snaploom_build_info",
            "1, with our version.",
            ["version"],
            registry=registry,
        )
        build.labels(snaploom.__version__).set(1)
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
            "Events about resources, by what became of them.",
            ["outcome"],
            registry=registry,
        )
        # Told from the beginning: a series that begins with 1 never was seen to grow.
        for outcome in EVENT_OUTCOMES:
            self._events.labels(outcome)
        for kind, phase in product(RUNNABLE, LastPhase):
            self._runs.labels(kind, phase.value)

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
            # A Report says it, and whoever may write ConfigMaps could make a series of every word.
            known = reason if reason in EVERY_REMEDY else OTHER_REASON
            self._run_failures.labels(kind, known).inc()

    def published(self, output: Ref, snapshots: int, rows: int, size: int) -> None:
        """A run that ended published something; the size is in bytes."""
        place = output.namespace, output.name
        self._snapshots.labels(*place).inc(snapshots)
        self._rows.labels(*place).inc(rows)
        self._bytes.labels(*place).inc(size)

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
        yield from resource_figures(self._store, self._clock())


def _single(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)
