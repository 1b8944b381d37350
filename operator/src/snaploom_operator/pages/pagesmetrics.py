"""Prometheus metrics of the server of pages."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge


class PagesMetrics:
    """Counters and gauges of the server of pages."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self._requests = Counter(
            "snaploom_pages_requests", "Answered requests.", ["code"], registry=registry
        )
        self._reviews = Counter(
            "snaploom_pages_reviews",
            "TokenReviews and SubjectAccessReviews that were sent.",
            ["kind"],
            registry=registry,
        )
        self._age = Gauge(
            "snaploom_pages_view_age_seconds",
            "Age of the cache of the pages: seconds since the last event of its slowest watch.",
            registry=registry,
        )

    def show_informer(self, age: Callable[[], float]) -> None:
        """Read the age of the cache at scrape time."""
        self._age.set_function(age)

    def answered(self, code: int) -> None:
        """Count an answer by its HTTP status."""
        self._requests.labels(str(code)).inc()

    def reviewed(self, kind: str) -> None:
        """Count a review that was sent."""
        self._reviews.labels(kind).inc()
