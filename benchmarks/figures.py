"""What every benchmark ends with: JSON lines, and a line in `benchmarks/history.jsonl`.

The page `docs/benchmarks.md` is generated from the history: the newest figures that have a goal,
and how they have changed.
"""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from timeit import repeat

LOAD = os.getloadavg()[0]
"""Processes that wanted a core in the minute before the benchmark began: of others' work."""
PACE = min(repeat("for n in range(10_000_000): total += n", "total = 0", repeat=3, number=1))
"""Seconds of ten million additions in Python, by which figures of two machines can be compared."""
CHECKOUT = Path(__file__).parent.parent
HISTORY = CHECKOUT / "benchmarks" / "history.jsonl"


@dataclass(frozen=True)
class Figure:
    """One measured number, with the goal it is held against."""

    name: str
    value: float | str
    goal: str = ""
    ok: bool = True

    @staticmethod
    def at_most(name: str, value: float, limit: float) -> "Figure":
        """A number that must not be larger than a limit."""
        return Figure(name, round(value, 3), f"<= {limit:g}", value <= limit)


def publish(section: str, command: str, figures: Sequence[Figure]) -> None:
    """Write the section's line of history and its page, and print the figures as JSON lines."""
    with HISTORY.open("a", encoding="utf-8") as history:
        history.write(_history_line(section, command, figures))
    print_figures(figures)
    subprocess.run([sys.executable, CHECKOUT / "docs" / "generate.py"], check=True)


def print_figures(figures: Sequence[Figure]) -> None:
    """Print the figures as JSON lines."""
    for figure in figures:
        line = {"figure": figure.name, "value": figure.value, "goal": figure.goal, "ok": figure.ok}
        print(json.dumps(line), flush=True)


def machine() -> str:
    """Processors, memory, the versions that matter, and how busy others kept it."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()}, "
        f"Python {platform.python_version()}, Spark {version('pyspark')}, "
        f"Snaploom {version('snaploom')}, load {LOAD:.1f} at the start, "
        f"{PACE:.2f} s for ten million additions"
    )


def _history_line(section: str, command: str, figures: Sequence[Figure]) -> str:
    numbers = [figure for figure in figures if not isinstance(figure.value, str)]
    line = {
        "section": section,
        "command": command,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "machine": machine(),
        "values": {figure.name: figure.value for figure in numbers},
        "goals": {figure.name: figure.goal for figure in numbers if figure.goal},
    }
    return json.dumps(line) + "\n"


def _commit() -> str:
    """The commit that was measured, with a + where files differ from it."""
    command = ["git", "-C", str(CHECKOUT), "describe", "--always", "--dirty=+", "--exclude=*"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
