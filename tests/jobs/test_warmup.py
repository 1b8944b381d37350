"""What a JVM does before there is a command for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from snaploom.jobs.warmup import CHILDREN, warm_up


@pytest.mark.spark
def test_warm_up_weaves_all_its_sources_and_leaves_no_file(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    report = warm_up(spark)
    (snapshot,) = report.snapshots
    assert report.phase.value == "SUCCEEDED"
    assert {join.child for join in snapshot.joins} == set(CHILDREN)
    assert list(tmp_path.iterdir()) == []
