"""What happened to the operator from outside, and that it is over: each as a metric and a log line.

Nothing here decides anything. Whoever meets a disturbance goes on by itself; this is how people
learn that it was met.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge

UNANSWERED = 3
"""Requests in a row without an answer, after which the API server counts as away: one may be lost
with its connection."""

_log = logging.getLogger(__name__)


class Recoveries:
    """Counts and logs.

    Args:
        registry: where it is counted; one a process.
        clock: seconds that never go back.
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
            "snaploom_api_outages", "Times that the API server was away.", registry=registry
        )
        self._beginnings = Counter(
            "snaploom_watch_beginnings",
            "Times that a watch began, or began anew, and told all of its kind.",
            ["kind"],
            registry=registry,
        )
        self._jumps = Counter(
            "snaploom_clock_jumps", "Times that the clock was set.", registry=registry
        )
        self._leader = Gauge(
            "snaploom_leader", "Whether this process holds the Lease.", registry=registry
        )
        self._leaderships = Counter(
            "snaploom_leadership_changes",
            "Times that the Lease was gained or lost.",
            ["change"],
            registry=registry,
        )
        self._renewals = Counter(
            "snaploom_webhook_certificate_renewals",
            "Times that the webhook's certificate was renewed.",
            registry=registry,
        )

    def answered(self) -> None:
        """The API server answered a request, whatever it said."""
        if self._unanswered >= UNANSWERED:
            self._reachable.set(1)
            away = self._clock() - self._unanswered_since
            _log.warning("the API server answers again, after %.0f s", away)
        self._unanswered = 0

    def not_answered(self) -> None:
        """It did not answer one."""
        if self._unanswered == 0:
            self._unanswered_since = self._clock()
        self._unanswered += 1
        if self._unanswered == UNANSWERED:
            self._reachable.set(0)
            self._outages.inc()
            _log.warning("the API server does not answer")

    def watch_died(self, kind: str) -> None:
        """A watch says nothing of what a list found; `Metrics.restarted` counts what follows."""
        _log.warning("the watch of %s is dead; all watches are begun anew", kind)

    def watch_began(self, kind: str, told: int) -> None:
        """A watch began, and told of so many objects."""
        self._beginnings.labels(kind).inc()
        _log.info("the watch of %s began, and told of %d objects", kind, told)

    def clock_jumped(self, seconds: float) -> None:
        """The clock of people was set; everything is looked at again."""
        self._jumps.inc()
        _log.warning("the clock was set by %.0f s; everything is looked at again", seconds)

    def leads(self, *, is_leader: bool) -> None:
        """The Lease is ours now, or no longer; the Lease itself logs it."""
        self._leader.set(is_leader)
        self._leaderships.labels("gained" if is_leader else "lost").inc()

    def certificate_renewed(self) -> None:
        """The webhook's certificate was renewed; its keeper logs it."""
        self._renewals.inc()
