"""Identity and clock of a run that writes, and the points at which tests may kill it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from snaploom.models.times import EpochNanos
from snaploom.storage.layout import is_run_id


class CrashPoint(StrEnum):
    """Moments at which a process may die without harm."""

    AFTER_MARKER = "AFTER_MARKER"
    """The folder is marked, and not configured yet."""
    BEFORE_STAGING = "BEFORE_STAGING"
    """Nothing is written yet."""
    AFTER_STAGING = "AFTER_STAGING"
    """All data is staged."""
    DURING_PROMOTION = "DURING_PROMOTION"
    """A file has its final name; reached once a file."""
    AFTER_PROMOTION = "AFTER_PROMOTION"
    """Every file has its final name, and no entry lists it."""
    AFTER_TABLE_COMMIT = "AFTER_TABLE_COMMIT"
    """The table has the commit, where there is a table, and no entry lists it."""
    AFTER_COMMIT = "AFTER_COMMIT"
    """The entry is written; staging is not cleaned."""
    AFTER_REVOCATION = "AFTER_REVOCATION"
    """Runs are revoked; none of their files is touched."""
    REMOVAL_BEGUN = "REMOVAL_BEGUN"
    """The folder is marked as being removed; nothing is removed yet."""
    DURING_DELETION = "DURING_DELETION"
    """A dead file is removed; reached once a file."""


def _pass_by(point: CrashPoint) -> None:
    return None


@dataclass(frozen=True)
class Run:
    """One run of a job, as storage sees it."""

    run_id: str
    """From `layout.new_run_id`: part of every file name and entry."""
    tool_version: str
    """Version of Snaploom."""
    clock: Callable[[], EpochNanos]
    """The time now; for reports and the age of leftovers; decides no order (rule P18)."""
    reached: Callable[[CrashPoint], None] = _pass_by
    """Called at each point; does nothing except in tests."""

    def __post_init__(self) -> None:
        if not is_run_id(self.run_id):
            raise ValueError(f"not a run id: {self.run_id!r}")
