"""The newest observation of each source by a run: `seen` of the reports."""

from __future__ import annotations

from collections.abc import Container

from snaploom.models.datasource import DataSource, LastSeen
from snaploom.models.times import EpochNanos
from snaploom_operator.instants import known_instant
from snaploom_operator.objects import FoundReport, Ref


def take_seen(
    newest: dict[Ref, LastSeen], namespace: str, found: FoundReport | None, declared: Container[Ref]
) -> set[Ref]:
    """Take the observations of a report that are newer; the sources that they are about.

    They are kept when the report is deleted, so that they do not depend on `run.historyLimit`. A
    report may be forged: sources that nobody declared are not remembered.
    """
    report = None if found is None else found.report
    if report is None:
        return set()
    updated: set[Ref] = set()
    for seen in report.seen:
        source = Ref(DataSource.__name__, namespace, seen.source)
        if source not in declared:
            continue
        known = newest.get(source)
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
            newest[source] = look
            updated.add(source)
    return updated


def newer(look: LastSeen, other: LastSeen | None) -> bool:
    """Return whether one observation is newer than another; an invalid time is the oldest."""
    return other is None or _age(look) > _age(other)


def _age(look: LastSeen) -> tuple[EpochNanos, str]:
    return known_instant(look.at) or EpochNanos(0), look.run
