"""Writes Reports while a run goes on, in a thread of its own: seldom, patiently, never in its way.

The manifest of a folder is authoritative. A Report that cannot be written is reported on standard
error, tried again for a while, and changes nothing about the run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Protocol

from snaploom.errors import SnaploomError
from snaploom.models.report import Report, RunPhase


class ReportNotWritten(SnaploomError):
    """A Report could not be written where it was to go; it may be later."""

    reason = "ReportNotWritten"
    retryable = True


class ReportNotOurs(ReportNotWritten):
    """The place of a Report holds one of another run, which is left as it is."""

    reason = "ReportNotOurs"
    retryable = False


class ReportSink(Protocol):
    """Where Reports go; each replaces the one before."""

    def write(self, report: Report) -> None:
        """Write a Report.

        Raises:
            ReportNotWritten: it could not be written.
            ReportNotOurs: it never can be.
        """
        ...


@dataclass(frozen=True)
class Patience:
    """Seconds."""

    between_writes: float = 3
    """Between two Reports of a run that goes on: people do not look more often."""
    first_pause: float = 0.5
    """Before the first attempt after a failure; doubled each time."""
    longest_pause: float = 15
    """Between two attempts."""
    at_the_end: float = 120
    """For the last Report of a run that ended by itself: longer than an API server restarts."""
    when_interrupted: float = 15
    """For that of a run that was stopped: half of the 30 s that a pod has to end."""


class ReportWriter:
    """Writes the newest Report that it was offered; what came between is left out."""

    def __init__(
        self, sink: ReportSink, log: Callable[[str], None], patience: Patience | None = None
    ) -> None:
        """Start the thread."""
        self._sink = sink
        self._log = log
        self._patience = patience or Patience()
        self._changed = threading.Condition()
        self._newest: Report | None = None
        self._written: Report | None = None
        self._is_ending = False
        self._logged = ""
        self._thread = threading.Thread(target=self._work, name="snaploom-report", daemon=True)
        self._thread.start()

    def offer(self, report: Report) -> None:
        """Have a Report written before long; returns at once."""
        with self._changed:
            if report != self._newest:
                self._newest = report
                self._changed.notify()

    def finish(self, report: Report) -> bool:
        """Write the last Report, and wait for it a while; whether it is written."""
        with self._changed:
            self._newest = report
            self._is_ending = True
            self._changed.notify()
        is_stopped = report.phase is RunPhase.INTERRUPTED
        patience = self._patience
        self._thread.join(patience.when_interrupted if is_stopped else patience.at_the_end)
        if self._written == report:
            return True
        self._log("the last Report is not written; what the run did stands in the manifest")
        return False

    def _work(self) -> None:
        pause = 0.0
        while (report := self._next(pause)) is not None:
            try:
                self._sink.write(report)
            except ReportNotWritten as error:
                self._log_failure(error)
                if not error.retryable:
                    return
                doubled = max(self._patience.first_pause, 2 * pause)
                pause = min(self._patience.longest_pause, doubled)
            else:
                self._written, self._logged, pause = report, "", 0.0

    def _next(self, pause: float) -> Report | None:
        """The next Report to write, when it is time; None when the last one is written.

        Args:
            pause: seconds to wait because of a failure; zero after a success.
        """
        wait = pause or (self._patience.between_writes if self._written is not None else 0.0)
        due = monotonic() + wait
        with self._changed:
            # The end cuts short the wait between Reports, but not the one after a failure.
            while (left := due - monotonic()) > 0 and (pause or not self._is_ending):
                self._changed.wait(left)
            self._changed.wait_for(lambda: self._is_ending or self._newest != self._written)
            return None if self._newest == self._written else self._newest

    def _log_failure(self, error: ReportNotWritten) -> None:
        text = str(error)
        if text != self._logged:
            self._logged = text
            self._log(f"warning {text}")
