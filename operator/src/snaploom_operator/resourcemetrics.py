"""Metrics of single resources, computed from their statuses at scrape time."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric

from snaploom.models.common import ConditionStatus, ResourceStatus
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.report import LatestSnapshot
from snaploom.models.resource import Resource
from snaploom.models.run import LastPhase, LastRun
from snaploom.models.skippingindex import IndexState, SkippingIndex
from snaploom.models.times import NANOS_PER_SECOND, EpochNanos
from snaploom_operator.attempts import has_attempts
from snaploom_operator.conditions import ConditionType, Reason
from snaploom_operator.instants import known_instant
from snaploom_operator.objects import Ref
from snaploom_operator.observed import Unparsable
from snaploom_operator.store.store import Store

Content = Resource | Unparsable

_FRESHNESS = (ConditionType.SNAPSHOT_FRESH, ConditionType.INDEX_FRESH)
_GONE = (IndexState.DELETING, IndexState.DELETED, IndexState.VACUUMING)
"""States of an index that queries do not use any more."""
_INTENDED_STOPS = (Reason.RUN_STOPPED.value, Reason.DELETING.value)
"""Reasons of stopped runs that are no failures."""


def resource_metrics(store: Store, now: EpochNanos) -> Iterator[Metric]:
    """The metrics of every resource of a store, with their ages now."""
    families = _Families(now)
    for ref, content in store.resources():
        families.take(ref, content)
    return families.families()


class _Families:
    def __init__(self, now: EpochNanos) -> None:
        self._now = now
        self._tally: Tally[tuple[str, str]] = Tally()
        output, runnable = ("namespace", "name"), ("kind", "namespace", "name")
        self._snapshot_age = _gauge(
            "snaploom_snapshot_age_seconds",
            "Since the newest snapshot of an output was published.",
            output,
        )
        self._rows = _gauge("snaploom_snapshot_rows", "Rows of the newest snapshot.", output)
        self._bytes = _gauge("snaploom_snapshot_bytes", "Size of the newest snapshot.", output)
        self._fresh = _gauge(
            "snaploom_fresh",
            "Whether what is published or indexed is fresh: 1 while it is.",
            runnable,
        )
        self._phase_age = _gauge(
            "snaploom_run_phase_age_seconds",
            "Since the run in flight entered its phase.",
            (*runnable, "phase"),
        )
        self._failed = _gauge(
            "snaploom_last_run_failed",
            "1 for a resource whose last run did not end well.",
            (*runnable, "reason"),
        )
        self._final = _gauge(
            "snaploom_no_attempt_follows",
            "1 for a resource whose last run did not end well, and is not tried again but by the "
            "schedule, a change or a request.",
            (*runnable, "reason"),
        )
        self._covered = _gauge(
            "snaploom_index_covered_ratio",
            "Share of the target's files that queries may skip: those that the index knows.",
            output,
        )
        self._usable = _gauge(
            "snaploom_index_usable",
            "Whether queries can use an index that is enabled: 1 while they can.",
            output,
        )

    def take(self, ref: Ref, content: Content) -> None:
        """Add one resource."""
        self._tally[ref.kind, _ready_reason(content)] += 1
        if not isinstance(content, OutputDataset | SkippingIndex) or content.status is None:
            return
        self._take_runs(ref, content)
        self._take_freshness(ref, content.status)
        if isinstance(content, SkippingIndex):
            self._take_index(ref, content)
        elif content.status.latest_snapshot is not None:
            self._take_snapshot(ref, content.status.latest_snapshot)

    def families(self) -> Iterator[Metric]:
        """All metric families."""
        resources = _gauge(
            "snaploom_resources", "Resources by the reason of Ready.", ("kind", "reason")
        )
        for (kind, reason), count in sorted(self._tally.items()):
            resources.add_metric([kind, reason], count)
        yield from (resources, self._snapshot_age, self._rows, self._bytes, self._fresh)
        yield from (self._phase_age, self._failed, self._final, self._covered, self._usable)

    def _take_snapshot(self, ref: Ref, latest: LatestSnapshot) -> None:
        labels = [ref.namespace, ref.name]
        self._snapshot_age.add_metric(labels, self._age(latest.published_at))
        self._rows.add_metric(labels, latest.rows)
        self._bytes.add_metric(labels, latest.bytes)

    def _take_runs(self, ref: Ref, content: OutputDataset | SkippingIndex) -> None:
        assert content.status is not None
        current, last = content.status.current_run, content.status.last_run
        labels = [ref.kind, ref.namespace, ref.name]
        if current is not None:
            self._phase_age.add_metric([*labels, current.phase], self._age(current.since))
        if last is not None and _is_failure(last):
            self._failed.add_metric([*labels, last.reason], 1)
            if current is None and not has_attempts(last, content.spec.run.retry):
                self._final.add_metric([*labels, last.reason], 1)

    def _take_freshness(self, ref: Ref, status: ResourceStatus) -> None:
        for condition in status.conditions:
            is_fresh = condition.status is ConditionStatus.TRUE
            # A resource without a snapshot is not stale; other metrics cover it.
            is_known = is_fresh or condition.reason == Reason.STALE
            if condition.type in _FRESHNESS and is_known:
                self._fresh.add_metric([ref.kind, ref.namespace, ref.name], int(is_fresh))

    def _take_index(self, ref: Ref, index: SkippingIndex) -> None:
        assert index.status is not None
        labels, files = [ref.namespace, ref.name], index.status.files
        total = 0 if files is None else files.indexed + files.stale + files.missing
        if files is not None and total:
            self._covered.add_metric(labels, files.indexed / total)
        if index.spec.enabled:
            is_built = index.status.last_refreshed is not None
            self._usable.add_metric(labels, int(is_built and index.status.state not in _GONE))

    def _age(self, instant: str) -> float:
        """Seconds since a time of a status; 0 for a time in the future or an invalid one."""
        since = known_instant(instant)
        return 0.0 if since is None else max(0.0, (self._now - since) / NANOS_PER_SECOND)


def _gauge(name: str, text: str, labels: Sequence[str]) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, labels=labels)


def _ready_reason(content: Content) -> str:
    status = getattr(content, "status", None)
    if status is not None:
        for condition in status.conditions:
            if condition.type == ConditionType.READY:
                return str(condition.reason)
    return ""


def _is_failure(last: LastRun) -> bool:
    return last.phase is not LastPhase.SUCCEEDED and last.reason not in _INTENDED_STOPS
