"""What `make bench-operator` measures, in small: what must be nothing is nothing at any size."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.operator.operatorprocess import DEADLINE

REPOSITORY = Path(__file__).parents[3]
SMALL = (
    "--objects", "18", "--runs", "3", "--flights", "3", "--chaos", "3", "--seconds", "2", "--print",
)  # fmt: skip


def measured(*scenarios: str) -> list[str]:
    program = REPOSITORY / "benchmarks" / "reconciler.py"
    return subprocess.run(
        [sys.executable, str(program), *SMALL, "--only", *scenarios],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "tests")},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        timeout=12 * DEADLINE,
    ).stdout.splitlines()


@pytest.mark.long
def test_a_restart_writes_nothing_and_runs_are_followed_without_asking_and_survive_faults() -> None:
    with ThreadPoolExecutor() as pool:  # two at a time, as they mostly wait
        lines = pool.map(measured, ("fleet", "latency"), ("runs", "chaos"))
    figures = {line["figure"]: line for each in lines for line in map(json.loads, each)}
    assert figures["18 new objects, writes an object"]["value"] >= 1
    assert figures["18 objects, restarted, writes"]["value"] == 0
    asked = figures["3 runs in flight, requests in 2 s, watches and Lease aside"]
    assert asked == {**asked, "value": 0, "ok": True}
    assert figures["requests a run, create sparkapplications: its job"]["value"] == 1
    for what in ("applications created", "runs succeeded"):
        assert figures[f"3 runs, API server slowed and cut, {what}"]["value"] == 3
