"""Without the libraries of Iceberg and Delta, a run fails before it reads or writes anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.declared.shop import Shop

pytestmark = pytest.mark.spark


@pytest.fixture
def shop(spark, tmp_path: Path) -> Shop:
    """One day of orders and customers."""
    return Shop(tmp_path).with_data()


@pytest.mark.parametrize("command", ["run", "plan"])
def test_iceberg_output_without_its_library_is_refused_before_anything(shop, command) -> None:
    result = getattr(shop.set("wide", "outputFolder.dataFormat", "ICEBERG"), command)()
    assert result.code == 1
    text = result.out + result.err
    assert "Iceberg is not on Spark's class path" in text
    assert "org.apache.iceberg:iceberg-spark-runtime-" in text
    assert "spark.jars.packages" in text
    assert not shop.published.exists()


@pytest.mark.parametrize("data_format", ["iceberg", "delta"])
def test_table_as_a_source_without_its_library_is_refused(shop, data_format) -> None:
    spec = shop.raw("customers")["spec"]["hdfsLike"]
    spec |= {"format": data_format, "sourceUriGlobs": [f"file://{shop.folder}/levels"]}
    spec.pop("sourceUriPrefix")
    result = shop.run()
    text = result.out + result.err
    assert (result.code, "Spark has no library for tables of" in text) == (1, True)
    assert "DataSource/customers spec.hdfsLike.format" in text
