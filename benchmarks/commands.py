"""Seconds of commands that need no Spark, for two examples: `make bench-commands`.

Processor time, of the command and its children, is what a goal is held against: it is the least
that people wait for, and other work on the machine hardly changes it. Elapsed time is beside it,
and what a program needs that only imports the libraries of these commands, which no command can be
below.
"""

import argparse
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from figures import Figure, publish

CHECKOUT = Path(__file__).resolve().parent.parent
PROGRAM = Path(sys.executable).with_name("snaploom")
REPEATS = 5
LIBRARIES = "cyclopts, networkx, pydantic.main, rich.console, sqlglot, yaml"
READING, PLANNING, NOTHING_DUE = 0.4, 0.8, 1.0
"""Seconds that people do not notice as a wait; what the graph of a model may take on top; and
seconds that they do not notice as an interruption."""


@dataclass(frozen=True)
class Example:
    """An example, its data and its declarations below a folder of its own."""

    name: str
    output: str
    data: tuple[str, ...]
    """Arguments of its `data.py`."""

    def prepare(self, place: Path) -> str:
        """Make data, publish them, and give the folder of the declarations."""
        here, target = CHECKOUT / "examples" / self.name, place / "snaploom" / self.name
        _done([sys.executable, here / "data.py", "--to", target, *self.data])
        declared = place / self.name
        declared.mkdir()
        for file in here.glob("*.yaml"):
            if file.name != "indexes.yaml":  # indexes that follow publications are Spark's work
                text = file.read_text().replace("/tmp/snaploom", str(place / "snaploom"))
                (declared / file.name).write_text(text)
        _done([PROGRAM, "run", self.output, "-f", declared])
        return str(declared)

    def commands(self, declared: str) -> Mapping[float, Sequence[Sequence[str]]]:
        """The commands, by their goals."""
        named = [self.output, "-f", declared]
        return {
            READING: [["snapshots", *named], ["files", *named]],
            PLANNING: [
                ["validate", declared],
                ["diff", *named, "--offline"],
                ["graph", *named],
                ["plan", *named, "--offline"],
            ],
            NOTHING_DUE: [["plan", *named], ["diff", *named], ["run", *named]],
        }


EXAMPLES = (
    Example("flights", "flights-wide", ("--months", "1")),
    Example("tpch", "lineitem-wide", ("--scale-factor", "0.01")),
)


def main() -> None:
    """Measure every command and write the table."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    libraries = [_measured([sys.executable, "-c", f"import {LIBRARIES}"]) for _ in range(REPEATS)]
    least = min(one[0] for one in libraries)
    figures = [Figure("libraries imported, processor seconds", round(least, 3))]
    for example in EXAMPLES:
        with TemporaryDirectory() as place:
            declared = example.prepare(Path(place))
            for goal, commands in example.commands(declared).items():
                for command in commands:
                    figures += _figures(example, command, goal)
    publish("Commands without Spark", "make bench-commands", figures)


def _figures(example: Example, command: Sequence[str], goal: float) -> list[Figure]:
    measured = [_measured([PROGRAM, *command]) for _ in range(REPEATS)]
    options = [word for word in command if word.startswith("--")]
    name = f"{example.name}: {' '.join([command[0], *options])}"
    return [
        Figure.at_most(f"{name}, processor seconds", min(one[0] for one in measured), goal),
        Figure(f"{name}, seconds", round(min(one[1] for one in measured), 3)),
    ]


def _measured(command: Sequence[str | Path]) -> tuple[float, float]:
    """Seconds of processors, and elapsed."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    _done(command)
    elapsed, after = perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, elapsed


def _done(command: Sequence[str | Path]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}:\n{done.stderr or done.stdout}")


if __name__ == "__main__":
    main()
