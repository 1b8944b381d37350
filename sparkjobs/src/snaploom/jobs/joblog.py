"""The log of a job in a cluster, on standard error: text lines, or one JSON object a line.

An object has the fields of the operator's log lines, so that one query finds both: `time`, `level`,
`logger`, `message`, and `resource`, `run` and `reason` where they are known.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TextIO

from snaploom.confidential import without_secrets
from snaploom.jobs.reports.identity import Owner
from snaploom.models.times import NANOS_PER_MILLISECOND, EpochNanos, format_instant, now
from snaploom.planning.jobvariables import LOG_FORMAT_VARIABLE
from snaploom.visibletext import json_visible, visible_lines

LOGGER = "snaploom.job"
_LEVELS = ("error", "warning")
"""Prefix of such a line."""


@dataclass(frozen=True)
class JobLog:
    """Writes lines to standard error."""

    is_json: bool
    run: str = ""
    """Name of the run."""
    resource: str = ""
    """`Kind/namespace/name` of the resource, as the operator's lines have it."""
    stream: TextIO | None = None
    """Where to; None for standard error."""
    clock: Callable[[], EpochNanos] = now

    @classmethod
    def of(cls, environment: Mapping[str, str], run: str, owner: Owner | None = None) -> JobLog:
        """The log in the form that an environment asks for.

        Args:
            environment: of the process.
            run: name of the run.
            owner: the resource; None before it is known.
        """
        resource = "" if owner is None else f"{owner.kind}/{owner.namespace}/{owner.name}"
        return cls(environment.get(LOG_FORMAT_VARIABLE, "").lower() == "json", run, resource)

    def write(self, *lines: str, reason: str = "") -> None:
        """Write lines; a closed stream is ignored.

        Args:
            lines: each is one message, even where it has several lines.
            reason: stable CamelCase reason, where there is one.
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
        entry = {
            "time": format_instant(moment),
            "level": _level(line),
            "logger": LOGGER,
            "message": line,
        }
        about = {"resource": self.resource, "run": self.run, "reason": reason}
        known = entry | {name: value for name, value in about.items() if value}
        return json_visible(json.dumps(known, ensure_ascii=False))


def _level(line: str) -> str:
    begins = line.replace(":", " ").partition(" ")[0]
    return begins if begins in _LEVELS else "info"
