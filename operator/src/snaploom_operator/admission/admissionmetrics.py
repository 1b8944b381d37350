"""The webhook's Prometheus metrics."""

from __future__ import annotations

import math
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Gauge, Histogram

from snaploom_operator.admission.judge import Outcome

REVIEW_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Seconds: most reviews take a few milliseconds, and the API server waits for five seconds."""


class AdmissionMetrics:
    """Histograms and gauges of the webhook."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self._reviews = Histogram(
            "snaploom_admission_review_seconds",
            "Duration of a review.",
            ["kind", "operation", "outcome"],
            buckets=REVIEW_BUCKETS,
            registry=registry,
        )
        self._expiry = Gauge(
            "snaploom_webhook_certificate_expiry_timestamp_seconds",
            "Expiry of the certificate in use, in seconds since 1970.",
            registry=registry,
        )
        self._expiry.set(math.nan)  # until a certificate is loaded
        self._in_flight = Gauge(
            "snaploom_admission_reviews_in_flight", "Reviews in progress.", registry=registry
        )
        self._age = Gauge(
            "snaploom_admission_view_age_seconds",
            "Age of the webhook's cache: seconds since the last event of its slowest watch.",
            registry=registry,
        )
        self._size = Gauge(
            "snaploom_admission_view_resources",
            "Resources in the webhook's cache.",
            registry=registry,
        )

    def show_informer(self, age: Callable[[], float], size: Callable[[], float]) -> None:
        """Read age and size of the cache at scrape time."""
        self._age.set_function(age)
        self._size.set_function(size)

    def show_in_flight(self, number: Callable[[], float]) -> None:
        """Read the number of reviews in progress at scrape time."""
        self._in_flight.set_function(number)

    def reviewed(self, kind: str, operation: str, outcome: Outcome, seconds: float) -> None:
        """Count an answered request; kind and operation are empty if unknown."""
        self._reviews.labels(kind, operation, outcome.value).observe(seconds)

    def certified_until(self, seconds: float) -> None:
        """Set the expiry of the certificate in use, in seconds since 1970."""
        self._expiry.set(seconds)
