"""Commands that pages show, run as they are shown."""

import os
from pathlib import Path

from support.documentation.examples import BIN, Shell, processes
from support.documentation.pages import Command, blocks_of, commands_of, pattern_of


def run(
    command: Command,
    folder: Path,
    status: int = 0,
    programs: Path = BIN,
    shell: Shell = processes,
) -> int:
    """Run a command after one that ended with a status, and compare what it prints."""
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "NO_COLOR": "1"}
    done = shell(f"exec 2>&1\n(exit {status})\n{command.text}", folder, environment)
    shown = f"$ {command.text}\n{done.stdout}"
    print(shown)
    assert pattern_of(command.expected).fullmatch(done.stdout), shown
    return done.returncode


def run_blocks(page: Path, folder: Path, programs: Path = BIN, shell: Shell = processes) -> None:
    """Write files with a title and run commands, in the order of the page.

    Args:
        page: the page.
        folder: where commands run.
        programs: folder of the `snaploom` that is meant.
        shell: what runs its commands.
    """
    status = 0
    for block in blocks_of(page):
        if block.title:
            (folder / block.title).write_text(block.text, "utf-8")
        elif block.language == "console":
            for command in commands_of(block):
                status = run(command, folder, status, programs, shell)
