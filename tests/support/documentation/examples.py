"""Runs an example as its README describes: copied away from the checkout, command by command.

Declarations name absolute URIs below `/tmp/snaploom`; in the copy this is a folder of the test, so
that tests neither meet each other nor what a person has there.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
PLACE = "/tmp/snaploom"
BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Example:
    """A copy of an example that has a folder of its own for data."""

    name: str
    checkout: Path
    place: Path

    @property
    def folder(self) -> Path:
        """Where its data is, and what is published."""
        return self.place / self.name

    @property
    def readme(self) -> Path:
        return self.checkout / "examples" / self.name / "README.md"

    def run(self, command: str) -> str:
        """Run a command as a person in the checkout would; return what it prints."""
        return run_command(command, self.checkout)

    def run_readme(self) -> None:
        """Run the README's commands in their order; each prints what the README shows."""
        for command, shown in commands_in(self.readme):
            printed = self.run(command)
            assert shows(printed, shown), f"$ {command}\n{printed}\nThe README shows:\n{shown}"


def copy_example(name: str, folder: Path) -> Example:
    """A copy in `folder`, with every mention of the usual place replaced."""
    example = Example(name, folder / "checkout", folder / "place")
    target = example.readme.parent
    shutil.copytree(
        REPOSITORY / "examples" / name, target, ignore=shutil.ignore_patterns("__pycache__")
    )
    for path in target.rglob("*"):
        if path.suffix in {".md", ".py", ".yaml"}:
            path.write_text(path.read_text("utf-8").replace(PLACE, str(example.place)), "utf-8")
    return example


def run_command(command: str, folder: Path) -> str:
    """Run a command line with this environment's programs; anything but exit code 0 fails."""
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path, "NO_COLOR": "1", "COLUMNS": "120"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"$ {command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def commands_in(readme: Path) -> list[tuple[str, list[str]]]:
    """The commands (after `$ `) of the blocks marked `console`, each with the lines below it."""
    commands: list[tuple[str, list[str]]] = []
    inside = False
    for line in readme.read_text("utf-8").splitlines():
        if line.startswith("```"):
            inside = line == "```console"
        elif inside and line.startswith("$ "):
            commands.append((line.removeprefix("$ "), []))
        elif inside:
            commands[-1][1].append(line)
    return commands


def shows(printed: str, shown: list[str]) -> bool:
    """Whether every line of a README occurs in what was printed, in this order.

    Spaces do not count. A line of `...` stands for any lines, at the end of a line for its rest.
    """
    lines = iter([" ".join(line.split()) for line in printed.splitlines()])
    wanted = [" ".join(line.split()) for line in shown if line.strip() not in {"", "..."}]
    return all(any(_fits(line, want) for line in lines) for want in wanted)


def _fits(line: str, want: str) -> bool:
    start = want.removesuffix("...")
    return line.startswith(start.rstrip()) if start != want else line == want


def published_files(folder: Path) -> dict[str, list[str]]:
    """The files of each published snapshot by its time, as listed in the manifest."""
    listed = json.loads(run_command(f"snaploom snapshots '{folder}/' -o json", folder))
    return {
        snapshot["time"]: [str(folder / file["path"]) for file in snapshot["files"]]
        for snapshot in listed["snapshots"]
    }
