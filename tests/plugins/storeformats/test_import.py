"""`snaploom index import`: what is imported and reported, and that nothing invalid ever skips."""

import json
import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from support.servers.keyservices import MemoryKeyService, transit_server
from support.skipping.indexeddata import last
from support.skipping.indexinterfaces import Lake
from support.skipping.proofmetadata import java_min_max, java_value_list
from support.skipping.xskipperfiles import (
    array_of,
    field,
    index_metadata,
    java_type,
    struct_of,
    write_part,
)

from snaploom.cli.main import run_command
from snaploom.skipping.formats.parquetfiles import SETTING as KEY_SERVICE
from snaploom.skipping.formats.parquetfiles import open_keys
from snaploom.skipping.spark.interfaces.enable import enable
from snaploom.skipping.stores.catalog import open_base

BOUNDS = pa.struct([("min", pa.float64()), ("max", pa.float64())])
SCATTERED = 2
"""From this version on a column's name contains its length."""


@dataclass(frozen=True)
class StoredRow:
    """What a store contains about one file."""

    path: str
    modified: int
    prices: tuple[float, float]
    names: tuple[str, ...]


Change = Callable[[list[StoredRow]], Sequence[StoredRow]]


def true_rows(lake: Lake) -> list[StoredRow]:
    """What is so, in the order of days."""
    rows: list[StoredRow] = []
    for path in sorted(Path(lake.data).rglob("*.parquet")):
        table = pq.ParquetFile(path).read()
        prices, names = table["price"].to_pylist(), table["name"].to_pylist()
        modified = path.stat().st_mtime_ns // 1_000_000
        rows.append(StoredRow(str(path), modified, (min(prices), max(prices)), tuple(names)))
    return rows


def write_lake_store(lake: Lake, version: int, change: Change = list, identifier: str = "") -> Path:
    """A store with minmax of `price` and valuelist of `name`.

    Args:
        lake: the files.
        version: 0 to 4.
        change: what is written instead of the truth.
        identifier: of another table.
    """
    folder = lake.folder / f"metadata-{version}"
    rows = change(true_rows(lake))
    table = identifier or lake.data
    named = {"tableIdentifier": table} if version else {}
    owner = {} if version else {"tableIdentifier": table.removeprefix("/")}
    length = {"price": "_5", "name": "_4"} if version >= SCATTERED else {"price": "", "name": ""}
    price, name = f"price_minmax{length['price']}", f"name_valuelist{length['name']}"
    java = java_type("io.xskipper.metadatastore.parquet.MetaDataTypeUDT")
    fields = [
        field("obj_name", "string", {"version": version, **named}),
        field(price, struct_of("double") if version else java, _index("minmax", "price", owner)),
        field(name, array_of("string") if version else java, _index("valuelist", "name", owner)),
    ]
    bounds, names = [row.prices for row in rows], [row.names for row in rows]
    columns = {
        "obj_name": pa.array([f"{row.path}#{row.modified}" for row in rows]),
        price: pa.array([{"min": low, "max": high} for low, high in bounds], BOUNDS)
        if version
        else pa.array([java_min_max(each, "double") for each in bounds], pa.binary()),
        name: pa.array(names, pa.list_(pa.string()))
        if version
        else pa.array(
            [java_value_list([each.encode() for each in values], "string") for values in names],
            pa.binary(),
        ),
    }
    write_part(folder, "part-0.snappy.parquet", fields, columns)
    return folder


def _index(name: str, column: str, owner: dict[str, str]) -> object:
    return index_metadata(name, [column], **owner)


def with_prices(number: int, prices: tuple[float, float]) -> Change:
    return lambda rows: [
        replace(row, prices=prices) if place == number else row for place, row in enumerate(rows)
    ]


def older(number: int) -> Change:
    return lambda rows: [
        replace(row, modified=row.modified - 1000) if place == number else row
        for place, row in enumerate(rows)
    ]


def with_foreign_file(rows: list[StoredRow]) -> list[StoredRow]:
    return [*rows, StoredRow("/elsewhere/x.parquet", 1, (0.0, 0.0), ("x",))]


TAKEN = "imported MIN_MAX(price), VALUE_SET(name) about {} files"


def run_import(lake: Lake, folder: object, *how: str) -> int:
    places = [lake.data, str(folder), "--location", lake.base, "-o", "json"]
    return run_command(["index", "import", *places, *how])


def imported(capsys: pytest.CaptureFixture[str]) -> str:
    (done,) = json.loads(capsys.readouterr().out)["done"]
    return str(done)


def found(spark: SparkSession, lake: Lake, condition: str) -> tuple[int, int]:
    enable(spark, lake.base)
    return spark.read.parquet(lake.data).where(condition).count(), last(spark).kept_files


@pytest.mark.parametrize("how", [(), ("--trust",)], ids=["verified", "trusted"])
@pytest.mark.parametrize("version", range(5))
def test_every_version_is_imported_and_skips(spark, lake, version, how, capsys):
    assert run_import(lake, write_lake_store(lake, version), *how) == 0
    assert imported(capsys) == TAKEN.format(3)
    assert found(spark, lake, "price > 25") == (4, 1)
    assert found(spark, lake, "name = 'Name11'") == (1, 1)


@pytest.mark.parametrize(
    "prices", [(0.0, 5.0), (20.0, 28.0), (21.0, 29.0)], ids=["elsewhere", "too low", "too high"]
)
@pytest.mark.parametrize("version", [0, 4])
def test_a_row_that_contradicts_its_file_never_skips(spark, lake, version, prices, capsys):
    assert run_import(lake, write_lake_store(lake, version, with_prices(2, prices))) == 0
    assert imported(capsys) == f"{TAKEN.format(2)}; 1 rows contradict their files"
    assert found(spark, lake, "price = 29") == (1, 1)
    assert found(spark, lake, "price = 20") == (1, 1)
    assert found(spark, lake, "price = 5") == (1, 2)
    assert found(spark, lake, "name = 'Name00'") == (1, 2)


@pytest.mark.parametrize("how", [(), ("--trust",)], ids=["verified", "trusted"])
def test_a_row_about_an_older_file_never_skips(spark, lake, how, capsys):
    assert run_import(lake, write_lake_store(lake, 4, older(1)), *how) == 0
    assert imported(capsys) == (
        f"{TAKEN.format(2)}; 1 rows are about files that are not there as they were"
        "; 1 files have no row"
    )
    assert found(spark, lake, "price > 25") == (4, 2)


def test_a_row_about_another_file_is_reported(spark, lake, capsys):
    assert run_import(lake, write_lake_store(lake, 4, with_foreign_file)) == 0
    assert imported(capsys).endswith("; 1 rows are about files that are not there as they were")
    assert found(spark, lake, "price > 25") == (4, 1)


@pytest.mark.parametrize("change", [with_prices(2, (0.0, 5.0)), older(2)])
def test_what_was_not_taken_is_indexed_by_the_next_refresh(spark, lake, change):
    assert run_import(lake, write_lake_store(lake, 4, change)) == 0
    assert run_command(["index", "refresh", lake.data, "--location", lake.base]) == 0
    assert found(spark, lake, "price = 5") == (1, 1)


@pytest.mark.parametrize(
    ("version", "identifier", "code", "words"),
    [
        (4, "/data/another", 2, "the metadata are about another table"),
        (5, "", 1, "of a newer version"),
    ],
)
def test_what_cannot_be_imported_leaves_nothing(
    spark: SparkSession,
    lake: Lake,
    version: int,
    identifier: str,
    code: int,
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_import(lake, write_lake_store(lake, version, identifier=identifier)) == code
    assert words in " ".join(capsys.readouterr().err.split())
    assert lake.state().version == 0


def test_rows_that_are_all_wrong_are_refused_and_leave_nothing(lake, capsys):
    rows = true_rows(lake)
    shuffled = write_lake_store(lake, 3, lambda _: [
        type(row)(row.path, row.modified, other.prices, other.names)
        for row, other in zip(rows, [*rows[1:], rows[0]], strict=True)
    ])  # fmt: skip
    assert run_import(lake, shuffled) == 2
    assert lake.state().version == 0
    words = " ".join(capsys.readouterr().err.split())
    assert "none of the 3 rows of the metadata can be taken over" in words
    assert "3 rows contradict their files" in words
    assert "snaploom index build" in words


@pytest.mark.parametrize("how", [(), ("--trust",)], ids=["verified", "trusted"])
def test_rows_that_are_all_about_older_files_are_refused_and_leave_nothing(lake, how, capsys):
    store = write_lake_store(lake, 4)
    for file in Path(lake.data).rglob("*.parquet"):
        os.utime(file, (1, 1))
    assert run_import(lake, store, *how) == 2
    assert lake.state().version == 0
    assert (
        "3 rows are about files that are not there as they were; 3 files have no row"
        in " ".join(capsys.readouterr().err.split())
    )


def test_an_encrypted_store_keeps_its_labels_and_needs_its_keys(spark, lake, capsys, monkeypatch):
    indexes = [{"type": "MIN_MAX", "column": "price", "keyLabel": "columns"}]
    declared = str(lake.declare(indexes=indexes, encryption={"footerKeyLabel": "footers"}))
    exported, other = str(lake.folder / "exported"), str(lake.folder / "imported")
    importing = ["index", "import", lake.data, exported, "--location", other, "-o", "json"]
    service = MemoryKeyService({name: secrets.token_bytes(16) for name in ("footers", "columns")})
    with transit_server(service) as server:
        monkeypatch.setenv("VAULT_TOKEN", server.token)
        keys = ["--kms", f"vault+{server.url}"]
        assert run_command(["index", "apply", "-f", declared, *keys]) == 0
        places = [lake.data, exported, "--location", lake.base]
        assert run_command(["index", "export", *places, *keys]) == 0
        spark.conf.unset(KEY_SERVICE)
        capsys.readouterr()
        assert run_command(importing) == 1
        assert "is encrypted and cannot be read" in " ".join(capsys.readouterr().err.split())
        assert run_command([*importing, *keys]) == 0
        assert imported(capsys) == "imported MIN_MAX(price) about 3 files"
        definition = open_base(other).index(f"file:{lake.data}").read().definition
        labels = [index.key_label for index in definition.indexes]
        assert (definition.footer_key_label, labels) == ("footers", ["columns"])
        enable(spark, other, keys=open_keys(keys[1]))
        assert spark.read.parquet(lake.data).where("price > 25").count() == 4
        assert last(spark).kept_files == 1
