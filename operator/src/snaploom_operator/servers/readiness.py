"""Whether a server that answers from a cache of resources is ready."""

from __future__ import annotations

from snaploom_operator.servers.tls import ServedCertificate
from snaploom_operator.store.feed import Feed


class Readiness:
    """The readiness of a server.

    Args:
        feed: fills its cache.
        certificate: its certificate; None where it serves without TLS.
        age_limit: largest age of the cache in seconds.
    """

    def __init__(self, feed: Feed, certificate: ServedCertificate | None, age_limit: float) -> None:
        self._feed = feed
        self._certificate = certificate
        self._age_limit = age_limit
        self._is_ending = False

    @property
    def trouble(self) -> str:
        """Why it is not ready; empty if it is."""
        if self._is_ending:
            return "it is shutting down"
        if self._certificate is not None and not self._certificate.is_there:
            return "no certificate is loaded yet"
        if not self._feed.is_synced:
            return "the cache is not filled yet"
        if self._feed.age > self._age_limit:
            return f"the cache is {self._feed.age:.0f} seconds old"
        return ""

    def end(self) -> None:
        """Become not ready; requests are still answered."""
        self._is_ending = True
