import base64
import gzip
import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.declared.declarations import Raw, model, spoilt
from support.operator import fakejob
from support.operator.clusters import until
from support.operator.faultycluster import Call, Fault, FaultyCluster
from support.operator.localruns import LocalRuns, is_alive
from support.operator.operatorharness import FakeHarness, started
from support.operator.runrequests import UID

from snaploom.models.run import RunAction
from snaploom_operator.cluster.port import CONFIG_MAPS
from snaploom_operator.errors import ApiUnavailable
from snaploom_operator.objects import ApplicationState
from snaploom_operator.submit import localrunner as runner_module
from snaploom_operator.submit.local import FINALIZER
from snaploom_operator.submit.localprocess import LocalProcess, ProcessName, start_process
from snaploom_operator.submit.localrunner import LocalRunner

S = ApplicationState


async def test_job_that_ends_well_is_completed(runs: LocalRuns) -> None:
    await runs.submit("run-1")
    async with runs.running():
        ended = await runs.ended("run-1")
    assert (ended.state, ended.message) == (S.COMPLETED, "")
    data = (await runs.stored("run-1"))["data"]
    assert data["startedAt"] <= data["finishedAt"]
    assert data["host"] == socket.gethostname()


async def test_job_is_called_with_ids_and_a_private_bundle(runs: LocalRuns) -> None:
    await runs.submit("run-1", attempt=2, action=RunAction.DELETE)
    async with runs.running():
        ended = await runs.ended("run-1")
    (called,) = runs.played()
    assert {key: called[key] for key in called if key not in ("--bundle", "pid")} == {
        "--uid": ended.owner_uid,
        "--run-id": "run-1",
        "--attempt": "2",
        "--action": "delete",
        "--report": "configmap:default/run-1-report",
        "mode": "0o600",
        "play": "ends",
    }
    assert ended.owner_uid != UID


async def test_job_that_fails_shows_its_last_lines(runs: LocalRuns) -> None:
    await runs.submit("run-1", "fails")
    async with runs.running():
        ended = await runs.ended("run-1")
    assert ended.state is S.FAILED
    assert ended.message == "error orders: the folder is read-only\nexit code 3"


async def test_long_output_of_a_job_is_cut(runs: LocalRuns) -> None:
    await runs.submit("run-1", "talks")
    async with runs.running():
        ended = await runs.ended("run-1")
    assert ended.message.endswith("x\nlast words\nexit code 1")
    assert len(ended.message) < 2000


async def test_job_that_is_killed_has_failed(runs: LocalRuns) -> None:
    await runs.submit("run-1", "dies")
    async with runs.running():
        ended = await runs.ended("run-1")
    assert (ended.state, ended.message) == (S.FAILED, "signal SIGKILL")


async def test_what_a_job_leaves_behind_is_ended(runs: LocalRuns) -> None:
    await runs.submit("run-1", "leaves")
    async with runs.running():
        await runs.ended("run-1")
    assert len(runs.pids()) == 2
    await runs.all_gone()


async def test_compressed_bundle_is_unpacked(runs: LocalRuns) -> None:
    await runs.submit("run-1", None)
    packed = base64.b64encode(gzip.compress(json.dumps({"play": "ends"}).encode())).decode()
    bundle = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "run-1-bundle"},
        "binaryData": {"bundle.json.gz": packed},
    }
    await runs.cluster.create(CONFIG_MAPS, "default", bundle)
    async with runs.running():
        assert (await runs.ended("run-1")).state is S.COMPLETED


def test_a_bundle_that_unpacks_to_much_is_not_unpacked(monkeypatch):
    monkeypatch.setattr(runner_module, "MOST_UNPACKED", 1_000)
    packed = base64.b64encode(gzip.compress(b" " * 1_001)).decode()
    with pytest.raises(ValueError, match="more than 1,000 bytes"):
        runner_module._content({"binaryData": {"bundle.json.gz": packed}})


@pytest.mark.parametrize("content", [None, {}, {"binaryData": {"bundle.json.gz": "bm8="}}])
async def test_run_without_a_bundle_has_failed(runs, content):
    await runs.submit("run-1", None)
    if content is not None:
        metadata = {"name": "run-1-bundle"}
        bundle = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **content}
        await runs.cluster.create(CONFIG_MAPS, "default", bundle)
    async with runs.running():
        ended = await runs.ended("run-1")
    assert ended.state is S.FAILED
    assert "no Bundle" in ended.message


async def test_no_more_jobs_than_workers_run_at_once(runs: LocalRuns) -> None:
    for number in range(4):
        await runs.submit(f"run-{number}", "sleeps")
    async with runs.running(workers=2):
        await runs.waiting(2)
        states = await runs.states(*(f"run-{number}" for number in range(4)))
        assert sorted(states) == [S.NEW, S.NEW, S.RUNNING, S.RUNNING]
        running = [n for n, state in enumerate(states) if state is S.RUNNING]
        await runs.delete(f"run-{running[0]}")
        await runs.waiting(3)


async def test_job_is_stopped_when_its_run_is_deleted(runs: LocalRuns) -> None:
    await runs.submit("run-1", "sleeps")
    async with runs.running():
        await runs.waiting()
        await runs.delete("run-1")
        await runs.all_gone()
        await runs.removed("run-1")


async def test_job_that_does_not_listen_is_killed(runs: LocalRuns) -> None:
    await runs.submit("run-1", "stays")
    async with runs.running():
        await runs.waiting()
        await runs.delete("run-1")
        await runs.all_gone()


async def test_jobs_end_with_the_operator(runs: LocalRuns) -> None:
    await runs.submit("run-1", "sleeps")
    async with runs.running():
        await runs.waiting()
    assert not any(is_alive(pid) for pid in runs.pids())
    ended = await runs.application("run-1")
    assert (ended.state, ended.message) == (S.FAILED, "it was stopped together with the operator")


async def test_job_that_outlives_its_operator_is_stopped(runs: LocalRuns) -> None:
    await runs.submit("run-1", "sleeps")
    process = await left_behind(runs)
    async with runs.running():
        ended = await runs.ended("run-1")
    assert await process.wait() == 130
    assert not any(is_alive(pid) for pid in runs.pids())
    assert ended.state is S.FAILED
    assert ended.message.startswith("the operator was stopped during the run")


async def test_job_that_died_with_its_operator_has_failed(runs: LocalRuns) -> None:
    await runs.submit("run-1", "sleeps")
    process = await left_behind(runs)
    await process.stop(5)
    async with runs.running():
        assert (await runs.ended("run-1")).state is S.FAILED


@pytest.mark.parametrize(
    ("phase", "changes", "state", "text"),
    [
        ("SUCCEEDED", {}, S.COMPLETED, ""),
        ("FAILED", {"message": "the disk is full"}, S.FAILED, "the disk is full"),
        ("RUNNING", {}, S.FAILED, "wrote no final report"),
        ("SUCCEEDED", {"runId": "another"}, S.FAILED, "is about another run"),
        ("SUCCEEDED", {"uid": "another"}, S.FAILED, "is about another run"),
    ],
)
async def test_job_that_ended_while_no_operator_saw_is_judged_by_its_report(
    runs: LocalRuns, phase: str, changes: dict[str, str], state: ApplicationState, text: str
) -> None:
    await runs.submit("run-1", "sleeps")
    process = await left_behind(runs)
    await process.stop(5)
    await write_report(runs, {"phase": phase, **changes})
    async with runs.running():
        ended = await runs.ended("run-1")
    assert ended.state is state
    assert text in ended.message


async def write_report(runs: LocalRuns, changes: dict[str, str]) -> None:
    """Write the last report of the job of `run-1`."""
    application = await runs.application("run-1")
    name = (await runs.stored("run-1"))["data"]["report"]
    report = {
        "output": "wide", "uid": application.owner_uid, "runId": "run-1",
        "startedAt": "2026-01-01T00:00:00Z", **changes,
    }  # fmt: skip
    stored = {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
        "data": {"report.json": json.dumps(report)},
    }  # fmt: skip
    await runs.cluster.create(CONFIG_MAPS, "default", stored)


@pytest.fixture
def other() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize(
    "claimed",
    [
        pytest.param(lambda other: f"{other} 12345", id="the number of a dead job"),
        pytest.param(lambda other: str(name_of(other)), id="a process that is no job"),
        pytest.param(lambda other: str(ProcessName.of_this()), id="the operator"),
    ],
)
async def test_a_claim_that_names_no_job_of_the_operator_kills_nothing(runs, other, claimed):
    await runs.submit("run-1")
    await claim(runs, socket.gethostname(), claimed(other.pid))
    async with runs.running():
        assert (await runs.ended("run-1")).state is S.FAILED
    assert other.poll() is None


async def test_run_of_another_machine_is_not_touched(runs: LocalRuns) -> None:
    await runs.submit("run-1")
    await runs.submit("run-2")
    await claim(runs, "elsewhere", "1 1")
    async with runs.running():
        await runs.ended("run-2")
    assert (await runs.application("run-1")).state is S.RUNNING


async def test_run_of_another_operator_of_this_machine_is_not_touched(runs, other):
    await runs.submit("run-1")
    await runs.submit("run-2")
    await claim(runs, socket.gethostname(), "1 1", str(name_of(other.pid)))
    async with runs.running():
        await runs.ended("run-2")
        assert (await runs.application("run-1")).state is S.RUNNING
        other.kill()
        other.wait()
        await runs.ended("run-1")


async def test_two_operators_run_a_job_once(runs: LocalRuns) -> None:
    for number in range(5):
        await runs.submit(f"run-{number}")
    async with runs.running(workers=3), runs.running(workers=3, host="elsewhere"):
        for number in range(5):
            await runs.ended(f"run-{number}")
    assert sorted(line["--run-id"] for line in runs.played()) == [f"run-{n}" for n in range(5)]


@pytest.mark.parametrize("is_after", [False, True])
async def test_job_does_nothing_before_it_is_stored_in_the_cluster(runs, is_after):
    await runs.submit("run-1", "sleeps")
    lost = Fault(ApiUnavailable("no answer"), is_after=is_after)
    runner = runs.runner(
        cluster=FaultyCluster(runs.cluster, lambda call: lost if call.verb == "patch" else None)
    )
    await runner.poll()
    await until_idle(runner)
    assert runs.played() == []
    async with runs.running():
        if is_after:
            assert (await runs.ended("run-1")).state is S.FAILED
        else:
            await runs.waiting()


async def test_end_is_reported_when_the_cluster_answers_again(runs: LocalRuns) -> None:
    await runs.submit("run-1")
    failed: list[Call] = []

    def away_once_it_plays(call: Call) -> Fault | None:
        if len(failed) == 30 or not runs.played():
            return None
        failed.append(call)
        return Fault(ApiUnavailable("no answer"))

    async with runs.running(cluster=FaultyCluster(runs.cluster, away_once_it_plays)):
        assert (await runs.ended("run-1")).state is S.COMPLETED
    assert len(failed) == 30


async def until_idle(runner: LocalRunner) -> None:
    async def is_idle() -> bool:
        return not runner._jobs

    await until(is_idle)


async def left_behind(runs: LocalRuns) -> LocalProcess:
    """A job that an operator began before it vanished."""
    bundle = runs.log.with_name("bundle.json")
    bundle.write_text('{"play": "sleeps"}')
    arguments = [sys.executable, fakejob.__file__, "--bundle", str(bundle)]
    process = await start_process(arguments, runs.environment, bundle.parent, lambda line: None)
    await claim(runs, socket.gethostname(), str(process.name))
    process.permit()
    await runs.waiting()
    return process


async def claim(runs: LocalRuns, host: str, process: str, operator: str = "1 1") -> None:
    data = {"state": "RUNNING", "host": host, "process": process, "operator": operator}
    await runs.cluster.patch(CONFIG_MAPS, "default", "run-1", {"data": data})


def name_of(pid: int) -> ProcessName:
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return ProcessName(pid, stat[19])


def test_process_is_known_by_its_start(other: subprocess.Popen[bytes]) -> None:
    name = name_of(other.pid)
    assert name.is_alive
    assert ProcessName.parse(str(name)) == name
    assert not ProcessName(other.pid, "1").is_alive
    other.kill()
    other.wait()
    assert not name.is_alive


@pytest.mark.parametrize("text", ["", "12", "x 12", "-1 12", "12 "])
def test_text_that_names_no_process_is_none(text: str) -> None:
    assert ProcessName.parse(text) is None


WIDE = "OutputDataset/wide"
DEAF = """
import json, os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open(os.environ["PLAYED_LOG"], "a") as log:
    log.write(json.dumps({"pid": os.getpid()}) + "\\n")
time.sleep(600)
"""
"""A job that goes on until it is killed."""


async def test_a_deleted_run_is_there_until_its_process_has_ended(runs: LocalRuns) -> None:
    await runs.submit("run-1", "stays")
    async with runs.running():
        await runs.waiting()
        await runs.delete("run-1")
        application = await runs.application("run-1")
        assert (application.state, application.is_deleting) == (ApplicationState.RUNNING, True)
        await runs.removed("run-1")
        assert not any(is_alive(pid) for pid in runs.pids())


async def test_a_run_that_has_ended_or_has_not_started_has_no_finalizer(runs: LocalRuns) -> None:
    await runs.submit("run-1")
    assert "finalizers" not in (await runs.stored("run-1"))["metadata"]
    async with runs.running():
        await runs.ended("run-1")
    assert not (await runs.stored("run-1"))["metadata"].get("finalizers")


async def test_finalizers_of_others_stay(runs: LocalRuns) -> None:
    await runs.submit("run-1", "sleeps")
    await hold(runs, "example.com/theirs")
    async with runs.running():
        await runs.waiting()
        await runs.delete("run-1")
        await runs.all_gone()

        async def has_only_theirs() -> bool:
            return (await runs.stored("run-1"))["metadata"]["finalizers"] == ["example.com/theirs"]

        await until(has_only_theirs)


@pytest.mark.parametrize("host", [socket.gethostname(), "elsewhere"])
async def test_a_deleted_run_of_a_dead_operator_is_removed_by_its_machine(runs, host):
    await runs.submit("run-1")
    await claim(runs, host, "1 1")
    await hold(runs, FINALIZER)
    await runs.delete("run-1")
    await runs.submit("run-2")
    async with runs.running():
        await runs.ended("run-2")
        if host == socket.gethostname():
            await runs.removed("run-1")
    if host == "elsewhere":
        assert (await runs.application("run-1")).is_deleting


async def test_data_that_stays_is_reported_when_the_process_has_ended(runs: LocalRuns) -> None:
    harness = await started(is_local=True)
    *others, declared = model()
    wanted = {"deletionPolicy": "Delete", "submitter": "Local"}
    await harness.apply(*others, spoilt(declared, "spec.run", wanted))
    async with runs.running(cluster=harness.fake, program=(sys.executable, "-c", DEAF)):
        await until_settled(harness, lambda: bool(runs.played()))
        (pid,) = runs.pids()
        await harness.apply(spoilt(declared, "spec.run", {**wanted, "deletionPolicy": "Retain"}))
        await harness.delete(WIDE)
        await until_settled(harness, lambda: "DataLeft" in harness.notes.reasons(WIDE))
        assert not is_alive(pid)
    assert await harness.get(WIDE) == {}


async def until_settled(harness: FakeHarness, predicate: Callable[[], bool]) -> None:
    """Let the operator go on until something is so."""

    async def is_so() -> bool:
        await harness.settle()
        return predicate()

    await until(is_so)


async def hold(runs: LocalRuns, finalizer: str) -> None:
    patch: Raw = {"metadata": {"finalizers": [finalizer]}}
    await runs.cluster.patch(CONFIG_MAPS, "default", "run-1", patch)
