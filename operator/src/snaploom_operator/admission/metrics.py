"""What Prometheus can ask of the webhook."""

from __future__ import annotations

import math
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Gauge, Histogram

from snaploom_operator.admission.judge import Outcome

REVIEW_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Seconds: most reviews take a few milliseconds, and the API server waits for five seconds."""


class AdmissionMetrics:
    """What is counted as it happens, and what is known now.

    Args:
        registry: where it is counted; one a process.
    """

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
            "When the certificate in use ends, in seconds since 1970.",
            registry=registry,
        )
        self._expiry.set(math.nan)  # until there is one
        self._in_flight = Gauge(
            "snaploom_admission_reviews_in_flight", "Reviews under way.", registry=registry
        )
        self._age = Gauge(
            "snaploom_admission_view_age_seconds",
            "For how long a change may have gone unheard.",
            registry=registry,
        )
        self._size = Gauge(
            "snaploom_admission_view_resources", "Resources that are known.", registry=registry
        )

    def show_view(self, age: Callable[[], float], size: Callable[[], float]) -> None:
        """Ask a view when somebody asks for the metrics."""
        self._age.set_function(age)
        self._size.set_function(size)

    def show_in_flight(self, number: Callable[[], float]) -> None:
        """The same for reviews under way."""
        self._in_flight.set_function(number)

    def reviewed(self, kind: str, operation: str, outcome: Outcome, seconds: float) -> None:
        """A request was answered; kind and operation are empty where they are not known."""
        self._reviews.labels(kind, operation, outcome.value).observe(seconds)

    def certified_until(self, seconds: float) -> None:
        """A certificate is in use that ends at a time in seconds since 1970."""
        self._expiry.set(seconds)
