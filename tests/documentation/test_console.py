"""Commands of `console` blocks print what the pages show."""

import os
from pathlib import Path

import pytest
from documentation.pagesession import IN_A_SESSION
from support.documentation.examples import BIN, Shell, processes
from support.documentation.pagecommands import run_blocks
from support.documentation.pages import DOCS, Block, Command, commands_of, pattern_of

pytestmark = pytest.mark.long

AFTER_TUTORIAL = ("read-without-snaploom", "recover", "sort-a-snapshot", "correct-history")
"""How-tos that go on in the tutorial's folder."""
ELSEWHERE = (*AFTER_TUTORIAL, *IN_A_SESSION)
HOW_TO = [p for p in sorted((DOCS / "how-to").glob("*.md")) if p.stem not in ELSEWHERE]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_tutorial_prints_what_it_shows(shared_shell: Shell, tmp_path: Path) -> None:
    """Each command of the tutorial is a process, as users start it; the others use one Spark."""
    run_blocks(DOCS / "tutorial.md", tmp_path)
    for name in AFTER_TUTORIAL:
        run_blocks(DOCS / "how-to" / f"{name}.md", tmp_path, shell=shared_shell)


@pytest.mark.parametrize("page", HOW_TO, ids=lambda page: page.stem)
def test_how_to_prints_what_it_shows(page: Path, shared_shell: Shell, tmp_path: Path) -> None:
    run_blocks(page, tmp_path, shell=shared_shell)


def test_command_in_this_process_has_its_streams_and_its_exit_code(shared_shell, tmp_path):
    text = "snaploom gc /nowhere 2> errors; echo $?; cat errors | wc -l; snaploom crds | wc -c"
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    by_process = processes(text, tmp_path, {**os.environ, "PATH": path})
    assert shared_shell(text, tmp_path, os.environ).stdout == by_process.stdout
    assert by_process.stdout.split()[0] != "0"


def test_wildcards_stand_for_parts_of_lines_and_for_lines() -> None:
    pattern = pattern_of(("first", "...", "b ... d", "last"))
    assert pattern.fullmatch("first\nx\ny\nb c d\nlast\n")
    assert pattern.fullmatch("first\nb  d\nlast\n")
    assert not pattern.fullmatch("first\nb d\nmore\nlast\n")


def test_commands_may_have_several_lines() -> None:
    block = Block("console", "", ("$ cat <<END", "> a", "> END", "a", "$ true"))
    assert list(commands_of(block)) == [Command("cat <<END\na\nEND", ("a",)), Command("true", ())]
