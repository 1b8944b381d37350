"""The page about waiting less for Spark: its commands print what they show."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from support.documentation.pagecommands import run_blocks
from support.documentation.pages import DOCS

from snaploom.jobs.sessionserver.client import ask_to_stop


@pytest.mark.spark
@pytest.mark.slow
def test_commands_print_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tempfile.mkdtemp()  # a server of its own; the path of a socket is short
    monkeypatch.setenv("XDG_CACHE_HOME", cache)
    try:
        run_blocks(DOCS / "how-to" / "wait-less-for-spark.md", tmp_path)
    finally:
        ask_to_stop()
        shutil.rmtree(cache, ignore_errors=True)
