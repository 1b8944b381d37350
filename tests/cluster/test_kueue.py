"""The real Kueue and the real Spark operator: a run waits for quota, and starts once it is there.

There are no nodes: Spark's own `spark-submit` creates the driver's pod, and nobody starts it.
"""

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest
from support.cluster.cluster import Cluster, running_control_plane
from support.cluster.clusterkueue import FRAMEWORKS, queue_of, running_kueue
from support.cluster.clustersparkoperator import running_spark_operator
from support.declared.declarations import model, spoilt
from support.operator.operatorharness import OperatorThread, real_settings

from snaploom_operator.process.operator import RunOptions

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DEADLINE = 240.0
NAMESPACE = "jobs"
ACCOUNT = "snaploom-job"
Raw = dict[str, Any]


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_control_plane(tmp_path_factory.mktemp("kueue")) as found:
        found.install_crds()
        found.kubectl("create", "namespace", NAMESPACE)
        found.kubectl("create", "serviceaccount", ACCOUNT, "--namespace", NAMESPACE)
        with running_spark_operator(found), running_kueue(found, FRAMEWORKS):
            yield found


async def status_with(plane: Cluster, name: str, phase: str, words: str = "") -> Raw:
    """The status of an output once its run is in a phase and waits for something."""
    deadline = time.monotonic() + DEADLINE
    while True:
        status: Raw = plane.kubectl.get("outputdataset", name, NAMESPACE).get("status", {})
        run = status.get("currentRun", {})
        if run.get("phase") == phase and words in run.get("waitingFor", ""):
            return status
        log = (plane.folder / "kueue.log").read_text()[-1500:]
        assert time.monotonic() < deadline, f"{status}\n{log}"
        await asyncio.sleep(0.3)


def declared(queue: str) -> list[Raw]:
    spark = {"image": "snaploom-spark:test", "serviceAccountName": ACCOUNT}
    run = {"queue": queue, "startTimeoutSeconds": 600, "spark": spark}
    return [spoilt(each, "spec.run", run) if each["kind"] == "OutputDataset" else each
            for each in model()]  # fmt: skip


@pytest.mark.parametrize("scheduler", ["Kueue", "KueuePods"])
async def test_run_waits_for_quota_and_starts_once_it_is_there(
    plane: Cluster, scheduler: str
) -> None:
    queue = f"team-{scheduler.lower()}"
    queue_of(plane, NAMESPACE, queue, 0)
    settings = real_settings(NAMESPACE, queueScheduler=scheduler)
    operator = OperatorThread(settings, RunOptions(plane.kubeconfig))
    await operator.begin()
    try:
        plane.kubectl.apply(*declared(queue), namespace=NAMESPACE)
        waiting = await status_with(plane, "wide", "QuotaPending", "quota for cpu")
        assert f"quota in the queue {queue}" in waiting["currentRun"]["waitingFor"]
        reasons = {each["type"]: each["reason"] for each in waiting["conditions"]}
        assert reasons["Ready"] == "QuotaPending"
        queue_of(plane, NAMESPACE, queue, 8)
        await status_with(plane, "wide", "Submitted", "SUBMITTED")
        (pod,) = plane.kubectl.list("pods", NAMESPACE)
        assert not pod["spec"].get("schedulingGates")
    finally:
        await operator.end()
        plane.kubectl("delete", "outputdataset", "wide", "--namespace", NAMESPACE)
        plane.kubectl("delete", "pods,sparkapplications", "--all", "--namespace", NAMESPACE)
