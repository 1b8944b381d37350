"""The page about pages: its commands and its Python print what they show; no Spark is needed."""

from __future__ import annotations

from pathlib import Path

from support.documentation.pagecommands import run_blocks
from support.documentation.pages import DOCS


def test_commands_print_what_is_shown(tmp_path: Path) -> None:
    run_blocks(DOCS / "how-to" / "look-at-a-page.md", tmp_path)
