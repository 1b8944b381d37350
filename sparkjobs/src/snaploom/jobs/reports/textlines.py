"""Events, findings and errors as plain lines, for logs and pipes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from snaploom.errors import SnaploomError
from snaploom.jobs.runevents import (
    EmitEvent,
    Event,
    FilesCollected,
    IndexFollowed,
    JoinPlanned,
    LeaseAwaited,
    OfOutput,
    RunEstimated,
    RunPlanned,
    SnapshotLeftOut,
    SnapshotPublished,
    SnapshotStarted,
    Warned,
)
from snaploom.models.finding import Finding, InvalidDeclarations
from snaploom.models.times import format_instant


class EventLines:
    """A line for every event but those that come several times a second."""

    def __init__(self) -> None:
        """No event was shown yet."""
        self._place = ""
        self._outputs: dict[str, EventLines] = {}

    def line(self, event: Event) -> str | None:
        """The line of an event; None for one that has none."""
        match event:
            case OfOutput(output, inner):
                line = self._outputs.setdefault(output, EventLines()).line(inner)
                return of_output(output, inner, line)
            case RunPlanned(output, snapshots, joins):
                return (
                    f"{output}: {_number(snapshots, 'snapshot')} due, {_number(joins, 'join')} each"
                )
            case SnapshotStarted(number, snapshots, time):
                self._place = f"snapshot {number} of {snapshots}"
                return f"{self._place}: {format_instant(time)}"
            case JoinPlanned(number, joins, field_name) if number == joins:
                return (
                    f"{self._place}: {_number(joins, 'join')} planned, last {field_name}; weaving"
                )
        return outcome_line(event)


def writing_lines(write: Callable[[str], None]) -> EmitEvent:
    """Takes events, and writes the line of each that has one."""
    lines = EventLines()

    def emit(event: Event) -> None:
        line = lines.line(event)
        if line is not None:
            write(line)

    return emit


def of_output(output: str, event: Event, line: str | None) -> str | None:
    """A line of one of several outputs; what is planned and estimated names it already."""
    if line is None or isinstance(event, RunPlanned | RunEstimated):
        return line
    return f"{output}: {line}"


def outcome_line(event: Event) -> str | None:
    """The line of an event that reports an outcome; None for the others."""
    match event:
        case OfOutput(output, inner):
            return of_output(output, inner, outcome_line(inner))
        case SnapshotPublished(report):
            return f"published {report.time}: {report.rows:,} rows in {report.seconds:.1f} s"
        case SnapshotLeftOut(outcome, is_failure) if is_failure:
            return f"failed {outcome.time} ({outcome.reason.value})\n{outcome.message}"
        case RunEstimated(output, estimate):
            return f"{output}: {estimate}"
        case LeaseAwaited(holder):
            return f"waiting for run {holder}, which is at work on this output"
        case FilesCollected(collected):
            return (
                f"removed {_number(collected.files, 'file')} of deleted and replaced snapshots, "
                f"{collected.bytes:,} bytes"
            )
        case IndexFollowed(label, done):
            return f"{label}: {'; '.join(done) or 'up to date'}"
        case Warned(message):
            return f"warning: {message}"
    return None


def error_lines(error: SnaploomError) -> Iterator[str]:
    """An error as lines, every finding that it carries by itself."""
    if isinstance(error, InvalidDeclarations):
        yield from finding_lines(error.findings)
    else:
        yield f"error {error.reason}: {error}"


def finding_lines(findings: Iterable[Finding]) -> Iterator[str]:
    """Findings as lines: where, what, found, expected and what to do."""
    for finding in findings:
        place = f"{finding.file}:{finding.line}:{finding.column}" if finding.line else finding.file
        parts = (
            finding.severity.value.lower(),
            finding.code,
            place,
            finding.resource,
            finding.path,
        )
        yield " ".join(part for part in parts if part)
        yield f"  {finding.message}"
        details = (("found", finding.found), ("expected", finding.expected), ("fix", finding.hint))
        for label, text in details:
            if text:
                yield f"  {label + ':':<10}{text}"


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
