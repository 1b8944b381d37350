"""Runs as the operator submits them: a Bundle in a file, Reports in another."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from support.documentation.commands import start

from snaploom.models.report import Report
from snaploom.plan.bundle import Bundle
from snaploom.run import clusterjob

PYTHON = (sys.executable,)
SPARK_SUBMIT = (str(Path(sys.executable).with_name("spark-submit")), "--master", "local[2]")
UID = "5c1e7f9a-0000-4000-8000-000000000000"
RUN = "ods-wide-0a1b2c3d"


@dataclass(frozen=True)
class ClusterJob:
    """One run after the other, each with a Bundle of its own."""

    place: Path

    def arguments(self, bundle: Bundle, *more: str) -> list[str]:
        """Arguments of a run, whose Bundle is written."""
        folder = self.place / "bundle"
        folder.mkdir(exist_ok=True)
        (folder / "bundle.json").write_text(bundle.dump_json(), "utf-8")
        report = [] if "--report" in more else ["--report", f"file:{self.report_file}"]
        return ["--bundle", str(folder), "--uid", UID, "--run-id", RUN, *report, *more]

    @property
    def report_file(self) -> Path:
        return self.place / "report.json"

    @property
    def report(self) -> Report:
        """The Report as it is now."""
        return Report.model_validate_json(self.report_file.read_text("utf-8"))

    def run(self, bundle: Bundle, *more: str) -> tuple[int, Report]:
        """Run in this process; exit code and last Report."""
        code = clusterjob.main(self.arguments(bundle, *more))
        return code, self.report

    def start(self, bundle: Bundle, program: Sequence[str] = PYTHON) -> subprocess.Popen[str]:
        """Start as a process of its own, by the path of the file."""
        command = [*program, str(clusterjob.__file__), *self.arguments(bundle)]
        return start(command, self.place / "process", {"PYSPARK_PYTHON": sys.executable})

    def end(self, process: subprocess.Popen[str]) -> tuple[int, str]:
        """Exit code, and its log."""
        code = process.wait(240)
        return code, (self.place / "process" / "err.txt").read_text()
