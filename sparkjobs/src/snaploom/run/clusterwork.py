"""Work of a run in a cluster, each kind as a function from a Bundle to its Report."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue

from snaploom.errors import Interrupted, SnaploomError
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.common import EpochNanos, format_instant, now
from snaploom.models.report import IndexFacts, Report, RunPhase
from snaploom.models.skippingindex import IndexedFiles, IndexState
from snaploom.ondemand import VERSION
from snaploom.output.leaseholder import ClaimLease, OpenLease
from snaploom.plan.bundle import Bundle
from snaploom.run.declarations import unstarted_report
from snaploom.run.indexes.indexrequests import (
    IndexAction,
    IndexedPlace,
    IndexReport,
    IndexRequest,
    place_of_bundle,
)
from snaploom.run.indexes.jobs import carry_out
from snaploom.run.joblog import EventLines
from snaploom.run.published.content import remove_output
from snaploom.run.reports.record import RunningReport, clipped
from snaploom.run.runevents import Event, Interruption
from snaploom.run.weaving.requests import RunOptions, RunRequest
from snaploom.run.weaving.runs import weave_outputs
from snaploom.skipping.lifecycle.description import Description
from snaploom.skipping.stores.port import NEVER

# Actions of a run in a cluster, each a function from a Bundle to its Report.

MOST_LINES = 100
"""Lines and warnings in a Report: people read the first few."""


@dataclass(frozen=True)
class Work:
    """Context that all actions share."""

    started: EpochNanos
    interruption: Interruption
    running: RunningReport
    changed: Callable[[], None]
    """Called when there may be more to report; returns at once."""
    log: Callable[[str], None]
    lease: OpenLease = ClaimLease
    """Store of leases, by which runs of one folder see each other."""
    allow: Allowances = NO_ALLOWANCES
    """Entries that declarations may use beyond the built-in lists."""


def weave(bundle: Bundle, work: Work) -> Report:
    """Weave and publish what is due."""
    events: SimpleQueue[Event] = SimpleQueue()
    lines = EventLines()

    def tick() -> None:
        while not events.empty():
            event = events.get()
            line = lines.line(event)
            if line is not None:
                work.log(line)
            work.running.take(event)
        work.changed()

    try:
        options = RunOptions(allow=work.allow)
        (report,) = weave_outputs(
            RunRequest(
                (bundle,),
                work.started,
                events.put,
                work.interruption,
                tick,
                options=options,
                lease=work.lease,
            )
        )
    finally:
        tick()
    return report


def delete_output(bundle: Bundle, work: Work) -> Report:
    """Remove what was published, and all else that is Snaploom's in the folder."""
    removed = remove_output(bundle.output, now, work.interruption.check, work.allow)
    work.log(f"removed {removed.files} files, {removed.bytes} bytes; left {removed.left}")
    table = removed.table
    if table is not None and table.left:
        work.log(f"warning: the table {table.name} stays: it is not this output's ({table.left})")
    elif table is not None and table.is_dropped:
        work.log(f"dropped the table {table.name}")
    return Report(
        output=bundle.output.name,
        run_id="",
        phase=RunPhase.SUCCEEDED,
        started_at=format_instant(work.started),
        finished_at=format_instant(now()),
        snapshot_count=0,
        removed=removed,
        tool_version=VERSION,
    )


def refresh_index(bundle: Bundle, work: Work) -> Report:
    """Make an index what is declared, and refresh it where it lags.

    Raises:
        TargetNotIndexable: it is about something that has no files of its own.
    """
    place = place_of_bundle(bundle, allow=work.allow)
    apply = IndexRequest(IndexAction.APPLY, place, declaration=place.declaration)
    try:
        done, described = _carry_out([apply, IndexRequest(IndexAction.DESCRIBE, place)], work)
    except SnaploomError as error:
        report = unstarted_report(place.owner, work.started, error)
        return report.model_copy(
            update={"index": _found(place, error, work), "finished_at": format_instant(now())}
        )
    return _index_report(place, facts_of(described.description, done), work)


def delete_index(bundle: Bundle, work: Work) -> Report:
    """Drop an index, and remove its files; what is gone already is fine.

    Raises:
        IndexOwned: another resource owns it.
        IndexBusy: somebody works on it.
    """
    place = place_of_bundle(bundle, allow=work.allow)
    (done,) = _carry_out([IndexRequest(IndexAction.DELETE, place)], work)
    facts = IndexFacts(state=IndexState.DELETED, done=_bounded(done.done), bytes=0)
    return _index_report(place, facts, work)


def facts_of(description: Description, report: IndexReport | None = None) -> IndexFacts:
    """The facts of a description for a status."""
    coverage, state = description.coverage, description.state
    newest = max(state.refreshed_at, state.checked_at)
    return IndexFacts(
        state=state.phase,
        files=None
        if coverage is None
        else IndexedFiles(indexed=coverage.indexed, stale=coverage.stale, missing=coverage.missing),
        bytes=description.bytes,
        last_refreshed=None if newest == NEVER else format_instant(newest),
        done=() if report is None else _bounded(report.done),
        warnings=() if report is None else _bounded(report.warnings),
    )


def _carry_out(requests: Sequence[IndexRequest], work: Work) -> tuple[IndexReport, ...]:
    counts: SimpleQueue[tuple[int, int]] = SimpleQueue()

    def tick() -> None:
        while not counts.empty():
            work.running.take_files(*counts.get())
        work.changed()

    return carry_out(
        requests, lambda _, done, files: counts.put((done, files)), tick, work.interruption
    )


def _found(place: IndexedPlace, error: SnaploomError, work: Work) -> IndexFacts | None:
    """The index after a failure; None where it cannot be looked at."""
    if isinstance(error, Interrupted):
        return None
    with suppress(SnaploomError):
        (described,) = _carry_out([IndexRequest(IndexAction.DESCRIBE, place)], work)
        return facts_of(described.description)
    return None


def _index_report(place: IndexedPlace, facts: IndexFacts, work: Work) -> Report:
    for line in facts.warnings:
        work.log(f"warning {place.owner}: {line}")
    for line in facts.done or ("nothing to do",):
        work.log(f"{place.owner}: {line}")
    return Report(
        output=place.owner,
        run_id="",
        phase=RunPhase.SUCCEEDED,
        started_at=format_instant(work.started),
        finished_at=format_instant(now()),
        index=facts,
        tool_version=VERSION,
    )


def _bounded(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(clipped(line) for line in lines[:MOST_LINES])
