"""The page of metrics: every figure of operator, webhook and pages, from the code."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.metrics import MetricWrapperBase

from generation.markdown import NOTE, table
from snaploom.models.common import now
from snaploom_operator.admission.webhook import AdmissionMetrics
from snaploom_operator.queues import WorkQueue
from snaploom_operator.serve.metrics import Metrics, StateCollector
from snaploom_operator.serve.pages import PagesMetrics
from snaploom_operator.store.store import Store

_SUFFIXES = {"counter": "_total"}
"""What Prometheus' text adds to a name, by type; a histogram adds three, which the page lists."""


def metrics_page() -> str:
    """The page of figures."""
    operator, webhook, pages = _of_operator(), _of_webhook(), _of_pages()
    return "\n".join(
        [
            "# Metrics\n",
            NOTE,
            "What `/metrics` exposes of the operator, of the webhook and of the pages. "
            "[Watch the operator](../how-to/watch-the-operator.md) shows what to do about them. "
            "A histogram has the series `_bucket`, `_count` and `_sum`.\n",
            "## The operator\n",
            _table(operator),
            "## The webhook\n",
            _table(webhook),
            "## Pages\n",
            _table(pages),
        ]
    )


def metric_names() -> list[str]:
    """Every figure, as it is exposed, with its labels."""
    return [
        f"{_exposed(family)}{{{','.join(family._labelnames)}}}"
        for family in (*_of_operator(), *_of_webhook(), *_of_pages())
    ]


def _of_operator() -> list[Metric]:
    registry = CollectorRegistry()
    Metrics(registry)
    state = StateCollector(Store(), WorkQueue(time.monotonic), dict, now)
    return [*state.collect(), *_families(registry)]


def _of_webhook() -> list[Metric]:
    registry = CollectorRegistry()
    AdmissionMetrics(registry)
    return list(_families(registry))


def _of_pages() -> list[Metric]:
    registry = CollectorRegistry()
    PagesMetrics(registry)
    return list(_families(registry))


def _exposed(family: Metric) -> str:
    return f"{family.name}{_SUFFIXES.get(family.type, '')}"


def _families(registry: CollectorRegistry) -> Iterator[Metric]:
    """The families of a registry, with the names of their labels, which only its members know."""
    for collector in registry._collector_to_names:
        for family in collector.describe() if isinstance(collector, MetricWrapperBase) else ():
            family._labelnames = collector._labelnames
            yield family


def _table(families: Iterable[Metric]) -> str:
    rows = [
        [
            f"`{_exposed(family)}`",
            family.type,
            ", ".join(f"`{label}`" for label in family._labelnames),
            family.documentation,
        ]
        for family in sorted(families, key=lambda family: family.name)
    ]
    return table(["metric", "type", "labels", "meaning"], rows)
