from typing import Any

import pytest
from support.operator.runrequests import a_request, an_output, stored

from snaploom_operator.objects import ApplicationState
from snaploom_operator.submit.applications import SparkOperatorForm
from snaploom_operator.submit.manifests import PROTECTION

FORM = SparkOperatorForm()


def spec(**spark: Any) -> Any:
    manifest: Any = FORM.manifest(a_request(an_output(spark=spark)))
    return manifest["spec"]


def read(status: dict[str, Any]) -> Any:
    return FORM.read(stored(FORM.manifest(a_request()), status))


def test_application_has_all_that_a_webhook_would_add() -> None:
    found = spec()
    parts = {key: found[key] for key in found if key not in ("driver", "executor", "arguments")}
    assert parts == {
        "type": "Python",
        "pythonVersion": "3",
        "mode": "cluster",
        "sparkVersion": "4.3.0",
        "image": "snaploom-spark:latest",
        "imagePullPolicy": "IfNotPresent",
        "mainApplicationFile": "local:///opt/snaploom/clusterjob.py",
        "deps": {},
        "sparkConf": {**PROTECTION},
        "restartPolicy": {"type": "Never"},
    }


def test_sizes_are_those_of_the_settings() -> None:
    found = spec(executor={"memory": "4Gi"})
    assert (found["driver"]["cores"], found["driver"]["memory"]) == (1, "2g")
    assert (found["executor"]["instances"], found["executor"]["memory"]) == (2, "4g")
    assert found["driver"]["serviceAccount"] == "snaploom-spark"


@pytest.mark.parametrize(
    ("memory", "conf", "overhead"),
    [
        ("600m", {}, "640m"),
        ("1536Mi", {}, "640m"),
        ("2g", {}, None),
        ("600m", {"spark.driver.memoryOverhead": "1g"}, None),
        ("600m", {"spark.driver.memoryOverheadFactor": "2"}, None),
    ],
)
def test_small_driver_gets_memory_for_its_python_program(
    memory: str, conf: dict[str, str], overhead: str | None
) -> None:
    found = spec(driver={"memory": memory}, sparkConf=conf)["driver"]
    assert (found["memory"], found.get("memoryOverhead")) == (
        memory.lower().removesuffix("i"),
        overhead,
    )


def test_dynamic_allocation_starts_within_its_bounds() -> None:
    found = spec(executor={"instances": 9}, dynamicAllocation={"maxExecutors": 4})
    assert "instances" not in found["executor"]
    assert found["dynamicAllocation"] == {
        "enabled": True,
        "initialExecutors": 4,
        "maxExecutors": 4,
        "shuffleTrackingEnabled": True,
    }


def test_dynamic_allocation_that_is_off_is_not_written() -> None:
    found = spec(dynamicAllocation={"enabled": False})
    assert "dynamicAllocation" not in found
    assert found["executor"]["instances"] == 2


def test_driver_works_without_executors() -> None:
    found = spec(driver={"cores": 3}, executor={"instances": 0})
    assert found["driver"]["kubernetesMaster"] == "local[3]"


@pytest.mark.parametrize("state", ApplicationState)
def test_every_state_is_read(state: ApplicationState) -> None:
    found = read({"applicationState": {"state": state.value}, "driverInfo": {}})
    assert found.state is state


@pytest.mark.parametrize("status", [{}, {"applicationState": {}}, {"applicationState": "odd"}])
def test_application_without_a_state_is_new(status: dict[str, Any]) -> None:
    assert read(status).state is ApplicationState.NEW


def test_state_of_a_newer_version_is_unknown_and_shown() -> None:
    state = {"state": "HIBERNATING", "errorMessage": "it is winter"}
    found = read({"applicationState": state})
    assert found.state is ApplicationState.UNKNOWN
    assert "HIBERNATING" in found.message
    assert "it is winter" in found.message


def test_message_is_read() -> None:
    state = {"state": "FAILED", "errorMessage": "driver pod already exist"}
    assert read({"applicationState": state}).message == "driver pod already exist"
