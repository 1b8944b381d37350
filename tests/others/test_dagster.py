"""Outputs as assets of Dagster: the real package materializes them, and shows what failed."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.declared.shop import ORDERS, SECOND_DAY, Shop
from support.documentation.orchestrators import orchestrators_folder, with_second_output

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """What two materializations came to, the second after a day of orders without customers."""
    folder = tmp_path_factory.mktemp("dagster")
    shop = with_second_output(Shop(folder).with_data())
    script = Path(__file__).with_name("dagsterscript.py")
    later = shop.day("orders", ORDERS, SECOND_DAY).rename(folder / "later.parquet")
    done = subprocess.run(
        [sys.executable, str(script), str(shop.write()), str(later)],
        env={**os.environ, "PYTHONPATH": orchestrators_folder(), "DAGSTER_HOME": ""},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def test_assets_are_materialized_after_what_they_read(printed: list[Any]) -> None:
    dependencies, first, _ = printed
    assert dependencies == {"lake/wide": [], "lake/second": ["lake/wide"]}
    assert first["success"]
    keys = [asset["key"] for asset in first["assets"]]
    assert keys == ["lake/wide", "lake/second"]
    assert (first["assets"][0]["rows"], first["assets"][0]["snapshots"]) == (3, 1)
    assert first["assets"][0]["newest"] == "2024-05-01T00:00:00Z"


def test_failure_of_a_run_is_a_failure_of_dagster_with_its_report(printed: list[Any]) -> None:
    _, _, second = printed
    assert not second["success"]
    (failure,) = second["failures"]
    assert "DataSource/customers has no snapshot at 2024-05-02" in failure["message"]
    assert "report" in failure["metadata"]
    assert second["assets"] == []
