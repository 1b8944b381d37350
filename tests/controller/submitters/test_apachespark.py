from typing import Any

import pytest
from support.cluster.sparkcrds import STATE
from support.operator.runrequests import RUN, a_request, an_output, stored

from snaploom_operator.objects import ApplicationState
from snaploom_operator.submit.applications import ApacheSparkForm

FORM = ApacheSparkForm()
S = ApplicationState


def configuration(**spark: Any) -> Any:
    manifest: Any = FORM.manifest(a_request(an_output(spark=spark)))
    return manifest["spec"]["sparkConf"]


def read(*words: str, message: str = "") -> Any:
    entries = [{"currentStateSummary": word, "message": message} for word in words]
    history = {str(number): entry for number, entry in enumerate(entries)}
    status = {"currentState": entries[-1], "stateTransitionHistory": history}
    return FORM.read(stored(FORM.manifest(a_request()), status))


def test_settings_become_configuration() -> None:
    found = configuration(executor={"memory": "4Gi"}, imagePullSecrets=["a", "b"])
    assert found["spark.executor.memory"] == "4g"
    assert found["spark.executor.instances"] == "2"
    assert found["spark.kubernetes.container.image.pullSecrets"] == "a,b"
    assert found["spark.kubernetes.driver.pod.name"] == f"{RUN}-driver"


def test_dynamic_allocation_becomes_configuration() -> None:
    found = configuration(dynamicAllocation={"minExecutors": 3, "maxExecutors": 4})
    assert "spark.executor.instances" not in found
    assert found["spark.dynamicAllocation.initialExecutors"] == "3"


def test_small_driver_gets_memory_for_its_python_program() -> None:
    key = "spark.driver.memoryOverhead"
    assert configuration(driver={"memory": "600m"})[key] == "640m"
    assert configuration(driver={"memory": "600m"}, sparkConf={key: "1g"})[key] == "1g"
    assert key not in configuration(driver={"memory": "2g"})


def test_accelerator_becomes_configuration() -> None:
    found = configuration(accelerator="COMET", sparkConf={"spark.memory.offHeap.size": "3g"})
    assert found["spark.plugins"] == "org.apache.spark.CometPlugin"
    assert found["spark.memory.offHeap.size"] == "3g"


def test_driver_works_without_executors() -> None:
    assert configuration(executor={"instances": 0})["spark.kubernetes.driver.master"] == "local[1]"


def test_run_is_tried_once_and_never_given_up() -> None:
    manifest: Any = FORM.manifest(a_request())
    tolerations = manifest["spec"]["applicationTolerations"]
    assert tolerations["restartConfig"] == {"restartPolicy": "Never"}
    a_year = 365 * 24 * 3_600_000
    assert all(limit > a_year for limit in tolerations["applicationTimeoutConfig"].values())


def test_every_word_is_known() -> None:
    words = STATE["properties"]["currentStateSummary"]["enum"]
    assert not [word for word in words if read(word).state is S.UNKNOWN]


@pytest.mark.parametrize(
    ("words", "state"),
    [
        (["Submitted"], S.SUBMITTED),
        (["Submitted", "DriverRequested"], S.SUBMITTED),
        (["Submitted", "DriverRequested", "DriverStarted"], S.RUNNING),
        (["Submitted", "RunningHealthy", "RunningWithBelowThresholdExecutors"], S.RUNNING),
        (["Submitted", "RunningHealthy", "Succeeded"], S.SUCCEEDING),
        (["Submitted", "RunningHealthy", "Failed"], S.FAILING),
        (["Submitted", "SchedulingFailure"], S.FAILING),
        (["Submitted", "RunningHealthy", "Succeeded", "ResourceReleased"], S.COMPLETED),
        (["Submitted", "Succeeded", "TerminatedWithoutReleaseResources"], S.COMPLETED),
        (["Submitted", "RunningHealthy", "Failed", "ResourceReleased"], S.FAILED),
        (["Submitted", "DriverEvicted", "TerminatedWithoutReleaseResources"], S.FAILED),
        (["Submitted", "ResourceReleased"], S.FAILED),
        (["ResourceReleased"], S.FAILED),
        (["Hibernating"], S.UNKNOWN),
    ],
)
def test_states_are_read(words: list[str], state: ApplicationState) -> None:
    assert read(*words).state is state


def test_history_is_read_by_number() -> None:
    words = ["Submitted", *["RunningHealthy"] * 8, "Failed", "Succeeded", "ResourceReleased"]
    assert read(*words).state is S.COMPLETED


def test_failure_shows_the_message_of_its_cause() -> None:
    found = read("Submitted", "SchedulingFailure", "ResourceReleased", message="no quota")
    assert found.message == "SchedulingFailure: no quota"


def test_application_without_a_status_is_new() -> None:
    found = FORM.read(stored(FORM.manifest(a_request())))
    assert found.state is S.NEW
