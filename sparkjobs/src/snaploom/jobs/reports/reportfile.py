"""Writes Reports to a file, for jobs on the same machine as their submitter."""

from __future__ import annotations

from pathlib import Path

from snaploom.jobs.reports.size import compact
from snaploom.jobs.reports.writer import ReportNotWritten
from snaploom.localfiles import write_file
from snaploom.models.report import Report


class FileReport:
    """Reports in one file, each whole: readers see the former or the new one."""

    def __init__(self, path: Path) -> None:
        """Nothing is written yet."""
        self._path = path

    def write(self, report: Report) -> None:
        """Replace the file.

        Raises:
            ReportNotWritten: the file system refuses.
        """
        try:
            write_file(self._path, compact(report) + "\n")
        except OSError as error:
            raise ReportNotWritten(
                f"the Report is not written to {self._path}",
                found=error.strerror or str(error),
                expected="a folder that this process may write to",
                hint="make the folder, or correct its permissions; what was published is in the "
                "output's folder",
            ) from error
