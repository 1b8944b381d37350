"""Seconds that each file of tests took: `pytest --timings=FILE` writes them, and the order of a run
follows those that are kept in `tests/timings.json`, so that no long file is left to the end."""

import json
from collections import defaultdict
from pathlib import Path

import pytest

OPTION = "--timings"

KEPT = Path(__file__).parents[2] / "timings.json"
"""What `make timings` measured last."""

_SHOWN = 25
"""How many files the table at the end of a run has: those that are worth a look."""


class Timings:
    """A plugin that adds up the seconds of each file and writes them when the run ends."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the seconds of a test's setup, call or teardown."""
        self._seconds[report.nodeid.partition("::")[0]] += report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write the file, and show the files that took longest."""
        ordered = sorted(self._seconds.items(), key=lambda each: -each[1])
        rounded = {name: round(seconds, 1) for name, seconds in sorted(self._seconds.items())}
        self._target.parent.mkdir(parents=True, exist_ok=True)
        self._target.write_text(json.dumps(rounded, indent=1) + "\n", encoding="utf-8")
        terminalreporter.section("seconds by file")
        for name, seconds in ordered[:_SHOWN]:
            terminalreporter.write_line(f"{seconds:8.1f}  {name}")
        terminalreporter.write_line(f"{sum(self._seconds.values()):8.1f}  all")


def kept_seconds() -> dict[str, float]:
    """Seconds of each file by its path, as kept; of a new file nothing is known."""
    return json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else {}
