"""Names of datasets are those that others give the same data."""

from typing import Any

import pytest
from openlineage.client.naming.dataset import (
    GCS,
    HDFS,
    S3,
    DatasetNaming,
    LocalFileSystem,
    MySQL,
    Oracle,
    Postgres,
)
from support.declared.declarations import document, files, output, spoilt

from snaploom.models.datasource import DataSource
from snaploom.models.outputdataset import OutputDataset
from snaploom.plugins.lineage.events import output_dataset
from snaploom.sources.declared import DatasetName, place_dataset
from snaploom.sources.registry import declared


def by_rules(naming: DatasetNaming) -> DatasetName:
    return DatasetName(naming.get_namespace(), naming.get_name())


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("s3a://lake/raw/orders/", by_rules(S3("lake", "raw/orders"))),
        ("s3://lake//raw/orders", by_rules(S3("lake", "raw/orders"))),
        ("gs://lake/raw", by_rules(GCS("lake", "raw"))),
        ("hdfs://names:8020/data/", by_rules(HDFS("names", "8020", "/data"))),
        ("file:///data/orders/", by_rules(LocalFileSystem("/data/orders"))),
        ("/data/orders/", by_rules(LocalFileSystem("/data/orders"))),
        (
            "abfss://box@account.dfs.core.windows.net/a/",
            DatasetName("abfss://box@account.dfs.core.windows.net", "/a"),
        ),
    ],
)
def test_a_place_is_named_by_the_rules(uri: str, expected: DatasetName) -> None:
    assert place_dataset(uri) == expected


def source_of(spec: dict[str, Any]) -> DataSource:
    return DataSource.parse(document("DataSource", "orders", spec))


@pytest.mark.parametrize(
    ("globs", "names"),
    [
        (["s3a://lake/raw/2024-*/*.parquet"], ["raw"]),
        (["s3a://lake/raw/orders.parquet"], ["raw/orders.parquet"]),
        (["s3a://lake/out/data/snapshot=*/*.parquet"], ["out/data"]),
        (["s3a://lake/a/*.csv", "s3a://lake/a/*.gz", "s3a://lake/b/*"], ["a", "b"]),
    ],
)
def test_files_are_named_by_the_folder_that_holds_them(globs: list[str], names: list[str]) -> None:
    raw = spoilt(files("orders"), "spec.hdfsLike.sourceUriGlobs", globs)
    raw["spec"]["hdfsLike"].pop("sourceUriPrefix", None)
    found = declared(DataSource.parse(raw)).datasets
    assert [(place.namespace, place.name) for place in found] == [
        ("s3://lake", name) for name in names
    ]


def test_a_place_of_iceberg_is_a_dataset_by_itself() -> None:
    raw = spoilt(files("orders"), "spec.hdfsLike.sourceUriGlobs", ["s3a://lake/tables/orders"])
    raw["spec"]["hdfsLike"]["format"] = "iceberg"
    assert declared(DataSource.parse(raw)).datasets == (DatasetName("s3://lake", "tables/orders"),)


def test_table_of_a_catalog_is_one_dataset_for_who_publishes_and_who_reads_it() -> None:
    named = {"catalog": "lake", "name": "shop.wide"}
    read = {"format": "iceberg", "table": named, "snapshot": {"fromReadTime": {}}}
    raw = output("wide", **{"outputFolder.dataFormat": "ICEBERG", "outputFolder.table": named})
    expected = DatasetName("lake", "shop.wide")
    assert declared(source_of({"hdfsLike": read})).datasets == (expected,)
    assert output_dataset(OutputDataset.parse(raw)) == expected


def table(driver: str, reference: str, **address: Any) -> dict[str, Any]:
    return {
        "jdbc": {
            "driver": driver,
            "database": "shop",
            "tableReference": reference,
            "snapshot": {"fromReadTime": {}},
            **address,
        }
    }


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            table("POSTGRESQL", "orders", host="db"),
            by_rules(Postgres("db", "5432", "shop", "public", "orders")),
        ),
        (
            table("POSTGRESQL", "sales.orders", host="db", port=6432),
            by_rules(Postgres("db", "6432", "shop", "sales", "orders")),
        ),
        (table("MYSQL", "orders", host="db"), by_rules(MySQL("db", "3306", "shop", "orders"))),
        (table("MYSQL", "shop.orders", host="db"), by_rules(MySQL("db", "3306", "shop", "orders"))),
        (
            table("ORACLE", "SALES.ORDERS", host="db"),
            by_rules(Oracle("db", "1521", "shop", "SALES", "ORDERS")),
        ),
        (
            table("SQLSERVER", "orders", host="db"),
            DatasetName("sqlserver://db:1433", "shop.dbo.orders"),
        ),
        (
            table("DUCKDB", "main.orders", database="/data/shop.duckdb"),
            DatasetName("duckdb:///data/shop.duckdb", "main.orders"),
        ),
    ],
)
def test_a_table_is_named_by_the_rules(spec: dict[str, Any], expected: DatasetName) -> None:
    assert declared(source_of(spec)).datasets == (expected,)


def test_options_of_a_url_are_no_part_of_a_name() -> None:
    spec = table("POSTGRESQL", "sales.orders", url="jdbc:postgresql://db:5432/shop?sslmode=require")
    del spec["jdbc"]["database"]
    (found,) = declared(source_of(spec)).datasets
    assert found == DatasetName("postgresql://db:5432/shop", "sales.orders")


@pytest.mark.parametrize(
    ("form", "name"), [("PARQUET", "wide/data"), ("ICEBERG", "wide"), ("DELTA", "wide/data")]
)
def test_an_output_is_named_as_its_readers_name_it(form: str, name: str) -> None:
    raw = spoilt(output(), "spec.outputFolder.folderUri", "s3a://lake/wide/")
    raw["spec"]["outputFolder"]["dataFormat"] = form
    raw["spec"]["outputFolder"].pop("dataCompression", None)
    assert output_dataset(OutputDataset.parse(raw)) == DatasetName("s3://lake", name)
