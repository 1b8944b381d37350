"""Logs of jobs: events, findings and errors as lines of text or of JSON."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from snaploom.confidential import json_visible, visible_lines, without_secrets
from snaploom.errors import SnaploomError
from snaploom.loading.nearmisses import counted
from snaploom.models.common import NANOS_PER_MILLISECOND, EpochNanos, format_instant, now
from snaploom.models.findings import Finding, InvalidDeclarations
from snaploom.models.report import Report
from snaploom.models.skippingindex import SkippingIndex
from snaploom.policy.variables import LOG_FORMAT_VARIABLE
from snaploom.run import runevents

# The identity of a run in a cluster, from its submitter: the run, and its resource.


@dataclass(frozen=True)
class RunIdentity:
    """The operator's identity of a run; storage has another one.

    Names of published files must never come again, and nobody can promise that of a name that is
    handed in: so files bear an id that the run makes up, and the Report has both.
    """

    run_id: str
    uid: str
    attempt: int
    """Number of the attempt, as its submitter counts them."""

    def sign(self, report: Report) -> Report:
        """The Report as one of this run."""
        signature = {"run_id": self.run_id, "uid": self.uid, "attempt": self.attempt}
        return report.model_copy(update=signature)


@dataclass(frozen=True)
class Owner:
    """The resource that a run is of."""

    kind: str
    name: str
    namespace: str
    """Empty where there is none."""

    @property
    def label(self) -> str:
        """The `output` of Reports: the name, with its kind for a SkippingIndex."""
        is_index = self.kind == SkippingIndex.__name__
        return f"{self.kind}/{self.name}" if is_index else self.name


# Events, findings and errors as plain lines, for logs and pipes.


class EventLines:
    """A line for every event but those that come several times a second."""

    def __init__(self) -> None:
        self._place = ""
        self._outputs: dict[str, EventLines] = {}

    def line(self, event: runevents.Event) -> str | None:
        """The line of an event; None for one that has none."""
        match event:
            case runevents.OfOutput(output, inner):
                line = self._outputs.setdefault(output, EventLines()).line(inner)
                return of_output(output, inner, line)
            case runevents.RunPlanned(output, snapshots, joins):
                return (
                    f"{output}: {counted(snapshots, 'snapshot')} due, {counted(joins, 'join')} each"
                )
            case runevents.SnapshotStarted(number, snapshots, time):
                self._place = f"snapshot {number} of {snapshots}"
                return f"{self._place}: {format_instant(time)}"
            case runevents.JoinPlanned(number, joins, field_name) if number == joins:
                return (
                    f"{self._place}: {counted(joins, 'join')} planned, last {field_name}; weaving"
                )
        return outcome_line(event)


def writing_lines(write: Callable[[str], None]) -> runevents.EmitEvent:
    """Takes events, and writes the line of each that has one."""
    lines = EventLines()

    def emit(event: runevents.Event) -> None:
        line = lines.line(event)
        if line is not None:
            write(line)

    return emit


def of_output(output: str, event: runevents.Event, line: str | None) -> str | None:
    """A line of one of several outputs; what is planned and estimated names it already."""
    if line is None or isinstance(event, runevents.RunPlanned | runevents.RunEstimated):
        return line
    return f"{output}: {line}"


def outcome_line(event: runevents.Event) -> str | None:
    """The line of an event that reports an outcome; None for the others."""
    match event:
        case runevents.OfOutput(output, inner):
            return of_output(output, inner, outcome_line(inner))
        case runevents.SnapshotPublished(report):
            return f"published {report.time}: {report.rows:,} rows in {report.seconds:.1f} s"
        case runevents.SnapshotLeftOut(outcome, is_failure) if is_failure:
            return f"failed {outcome.time} ({outcome.reason.value})\n{outcome.message}"
        case runevents.RunEstimated(output, estimate):
            return f"{output}: {estimate}"
        case runevents.LeaseAwaited(holder):
            return f"waiting for run {holder}, which is at work on this output"
        case runevents.FilesCollected(collected):
            return (
                f"removed {counted(collected.files, 'file')} of deleted and replaced snapshots, "
                f"{collected.bytes:,} bytes"
            )
        case runevents.IndexFollowed(label, done):
            return f"{label}: {'; '.join(done) or 'up to date'}"
        case runevents.Warned(message):
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


# Routes log records of Snaploom's modules and py4j to a run's own lines.

LOGGER = "snaploom"
"""Parent of the loggers of all our modules, and of nobody else's."""


def silence_py4j() -> None:
    """Keep py4j from printing tracebacks when Spark's JVM goes away; our error reports it.

    py4j logs some failures through the root logger, so its own logger's level does not reach them.
    """
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"


class _EventHandler(logging.Handler):
    def __init__(self, emit_event: runevents.EmitEvent) -> None:
        super().__init__(logging.WARNING)
        self._emit_event = emit_event

    def emit(self, record: logging.LogRecord) -> None:
        self._emit_event(runevents.Warned(without_secrets(record.getMessage())))


@contextmanager
def warnings_as_events(emit_event: runevents.EmitEvent) -> Iterator[None]:
    """Emit what our modules log as warnings or errors as events, during the block."""
    logger, handler = logging.getLogger(LOGGER), _EventHandler(emit_event)
    propagated, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagated


# The log of a job in a cluster, on standard error: text lines, or one JSON object a line.

JOB_LOGGER = "snaploom.job"
_LEVELS = ("error", "warning")
"""Prefix of such a line."""


@dataclass(frozen=True)
class JobLog:
    """Writes lines to standard error."""

    is_json: bool
    run: str = ""
    resource: str = ""
    """`Kind/namespace/name` of the resource, as the operator's lines have it."""
    stream: TextIO | None = None
    """Stream to write to; None for standard error."""
    clock: Callable[[], EpochNanos] = now

    @classmethod
    def of(cls, environment: Mapping[str, str], run: str, owner: Owner | None = None) -> JobLog:
        """The log in the form that an environment asks for."""
        resource = "" if owner is None else f"{owner.kind}/{owner.namespace}/{owner.name}"
        return cls(environment.get(LOG_FORMAT_VARIABLE, "").lower() == "json", run, resource)

    def write(self, *lines: str, reason: str = "") -> None:
        """Write lines; a closed stream is ignored.

        Each of `lines` is one message, even where it has several lines.
        """
        # `spark-submit` reads these lines, and is gone once its pod is terminated; the Report is
        # written all the same.
        stream = self.stream or sys.stderr
        with suppress(OSError):
            for line in map(without_secrets, lines):
                text = self._object(line, reason) if self.is_json else visible_lines(line)
                stream.write(f"{text}\n")
            stream.flush()

    def _object(self, line: str, reason: str) -> str:
        moment = EpochNanos(self.clock() // NANOS_PER_MILLISECOND * NANOS_PER_MILLISECOND)
        begins = line.replace(":", " ").partition(" ")[0]
        entry = {
            "time": format_instant(moment),
            "level": begins if begins in _LEVELS else "info",
            "logger": JOB_LOGGER,
            "message": line,
        }
        about = {"resource": self.resource, "run": self.run, "reason": reason}
        known = entry | {name: value for name, value in about.items() if value}
        return json_visible(json.dumps(known, ensure_ascii=False))
