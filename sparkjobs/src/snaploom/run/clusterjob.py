"""The entry point of a run in a cluster: what the operator submits; it writes a Report.

`python -m snaploom.run.clusterjob`, or this file as the application of `spark-submit`. Arguments
name things only; what is to be done stands in the Bundle. Lines for people go to standard error.
Exit codes are those of `snaploom run`; the Report has more, and the manifest is authoritative.

Asked to end by SIGTERM it stops cleanly, reports INTERRUPTED and ends with 130.
"""

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue

from snaploom.confidential import remember_environment, without_secrets
from snaploom.errors import Interrupted, SnaploomError
from snaploom.installed import VERSION
from snaploom.localfiles import end_process
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.common import EpochNanos, format_instant, now
from snaploom.models.findings import InvalidDeclarations, make_finding
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.report import IndexFacts, Report, RunPhase
from snaploom.models.run import RunAction
from snaploom.models.skippingindex import IndexedFiles, IndexState, SkippingIndex
from snaploom.output.leaseholder import ClaimLease, OpenLease
from snaploom.plan.bundle import Bundle
from snaploom.policy.pods import allowances_of
from snaploom.run import declarations
from snaploom.run.clusterobjects import ClusterLease, ConfigMapPlace, ConfigMapReport, connect
from snaploom.run.declarations import finished_report, unstarted_report
from snaploom.run.indexes.indexrequests import (
    IndexAction,
    IndexedPlace,
    IndexReport,
    IndexRequest,
    place_of_bundle,
)
from snaploom.run.indexes.jobs import carry_out
from snaploom.run.joblog import EventLines, JobLog, Owner, RunIdentity, error_lines, finding_lines
from snaploom.run.published.content import remove_output
from snaploom.run.reports.record import RunningReport, clipped
from snaploom.run.reports.writer import FileReport, ReportSink, ReportWriter
from snaploom.run.runevents import Event, Interruption, signal_handlers
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
    return finished_report(bundle.output.name, work.started, snapshot_count=0, removed=removed)


def refresh_index(bundle: Bundle, work: Work) -> Report:
    """Make an index what is declared, and refresh it where it lags.

    Raises:
        TargetNotIndexable: it is about something that has no files of its own.
    """
    place = place_of_bundle(bundle, allow=work.allow)
    actions = (IndexAction.APPLY, IndexAction.DESCRIBE)
    try:
        done, described = _carry_out([IndexRequest(action, place) for action in actions], work)
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
        else IndexedFiles.model_validate(coverage, from_attributes=True),
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
    return finished_report(place.owner, work.started, index=facts)


def _bounded(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(clipped(line) for line in lines[:MOST_LINES])


CONFIG_MAP, FILE = "configmap:", "file:"


DOINGS: Mapping[tuple[RunAction, str], Callable[[Bundle, Work], Report]] = {
    (RunAction.RUN, OutputDataset.__name__): weave,
    (RunAction.DELETE, OutputDataset.__name__): delete_output,
    (RunAction.RUN, SkippingIndex.__name__): refresh_index,
    (RunAction.DELETE, SkippingIndex.__name__): delete_index,
}


class UnexpectedFault(SnaploomError):
    """A fault of Snaploom itself ended the run; the log of the driver has its traceback."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out a Bundle and write its Report; returns the exit code."""
    parser = argparse.ArgumentParser(description="Carry out one run that the operator submitted.")
    parser.add_argument(
        "--bundle", required=True, type=Path, help="bundle.json, or the folder that it is in"
    )
    parser.add_argument("--uid", required=True, help="UID of the resource")
    parser.add_argument("--run-id", required=True, help="name of the run")
    parser.add_argument("--attempt", type=int, default=0, help="which attempt this is")
    parser.add_argument(
        "--action", type=_action, default=RunAction.RUN, help="run (the default) or delete"
    )
    parser.add_argument("--report", required=True, help="configmap:NAMESPACE/NAME or file:PATH")
    asked = parser.parse_args(arguments)
    remember_environment(os.environ)
    started = now()
    identity = RunIdentity(asked.run_id, asked.uid, asked.attempt)
    log = JobLog.of(os.environ, asked.run_id)
    with signal_handlers() as interruption:
        try:
            bundle_file = declarations.read_bundle_file(asked.bundle)
            owner = bundle_file.owner
            log = JobLog.of(os.environ, asked.run_id, owner)
            sink = _sink(asked.report, owner, identity)
            allow = allowances_of(os.environ)
        except SnaploomError as error:
            log.write("\n".join(error_lines(error)), reason=error.reason)
            return error.exit_code
        report = Report(
            output=owner.label,
            run_id="",
            phase=RunPhase.RUNNING,
            started_at=format_instant(started),
            tool_version=VERSION,
        )
        start = identity.sign(report)
        writer = ReportWriter(sink, log.write)
        writer.offer(start)
        running = RunningReport(start)
        work = Work(
            started,
            interruption,
            running,
            lambda: writer.offer(running.report),
            log.write,
            allow=allow,
        )
        if isinstance(sink, ConfigMapReport):
            work = replace(
                work,
                lease=lambda folder, run: ClusterLease(
                    folder.store.uri, owner, identity, run.clock
                ),
            )
        report = identity.sign(_carried_out(bundle_file, asked.uid, asked.action, work, owner))
        if report.message:
            log.write(f"error {report.output}: {report.message}", reason=report.reason)
        writer.finish(report)
    return declarations.report_exit_code(report)


def _action(text: str) -> RunAction:
    return RunAction(text.capitalize())


def _sink(text: str, owner: Owner, identity: RunIdentity) -> ReportSink:
    """Return the destination of Reports."""
    if text.startswith(FILE):
        return FileReport(Path(text.removeprefix(FILE)))
    namespace, _, name = text.removeprefix(CONFIG_MAP).partition("/")
    if not (text.startswith(CONFIG_MAP) and namespace and name):
        raise _not_valid(
            "this is no place for a Report",
            found=text,
            expected=f"{CONFIG_MAP}NAMESPACE/NAME or {FILE}PATH",
        )
    if owner.namespace and namespace != owner.namespace:
        raise _not_valid(
            "a Report stays in the namespace of its resource",
            found=namespace,
            expected=owner.namespace,
        )
    return ConfigMapReport(ConfigMapPlace(namespace, name), owner, identity, connect)


def _not_valid(message: str, *, found: str, expected: str) -> InvalidDeclarations:
    finding = make_finding("SL191", message, path="--report", found=found, expected=expected)
    return InvalidDeclarations([finding])


def _carried_out(
    bundle_file: declarations.BundleFile, uid: str, action: RunAction, work: Work, owner: Owner
) -> Report:
    """Carry out a Bundle; also a failure is a Report."""
    try:
        bundle = bundle_file.parse(uid)
        if action is RunAction.RUN:
            for finding in declarations.refuse_invalid(bundle, work.allow):
                work.log("\n".join(finding_lines([finding])))
        return DOINGS[action, owner.kind](bundle, work)
    except SnaploomError as error:
        return _ended_by(error, work)
    except Exception as fault:  # noqa: BLE001 - reported to the operator; nothing is hidden
        work.log(without_secrets(traceback.format_exc()))
        unexpected = UnexpectedFault(
            "a fault of Snaploom itself ended the run",
            found=type(fault).__name__,  # its text may hold anything, so that only the log has it
        )
        return _ended_by(unexpected, work)


def _ended_by(error: SnaploomError, work: Work) -> Report:
    running = work.running.report
    end = declarations.unstarted_report(running.output, work.started, error)
    names = ("phase", "findings", "message", "reason", "retryable")
    update = {name: getattr(end, name) for name in names}
    return running.model_copy(
        update=update | {"finished_at": format_instant(now()), "progress": None}
    )


if __name__ == "__main__":
    # Started by its path, this folder comes first, and modules here would hide those of libraries:
    # `events` is one that OpenSearch's client imports.
    here = Path(__file__).resolve().parent
    sys.path[:] = [place for place in sys.path if Path(place).resolve() != here]
    end_process(main())
