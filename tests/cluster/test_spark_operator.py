"""The real Spark operator accepts what we submit, and reports what we read.

There are no nodes: Spark's own `spark-submit` creates the driver's pod, and the test plays kubelet.
"""

import json
import time

import pytest
from support.cluster.cluster import running_control_plane
from support.cluster.clustersparkoperator import running_spark_operator
from support.operator.runrequests import OUTPUT, a_request

from snaploom.models.outputdataset import OutputDataset
from snaploom_operator.objects import ApplicationState
from snaploom_operator.submit.applications import SparkOperatorForm

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DEADLINE = 180.0
FORM = SparkOperatorForm()
CONTAINER = "spark-kubernetes-driver"
RESTRICTED = "pod-security.kubernetes.io/enforce=restricted"


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    """A control plane with the Spark operator, and a namespace of the strictest pod security."""
    with running_control_plane(tmp_path_factory.mktemp("spark")) as found:
        found.install_crds()
        found.kubectl("create", "namespace", "jobs")
        found.kubectl("label", "namespace", "jobs", RESTRICTED)
        found.kubectl("create", "serviceaccount", "snaploom-job", "--namespace", "jobs")
        with running_spark_operator(found):
            yield found


def submitted(plane, name):
    """Create the application of a run; its request."""
    output = {"apiVersion": "snaploom.io/v1alpha1", "kind": "OutputDataset"}
    spark = {"image": "snaploom-spark:test", "serviceAccountName": "snaploom-job"}
    spec = OUTPUT | {"run": {"spark": spark}}
    plane.kubectl.apply(output | {"metadata": {"name": "orders"}, "spec": spec}, namespace="jobs")
    owner = OutputDataset.parse(cleaned(plane.kubectl.get("outputdataset", "orders", "jobs")))
    manifest = FORM.manifest(a_request(owner, name=name))
    plane.kubectl("create", "--namespace", "jobs", "-f", "-", stdin=json.dumps(manifest))
    return manifest


def cleaned(stored):
    stored["metadata"].pop("managedFields", None)
    return stored


def state_of(plane, name):
    found = FORM.read(plane.kubectl.get("sparkapplication", name, "jobs"))
    return found.state


def until(plane, name, state):
    deadline = time.monotonic() + DEADLINE
    while (found := state_of(plane, name)) is not state:
        assert time.monotonic() < deadline, f"{name} is {found}: {log_of(plane)}"
        time.sleep(0.2)


def log_of(plane):
    return (plane.folder / "spark-operator.log").read_text()[-4000:]


def play(plane, pod, phase, container):
    """Write into the pod's status what a kubelet would write."""
    status = {"name": CONTAINER, "image": "i", "imageID": "i", "ready": False, "restartCount": 0}
    pod_status = {"phase": phase, "containerStatuses": [status | {"state": container}]}
    patch = json.dumps({"status": pod_status})
    how = ("--namespace", "jobs", "--subresource=status", "--type=merge", "--patch", patch)
    plane.kubectl("patch", "pod", pod, *how)


def driver_of(plane, name):
    stored = plane.kubectl.get("sparkapplication", name, "jobs")
    return stored["status"]["driverInfo"]["podName"]


NOW = "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("name", "phase", "code", "end"),
    [
        ("ods-orders-00000001", "Succeeded", 0, ApplicationState.COMPLETED),
        ("ods-orders-00000002", "Failed", 1, ApplicationState.FAILED),
    ],
)
def test_run_is_submitted_followed_and_ends(plane, name, phase, code, end):
    manifest = submitted(plane, name)
    until(plane, name, ApplicationState.SUBMITTED)
    stored = plane.kubectl.get("sparkapplication", name, "jobs")
    assert stored["spec"] == manifest["spec"]
    pod = driver_of(plane, name)
    play(plane, pod, "Running", {"running": {"startedAt": NOW}})
    until(plane, name, ApplicationState.RUNNING)
    ended = {"exitCode": code, "startedAt": NOW, "finishedAt": NOW, "reason": "Error"}
    play(plane, pod, phase, {"terminated": ended})
    until(plane, name, end)


def test_driver_pod_matches_our_template(plane):
    name = "ods-orders-00000003"
    submitted(plane, name)
    until(plane, name, ApplicationState.SUBMITTED)
    pod = plane.kubectl.get("pod", driver_of(plane, name), "jobs")
    (container,) = pod["spec"]["containers"]
    assert container["name"] == CONTAINER
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert pod["spec"]["serviceAccountName"] == "snaploom-job"
    assert pod["metadata"]["labels"]["snaploom.io/run"] == name
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert "/etc/snaploom/bundle" in mounts
