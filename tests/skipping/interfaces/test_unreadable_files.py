"""Files that cannot be indexed: some are a warning, all are an error, in every interface."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.skipping.indexinterfaces import Lake, command

from snaploom.cli.main import run_command
from snaploom.errors import SkippingError
from snaploom.skipping.spark.interfaces import sqlfrontend

INDEX = ("-i", "name VALUE_SET")
MAGIC = 4


def files_of(lake: Lake) -> list[Path]:
    return sorted(Path(lake.data).rglob("*.parquet"))


def spoil(*files: Path) -> None:
    """Overwrite the pages of files; their footers have the schema, so they can still be opened."""
    for file in files:
        content = file.read_bytes()
        footer = int.from_bytes(content[-8:-4], "little") + 8
        file.write_bytes(
            content[:MAGIC] + b"\xff" * (len(content) - footer - MAGIC) + content[-footer:]
        )


def test_a_refresh_that_can_read_no_file_fails_and_changes_nothing(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("build", lake, *INDEX) == 0
    before = lake.state()
    spoil(*files_of(lake))
    capsys.readouterr()
    assert command("refresh", lake, "--mode", "full") == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("error SkippingFailed") == 1
    assert "none of the 3 files could be indexed" in printed.err
    assert "0.parquet" in printed.err
    assert lake.state().segments == before.segments


def test_applying_a_resource_over_spoilt_files_fails(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    path = lake.declare(indexes=[{"type": "VALUE_SET", "column": "name"}])
    assert command("create", lake, *INDEX) == 0
    spoil(*files_of(lake))
    refresh = ["index", "refresh", lake.data, "--location", lake.base]
    assert run_command(refresh) == 1
    assert run_command(["index", "apply", "-f", str(path)]) == 1
    assert "none of the 3 files could be indexed" in capsys.readouterr().err
    assert not lake.state().may_skip


def test_a_statement_over_spoilt_files_fails(spark: SparkSession, lake: Lake) -> None:
    place = f"parquet.`{lake.data}`"
    sqlfrontend.sql(spark, f"CREATE SKIPPING INDEX ON {place} (name VALUE_SET)")
    spoil(*files_of(lake))
    with pytest.raises(SkippingError, match="none of the 3 files could be indexed"):
        sqlfrontend.sql(spark, f"REFRESH SKIPPING INDEX ON {place}")


def test_one_spoilt_file_is_a_warning(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("create", lake, *INDEX) == 0
    spoil(files_of(lake)[1])
    assert command("refresh", lake) == 0
    printed = capsys.readouterr()
    assert "1 could not be indexed" in printed.out
    assert "1 of 3 files could not be indexed, so queries always read them" in printed.err
    assert lake.state().may_skip
