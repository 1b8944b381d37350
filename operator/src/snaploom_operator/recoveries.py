"""Metrics and log lines about outages, watch restarts, clock changes and leadership.

Nothing here decides anything: other modules recover by themselves and report it here.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge

UNANSWERED = 3
"""Consecutive requests without an answer after which the API server counts as unreachable: a single
one may be lost with its connection."""

_log = logging.getLogger(__name__)


class Recoveries:
    """Counts and logs recoveries.

    Args: registry: the registry of the process. clock: monotonic seconds.
    """

    def __init__(
        self, registry: CollectorRegistry, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._unanswered = 0
        self._unanswered_since = 0.0
        self._reachable = Gauge(
            "snaploom_api_reachable",
            "Whether the API server answers: 1 while it does.",
            registry=registry,
        )
        self._reachable.set(1)
        self._outages = Counter(
            "snaploom_api_outages", "Outages of the API server.", registry=registry
        )
        self._beginnings = Counter(
            "snaploom_watch_beginnings",
            "Starts and restarts of a watch.",
            ["kind"],
            registry=registry,
        )
        self._missed = Counter(
            "snaploom_watch_missed",
            "Changes that a list found before the watch reported them.",
            ["kind"],
            registry=registry,
        )
        self._jumps = Counter(
            "snaploom_clock_jumps", "Changes of the system clock.", registry=registry
        )
        self._leader = Gauge(
            "snaploom_leader", "Whether this process holds the Lease.", registry=registry
        )
        self._leaderships = Counter(
            "snaploom_leadership_changes",
            "Leases gained and lost.",
            ["change"],
            registry=registry,
        )
        self._renewals = Counter(
            "snaploom_webhook_certificate_renewals",
            "Renewals of the webhook's certificate.",
            registry=registry,
        )

    def answered(self) -> None:
        """Record a request that was answered, with any code."""
        if self._unanswered >= UNANSWERED:
            self._reachable.set(1)
            away = self._clock() - self._unanswered_since
            _log.warning("the API server is reachable again after %.0f s", away)
        self._unanswered = 0

    def not_answered(self) -> None:
        """Record a request that was not answered."""
        if self._unanswered == 0:
            self._unanswered_since = self._clock()
        self._unanswered += 1
        if self._unanswered == UNANSWERED:
            self._reachable.set(0)
            self._outages.inc()
            _log.warning("the API server is unreachable")

    def watch_began(self, kind: str) -> None:
        """Record the start of a watch."""
        self._beginnings.labels(kind).inc()
        _log.info("the watch of %s started", kind)

    def watch_missed(self, kind: str, changes: int) -> None:
        """Count changes that a list found before the watch reported them."""
        self._missed.labels(kind).inc(changes)

    def clock_jumped(self, seconds: float) -> None:
        """Record a change of the system clock."""
        self._jumps.inc()
        _log.warning("the clock changed by %.0f s; reconciling all resources", seconds)

    def leads(self, *, is_leader: bool) -> None:
        """Record that leadership was gained or lost; `leaderelection` logs it."""
        self._leader.set(is_leader)
        self._leaderships.labels("gained" if is_leader else "lost").inc()

    def certificate_renewed(self) -> None:
        """Record a renewal of the webhook's certificate; `rotator` logs it."""
        self._renewals.inc()
