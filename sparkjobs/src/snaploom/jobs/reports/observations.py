"""Observations of folder and sources during a run, also of one that fails early."""

from __future__ import annotations

from snaploom.models.datasource import DataSource
from snaploom.models.runfacts import SeenSource
from snaploom.models.times import EpochNanos, format_instant
from snaploom.planning.bundle import Bundle
from snaploom.planning.intervals import SourceSnapshots
from snaploom.planning.sources.registry import declared
from snaploom.storage.state import FolderState


class Observations:
    """Listings and schemas observed during a run."""

    def __init__(self) -> None:
        """Nothing was seen yet."""
        self.state: FolderState | None = None
        """State of the output's folder when it was last looked at."""
        self._listings: dict[str, SourceSnapshots] = {}
        self._schemas: dict[str, tuple[EpochNanos, str]] = {}

    def see_listing(self, source: str, listing: SourceSnapshots) -> None:
        """A source has these snapshots."""
        self._listings[source] = listing

    def see_schema(self, source: str, time: EpochNanos, fingerprint: str) -> None:
        """A snapshot of a source has a schema; that of the newest one counts."""
        known = self._schemas.get(source)
        if known is None or known[0] <= time:
            self._schemas[source] = time, fingerprint

    def sources(self, bundle: Bundle) -> tuple[SeenSource, ...]:
        """Observations of the sources of a bundle that were looked at."""
        seen = (self._source(source) for source in bundle.data_sources)
        below = (self._below(source) for source in bundle.data_sources)
        found = {one.source: one for one in (*below, *seen) if one is not None}
        return tuple(found[name] for name in sorted(found))

    def _source(self, source: DataSource) -> SeenSource | None:
        listing = self._listings.get(source.name)
        if listing is None:
            return None
        schema = self._schemas.get(source.name)
        return _seen(source.name, listing, None if schema is None else schema[1])

    def _below(self, source: DataSource) -> SeenSource | None:
        """The source whose snapshots this one has."""
        listing = self._listings.get(source.name)
        below = declared(source).snapshots_of
        return None if below is None or listing is None else _seen(below, listing, None)


def _seen(name: str, listing: SourceSnapshots, schema: str | None) -> SeenSource:
    return SeenSource(
        source=name,
        latest_snapshot=format_instant(listing.times[-1]) if listing.times else None,
        snapshots=len(listing.times) if listing.times or listing.is_empty else None,
        schema_fingerprint=schema,
    )
