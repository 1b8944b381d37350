"""Outputs as tasks of Airflow: the real package parses a DAG file, runs it, retries and skips."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.declared.shop import CUSTOMERS, ORDERS, SECOND_DAY, Shop
from support.documentation.orchestrators import orchestrators_folder, with_second_output

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """What parsing the DAG and four runs of it came to."""
    folder = tmp_path_factory.mktemp("airflow")
    shop = with_second_output(Shop(folder).with_data())
    shop.day("orders", ORDERS, SECOND_DAY).rename(folder / "later.parquet")
    shop.day("customers", [*CUSTOMERS, *CUSTOMERS], SECOND_DAY).rename(folder / "twice.parquet")
    home = folder / "home"
    (home / "dags").mkdir(parents=True)
    shutil.copy(Path(__file__).with_name("airflowdag.py"), home / "dags")
    environment = {
        **os.environ,
        "PYTHONPATH": orchestrators_folder("airflow"),
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "MODEL": str(shop.write()),
    }
    script = Path(__file__).with_name("airflowscript.py")
    for command in (["-m", "airflow", "db", "migrate"], [str(script), str(folder)]):
        done = subprocess.run(
            [sys.executable, *command],
            env=environment, capture_output=True, text=True, timeout=500,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"')]


def test_a_dag_file_is_parsed_without_spark(printed: list[Any]) -> None:
    parsed, *_ = printed
    assert (parsed["faults"], parsed["spark"]) == ({}, [])
    first, second = parsed["tasks"]["wide"], parsed["tasks"]["second"]
    assert (first["upstream"], second["upstream"]) == ([], ["wide"])
    assert first["outlets"] == second["inlets"]
    assert first["outlets"][0].startswith("file:///")


def test_a_published_snapshot_is_pushed_and_updates_its_asset(printed: list[Any]) -> None:
    parsed, ran, *_ = printed
    assert ran["tasks"] == {"wide": ["success", 1], "second": ["success", 1]}
    pushed = ran["pushed"]["wide"]
    assert (pushed["snapshots"], pushed["rows"]) == (["2024-05-01T00:00:00Z"], 3)
    assert ran["events"][parsed["tasks"]["wide"]["outlets"][0]] == pushed
    assert len(ran["events"]) == 2


def test_a_run_with_nothing_due_succeeds_and_updates_no_asset(printed: list[Any]) -> None:
    _, _, again, *_ = printed
    assert again["tasks"]["wide"] == ["success", 1]
    assert again["pushed"]["wide"]["snapshots"] == []
    assert again["events"] == {}


def test_a_failure_that_can_go_away_is_retried(printed: list[Any]) -> None:
    *_, missing, _ = printed
    assert missing["tasks"] == {"wide": ["failed", 2], "second": ["upstream_failed", 0]}
    assert missing["events"] == {}


def test_a_failure_that_stays_is_not_retried(printed: list[Any]) -> None:
    *_, twice = printed
    assert twice["tasks"] == {"wide": ["failed", 1], "second": ["upstream_failed", 0]}
