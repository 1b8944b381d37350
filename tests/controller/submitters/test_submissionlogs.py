"""The reason of a failed submission is one line of what `spark-submit` printed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snaploom_operator.submit.applications import cause_in

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
