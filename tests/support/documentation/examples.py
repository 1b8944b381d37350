"""Runs an example as its README describes: copied away from the checkout, command by command.

Declarations name absolute URIs below `/tmp/snaploom`; in the copy this is a folder of the test, so
that tests neither meet each other nor what a person has there.
"""

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from snaploom.cli.main import run_command as run_here

REPOSITORY = Path(__file__).resolve().parents[3]
PLACE = "/tmp/snaploom"
BIN = Path(sys.executable).parent
DEADLINE = 600
"""Seconds for one shell on a machine that is busy with other tests."""


class Shell(Protocol):
    """What runs the commands that documents show."""

    def __call__(
        self, text: str, folder: Path, environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run commands of `bash` in a folder."""
        ...


def processes(
    text: str, folder: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Each command is a process, as users start it."""
    return subprocess.run(
        ["bash", "-c", text],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )


@dataclass(frozen=True)
class Example:
    """A copy of an example that has a folder of its own for data."""

    name: str
    checkout: Path
    place: Path
    shell: Shell
    """What runs its commands."""

    @property
    def folder(self) -> Path:
        """Where its data is, and what is published."""
        return self.place / self.name

    @property
    def readme(self) -> Path:
        return self.checkout / "examples" / self.name / "README.md"

    def run(self, command: str) -> str:
        """Run a command as a person in the checkout would; return what it prints."""
        return run_command(command, self.checkout, self.shell)

    def run_readme(self) -> None:
        """Run the README's commands in their order; each prints what the README shows."""
        for command, shown in commands_in(self.readme):
            printed = self.run(command)
            assert shows(printed, shown), f"$ {command}\n{printed}\nThe README shows:\n{shown}"


def copy_example(name: str, folder: Path, shell: Shell = processes) -> Example:
    """A copy in `folder`, with every mention of the usual place replaced.

    Args:
        name: of the example.
        folder: a new one.
        shell: what runs its commands.
    """
    example = Example(name, folder / "checkout", folder / "place", shell)
    target = example.readme.parent
    shutil.copytree(
        REPOSITORY / "examples" / name, target, ignore=shutil.ignore_patterns("__pycache__")
    )
    for path in target.rglob("*"):
        if path.suffix in {".md", ".py", ".yaml"}:
            path.write_text(path.read_text("utf-8").replace(PLACE, str(example.place)), "utf-8")
    return example


def run_command(command: str, folder: Path, shell: Shell = processes) -> str:
    """Run a command line with this environment's programs; anything but exit code 0 fails."""
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "NO_COLOR": "1", "COLUMNS": "120"}
    done = shell(command, folder, environment)
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
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert run_here(["snapshots", f"{folder}/", "-o", "json"]) == 0, printed.getvalue()
    listed = json.loads(printed.getvalue())
    return {
        snapshot["time"]: [str(folder / file["path"]) for file in snapshot["files"]]
        for snapshot in listed["snapshots"]
    }
