"""Runs that are killed, raced, interrupted and retried, as processes."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from pyspark.sql.functions import udf
from pyspark.sql.types import LongType
from support.declared.declarations import simple
from support.documentation.commands import end, snaploom_command, start, wait_until
from support.runner.proofscope import sampled
from support.weaving.loom import OUTPUT, Loom, ids
from support.weaving.sparksession import make_session

from snaploom.models.common import EpochNanos
from snaploom.models.report import RunPhase
from snaploom.models.run import RunSettings
from snaploom.output.folder import CrashPoint
from snaploom.output.leaseholder import SCOPE
from snaploom.reader import read
from snaploom.run.session.spark import build_session
from snaploom.sources.files.reader import PathReader
from snaploom.sources.port import SourceFrame

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PUBLISHING = [
    CrashPoint.AFTER_MARKER,
    CrashPoint.BEFORE_STAGING,
    CrashPoint.AFTER_STAGING,
    CrashPoint.DURING_PROMOTION,
    CrashPoint.AFTER_PROMOTION,
    CrashPoint.AFTER_COMMIT,
]
PROGRAM = (sys.executable, __file__)
"""Runs `main` of this file: a killed Python takes its Spark along, and tasks are tried again only
under a master of their own."""
FINDING_SUPPORT = {"PYTHONPATH": str(Path(__file__).parents[1])}
AT = "2024-01-20T00:00:00Z"
AT_ONCE = ("--grace", "0s", "--below-reader-grace")

SLOW = "aggregate(sequence(1, 20000), 0L, (total, x) -> total + x)"
"""About a millisecond a row: Spark notices between batches of rows that it is to stop."""


@pytest.fixture
def loom(tmp_path: Path) -> Loom:
    loom = Loom(tmp_path)
    for day in (1, 2):
        loom.write("order", day, ids(*range(day)))
    return loom


def run_arguments(loom: Loom) -> list[str]:
    return ["run", OUTPUT, "-f", str(loom.save()), "--now", AT, "-o", "json"]


def slow_loom(loom: Loom, rows: int) -> Loom:
    loom.root = "slow"
    loom.sources.append("slow")
    loom.more.append(simple("slow", f"SELECT id, {SLOW} AS x FROM c", source="order"))
    loom.write("order", 1, pa.table({"id": pa.array(range(rows))}))
    return loom


def staged(loom: Loom) -> list[Path]:
    """Files that tasks are writing."""
    return [path for path in loom.out.glob("data/.staging/**/*.parquet") if path.is_file()]


def run_until(place: Path, point: CrashPoint) -> None:
    """A run that is killed at a point."""

    def die(here: CrashPoint) -> None:
        if here is point:
            os.kill(os.getpid(), signal.SIGKILL)

    Loom(place).weave(build_session("killed", RunSettings()), reached=die)


def run_with_a_task_that_fails(place: Path) -> None:
    """A run in which one task fails once and is tried again (rule W25); prints its Report."""
    spark = make_session(place / "spark", {"spark.master": "local[2, 3]"})
    marker = place / "failed"

    @udf(LongType())
    def fail_once(number: int) -> int:
        if number == 3 and not marker.exists():
            marker.touch()
            raise RuntimeError("first attempt")
        return number

    original = PathReader.read

    def read_by_a_task_that_fails(reader: PathReader, snapshot: EpochNanos) -> SourceFrame:
        found = original(reader, snapshot)
        return replace(found, frame=found.frame.withColumn("id", fail_once("id")))

    PathReader.read = read_by_a_task_that_fails
    loom = Loom(place)
    loom.join("customer")
    print(loom.weave(spark).report.dump_json())
    spark.stop()


def main(place: str, point: Sequence[str]) -> None:
    if point:
        run_until(Path(place), CrashPoint(point[0]))
    else:
        run_with_a_task_that_fails(Path(place))


@pytest.mark.parametrize("point", sampled(PUBLISHING, 3))
def test_run_after_a_killed_one_publishes_exactly_once(spark, loom, tmp_path, point) -> None:
    process = start([*PROGRAM, str(tmp_path), point.value], tmp_path / "killed", FINDING_SUPPORT)
    assert end(process, tmp_path / "killed")[0] == -signal.SIGKILL
    report = loom.weave(spark).report
    assert report.phase is RunPhase.SUCCEEDED
    assert loom.live_days() == [1, 2]
    assert read(spark, loom.uri).count() == 3
    collecting = snaploom_command("gc", loom.uri, *AT_ONCE, folder=tmp_path / "gc")
    assert end(collecting, tmp_path / "gc")[0] == 0
    assert loom.is_clean()
    assert read(spark, loom.uri).count() == 3


def test_runs_at_the_same_moment_publish_each_snapshot_once(loom, tmp_path) -> None:
    arguments = run_arguments(loom)
    folders = [tmp_path / "first", tmp_path / "second"]
    processes = [snaploom_command(*arguments, folder=folder) for folder in folders]
    ended = [end(process, folder) for process, folder in zip(processes, folders, strict=True)]
    assert [code for code, _, _ in ended] == [0, 0], ended
    reports = [json.loads(out) for _, out, _ in ended]
    published = [s["time"] for report in reports for s in report["snapshots"]]
    assert sorted(published) == ["2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z"]
    assert loom.live_days() == [1, 2]
    assert loom.is_clean()


def test_run_that_comes_second_names_the_publisher_of_its_snapshot(spark, loom) -> None:
    winners = []

    def overtake(point: CrashPoint) -> None:
        if point is CrashPoint.AFTER_STAGING and not winners:
            winners.append(loom.weave(spark).report)

    woven = loom.weave(spark, reached=overtake)
    assert woven.report.phase is RunPhase.SUCCEEDED
    assert woven.outcomes == {1: "ALREADY_PUBLISHED", 2: "ALREADY_PUBLISHED"}
    assert all(winners[0].run_id in left.message for left in woven.report.skipped)
    assert {record.run_id for record in loom.state().snapshots} == {winners[0].run_id}
    assert loom.is_clean()


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_signal_stops_a_long_run_soon_and_leaves_the_folder_clean(spark, loom, tmp_path, sent):
    slow_loom(loom, 1_000_000)
    process = snaploom_command(*run_arguments(loom), folder=tmp_path / "run")
    wait_until(lambda: bool(staged(loom)), process)
    process.send_signal(sent)
    code, out, err = end(process, tmp_path / "run")
    assert code == 130, err
    report = json.loads(out)
    assert report["phase"] == "INTERRUPTED"
    assert [left["reason"] for left in report["skipped"]] == ["INTERRUPTED", "INTERRUPTED"]
    assert "Traceback" not in err
    assert loom.data_files() == set()
    assert loom.state().claims[SCOPE].seconds == 0
    loom.write("order", 1, ids(0))
    assert loom.weave(spark).outcomes == {1: "PUBLISHED", 2: "PUBLISHED"}


def test_sigterm_before_spark_is_up_ends_the_run(loom, tmp_path) -> None:
    process = snaploom_command(*run_arguments(loom), folder=tmp_path / "run")
    wait_until(lambda: bool(psutil.Process(process.pid).children()), process)
    process.terminate()
    code, out, err = end(process, tmp_path / "run")
    assert code == 130, err
    assert json.loads(out)["phase"] == "INTERRUPTED"
    assert not loom.out.exists()


def test_task_that_is_tried_again_leaves_counts_right(spark, loom, tmp_path) -> None:
    loom.write("order", 1, ids(*range(8)))
    loom.write("order", 2, ids(*range(8)))
    loom.write("customer", 1, ids(0, 1))
    loom.write("customer", 2, ids(0, 1))
    environment = {**os.environ, **FINDING_SUPPORT}
    done = subprocess.run(
        [*PROGRAM, str(tmp_path)], capture_output=True, text=True, check=True, env=environment
    )
    report = json.loads(done.stdout)
    assert (tmp_path / "failed").exists()
    assert report["phase"] == "SUCCEEDED", report
    for snapshot in report["snapshots"]:
        assert snapshot["rows"] == 8
        join = snapshot["joins"][0]
        assert (join["in"], join["out"], join["matched"]) == (8, 8, 2)
    assert read(spark, loom.uri).count() == 16


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
