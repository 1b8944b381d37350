"""`snaploom index apply`: indexes become what resources declare, and stay so."""

import pytest
from pyspark.sql import SparkSession
from support.skipping.indexinterfaces import DAYS, Lake, by_sql, command, printed

from snaploom.cli.main import run_command
from snaploom.errors import IndexOwned
from snaploom.skipping.spark.interfaces import sqlfrontend


def apply(lake: Lake, *arguments: str, **spec: object) -> int:
    return run_command(["index", "apply", "-f", str(lake.declare(**spec)), *arguments])


def test_applying_twice_changes_nothing(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    assert apply(lake) == 0
    assert "create MIN_MAX(price)" in capsys.readouterr().out
    before = lake.state()
    assert before.may_skip
    assert apply(lake, refresh={"mode": "FULL"}) == 0
    assert "refresh mode FULL, was AUTO" in capsys.readouterr().out
    after = lake.state()
    assert apply(lake, refresh={"mode": "FULL"}) == 0
    assert capsys.readouterr().out == "SkippingIndex/of-lake: nothing to do.\n"
    assert lake.state() == after
    assert after.segments == before.segments


def test_what_changed_is_altered_and_only_that(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    apply(lake, indexes=[{"type": "MIN_MAX", "column": "price"}])
    lake.add("2024-01-04", 9)
    wanted = [
        {"type": "VALUE_SET", "column": "name", "parameters": {"limit": "20"}},
        {"type": "PARTITION", "column": "day"},
    ]
    capsys.readouterr()
    assert apply(lake, "--dry-run", "-o", "json", indexes=wanted, enabled=False) == 0
    planned = printed(capsys.readouterr().out)["done"]
    assert planned == [
        "alter: add VALUE_SET(name)",
        "alter: add PARTITION(day)",
        "alter: drop MIN_MAX(price)",
        "alter: disable",
        "refresh INCREMENTAL: 1 new, 0 changed, 0 removed, 3 unchanged",
    ]
    assert [index.label for index in lake.definition().indexes] == ["MIN_MAX(price)"]
    assert apply(lake, indexes=wanted, enabled=False) == 0
    labels = [index.label for index in lake.definition().indexes]
    assert labels == ["VALUE_SET(name)", "PARTITION(day)"]
    capsys.readouterr()
    assert command("describe", lake, "-o", "json") == 0
    files = printed(capsys.readouterr().out)["files"]
    assert files == {"indexed": len(DAYS) + 1, "stale": 0, "missing": 0, "gone": 0}


def test_an_owned_index_is_refreshed_and_described_by_others_and_not_changed(
    spark: SparkSession, lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    apply(lake)
    path = f"parquet.`{lake.data}`"
    sqlfrontend.sql(spark, f"REFRESH SKIPPING INDEX ON {path} FULL")
    assert sqlfrontend.sql(spark, f"DESC SKIPPING INDEX ON {path}").count() == 1
    for statement in (
        "DROP SKIPPING INDEX ON {}",
        "ALTER SKIPPING INDEX ON {} WITH (enabled=true)",
    ):
        with pytest.raises(IndexOwned, match="SkippingIndex/of-lake"):
            sqlfrontend.sql(spark, statement.format(path))
    assert command("drop", lake) == 1
    assert "SkippingIndex/of-lake" in capsys.readouterr().err
    declared = str(lake.declare())
    assert run_command(["index", "drop", "of-lake", "-f", declared]) == 0
    assert not lake.state().exists


def test_a_resource_takes_over_what_was_made_by_hand(
    spark: SparkSession, lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    by_sql(spark, lake)
    assert apply(lake) == 0
    assert "owned by SkippingIndex/of-lake from now on" in capsys.readouterr().out
    assert lake.definition().owner == "SkippingIndex/of-lake"


def test_two_resources_do_not_share_an_index(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    apply(lake)
    assert apply(lake, name="other") == 1
    assert "owned by SkippingIndex/of-lake" in capsys.readouterr().err


def test_every_finding_about_a_resource_is_reported_with_its_line(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = [
        {"type": "MIN_MAX", "column": "prize"},
        {"type": "PARTITION", "column": "price"},
        {"type": "MIN_MAX", "column": "day"},
    ]
    assert apply(lake, indexes=wrong, where="price > 3") == 2
    errors = capsys.readouterr().err
    assert errors.count("error SL186") == 3
    for path in ("spec.indexes[0]", "spec.indexes[1]", "spec.where"):
        assert path in errors
    assert "of-lake.yaml:" in errors
    assert "there is no column prize" in errors
    assert not lake.state().exists
