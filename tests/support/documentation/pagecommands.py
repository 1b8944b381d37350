"""Commands that pages show, run as they are shown."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from support.documentation.examples import BIN
from support.documentation.pages import Command, blocks_of, commands_of, pattern_of

DEADLINE = 600
"""Seconds for one command on a machine that is busy with other tests."""


def run(command: Command, folder: Path, status: int = 0, programs: Path = BIN) -> int:
    """Run a command after one that ended with a status, and compare what it prints."""
    done = subprocess.run(
        ["bash", "-c", f"(exit {status})\n{command.text}"],
        cwd=folder,
        env={**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    shown = f"$ {command.text}\n{done.stdout}"
    print(shown)
    assert pattern_of(command.expected).fullmatch(done.stdout), shown
    return done.returncode


def run_blocks(page: Path, folder: Path, programs: Path = BIN) -> None:
    """Write files with a title and run commands, in the order of the page.

    Args:
        page: the page.
        folder: where commands run.
        programs: folder of the `snaploom` that is meant.
    """
    status = 0
    for block in blocks_of(page):
        if block.title:
            (folder / block.title).write_text(block.text, "utf-8")
        elif block.language == "console":
            for command in commands_of(block):
                status = run(command, folder, status, programs)
