from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.operator.runrequests import a_request, an_output, stored

from snaploom_operator.objects import ApplicationState
from snaploom_operator.submit.applications import SparkOperatorForm, cause_in
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
def test_small_driver_gets_memory_for_its_python_program(memory, conf, overhead):
    found = spec(driver={"memory": memory}, sparkConf=conf)["driver"]
    assert (found["memory"], found.get("memoryOverhead")) == (
        memory.lower().removesuffix("i"),
        overhead,
    )


@pytest.mark.parametrize(
    ("executors", "native", "overhead"), [(2, "4096m", None), (0, "2048m", "2867m")]
)
def test_pods_with_tasks_get_the_native_memory_of_an_accelerator(executors, native, overhead):
    found = spec(accelerator="COMET", executor={"instances": executors, "memory": "4g"})
    assert found["sparkConf"]["spark.plugins"] == "org.apache.spark.CometPlugin"
    assert found["sparkConf"]["spark.memory.offHeap.size"] == native
    assert found["driver"].get("memoryOverhead") == overhead
    assert "spark.plugins" not in spec(accelerator="NONE")["sparkConf"]


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


LOG = """\
failed to submit spark application: failed to run spark-submit: WARNING: Using incubator modules: j
Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties
26/11/22 13:28:28 WARN Utils: Your hostname, vm, resolves to a loopback address: 127.0.0.1
26/11/22 13:28:33 ERROR Client: Please check "kubectl auth can-i create pod" first.
"""
STACK = "\tat io.fabric8.kubernetes.Client.create(Client.java:205)\n\t... 12 more\n"
QUOTA = 'pods "wide-driver" is forbidden: exceeded quota: none, requested: pods=1, limited: pods=0'
REFUSED = (
    "io.fabric8.kubernetes.client.KubernetesClientException: Failure executing: POST at: "
    f"https://10.96.0.1/api/v1/namespaces/shop/pods. Message: {QUOTA}. Received status: "
    f"Status(apiVersion=v1, code=403, message={QUOTA}, reason=Forbidden)."
)


def thrown(first: str, *causes: str) -> str:
    """What Java prints of an exception."""
    lines = [f'Exception in thread "main" {first}', *(f"Caused by: {cause}" for cause in causes)]
    return LOG + "".join(f"{line}\n{STACK}" for line in lines)


def test_refusal_shows_the_message_of_the_api_server() -> None:
    assert cause_in(thrown(REFUSED, REFUSED)) == QUOTA


def test_first_exception_and_last_cause_are_shown() -> None:
    message = thrown(
        "io.fabric8.KubernetesClientException: Operation: [create] for kind: [Pod] failed.",
        "java.io.IOException: something between",
        "java.net.ConnectException: Connection refused",
    )
    assert cause_in(message) == (
        "KubernetesClientException: Operation: [create] for kind: [Pod] failed.: "
        "ConnectException: Connection refused"
    )


def test_log_without_an_exception_keeps_lines_of_a_failure() -> None:
    found = cause_in(LOG)
    assert "Please check" in found
    assert "failed to run spark-submit" in found
    assert "WARN" not in found
    assert "log4j" not in found


@pytest.mark.parametrize("message", ["", "driver pod not found", "exit code 137: OOMKilled"])
def test_message_that_is_no_log_stays(message: str) -> None:
    assert cause_in(message) == message


@given(st.text(), st.lists(st.sampled_from([LOG, STACK, "Caused by: a.B: c\n"])))
def test_any_message_has_a_cause(text: str, parts: list[str]) -> None:
    message = text + "\n" + "".join(parts)
    assert cause_in(message) or not message.strip()
