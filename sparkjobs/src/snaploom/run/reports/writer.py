"""Writes Reports while a run goes on, and shortens them to fit; exit codes of processes."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Annotated, Protocol, cast

from annotated_types import MaxLen
from pydantic import JsonValue

from snaploom.errors import SnaploomError
from snaploom.files.objectstore import STORE_FAILURES, ObjectStore
from snaploom.localfiles import write_file
from snaploom.models.base import ApiModel
from snaploom.models.common import MessageText, ShortText, TimestampText
from snaploom.models.report import Count, DataFindings, Report, RunPhase, Unpublished
from snaploom.output import layout
from snaploom.output.documents import MANIFEST_FORMAT, RUNS, get_bounded, parse_versioned

_log = logging.getLogger(__name__)

# Shortens a Report to fit: lists lose their oldest members, and it states how many.

LARGEST_REPORT = 900_000
"""Bytes of a Report in a ConfigMap: room is left for metadata, which counts too."""

SHORTENED_MESSAGE = 2_000
"""Characters that remain of the message when nothing else is left to leave out."""

Object = dict[str, JsonValue]

_DETAILS = ("sources", "joins", "unmatched", "excluded", "checks", "warnings")
"""Fields that can be left out of a published snapshot that stays in the list."""

_LISTS = {
    "snapshots": True, "skipped": True, "failed": False, "findings": False, "seen": False,
    "dataFindings": False,
    "published": False, "newest.sources": False, "newest.excluded": False, "newest.joins": False,
    "newest.checks": False, "newest.warnings": False,
    "fallbacks": False, "index.done": False, "index.warnings": False, "removed.leftNames": False,
}  # fmt: skip
"""Lists that may be shortened; whether their oldest members, which go first, come first. Of what
has no age the first members stay: the first failure is why the run failed."""


def fitting(report: Report, limit: int = LARGEST_REPORT) -> Report:
    """The Report in at most so many bytes of compact JSON, as much of it as fits.

    All that is no list always fits into 100,000, the least limit.
    """
    if _size(report.dump()) <= limit:
        return report
    document = report.dump()
    left_out: dict[str, str] = {}
    for _ in _reductions(document, left_out):
        document["truncated"] = list(left_out.values())
        if _size(document) <= limit:
            break
    return Report.parse(document)


def compact(report: Report) -> str:
    """The JSON of a Report, as it is stored."""
    return _text(report.dump())


def _text(document: JsonValue) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def _size(document: JsonValue) -> int:
    return len(_text(document).encode())


def _reductions(document: Object, left_out: dict[str, str]) -> Iterator[None]:
    """Leave out more and more; each step halves something, so that there are few."""
    snapshots = [cast(Object, snapshot) for snapshot in _list(document, "snapshots")]
    done = 0
    while done < len(snapshots):
        upto = done + max(1, (len(snapshots) - done) // 2)
        for snapshot in snapshots[done:upto]:
            snapshot.update({name: [] for name in _DETAILS})
        done = upto
        left_out["details"] = f"snapshots: details of the oldest {done} of {len(snapshots)}"
        yield
    lengths = {name: len(_list(document, name)) for name in _LISTS}
    sizes = {name: _size(_list(document, name)) for name in _LISTS if lengths[name]}
    while sizes:
        longest = max(sizes, key=sizes.__getitem__)
        members = _list(document, longest)
        kept, is_oldest_first = len(members) // 2, _LISTS[longest]
        members[:] = members[len(members) - kept :] if is_oldest_first else members[:kept]
        which = "oldest" if is_oldest_first else "last"
        gone = lengths[longest] - kept
        left_out[longest] = f"{longest}: the {which} {gone} of {lengths[longest]}"
        sizes[longest] = _size(members)
        if not kept:
            del sizes[longest]
        yield
    document["session"] = {}
    left_out["session"] = "session"
    yield
    document["message"] = str(document["message"])[:SHORTENED_MESSAGE]
    left_out["message"] = f"message: all but {SHORTENED_MESSAGE} characters"
    yield


def _list(document: Object, name: str) -> list[JsonValue]:
    found: JsonValue = document
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found if isinstance(found, list) else []


# Writes Reports to a file, for jobs on the same machine as their submitter.


class FileReport:
    """Reports in one file, each whole: readers see the former or the new one."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, report: Report) -> None:
        try:
            write_file(self._path, compact(report) + "\n")
        except OSError as error:
            raise ReportNotWritten(
                f"the Report is not written to {self._path}",
                found=error.strerror or str(error),
                expected="a folder that this process may write to",
            ) from error


# Writes Reports while a run goes on, in a thread of its own: seldom, patiently, never in its way.


class ReportNotWritten(SnaploomError):
    """A Report could not be written where it was to go; it may be later."""


class ReportNotOurs(ReportNotWritten):
    """The place of a Report holds one of another run, which is left as it is."""


class ReportSink(Protocol):
    """Destination of Reports; each replaces the one before."""

    def write(self, report: Report) -> None:
        """Write a Report.

        Raises:
            ReportNotWritten: it could not be written.
            ReportNotOurs: it never can be.
        """


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
                text = str(error)
                if text != self._logged:
                    self._logged = text
                    self._log(f"warning {text}")
                if not error.retryable:
                    return
                doubled = max(self._patience.first_pause, 2 * pause)
                pause = min(self._patience.longest_pause, doubled)
            else:
                self._written, self._logged, pause = report, "", 0.0

    def _next(self, pause: float) -> Report | None:
        """The next Report to write, when it is time; None when the last one is written.

        `pause`: seconds to wait because of a failure; zero after a success.
        """
        wait = pause or (self._patience.between_writes if self._written is not None else 0.0)
        due = monotonic() + wait
        with self._changed:
            # The end cuts short the wait between Reports, but not the one after a failure.
            while (left := due - monotonic()) > 0 and (pause or not self._is_ending):
                self._changed.wait(left)
            self._changed.wait_for(lambda: self._is_ending or self._newest != self._written)
            return None if self._newest == self._written else self._newest


# The last runs of an output, kept beside its manifest: what failed is in no entry of that.

MOST_KEPT = 20
"""Runs that are kept; those that found nothing to do are not."""
MOST_FAILED = 20
"""Failures that are kept of a run."""


class RunSummary(ApiModel):
    """One run in short, as the folder of its output keeps it for pages."""

    run_id: ShortText
    """Identity of the run."""
    phase: RunPhase
    """Outcome."""
    started_at: TimestampText
    """Start time."""
    finished_at: TimestampText | None = None
    """End time."""
    published: Count = 0
    """Snapshots that it published."""
    failed: Annotated[tuple[Unpublished, ...], MaxLen(100_000)] = ()
    """Snapshots that failed."""
    message: MessageText = ""
    """The reason of a failure, for people."""
    data_findings: DataFindings = ()
    """Faults and changes in the data."""
    sample: Annotated[tuple[MessageText, ...], MaxLen(5)] = ()
    """Some rows of the newest snapshot that it published, each as JSON."""

    @staticmethod
    def of(report: Report) -> RunSummary:
        return RunSummary(
            run_id=report.run_id,
            phase=report.phase,
            started_at=report.started_at,
            finished_at=report.finished_at,
            published=len(report.snapshots),
            failed=report.failed,
            message=report.message,
            data_findings=report.data_findings,
        )


class _Runs(ApiModel):
    format: int = MANIFEST_FORMAT
    runs: tuple[RunSummary, ...] = ()


def kept_runs(store: ObjectStore) -> tuple[RunSummary, ...]:
    """The last runs of the output of a folder, newest first; none where the note is damaged."""
    try:
        document = get_bounded(store, layout.RUNS, RUNS)
        parse_versioned(document, layout.RUNS, RUNS)
        return _Runs.model_validate_json(document, by_alias=True, by_name=False).runs
    except (ValueError, *STORE_FAILURES):
        return ()


def keep_run(store: ObjectStore, report: Report, sample: tuple[str, ...]) -> None:
    """Keep a run in the folder of its output, unless it found nothing to do; raises nothing.

    `sample` are rows that it published; of earlier runs none stays.
    """
    if not report.snapshots and report.phase is RunPhase.SUCCEEDED:
        return
    summary = RunSummary.of(report)
    failed = [
        one.model_copy(update={"message": one.message[:SHORTENED_MESSAGE]})
        for one in summary.failed[:MOST_FAILED]
    ]
    kept = {
        "failed": tuple(failed),
        "message": summary.message[:SHORTENED_MESSAGE],
        "sample": sample,
    }
    earlier = (run.model_copy(update={"sample": ()} if sample else {}) for run in kept_runs(store))
    runs = (summary.model_copy(update=kept), *earlier)
    try:
        store.put(layout.RUNS, _Runs(runs=runs[:MOST_KEPT]).dump_json().encode() + b"\n")
    except STORE_FAILURES as error:
        _log.info("%s is not written: %s", layout.RUNS, error.message)
