"""Who may speak to a driver from its own machine: nobody without the token of its gateway."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyspark
import pytest
import support.hostile.gateway

PROGRAM = support.hostile.gateway.__file__
SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
"""127.0.0.1 and ::1, as the kernel writes them."""
WAYS: dict[str, Sequence[str]] = {
    "laptop": (sys.executable,),
    "submitted": (
        str(SUBMIT),
        "--master=local[1]",
        "--conf=spark.driver.bindAddress=127.0.0.1",
        "--conf=spark.driver.host=127.0.0.1",
        "--conf=spark.ui.enabled=false",
    ),
}


@pytest.fixture(scope="module", params=WAYS)
def driver(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What a driver reported of its gateway, and all that it printed."""
    report = tmp_path_factory.mktemp("gateway") / "report.json"
    command = [*WAYS[request.param], PROGRAM, str(report)]
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "SNAPLOOM_DEBUG": "1"}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    return json.loads(report.read_text()) | {"printed": done.stdout + done.stderr}


def test_a_client_without_the_token_learns_nothing(driver: Any) -> None:
    assert driver["version"] not in driver["answer"]
    assert not driver["answer"].startswith("!y")


def test_the_token_is_in_no_argument_setting_or_log(driver: Any) -> None:
    assert len(driver["token"]) >= 32
    assert (driver["isInArguments"], driver["isInSettings"]) == (False, False)
    assert driver["token"] not in driver["printed"]


def test_a_driver_on_a_laptop_listens_at_its_own_machine_only(driver: Any) -> None:
    assert driver["listening"]
    assert set(driver["listening"]) <= LOOPBACK
