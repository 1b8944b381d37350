"""The double behaves as the real controllers do, on a cluster in memory and a real one."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from support.cluster.sparkcrds import install_spark_crds
from support.operator import jobdouble
from support.operator.clusters import until
from support.operator.fakecluster import FakeCluster
from support.operator.jobdouble import JobDouble, failed, published
from support.operator.runrequests import RUN, a_request, an_output

from snaploom.models.report import Report, RunPhase
from snaploom.models.run import Submitter
from snaploom_operator.cluster.client import open_cluster
from snaploom_operator.cluster.port import CONFIG_MAPS, OURS, PODS, Cluster
from snaploom_operator.errors import ObjectMissing
from snaploom_operator.objects import Application, ApplicationState, DriverPod, FoundReport
from snaploom_operator.store.children import ChildReader
from snaploom_operator.submit.applications import FORMS

S = ApplicationState
Raw = dict[str, Any]
every_submitter = pytest.mark.parametrize("submitter", Submitter)


class SubmittedRuns:
    """A namespace with an output whose runs are submitted by hand."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster, self.namespace = cluster, namespace
        self._reader = ChildReader(FORMS.values())

    async def submit(self, submitter: Submitter, name: str = RUN) -> None:
        kind = OURS["OutputDataset"]
        output = an_output(namespace=self.namespace)
        try:
            owner: Any = await self.cluster.get(kind, self.namespace, output.name)
        except ObjectMissing:
            bare = output.dump()
            for field in ("uid", "generation"):
                bare["metadata"].pop(field)  # type: ignore[union-attr,call-arg]
            owner = await self.cluster.create(kind, self.namespace, bare)
        request = a_request(
            an_output(namespace=self.namespace, uid=owner["metadata"]["uid"]), name=name
        )
        form = FORMS[submitter]
        await self.cluster.create(form.resource, self.namespace, form.manifest(request))

    async def application(self, submitter: Submitter, name: str = RUN) -> Application:
        form = FORMS[submitter]
        found = form.read(await self.cluster.get(form.resource, self.namespace, name))
        assert found is not None
        return found

    async def report(self, name: str = RUN) -> FoundReport:
        stored = await self.cluster.get(CONFIG_MAPS, self.namespace, f"{name}-report")
        child = self._reader.read(stored, 1)
        assert child is not None
        assert child.report is not None
        return child.report

    async def pod(self, name: str = RUN) -> DriverPod:
        stored = await self.cluster.get(PODS, self.namespace, f"{name}-driver")
        child = self._reader.read(stored, 1)
        assert child is not None
        assert isinstance(child.view, DriverPod)
        return child.view

    def double(self, script: Any = None) -> JobDouble:
        return JobDouble(self.cluster, script, namespace=self.namespace)


@pytest.fixture(params=["fake", "real"])
async def runs(request: pytest.FixtureRequest) -> AsyncIterator[SubmittedRuns]:
    if request.param == "fake":
        yield SubmittedRuns(FakeCluster(), "default")
        return
    plane, namespace = (
        request.getfixturevalue("control_plane"),
        request.getfixturevalue("namespace"),
    )
    install_spark_crds(plane.kubectl)
    async with open_cluster(plane.kubeconfig) as adapter:
        yield SubmittedRuns(adapter, namespace)


@pytest.fixture
def memory() -> SubmittedRuns:
    """In memory only: for what is about the double, not about a cluster."""
    return SubmittedRuns(FakeCluster(), "default")


@every_submitter
async def test_run_goes_through_its_states(runs: SubmittedRuns, submitter: Submitter) -> None:
    await runs.submit(submitter)
    double = runs.double(jobdouble.completes(published("2024-05-02T00:00:00Z", rows=7)))
    states = [(await runs.application(submitter)).state]
    while await double.step():
        states.append((await runs.application(submitter)).state)
    assert list(dict.fromkeys(states)) == [
        S.NEW, S.SUBMITTED, S.RUNNING, S.SUCCEEDING, S.COMPLETED,
    ]  # fmt: skip
    found = await runs.report()
    assert found.report is not None
    assert found.report.phase is RunPhase.SUCCEEDED
    assert [snapshot.rows for snapshot in found.report.snapshots] == [7]


@every_submitter
async def test_failed_run_shows_its_reason(runs: SubmittedRuns, submitter: Submitter) -> None:
    await runs.submit(submitter)
    await runs.double(jobdouble.fails(failed("gone", "SourceNotReadable"), "exit code 1")).finish()
    application = await runs.application(submitter)
    assert application.state is S.FAILED
    assert "exit code 1" in application.message
    found = await runs.report()
    assert found.report is not None
    assert (found.report.phase, found.report.message) == (RunPhase.FAILED, "gone")


async def test_waiting_driver_shows_what_it_waits_for(runs: SubmittedRuns) -> None:
    await runs.submit(Submitter.SPARK_OPERATOR)
    await runs.double(jobdouble.waits_for_image("ghost:1")).finish()
    pod = await runs.pod()
    assert (pod.phase, pod.trouble) == (
        "Pending", 'ImagePullBackOff: Back-off pulling image "ghost:1"',
    )  # fmt: skip


async def test_run_that_is_recreated_has_another_uid(runs: SubmittedRuns) -> None:
    await runs.submit(Submitter.SPARK_OPERATOR)
    before = await runs.application(Submitter.SPARK_OPERATOR)
    double = runs.double(jobdouble.recreated())
    await double.finish()
    after = await runs.application(Submitter.SPARK_OPERATOR)
    assert after.uid != before.uid
    assert after.state is S.COMPLETED
    assert [one.uid for one in double.seen] == [before.uid, after.uid]


async def test_run_that_vanishes_is_gone(runs: SubmittedRuns) -> None:
    await runs.submit(Submitter.SPARK_OPERATOR)
    await runs.double(jobdouble.vanishes()).finish()
    with pytest.raises(ObjectMissing):
        await runs.application(Submitter.SPARK_OPERATOR)


async def test_report_outlives_the_run(runs: SubmittedRuns) -> None:
    await runs.submit(Submitter.SPARK_OPERATOR)
    await runs.double(jobdouble.vanishes(final=published())).finish()
    assert (await runs.report()).report is not None


@pytest.mark.parametrize("state", [s for s in S if s is not S.NEW])
async def test_run_hangs_in_the_given_state(memory: SubmittedRuns, state: ApplicationState) -> None:
    await memory.submit(Submitter.SPARK_OPERATOR)
    await memory.double(jobdouble.hangs_in(state)).finish()
    assert (await memory.application(Submitter.SPARK_OPERATOR)).state is state


async def test_driver_of_an_earlier_submission_works_on(memory: SubmittedRuns) -> None:
    await memory.submit(Submitter.SPARK_OPERATOR)
    double = memory.double(jobdouble.driver_already_exists())
    await double.finish()
    application = await memory.application(Submitter.SPARK_OPERATOR)
    assert application.state is S.FAILED
    assert "driver pod already exist" in application.message
    assert (await memory.pod()).phase == "Running"
    double.release()
    await double.finish()
    assert (await memory.pod()).phase == "Succeeded"
    assert (await memory.report()).report is not None


async def test_late_report_comes_when_it_is_released(memory: SubmittedRuns) -> None:
    await memory.submit(Submitter.SPARK_OPERATOR)
    double = memory.double(jobdouble.report_late())
    await double.finish()
    with pytest.raises(ObjectMissing):
        await memory.report()
    double.release()
    await double.finish()
    assert (await memory.report()).report is not None


@pytest.mark.parametrize(
    ("script", "trouble"),
    [
        (jobdouble.report_of_other_run(), "another run"),
        (jobdouble.report_of_other_run(uid="somebody"), "another run"),
        (jobdouble.report_unreadable(), "has no valid report"),
    ],
)
async def test_wrong_report_does_not_count(
    memory: SubmittedRuns, script: jobdouble.Script, trouble: str
) -> None:
    await memory.submit(Submitter.SPARK_OPERATOR)
    await memory.double(script).finish()
    found = await memory.report()
    assert found.report is None
    assert trouble in found.trouble


async def test_report_is_written_as_the_job_writes_it(memory: SubmittedRuns) -> None:
    await memory.submit(Submitter.SPARK_OPERATOR)
    await memory.double().finish()
    stored: Any = await memory.cluster.get(CONFIG_MAPS, "default", f"{RUN}-report")
    application = await memory.application(Submitter.SPARK_OPERATOR)
    assert stored["metadata"]["labels"] == {
        "snaploom.io/kind": "OutputDataset",
        "snaploom.io/name": "orders",
        "snaploom.io/role": "report",
        "snaploom.io/owner-uid": application.owner_uid,
        "snaploom.io/run": RUN,
    }
    report = Report.parse(json.loads(stored["data"]["report.json"]))
    assert (report.run_id, report.uid, report.attempt) == (RUN, application.owner_uid, 1)


async def test_scripts_are_given_in_turn(memory: SubmittedRuns) -> None:
    double = memory.double(jobdouble.in_turn(jobdouble.fails(), jobdouble.completes()))
    await memory.submit(Submitter.SPARK_OPERATOR, "ods-a-1")
    await double.finish()
    for name in ("ods-a-2", "ods-a-3"):
        await memory.submit(Submitter.SPARK_OPERATOR, name)
        await double.finish()
    states = [
        (await memory.application(Submitter.SPARK_OPERATOR, f"ods-a-{n}")).state for n in (1, 2, 3)
    ]
    assert states == [S.FAILED, S.COMPLETED, S.COMPLETED]


async def test_one_run_can_be_moved_on_its_own(memory: SubmittedRuns) -> None:
    for name in ("ods-a-1", "ods-a-2"):
        await memory.submit(Submitter.SPARK_OPERATOR, name)
    await memory.double().to(S.RUNNING, "ods-a-2")
    states = [
        (await memory.application(Submitter.SPARK_OPERATOR, f"ods-a-{n}")).state for n in (1, 2)
    ]
    assert states == [S.NEW, S.RUNNING]


async def test_it_plays_by_itself_until_the_block_ends(memory: SubmittedRuns) -> None:
    async def is_over() -> bool:
        return (await memory.application(Submitter.SPARK_OPERATOR)).state is S.COMPLETED

    async with memory.double().running(0):
        await memory.submit(Submitter.SPARK_OPERATOR)
        await until(is_over)
    assert len(asyncio.all_tasks()) == 1
