"""The newest observation of each source by a run: `seen` of the reports."""

from __future__ import annotations

from collections.abc import Container

from snaploom.models.datasource import DataSource, LastSeen
from snaploom.models.times import EpochNanos
from snaploom_operator.instants import known_instant
from snaploom_operator.objects import FoundReport, Ref


class LastSeenIndex:
    """The newest observation of every declared DataSource.

    It is kept when the report is deleted, so that it does not depend on `run.historyLimit`. A
    report may be forged: sources that nobody declared are not remembered.
    """

    def __init__(self) -> None:
        self._newest: dict[Ref, LastSeen] = {}

    def put(self, namespace: str, found: FoundReport | None, declared: Container[Ref]) -> set[Ref]:
        """Add a report about sources that are declared; those with a newer observation."""
        report = None if found is None else found.report
        if report is None:
            return set()
        updated: set[Ref] = set()
        for seen in report.seen:
            source = Ref(DataSource.__name__, namespace, seen.source)
            if source not in declared:
                continue
            known = self._newest.get(source)
            look = LastSeen(
                run=report.run_id,
                at=report.finished_at or report.started_at,
                latest_snapshot=seen.latest_snapshot,
                snapshots=seen.snapshots,
                # A run that read no row of it knows no schema; keep the previous one.
                schema_fingerprint=seen.schema_fingerprint
                or (known.schema_fingerprint if known is not None else None),
            )
            if newer(look, known):
                self._newest[source] = look
                updated.add(source)
        return updated

    def forget(self, source: Ref) -> None:
        """Forget a source that was deleted."""
        self._newest.pop(source, None)

    def newest(self, source: Ref) -> LastSeen | None:
        """The newest observation of a source."""
        return self._newest.get(source)


def newer(look: LastSeen, other: LastSeen | None) -> bool:
    """Return whether one observation is newer than another; an invalid time is the oldest."""
    return other is None or _age(look) > _age(other)


def _age(look: LastSeen) -> tuple[EpochNanos, str]:
    return known_instant(look.at) or EpochNanos(0), look.run
