"""Metrics of single resources, computed from their statuses at scrape time."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from snaploom.models.common import ConditionStatus
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.resource import Resource
from snaploom.models.run import LastPhase
from snaploom.models.skippingindex import IndexState, SkippingIndex
from snaploom.models.times import NANOS_PER_SECOND, EpochNanos
from snaploom_operator.attempts import has_attempts
from snaploom_operator.conditions import ConditionType, Reason
from snaploom_operator.instants import known_instant
from snaploom_operator.objects import Ref
from snaploom_operator.observed import Unparsable
from snaploom_operator.store.store import Store

Content = Resource | Unparsable
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


def resource_metrics(store: Store, now: EpochNanos) -> Iterator[Metric]:
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


def _samples(ref: Ref, content: Content, now: EpochNanos) -> _Samples:
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
        is_fresh = condition.status is ConditionStatus.TRUE
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


def _age(instant: str, now: EpochNanos) -> float:
    """Seconds since a time of a status; 0 for a time in the future or an invalid one."""
    since = known_instant(instant)
    return 0.0 if since is None else max(0.0, (now - since) / NANOS_PER_SECOND)


def _ready_reason(content: Content) -> str:
    status = getattr(content, "status", None)
    conditions = status.conditions if status is not None else ()
    ready = (str(each.reason) for each in conditions if each.type == ConditionType.READY)
    return next(ready, "")
