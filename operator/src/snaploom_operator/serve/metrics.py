"""The operator's Prometheus metrics; `docs/reference/metrics.md` lists them."""

import logging
import time
from collections import Counter as Tally
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import StrEnum
from functools import partial
from itertools import product

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from snaploom.errors import problems
from snaploom.installed import VERSION
from snaploom.models import common
from snaploom.models.outputdataset import OutputDataset, OutputDatasetStatus
from snaploom.models.run import LastPhase, LastRun
from snaploom.models.skippingindex import IndexState, SkippingIndex, SkippingIndexStatus
from snaploom_operator.conditions import ConditionType, Reason
from snaploom_operator.decide.runview import has_attempts
from snaploom_operator.decision import Unparsable
from snaploom_operator.objects import Ref, known_instant
from snaploom_operator.queues import WorkQueue
from snaploom_operator.store.store import Store

_log = logging.getLogger(__name__)


def _last(status: common.ResourceStatus | None) -> LastRun | None:
    if isinstance(status, OutputDatasetStatus | SkippingIndexStatus):
        return status.last_run
    return None


Content = common.Resource | Unparsable
_Samples = Iterator[tuple[str, list[str], float]]
"""Name of a metric, values of its labels, and its value."""

_FRESHNESS = (ConditionType.SNAPSHOT_FRESH, ConditionType.INDEX_FRESH)
_GONE = (IndexState.DELETING, IndexState.DELETED, IndexState.VACUUMING)
"""States of an index that queries do not use any more."""
_INTENDED_STOPS = (Reason.RUN_STOPPED.value, Reason.DELETING.value)
"""Reasons of stopped runs that are no failures."""

_NAMED = ("namespace", "name")
_RUNNABLE = ("kind", *_NAMED)
_GAUGES = (
    ("snaploom_resources", "Resources by the reason of Ready.", ("kind", "reason")),
    (
        "snaploom_snapshot_age_seconds",
        "Since the newest snapshot of an output was published.",
        _NAMED,
    ),
    ("snaploom_snapshot_rows", "Rows of the newest snapshot.", _NAMED),
    ("snaploom_snapshot_bytes", "Size of the newest snapshot.", _NAMED),
    ("snaploom_fresh", "Whether what is published or indexed is fresh: 1 while it is.", _RUNNABLE),
    (
        "snaploom_run_phase_age_seconds",
        "Since the run in flight entered its phase.",
        (*_RUNNABLE, "phase"),
    ),
    (
        "snaploom_last_run_failed",
        "1 for a resource whose last run did not end well.",
        (*_RUNNABLE, "reason"),
    ),
    (
        "snaploom_no_attempt_follows",
        "1 for a resource whose last run did not end well, and is not tried again but by the "
        "schedule, a change or a request.",
        (*_RUNNABLE, "reason"),
    ),
    (
        "snaploom_index_covered_ratio",
        "Share of the target's files that queries may skip: those that the index knows.",
        _NAMED,
    ),
    (
        "snaploom_index_usable",
        "Whether queries can use an index that is enabled: 1 while they can.",
        _NAMED,
    ),
)


def resource_metrics(store: Store, now: common.EpochNanos) -> Iterator[Metric]:
    """The metrics of every resource of a store, with their ages now."""
    families = {
        name: GaugeMetricFamily(name, text, labels=labels) for name, text, labels in _GAUGES
    }
    tally: Tally[tuple[str, str]] = Tally()
    for ref, content in store.resources():
        tally[ref.kind, _ready_reason(content)] += 1
        for name, labels, value in _samples(ref, content, now):
            families[name].add_metric(labels, value)
    for (kind, reason), count in sorted(tally.items()):
        families["snaploom_resources"].add_metric([kind, reason], count)
    return iter(families.values())


def _samples(ref: Ref, content: Content, now: common.EpochNanos) -> _Samples:
    if not isinstance(content, OutputDataset | SkippingIndex) or content.status is None:
        return
    named, runnable = [ref.namespace, ref.name], [ref.kind, ref.namespace, ref.name]
    current, last = content.status.current_run, content.status.last_run
    if current is not None:
        yield "snaploom_run_phase_age_seconds", [*runnable, current.phase], _age(current.since, now)
    has_failed = last is not None and last.phase is not LastPhase.SUCCEEDED
    if last is not None and has_failed and last.reason not in _INTENDED_STOPS:
        yield "snaploom_last_run_failed", [*runnable, last.reason], 1
        if current is None and not has_attempts(last, content.spec.run.retry):
            yield "snaploom_no_attempt_follows", [*runnable, last.reason], 1
    for condition in content.status.conditions:
        is_fresh = condition.status is common.ConditionStatus.TRUE
        # A resource without a snapshot is not stale; other metrics cover it.
        is_known = is_fresh or condition.reason == Reason.STALE
        if condition.type in _FRESHNESS and is_known:
            yield "snaploom_fresh", runnable, int(is_fresh)
    if isinstance(content, SkippingIndex):
        yield from _index_samples(named, content)
    elif content.status.latest_snapshot is not None:
        latest = content.status.latest_snapshot
        yield "snaploom_snapshot_age_seconds", named, _age(latest.published_at, now)
        yield "snaploom_snapshot_rows", named, latest.rows
        yield "snaploom_snapshot_bytes", named, latest.bytes


def _index_samples(named: list[str], index: SkippingIndex) -> _Samples:
    assert index.status is not None
    files = index.status.files
    total = 0 if files is None else files.indexed + files.stale + files.missing
    if files is not None and total:
        yield "snaploom_index_covered_ratio", named, files.indexed / total
    if index.spec.enabled:
        is_built = index.status.last_refreshed is not None
        yield "snaploom_index_usable", named, int(is_built and index.status.state not in _GONE)


def _age(instant: str, now: common.EpochNanos) -> float:
    """Seconds since a time of a status; 0 for a time in the future or an invalid one."""
    since = known_instant(instant)
    return 0.0 if since is None else max(0.0, (now - since) / common.NANOS_PER_SECOND)


def _ready_reason(content: Content) -> str:
    status = getattr(content, "status", None)
    conditions = status.conditions if status is not None else ()
    ready = (str(each.reason) for each in conditions if each.type == ConditionType.READY)
    return next(ready, "")


UNANSWERED = 3
"""Consecutive requests without an answer after which the API server counts as unreachable: a single
one may be lost with its connection."""


class Recoveries:
    """Counts and logs recoveries."""

    def __init__(self, registry: CollectorRegistry) -> None:
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        self._unanswered = 0
        self._unanswered_since = 0.0
        self._reachable = gauge(
            "snaploom_api_reachable", "Whether the API server answers: 1 while it does."
        )
        self._reachable.set(1)
        self._outages = counter("snaploom_api_outages", "Outages of the API server.")
        self._beginnings = counter(
            "snaploom_watch_beginnings", "Starts and restarts of a watch.", ["kind"]
        )
        self._missed = counter(
            "snaploom_watch_missed",
            "Changes that a list found before the watch reported them.",
            ["kind"],
        )
        self._jumps = counter("snaploom_clock_jumps", "Changes of the system clock.")
        self._leader = gauge("snaploom_leader", "Whether this process holds the Lease.")
        self._leaderships = counter(
            "snaploom_leadership_changes", "Leases gained and lost.", ["change"]
        )
        self._renewals = counter(
            "snaploom_webhook_certificate_renewals", "Renewals of the webhook's certificate."
        )

    def answered(self) -> None:
        if self._unanswered >= UNANSWERED:
            self._reachable.set(1)
            away = time.monotonic() - self._unanswered_since
            _log.warning("the API server is reachable again after %.0f s", away)
        self._unanswered = 0

    def not_answered(self) -> None:
        if self._unanswered == 0:
            self._unanswered_since = time.monotonic()
        self._unanswered += 1
        if self._unanswered == UNANSWERED:
            self._reachable.set(0)
            self._outages.inc()
            _log.warning("the API server is unreachable")

    def watch_began(self, kind: str) -> None:
        self._beginnings.labels(kind).inc()
        _log.info("the watch of %s started", kind)

    def watch_missed(self, kind: str, changes: int) -> None:
        """Count changes that a list found before the watch reported them."""
        self._missed.labels(kind).inc(changes)

    def clock_jumped(self, seconds: float) -> None:
        self._jumps.inc()
        _log.warning("the clock changed by %.0f s; reconciling all resources", seconds)

    def leads(self, *, is_leader: bool) -> None:
        """Record that leadership was gained or lost; `cluster.lease` logs it."""
        self._leader.set(is_leader)
        self._leaderships.labels("gained" if is_leader else "lost").inc()

    def certificate_renewed(self) -> None:
        """Record a renewal of the webhook's certificate; `cluster.certificates` logs it."""
        self._renewals.inc()


PASS_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Seconds: a pass without a request takes one millisecond, one with several some ten."""
RUN_BUCKETS = (10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 14_400.0, 43_200.0)
"""Seconds: from a small job, of which most is its start, to half a day."""
RUNNABLE = (OutputDataset.__name__, SkippingIndex.__name__)
EVENT_OUTCOMES = ("new", "counted", "left-out", "failed")
"""Label values of `snaploom_events`; see `snaploom_operator.apply.events`."""
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
    FAILED = "failed"
    """The cluster refused something, or did not answer."""
    CRASHED = "crashed"
    """Snaploom's own code failed."""


class Metrics:
    """Counters and histograms that are updated as events happen."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.recoveries = Recoveries(registry)
        """Metrics of outages, restarts and leadership."""
        counter = partial(Counter, registry=registry)
        histogram = partial(Histogram, registry=registry)
        text = "Constant 1, with the version as a label."
        Gauge("snaploom_build_info", text, ["version"], registry=registry).labels(VERSION).set(1)
        self._passes = histogram(
            "snaploom_reconcile_seconds",
            "Duration of a reconcile pass.",
            ["kind", "outcome"],
            buckets=PASS_BUCKETS,
        )
        self._failures = counter(
            "snaploom_reconcile_failures", "Passes that failed, by reason.", ["reason"]
        )
        self._requests = histogram(
            "snaploom_api_request_seconds",
            "Duration of a request to the API server.",
            ["verb", "resource", "code"],
            buckets=REQUEST_BUCKETS,
        )
        self._runs = histogram(
            "snaploom_run_seconds",
            "Duration of a run that ended.",
            ["kind", "phase"],
            buckets=RUN_BUCKETS,
        )
        self._run_failures = counter(
            "snaploom_run_failures", "Failed runs, by reason.", ["kind", "reason"]
        )
        of = ["namespace", "name"]
        self._snapshots, self._rows, self._bytes = (
            counter("snaploom_published_snapshots", "Snapshots that runs published.", of),
            counter("snaploom_published_rows", "Rows of snapshots that runs published.", of),
            counter("snaploom_published_bytes", "Size of snapshots that runs published.", of),
        )
        self._events = counter("snaploom_events", "Kubernetes events, by outcome.", ["outcome"])
        # Initialized with 0: Prometheus sees no increase in a series that begins with 1.
        for outcome in EVENT_OUTCOMES:
            self._events.labels(outcome)
        for kind, phase in product(RUNNABLE, LastPhase):
            self._runs.labels(kind, phase.value)

    def passed(self, kind: str, outcome: Outcome, seconds: float) -> None:
        self._passes.labels(kind, outcome.value).observe(seconds)

    def failed(self, reason: str) -> None:
        self._failures.labels(reason).inc()

    def requested(self, verb: str, resource: str, code: int, seconds: float) -> None:
        """Count an API request; code 0 means no answer."""
        self._requests.labels(verb, resource, str(code)).observe(seconds)
        if code:
            self.recoveries.answered()
        else:
            self.recoveries.not_answered()

    def status_changed(
        self, resource: Ref, before: common.ResourceStatus | None, after: common.ResourceStatus
    ) -> None:
        """Count the run that ended between two statuses of a resource, and what it published."""
        was, ended = _last(before), _last(after)
        if ended is None or (
            was is not None and (was.id, was.attempt) == (ended.id, ended.attempt)
        ):
            return
        seconds = None
        if ended.finished_at is not None:
            nanos = common.parse_instant(ended.finished_at) - common.parse_instant(ended.started_at)
            seconds = max(0.0, nanos / common.NANOS_PER_SECOND)
        self.run_ended(resource.kind, ended.phase, ended.reason, seconds)
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
            known = reason if reason in problems() else OTHER_REASON
            self._run_failures.labels(kind, known).inc()

    def posted(self, outcome: str) -> None:
        self._events.labels(outcome).inc()


class StateCollector(Collector):
    """Gauges that are computed from the store at scrape time; `watch_ages` are by kind."""

    def __init__(
        self,
        store: Store,
        queue: WorkQueue[Ref],
        watch_ages: Callable[[], dict[str, float]],
        clock: Callable[[], common.EpochNanos],
    ) -> None:
        self._store = store
        self._queue = queue
        self._watch_ages = watch_ages
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
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
