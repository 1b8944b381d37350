"""A run in a cluster: what it publishes and reports."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest
from support.declared.declarations import document, simple
from support.documentation.commands import DEADLINE, wait_until
from support.weaving.loom import RUN, SPARK_SUBMIT, UID, ClusterJob, Loom, ids

from snaploom.models.kinds import KIND_BY_NAME
from snaploom.models.report import Report, RunPhase, SnapshotReason, SnapshotReport
from snaploom.models.skippingindex import IndexedFiles, IndexState
from snaploom.output.leaseholder import SCOPE
from snaploom.plan.bundle import BUNDLE_FORMAT, Bundle
from snaploom.plan.bundles import bundle_for
from snaploom.run import clusterjob
from snaploom.run.runevents import SnapshotPublished
from snaploom.run.weaving.requests import RunRequest

SLOW = "aggregate(sequence(1, 20000), 0L, (total, x) -> total + x)"
"""About a millisecond a row."""
INDEX = "by-id"
FIRST = SnapshotReport(
    time="2024-01-01T00:00:00Z", partition="day=1", rows=1, files=1, bytes=1, seconds=1, sequence=2
)


@pytest.fixture
def loom(tmp_path: Path) -> Loom:
    loom = Loom(tmp_path)
    loom.join("customer")
    for day in (1, 2):
        loom.write("order", day, ids(0, 1, 2))
        loom.write("customer", day, ids(1, 2))
    return loom


@pytest.fixture
def job(tmp_path: Path) -> ClusterJob:
    return ClusterJob(tmp_path)


def index_bundle(loom: Loom, tmp_path: Path, column: str = "data.id") -> Bundle:
    spec: dict[str, Any] = {
        "target": {"outputDataset": "wide"},
        "indexes": [{"type": "MIN_MAX", "column": column}],
        "store": {"parquet": {"location": f"file://{tmp_path}/indexes/"}},
    }
    raws = [*loom.documents(), document("SkippingIndex", INDEX, spec)]
    resources = [KIND_BY_NAME[raw["kind"]].model.parse(raw) for raw in raws]
    return bundle_for("SkippingIndex", INDEX, resources)


def test_run_publishes_and_reports_all_that_a_status_needs(spark, loom, job) -> None:
    code, report = job.run(loom.bundle(), "--attempt", "2")
    assert (code, report.phase) == (0, RunPhase.SUCCEEDED)
    assert (report.run_id, report.uid, report.attempt) == (RUN, UID, 2)
    assert (report.reason, report.retryable, report.progress) == ("", None, None)
    assert loom.live_days() == [1, 2]
    assert {record.run_id for record in loom.state().snapshots} == {report.storage_run_id}
    assert report.snapshot_count == 2
    assert [one.time for one in report.published] == [
        "2024-01-02T00:00:00Z",
        "2024-01-01T00:00:00Z",
    ]
    assert (report.newest.time, report.newest.rows) == ("2024-01-02T00:00:00Z", 3)
    assert [join.matched for join in report.newest.joins] == [2]
    assert report.manifest.sequence == loom.state().changed_at
    assert [(one.source, one.latest_snapshot, one.snapshots) for one in report.seen] == [
        ("customer", "2024-01-02T00:00:00Z", 2),
        ("order", "2024-01-02T00:00:00Z", 2),
    ]
    assert len({one.schema_fingerprint for one in report.seen}) == 1


def test_run_with_nothing_to_do_reports_what_is_published(spark, loom, job) -> None:
    job.run(loom.bundle())
    code, report = job.run(loom.bundle())
    assert (code, report.phase, report.snapshots) == (0, RunPhase.SUCCEEDED, ())
    assert report.snapshot_count == 2
    assert report.newest.time == "2024-01-02T00:00:00Z"
    assert {one.source: one.snapshots for one in report.seen} == {"customer": 2, "order": 2}


def files_that_only_hadoop_lists(loom: Loom) -> Bundle:
    for name in list(loom.sources):
        source = loom._source(name)
        files = source["spec"]["hdfsLike"]
        files["sourceUriGlobs"] = [files["sourceUriGlobs"][0].replace("*.", "{part,other}.")]
        loom.more.append(source)
    return loom.bundle()


@pytest.mark.slow
def test_run_with_nothing_due_asks_the_cluster_for_nothing(spark, loom, job) -> None:
    bundle = files_that_only_hadoop_lists(loom)
    _, first = job.run(bundle)
    code, printed = job.end(job.start(bundle, SPARK_SUBMIT))
    report = job.report
    assert (code, report.phase, report.snapshots) == (0, RunPhase.SUCCEEDED, ()), printed
    assert {one.source: one.snapshots for one in report.seen} == {"customer": 2, "order": 2}
    # Facts of a session, which has a SparkContext, and with it executors.
    assert (bool(first.session), report.session, report.spark_version) == (True, {}, "")


@pytest.mark.slow
def test_run_with_something_due_goes_on_in_the_jvm_that_listed(loom, job) -> None:
    code, printed = job.end(job.start(files_that_only_hadoop_lists(loom), SPARK_SUBMIT))
    assert (code, job.report.phase) == (0, RunPhase.SUCCEEDED), printed
    assert loom.live_days() == [1, 2]


def test_schema_of_the_newest_snapshot_is_what_was_seen(spark, loom, job) -> None:
    _, before = job.run(loom.bundle())
    loom.write("customer", 3, [{"id": 1, "name": "Ada"}])
    loom.write("order", 3, ids(0))
    _, after = job.run(loom.bundle())
    was = {one.source: one.schema_fingerprint for one in before.seen}
    now = {one.source: one.schema_fingerprint for one in after.seen}
    assert was["order"] == now["order"]
    assert was["customer"] != now["customer"]


def test_snapshot_that_is_missing_fails_and_is_worth_trying_again(spark, loom, job) -> None:
    loom.write("order", 3, ids(0))
    code, report = job.run(loom.bundle())
    assert (code, report.phase) == (1, RunPhase.FAILED)
    assert (report.reason, report.retryable) == ("SnapshotMissing", True)
    assert [left.reason for left in report.failed] == [SnapshotReason.SNAPSHOT_MISSING]
    assert report.snapshot_count == 0
    assert {one.source: one.snapshots for one in report.seen} == {"customer": 2, "order": 3}


def test_source_file_that_cannot_be_read_is_worth_trying_again(spark, loom, job) -> None:
    loom.write("customer", 2, ids(1)).write_bytes(b"no Parquet")
    code, report = job.run(loom.bundle())
    assert (code, report.phase) == (1, RunPhase.FAILED)
    assert (report.reason, report.retryable) == ("SourceNotReadable", True)
    assert report.snapshot_count == 1
    assert "customer" in report.message


def test_rows_that_multiply_are_not_worth_trying_again(spark, loom, job) -> None:
    loom.write("customer", 1, ids(1, 1))
    code, report = job.run(loom.bundle())
    assert (code, report.phase) == (1, RunPhase.FAILED)
    assert (report.reason, report.retryable) == ("RowsMultiplied", False)


def test_ambiguous_declarations_are_refused_before_spark_starts(loom, job, capsys) -> None:
    loom.spec["dataModel.dataRelationships"] = []
    code, report = job.run(loom.bundle())
    assert (code, report.phase) == (3, RunPhase.FAILED)
    assert (report.reason, report.retryable) == ("NoUniqueJoinTree", False)
    assert [finding.resource for finding in report.findings] == ["OutputDataset/wide"]
    assert "OutputDataset/wide" in capsys.readouterr().err


def test_bundle_of_a_newer_operator_is_reported(loom, job) -> None:
    arguments = job.arguments(loom.bundle())
    path = job.place / "bundle" / "bundle.json"
    raw = json.loads(path.read_text()) | {"format": BUNDLE_FORMAT + 1}
    path.write_text(json.dumps(raw))
    assert clusterjob.main(arguments) == 1
    assert (job.report.phase, job.report.reason) == (RunPhase.FAILED, "FormatTooNew")
    assert (job.report.output, job.report.run_id, job.report.uid) == ("wide", RUN, UID)


def test_fault_of_our_own_is_reported_without_its_text(loom, job, monkeypatch, capsys) -> None:
    def broken(request: RunRequest) -> None:
        request.emit(SnapshotPublished(FIRST))
        raise KeyError("s3cr3t")

    monkeypatch.setattr(clusterjob, "weave_outputs", broken)
    code, report = job.run(loom.bundle())
    assert (code, report.phase) == (1, RunPhase.FAILED)
    assert (report.reason, report.retryable) == ("UnexpectedFault", True)
    assert "KeyError" in report.message
    assert report.snapshots == (FIRST,)
    assert report.finished_at is not None
    assert "s3cr3t" not in report.dump_json()
    assert "s3cr3t" in capsys.readouterr().err


@pytest.mark.parametrize(
    "place", ["configmap:ns", "configmap:/x", "report.json", "configmap:other/report"]
)
def test_report_that_can_go_nowhere_is_refused(loom, job, place, capsys) -> None:
    raw = loom.bundle().dump()
    raw["outputDataset"]["metadata"]["namespace"] = "ns"
    arguments = job.arguments(Bundle.parse(raw), "--report", place)
    assert clusterjob.main(arguments) == 2
    assert "--report" in capsys.readouterr().err
    assert not loom.out.exists()


def slow_bundle(loom: Loom) -> Bundle:
    """A bundle whose second snapshot takes minutes."""
    loom.root = "slow"
    loom.others.clear()
    loom.more.append(simple("slow", f"SELECT id, {SLOW} AS x FROM c", source="order"))
    loom.write("order", 2, pa.table({"id": pa.array(range(1_000_000))}))
    return loom.bundle()


def reports_until_the_second(job: ClusterJob, process: subprocess.Popen[str]) -> list[Report]:
    """What is reported until the second snapshot is being woven."""
    seen: list[Report] = []

    def weaves_the_second() -> bool:
        if not job.report_file.exists():
            return False
        seen.append(job.report)
        progress = seen[-1].progress
        return progress is not None and progress.snapshot == 2

    wait_until(weaves_the_second, process)
    return seen


@pytest.mark.slow
def test_report_shows_progress_during_the_run_and_sigterm_ends_it(loom, job) -> None:
    process = job.start(slow_bundle(loom))
    seen = reports_until_the_second(job, process)
    assert {report.phase for report in seen} == {RunPhase.RUNNING}
    assert seen[0].progress is None
    assert [one.rows for one in seen[-1].snapshots] == [3]
    process.send_signal(signal.SIGTERM)
    code, printed = job.end(process)
    assert code == 130, printed
    assert "Traceback" not in printed
    report = job.report
    assert (report.phase, report.reason) == (RunPhase.INTERRUPTED, "Interrupted")
    assert (report.retryable, report.snapshot_count) == (True, 1)
    assert loom.is_clean()
    assert loom.state().claims[SCOPE].seconds == 0


@pytest.mark.slow
def test_run_whose_spark_submit_is_terminated_still_reports(loom, job) -> None:
    process = job.start(slow_bundle(loom), SPARK_SUBMIT)
    reports_until_the_second(job, process)
    programs = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGTERM)
    assert job.end(process)[0] == 143
    # The program itself gets no signal, and nothing reads its output any more.
    assert psutil.wait_procs(programs, DEADLINE)[1] == []
    report = job.report
    assert (report.phase, report.reason) == (RunPhase.FAILED, "SparkStopped")
    assert (report.retryable, report.snapshot_count) == (True, 1)
    assert loom.is_clean()


def test_deleting_removes_what_was_published_and_leaves_the_rest(spark, loom, job) -> None:
    job.run(loom.bundle())
    (loom.out / "notes.txt").write_text("mine")
    code, report = job.run(loom.bundle(), "--action", "Delete")
    assert (code, report.phase, report.snapshot_count) == (0, RunPhase.SUCCEEDED, 0)
    assert report.removed.files > 2
    assert report.removed.left_names == ("notes.txt",)
    assert [path.name for path in loom.out.rglob("*") if path.is_file()] == ["notes.txt"]


def test_deleting_what_was_never_published_is_fine(loom, job) -> None:
    code, report = job.run(loom.bundle(), "--action", "delete")
    assert (code, report.phase) == (0, RunPhase.SUCCEEDED)
    assert report.removed.files == 0


def test_deleting_needs_no_sound_declarations(loom, job) -> None:
    loom.spec["dataModel.dataRelationships"] = []
    assert job.run(loom.bundle(), "--action", "delete")[0] == 0


def test_index_is_built_reported_and_deleted(spark, loom, job, tmp_path) -> None:
    job.run(loom.bundle())
    bundle = index_bundle(loom, tmp_path)
    code, report = job.run(bundle)
    assert (code, report.phase, report.output) == (0, RunPhase.SUCCEEDED, f"SkippingIndex/{INDEX}")
    facts = report.index
    assert facts.state is IndexState.ACTIVE
    assert facts.files == IndexedFiles(indexed=2, stale=0, missing=0)
    assert facts.bytes
    assert facts.last_refreshed is not None
    assert facts.done
    again = job.run(bundle)[1].index
    assert again.files == facts.files
    for done in (("dropped", "its files removed"), ()):
        code, report = job.run(bundle, "--action", "delete")
        assert (code, report.phase) == (0, RunPhase.SUCCEEDED)
        assert (report.index.state, report.index.done) == (IndexState.DELETED, done)
    left = [path for path in (tmp_path / "indexes").rglob("*.parquet") if path.is_file()]
    assert left == []


def test_index_of_a_column_that_is_not_there_is_a_users_error(spark, loom, job, tmp_path) -> None:
    job.run(loom.bundle())
    code, report = job.run(index_bundle(loom, tmp_path, "absent"))
    assert (code, report.phase) == (2, RunPhase.FAILED)
    assert (report.reason, report.retryable) == ("Invalid", False)
    assert [finding.code for finding in report.findings] == ["SL186"]


def test_report_in_a_real_cluster(loom, job, control_plane, namespace, monkeypatch):
    raw = loom.bundle().dump()
    control_plane.kubectl(
        "create", "--namespace", namespace, "-f", "-", stdin=json.dumps(raw["outputDataset"])
    )
    stored = control_plane.kubectl.get("outputdataset", "wide", namespace)["metadata"]
    raw["outputDataset"]["metadata"] = {
        name: stored[name] for name in ("name", "namespace", "uid", "resourceVersion")
    }
    monkeypatch.setenv("KUBECONFIG", str(control_plane.kubeconfig))
    where = ["--report", f"configmap:{namespace}/{RUN}-report"]
    arguments = job.arguments(Bundle.parse(raw), "--action", "delete", *where)
    arguments[arguments.index(UID)] = stored["uid"]
    assert clusterjob.main(arguments) == 0
    found = control_plane.kubectl.get("configmap", f"{RUN}-report", namespace)
    report = Report.model_validate_json(found["data"]["report.json"])
    assert (report.phase, report.uid, report.run_id) == (RunPhase.SUCCEEDED, stored["uid"], RUN)


def test_report_that_cannot_be_written_does_not_fail_the_run(loom, job, monkeypatch, capsys):
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    where = ["--report", f"configmap:ns/{RUN}-report"]
    assert clusterjob.main(job.arguments(loom.bundle(), "--action", "delete", *where)) == 0
    assert "the last Report is not written" in capsys.readouterr().err
