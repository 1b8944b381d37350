"""An output from its first run to garbage collection, in a bucket and on HDFS."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import support
from pyspark.sql import SparkSession
from support.declared.shop import FIRST_DAY, NOW, SECOND_DAY
from support.servers.s3servers import ACCESS_KEY, BUCKET, SECRET_KEY, S3Server, environment_of
from support.weaving.blockedspark import without_spark
from support.weaving.remoteloom import live, remote_shop
from support.weaving.remoteuse import STORE_PAIRS, used, versions_after

from snaploom.models.allowances import ALLOW_VARIABLE
from snaploom.spark.hadoopstore import HadoopObjectStore
from snaploom.spark.jvm import PROTOCOL, client_of

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]

DEADLINE = 500
"""Seconds for a process that starts Spark; it takes 20 on an idle machine."""


@pytest.fixture(scope="module")
def in_bucket(versitygw: S3Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What happened in a bucket, in a process whose Spark has S3A."""
    folder = tmp_path_factory.mktemp("in-bucket")
    program = "support.weaving.remoteloom"
    command = [sys.executable, "-m", program, f"s3://{BUCKET}/life", str(folder)]
    tests = Path(support.__path__[0]).parent
    with environment_of(versitygw):
        done = subprocess.run(
            command, cwd=tests, capture_output=True, text=True, timeout=DEADLINE, check=False
        )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) | {"printed": done.stdout + done.stderr}


@pytest.fixture(scope="module")
def on_hdfs(
    spark: SparkSession, hdfs: str, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """What happened on HDFS, with the Spark of the tests."""
    base = f"{hdfs}/life"
    store = HadoopObjectStore(client_of(spark), base, create=True)
    shop = remote_shop(base, tmp_path_factory.mktemp("on-hdfs"), {})
    return live(base, shop, store) | {"used": used(base, shop, store)}


@pytest.fixture(params=["in_bucket", "on_hdfs"])
def life(request: pytest.FixtureRequest) -> dict[str, Any]:
    facts: dict[str, Any] = request.getfixturevalue(request.param)
    return facts


def test_each_snapshot_is_published_once(life: dict[str, Any]) -> None:
    assert life["published"] == [1, 0, 1]
    assert [one["time"] for one in life["snapshots"]["snapshots"]] == ["2024-05-02T00:00:00Z"]
    assert [one["time"] for one in life["snapshots"]["tombstones"]] == ["2024-05-01T00:00:00Z"]


def test_published_rows_are_read(life: dict[str, Any]) -> None:
    assert life["rows"] == [[1, "Ada"], [2, "Grace"]]


def test_deleted_snapshot_is_collected_and_nothing_else_is_left(life: dict[str, Any]) -> None:
    assert {item["kind"] for item in life["garbage"]["garbage"]} == {"TOMBSTONED"}
    live_files = [file["path"] for one in life["snapshots"]["snapshots"] for file in one["files"]]
    assert life["files"] == sorted(f"wide/{path}" for path in live_files)


def test_nothing_marks_a_folder_in_which_data_was_staged(in_bucket: dict[str, Any]) -> None:
    assert not in_bucket["staging"]


def test_files_in_a_bucket_are_committed_by_the_magic_committer(in_bucket: dict[str, Any]) -> None:
    assert in_bucket["committer"] == PROTOCOL


def test_nothing_that_is_printed_or_reported_has_a_key(in_bucket: dict[str, Any]) -> None:
    output = in_bucket["text"] + in_bucket["printed"]
    assert BUCKET in output
    assert SECRET_KEY not in output
    assert ACCESS_KEY not in output


def test_output_is_a_source_whose_committed_state_is_pinned(life: dict[str, Any]) -> None:
    second, third = "2024-05-02T00:00:00Z", "2024-05-03T00:00:00Z"
    assert life["used"]["as_source"] == {"times": [[second], [second], [third]], "rows": 2}


@pytest.mark.parametrize(("first", "then"), STORE_PAIRS)
def test_sources_replaced_during_a_run_are_published_of_one_moment(life, first, then) -> None:
    found = life["used"]["moments"][f"{first} {then}"]
    assert found == [*versions_after(first, then)]


def test_marks_of_folders_are_no_snapshot_and_files_without_rows_are(life) -> None:
    assert life["used"]["days"] == {FIRST_DAY: 1, SECOND_DAY: 0}


def test_snapshots_of_a_column_are_read_from_footers(life: dict[str, Any]) -> None:
    found = life["used"]["by_column"]
    assert found["times"] == ["2020-01-01T00:00:00Z", "2020-01-02T00:00:00Z"]
    assert (found["rows"], found["jobs"]) == ([3, 3], [])


def test_tags_of_a_bucket_distinguish_contents(in_bucket: dict[str, Any]) -> None:
    one, other = in_bucket["used"]["by_column"]["tags"]
    assert one != other != ""


def test_files_of_a_bucket_are_listed_as_by_hadoop(in_bucket: dict[str, Any]) -> None:
    assert in_bucket["used"]["otherwise_listed"] == []


def test_nothing_due_in_a_bucket_starts_no_spark(versitygw, in_bucket):
    allowed = {ALLOW_VARIABLE: json.dumps({"sparkConf": ["spark.driver.extraClassPath"]})}
    variables = {**versitygw.environment, **allowed}
    for name, line in (("run", "wide: nothing to publish."), ("plan", "Nothing to publish.")):
        done = without_spark(
            name, "wide", "-f", in_bucket["file"], "--now", NOW, variables=variables
        )
        assert (done.returncode, line in done.stdout) == (0, True), done.stderr


def test_files_are_arranged_and_registered(life: dict[str, Any]) -> None:
    assert life["used"]["arranged"] == {"published": 2, "rows": [2, 1], "files": [1, 1]}


def test_index_is_built_used_and_listed(life: dict[str, Any]) -> None:
    found = life["used"]["skipped"]
    assert found == {"indexed": 3, "files": [3, 1], "rows": 1, "listed": 1}
