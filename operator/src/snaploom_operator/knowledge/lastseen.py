"""What the newest runs saw of each source: the `seen` of their reports."""

from __future__ import annotations

from snaploom.models.datasource import DataSource, LastSeen
from snaploom.models.times import EpochNanos
from snaploom_operator.instants import known_instant
from snaploom_operator.objects import FoundReport, Ref


class LastSeenIndex:
    """The newest look at every DataSource.

    It is kept when the report goes: a source does not forget what was seen of it because the
    history of runs is limited.
    """

    def __init__(self) -> None:
        self._newest: dict[Ref, LastSeen] = {}

    def put(self, namespace: str, found: FoundReport | None) -> set[Ref]:
        """Take in a report; the sources of which it tells something new."""
        report = None if found is None else found.report
        if report is None:
            return set()
        told: set[Ref] = set()
        for seen in report.seen:
            source = Ref(DataSource.__name__, namespace, seen.source)
            known = self._newest.get(source)
            look = LastSeen(
                run=report.run_id,
                at=report.finished_at or report.started_at,
                latest_snapshot=seen.latest_snapshot,
                snapshots=seen.snapshots,
                # A run that read no row of it knows no schema; the one seen before still holds.
                schema_fingerprint=seen.schema_fingerprint
                or (known.schema_fingerprint if known is not None else None),
            )
            if newer(look, known):
                self._newest[source] = look
                told.add(source)
        return told

    def newest(self, source: Ref) -> LastSeen | None:
        """The newest look at a source."""
        return self._newest.get(source)


def newer(look: LastSeen, other: LastSeen | None) -> bool:
    """Whether one look was taken after another."""
    return other is None or _age(look) > _age(other)


def _age(look: LastSeen) -> tuple[EpochNanos, str]:
    """What looks are ordered by; one whose time cannot be read comes before all others."""
    return known_instant(look.at) or EpochNanos(0), look.run
