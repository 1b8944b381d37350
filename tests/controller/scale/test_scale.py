"""What `make bench-operator` measures, in small: what must be nothing is nothing at any size."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.operator.operatorprocess import DEADLINE

REPOSITORY = Path(__file__).parents[3]
SMALL = (
    "--objects", "18", "--runs", "3", "--flights", "3", "--chaos", "3", "--seconds", "2",
    "--only", "fleet", "runs", "latency", "chaos", "--print",
)  # fmt: skip


@pytest.mark.long
def test_a_restart_writes_nothing_and_runs_are_followed_without_asking_and_survive_faults() -> None:
    program = REPOSITORY / "benchmarks" / "reconciler.py"
    done = subprocess.run(
        [sys.executable, str(program), *SMALL],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "tests")},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        timeout=12 * DEADLINE,
    )
    figures = {line["figure"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert figures["18 new objects, writes an object"]["value"] >= 1
    assert figures["18 objects, restarted, writes"]["value"] == 0
    asked = figures["3 runs in flight, requests in 2 s, watches and Lease aside"]
    assert asked == {**asked, "value": 0, "ok": True}
    assert figures["requests a run, create sparkapplications: its job"]["value"] == 1
    for what in ("applications created", "runs succeeded"):
        assert figures[f"3 runs, API server slowed and cut, {what}"]["value"] == 3
