"""Outputs in orchestrators of others, as methods of a project; each needs an extra.

An orchestrator decides about retries by itself; all that it needs is whether the failure of a run
can go away with nothing changed.
"""

from collections.abc import Callable
from dataclasses import dataclass

from snaploom.errors import SnaploomError
from snaploom.output.versions import Time
from snaploom.project.project import Project
from snaploom.project.results import Run

# A run of one output for an orchestrator: its publications, or its failure.

GROUP = "snaploom"
"""Group of the assets where nobody names another."""


@dataclass(frozen=True)
class RunChoice:
    """The parameters of a run, as `Project.run` takes them."""

    now: Time | None = None
    limit: int | None = None
    keep_going: bool = False
    strict: bool = False


@dataclass(frozen=True)
class OutputRun:
    """Outcome of a run."""

    run: Run | None
    """None where it could not begin."""
    failure: str = ""
    """Reason of the failure; empty where all that was due is published."""
    is_retryable: bool = False
    """Whether the failure can go away with nothing changed."""


def run_output(
    open_project: Callable[[], Project],
    output: str,
    *,
    info: Callable[[str], None],
    warn: Callable[[str], None],
    choice: RunChoice = RunChoice(),
) -> OutputRun:
    """Publish the snapshots of an output that are due; a failure is returned, not raised.

    `open_project` loads the declarations; an error that it raises is a failure of the run. `info`
    takes lines of progress, `warn` warnings about the published snapshots.
    """
    try:
        run = open_project().run(
            output,
            now=choice.now,
            limit=choice.limit,
            keep_going=choice.keep_going,
            strict=choice.strict,
            progress=info,
            raises=False,
        )
    except SnaploomError as error:
        return OutputRun(None, str(error), error.retryable)
    for warning in run.warnings:
        warn(warning)
    return OutputRun(run, run.cause, bool(run.report.retryable))


def rows_of(run: Run) -> int:
    """Rows of all snapshots that a run published."""
    return sum(snapshot.rows for snapshot in run.published)


def newest_of(run: Run) -> str:
    """Time of the newest snapshot that a run published, ISO 8601; empty where it published none."""
    return max((snapshot.time for snapshot in run.published), default="")
