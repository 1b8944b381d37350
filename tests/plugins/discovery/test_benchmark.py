"""The benchmark of `init --from` in its small form."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]


@pytest.mark.slow
def test_the_small_benchmark_reaches_its_goals() -> None:
    done = subprocess.run(
        [sys.executable, "benchmarks/discovery.py", "--small"],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": "tests"},
        capture_output=True,
        text=True,
        check=True,
    )
    figures = {figure["figure"]: figure for figure in map(json.loads, done.stdout.splitlines())}
    for name in ("init, recall of relationships", "init, precision of relationships"):
        assert figures[name]["ok"], figures[name]
        assert figures[name]["goal"]
