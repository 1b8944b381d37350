"""Maps Reports to the exit code of a process; the codes are listed in `cli/main.py`."""

from __future__ import annotations

from collections.abc import Sequence

from snaploom.errors import Interrupted, LeaseNotObtained, RootEmpty, SnaploomError
from snaploom.jobs.declarations.declarationfiles import exit_code_of
from snaploom.models.finding import InvalidDeclarations
from snaploom.models.report import Report, RunPhase
from snaploom.models.times import EpochNanos, format_instant
from snaploom.version import VERSION


def report_exit_code(report: Report) -> int:
    """The exit code of one run; what validation or planning found has codes of its own."""
    match report.phase:
        case RunPhase.SUCCEEDED:
            return 0
        case RunPhase.INTERRUPTED:
            return Interrupted.exit_code
    for error in (LeaseNotObtained, RootEmpty):
        if report.reason == error.reason:
            return error.exit_code
    return exit_code_of(report.findings) or 1


def combined_exit_code(codes: Sequence[int]) -> int:
    """One exit code for several outputs: an interruption's, what all failures share, or 1."""
    failures = {code for code in codes if code != 0}
    if Interrupted.exit_code in failures:
        return Interrupted.exit_code
    return failures.pop() if len(failures) == 1 else int(bool(failures))


def unstarted_report(name: str, moment: EpochNanos, error: SnaploomError) -> Report:
    """The Report of a run that ended before it began."""
    is_interrupted = isinstance(error, Interrupted)
    return Report(
        output=name,
        run_id="",
        phase=RunPhase.INTERRUPTED if is_interrupted else RunPhase.FAILED,
        started_at=format_instant(moment),
        finished_at=format_instant(moment),
        findings=error.findings[:10_000] if isinstance(error, InvalidDeclarations) else (),
        message=str(error)[:32_768],
        reason=error.reason,
        tool_version=VERSION,
        retryable=error.retryable,
    )
