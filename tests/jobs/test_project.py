"""`snaploom.load`: what a project does with declarations, data and somebody's session."""

import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.declared.shop import CUSTOMERS, FIRST_DAY, NOW, ORDERS, SECOND_DAY, Shop, snaploom

import snaploom as sl
from snaploom.errors import ArgumentInvalid
from snaploom.models.datasource import FromFieldValue, HdfsLike, SnapshotSettings, TimeFormat
from snaploom.models.findings import InvalidDeclarations
from snaploom.models.run import RunSettings
from snaploom.output.history import NothingPublished
from snaploom.output.versions import Time
from snaploom.run.session.spark import sibling_session

pytestmark = pytest.mark.spark


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop = Shop(tmp_path / "shop").with_data()
    shop.write()
    return shop


@pytest.fixture
def project(shop: Shop, spark: SparkSession) -> sl.Project:
    return sl.load(shop.model)


def settings_of(spark: SparkSession) -> dict[str, str]:
    return dict(spark.conf.getAll)


def test_run_publishes_what_the_command_would(project: sl.Project, shop: Shop) -> None:
    run = project.run("wide", now=NOW, progress=False)
    assert (run.is_ok, [each.time for each in run.published]) == (True, [f"{FIRST_DAY}T00:00:00Z"])
    assert (
        snaploom("run", "wide", "-f", shop.model, "--now", NOW, "-o", "json").document["snapshots"]
        == []
    )
    assert "published 2024-05-01T00:00:00Z: 3 rows" in str(run)
    assert "<td" in run._repr_html_()


@pytest.mark.parametrize("at", ["2024-05-01", date(2024, 5, 1), f"{FIRST_DAY}T23:00:00Z"])
def test_read_returns_the_snapshot_of_a_day(project: sl.Project, at: Time) -> None:
    project.run("wide", now=NOW, progress=False)
    rows = project.read("wide", at=at).collect()
    assert sorted(row["data"]["order_id"] for row in rows) == [1, 2, 3]
    with pytest.raises(NothingPublished):
        project.read("wide", at="2024-04-30")


def test_run_of_a_failing_output_raises_with_every_result(shop: Shop, spark: SparkSession) -> None:
    shop.day("customers", [*CUSTOMERS, {"customer_id": 10, "name": "Twin"}])
    project = sl.load(shop.model)
    with pytest.raises(sl.RunFailed, match="wide: ") as caught:
        project.run(now=NOW, progress=False)
    assert [run.failed[0].reason.value for run in caught.value.runs] == ["ROWS_MULTIPLIED"]
    left = project.run(["wide"], now=NOW, progress=False, raises=False)
    assert (left.is_ok, len(left[0].failed)) == (False, 1)


def test_plan_shows_what_is_due_as_text_json_and_picture(project: sl.Project, shop: Shop) -> None:
    plan = project.plan("wide", now=NOW)
    assert [each.action.value for each in plan.snapshots] == ["PUBLISH"]
    assert plan.document == shop.plan("-o", "json").document
    assert "<svg" in plan._repr_html_()
    assert "customers" in str(plan)
    assert project.plan("wide", offline=True).snapshots == ()


def test_progress_is_a_line_for_each_snapshot(project: sl.Project) -> None:
    lines: list[str] = []
    project.run("wide", now=NOW, progress=lines.append)
    assert lines[0] == "wide: 1 snapshot due, 1 join each"
    assert lines[-1].startswith("published 2024-05-01T00:00:00Z: 3 rows")


def test_diff_backfill_restate_and_check_are_those_of_the_commands(project, shop):
    shop.day("orders", ORDERS, SECOND_DAY)
    shop.day("customers", CUSTOMERS, SECOND_DAY)
    run = project.backfill("wide", "2024-05-02", "2024-05-03", now=NOW, progress=False)
    assert [each.time for each in run.published] == [f"{SECOND_DAY}T00:00:00Z"]
    restated = project.restate(
        "wide", "2024-05-02", acknowledge_readers=True, now=NOW, progress=False
    )
    assert restated.published[0].replaces is not None
    assert project.check("wide", progress=False).is_ok
    assert [each.partition for each in project.snapshots("wide")] == [
        each["partition"]
        for each in snaploom("snapshots", shop.published, "-o", "json").document["snapshots"]
    ]
    assert project.diff("wide", shop.model, now=NOW).is_same
    changed = sl.load(shop.other(fieldName="buyers").write())
    assert not changed.diff("wide", project, offline=True, now=NOW).is_same


def test_estimate_publishes_nothing(project: sl.Project) -> None:
    estimate = project.estimate("wide", "2024-05-01", "2024-06-01", now=NOW)
    assert estimate.document
    assert project.snapshots("wide") == ()


@pytest.fixture
def foreign(spark: SparkSession) -> SparkSession:
    """A session that Snaploom did not make, with settings of its own."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    session.conf.set("spark.sql.ansi.enabled", "false")
    session.conf.set("fs.made.up", "yes")
    return session


def test_a_session_that_is_given_keeps_its_settings_and_runs_on(project, foreign):
    before = settings_of(foreign)
    project.plan("wide", now=NOW, spark=foreign)
    assert project.run("wide", now=NOW, spark=foreign, progress=False).is_ok
    assert project.read("wide", spark=foreign).count() == 3
    assert settings_of(foreign) == before
    assert foreign.sql("SELECT 1").collect()


def test_a_sibling_has_our_settings_and_the_other_s_stores(foreign: SparkSession) -> None:
    asked = [("spark.snaploom.skipping.kms", "vault+https://vault"), ("spark.driver.memory", "9g")]
    sibling = sibling_session(foreign, RunSettings(), asked=asked)
    assert sibling.conf.get("spark.snaploom.skipping.kms") == "vault+https://vault"
    assert sibling.conf.get("spark.driver.memory") != "9g"
    assert sibling.conf.get("spark.sql.session.timeZone") == "UTC"
    assert sibling.conf.get("spark.sql.ansi.enabled") == "true"
    assert sibling.conf.get("fs.made.up") == "yes"
    assert sibling.sparkContext is foreign.sparkContext


SCRIPT = """
import sys
from pyspark.sql import SparkSession
import snaploom as sl

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.config("spark.sql.session.timeZone", "Asia/Tokyo").getOrCreate()
before = dict(spark.conf.getAll)
project = sl.load(sys.argv[1])
assert project.run("wide", now=sys.argv[2]).is_ok
rows = project.read("wide")
assert (rows.count(), rows.sparkSession is spark) == (3, True)
assert dict(spark.conf.getAll) == before
assert spark.sql("SELECT current_timezone()").first()[0] == "Asia/Tokyo"
print("as before")
"""


@pytest.mark.slow
def test_a_script_with_a_session_of_its_own_finds_it_as_it_was(shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "script.py", str(shop.model), NOW]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.stdout.split("\n")[-2:] == ["as before", ""], done.stderr
    assert "published 2024-05-01T00:00:00Z: 3 rows" in done.stderr


def test_sources_written_in_python_are_those_of_yaml(project: sl.Project, shop: Shop) -> None:
    folder = shop.folder
    orders = sl.DataSource(
        "orders",
        files=HdfsLike(
            format="parquet",
            source_uri_globs=(f"file://{folder}/orders/*.parquet",),
            source_uri_prefix=f"file://{folder}/orders/{{day:STRING}}.parquet",
            snapshot=SnapshotSettings(
                from_field_value=FromFieldValue(
                    field_name="day", time_format=TimeFormat.ISO8601_DATE
                )
            ),
        ),
    )
    others = [each for each in project.resources if each.identity != "DataSource/orders"]
    written = sl.load([orders, *others])
    assert written.validate(raises=True).is_ok
    assert (
        written.plan("wide", offline=True).document == project.plan("wide", offline=True).document
    )
    assert written.run("wide", now=NOW, progress=False).is_ok


def test_a_session_of_spark_connect_is_refused_with_what_to_use(project: sl.Project) -> None:
    kind = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})
    with pytest.raises(ArgumentInvalid, match="Spark Connect") as caught:
        project.run("wide", spark=kind(), now=NOW, progress=False)
    assert caught.value.path == "spark"


SPAN = ("2024-05-02T00:00:00Z", "2024-05-01T00:00:00Z")
REFUSALS = {
    "a span without a time": (
        lambda project: project.backfill("wide", *SPAN),
        ("backfill", "--from", SPAN[0], "--to", SPAN[1]),
        ("end", "--to"),
    ),
    "readers not acknowledged": (
        lambda project: project.restate("wide", SPAN[0], acknowledge_readers=False),
        ("restate", "--time", SPAN[0]),
        ("acknowledge_readers", "--acknowledge-readers"),
    ),
    "a snapshot that is not live": (
        lambda project: project.check("wide", snapshots=["2020-01-01T00:00:00Z"]),
        ("check", "--snapshot", "2020-01-01T00:00:00Z"),
        ("snapshots", "--snapshot"),
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_library_and_command_refuse_an_argument_alike(project, shop, name):
    call, (command, *options), (argument, option) = REFUSALS[name]
    shop.run()
    with pytest.raises(ArgumentInvalid) as caught:
        call(project)
    result = snaploom(command, "wide", "-f", shop.model, *options)
    assert (caught.value.path, result.code) == (argument, 2)
    assert f"error ArgumentInvalid {option}\n  {caught.value.message}" in result.err


def test_what_cannot_be_done_names_the_argument(project: sl.Project) -> None:
    for ask in (project.run, project.plan):
        with pytest.raises(InvalidDeclarations, match="no OutputDataset of this name"):
            ask("narrow")
    for wrong in (
        {"limit": 0},
        {"parallel": 0},
        {"parallel_snapshots": 17},
        {"limit": True},
        {"limit": 1.5},
    ):
        with pytest.raises(ArgumentInvalid, match="this is not a count"):
            project.run("wide", **wrong)
    with pytest.raises(ArgumentInvalid, match="this is not a time"):
        project.plan("wide", now="yesterday")
    with pytest.raises(ArgumentInvalid, match="no time lies in this span"):
        project.backfill("wide", "2024-05-02", "2024-05-01")
