"""Sorting as a process that is stopped or killed while it writes."""

import signal
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession
from support.documentation.commands import end, snaploom_command, wait_until
from support.storage.folders import keys
from support.weaving.flightsfolder import published_folder, sort_quietly, state_of
from support.weaving.sparksession import compiled

from snaploom.reader import read
from snaploom.skipping.core.valueorder import SortRequest

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]

MANY = 1_000_000


def arguments(root: Path) -> list[str]:
    return ["index", "sort", str(root), "--by", "data.flight", "--acknowledge-readers"]


def is_writing(root: Path) -> bool:
    return any(path.is_file() for path in root.glob("data/.staging/**/*.parquet"))


def test_ctrl_c_leaves_the_snapshot_and_nothing_else(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "flights"
    with compiled(spark):
        store = published_folder(spark, root, rows=MANY).store
    before = state_of(root)
    process = snaploom_command(*arguments(root), folder=tmp_path / "sort")
    wait_until(lambda: is_writing(root), process)
    process.send_signal(signal.SIGINT)
    code, _, errors = end(process, tmp_path / "sort")
    assert (code, "Traceback" in errors) == (130, False), errors
    assert state_of(root) == before
    assert keys(store) == before.live_files


def test_kill_while_writing_leaves_the_snapshot_whole(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "flights"
    with compiled(spark):
        store = published_folder(spark, root, rows=MANY).store
    before = state_of(root)
    process = snaploom_command(*arguments(root), folder=tmp_path / "sort")
    wait_until(lambda: is_writing(root), process)
    family = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    assert end(process, tmp_path / "sort")[0] == -signal.SIGKILL
    psutil.wait_procs(family)
    assert state_of(root) == before
    assert read(spark, str(root)).count() == MANY
    with compiled(spark):
        assert sort_quietly(root, SortRequest(("data.flight",))).is_complete
    collecting = snaploom_command(
        "gc", str(root), "--grace", "0s", "--below-reader-grace", folder=tmp_path / "gc"
    )
    assert end(collecting, tmp_path / "gc")[0] == 0
    assert keys(store) == state_of(root).live_files
    assert read(spark, str(root)).count() == MANY
