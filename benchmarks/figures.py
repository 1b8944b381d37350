"""What every benchmark ends with: JSON lines, a table in docs/benchmarks.md, a line of history.

The history, `benchmarks/history.jsonl`, has one line a run. The docs draw it, so that a figure that
has become worse is seen.
"""

import json
import os
import platform
import re
import subprocess
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
PAGE = CHECKOUT / "docs" / "benchmarks.md"
HISTORY = CHECKOUT / "benchmarks" / "history.jsonl"
HEAD = """# Benchmarks

Each table is written by the command above it, on the machine that it names. Ratios compare with
code that ran in turn with ours, in the same run; they are more significant than seconds, which
differ from machine to machine. A figure without a goal is there for information.
[How the figures have changed](reference/benchmark-history.md) is drawn over commits.
"""


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
    """Write the section's table and its line of history, then print the figures as JSON lines."""
    rows = [
        f"| {figure.name} | {figure.value} | {figure.goal or '-'} | "
        f"{'yes' if figure.ok else '**no**'} |"
        for figure in figures
    ]
    table = "\n".join(["| figure | value | goal | met |", "|---|---|---|---|", *rows])
    text = f"## {section}\n\n`{command}`, {machine()}\n\n{table}\n"
    _replace_section(section, text)
    with HISTORY.open("a", encoding="utf-8") as history:
        history.write(_history_line(section, figures))
    print_figures(figures)


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


def _history_line(section: str, figures: Sequence[Figure]) -> str:
    numbers = [figure for figure in figures if not isinstance(figure.value, str)]
    line = {
        "section": section,
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


def _replace_section(section: str, text: str) -> None:
    page = PAGE.read_text(encoding="utf-8") if PAGE.exists() else HEAD
    pattern = re.compile(rf"^## {re.escape(section)}\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
    if pattern.search(page):
        page = pattern.sub(lambda _: f"{text}\n", page).rstrip("\n") + "\n"
    else:
        page = page.rstrip("\n") + "\n\n" + text
    PAGE.write_text(page, encoding="utf-8")
