"""The library runs on the oldest Spark that is supported, where tables of Iceberg and Delta are."""

from pathlib import Path

import pytest
from support.declared.declarations import files, put
from support.declared.shop import NOW, CommandResult, Shop, assert_one_error, wide
from support.declared.sources import by_field
from support.documentation.commands import end, snaploom_command
from support.weaving.oldspark import run_tests, table_jars

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]

FILES = ("sources", "outputs", "catalogs", "stores", "sql")


def test_tables_are_published_and_read_on_the_oldest_spark() -> None:
    ended = run_tests(*(f"tests/others/oldspark/{name}.py" for name in FILES))
    assert ended.returncode == 0, ended.stdout[-8000:] + ended.stderr[-2000:]
    assert "passed" in ended.stdout


def test_library_for_another_spark_publishes_and_is_refused_for_reading(tmp_path: Path) -> None:
    shop = Shop(tmp_path).with_data().set("wide", "outputFolder.dataFormat", "ICEBERG")
    again = wide(tmp_path, relationships=())
    again["metadata"]["name"] = "again"
    put(again["spec"], "dataModel.rootDataSource.dataSource", "published")
    put(again["spec"], "outputFolder.folderUri", f"file://{tmp_path}/again/")
    for output in (shop.raw("wide"), again):
        put(output["spec"], "run.spark.sparkConf", {"spark.jars": ",".join(table_jars())})
    shop.documents += [
        files("published", format="iceberg", sourceUriGlobs=[f"file://{shop.published}/iceberg"],
              snapshot=by_field("snapshot_epoch", "UNIX_MILLISECONDS")),
        again,
    ]  # fmt: skip
    command = ["run", "--all", "-f", str(shop.write()), "--now", NOW]
    allowed = ["--allow", "sparkConf=spark.jars"]
    result = CommandResult(
        *end(snaploom_command(*command, *allowed, folder=tmp_path / "job"), tmp_path / "job")
    )
    assert_one_error(result, "the library of Iceberg is not made for this Spark")
    assert len(shop.published_times()) == 1
