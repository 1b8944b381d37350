import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.skipping.indexeddata import last
from support.skipping.indexinterfaces import Lake, command

from snaploom.cli.main import run_command
from snaploom.skipping.spark.interfaces.enable import enable
from snaploom.skipping.stores.catalog import open_base

KEPT = ("-i", "price MIN_MAX", "-i", "name VALUE_SET(50)")


@pytest.fixture
def exported(spark: SparkSession, lake: Lake) -> Path:
    folder = lake.folder / "exported"
    assert command("build", lake, *KEPT) == 0
    assert run_command(["index", "export", lake.data, str(folder), "--location", lake.base]) == 0
    return folder


@pytest.mark.parametrize("how", [[], ["--trust"]])
def test_what_is_exported_can_be_imported_and_skips(spark, lake, exported, how, capsys):
    base = str(lake.folder / "imported")
    capsys.readouterr()
    places = [lake.data, str(exported), "--location", base, "-o", "json"]
    assert run_command(["index", "import", *places, *how]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["done"] == ["imported MIN_MAX(price), VALUE_SET(name) about 3 files"]
    assert open_base(base).index(f"file:{lake.data}").read().may_skip
    enable(spark, base)
    assert spark.read.parquet(lake.data).where("price > 25").count() == 4
    assert last(spark).kept_files == 1


def test_a_folder_of_something_else_is_refused_and_unchanged(spark, lake, exported):
    other = lake.folder / "precious"
    other.mkdir()
    (other / "letter.txt").write_text("mine")
    assert run_command(["index", "export", lake.data, str(other), "--location", lake.base]) != 0
    assert (other / "letter.txt").read_text() == "mine"


def test_an_index_that_is_there_is_not_replaced(spark, lake, exported):
    before = lake.state()
    assert run_command(["index", "import", lake.data, str(exported), "--location", lake.base]) != 0
    assert lake.state() == before
