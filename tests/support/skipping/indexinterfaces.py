"""The four interfaces to skipping indexes, each used as its users do, over one small dataset."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from pyspark.sql import SparkSession

from snaploom.cli.main import run_command
from snaploom.skipping.core.definition import SkippingDefinition
from snaploom.skipping.spark.interfaces import sqlfrontend
from snaploom.skipping.spark.interfaces.indexbuilder import skipping_index
from snaploom.skipping.stores.catalog import open_base
from snaploom.skipping.stores.port import StoredState

DAYS = ("2024-01-01", "2024-01-02", "2024-01-03")


@dataclass(frozen=True)
class Lake:
    """Files in folders by day, and a folder for indexes."""

    folder: Path

    @property
    def data(self) -> str:
        return str(self.folder / "data")

    @property
    def base(self) -> str:
        return str(self.folder / "indexes")

    def fill(self) -> Lake:
        """One file a day with prices of its own."""
        for number, day in enumerate(DAYS):
            self.add(day, number)
        return self

    def add(self, day: str, number: int) -> None:
        place = self.folder / "data" / f"day={day}"
        place.mkdir(parents=True, exist_ok=True)
        rows = {
            "price": [float(number * 10 + row) for row in range(10)],
            "name": [f"Name{number}{row}" for row in range(10)],
            "person": [{"age": number * 10 + row} for row in range(10)],
        }
        pq.write_table(pa.table(rows), place / f"{number}.parquet")

    def state(self) -> StoredState:
        return open_base(self.base).index(f"file:{self.data}").read()

    def definition(self) -> SkippingDefinition:
        found = self.state().definition
        assert found is not None
        return found

    def declare(self, name: str = "of-lake", **spec: object) -> Path:
        """A file with a SkippingIndex over the data."""
        path = self.folder / f"{name}.yaml"
        document = {
            "apiVersion": "snaploom.io/v1alpha1",
            "kind": "SkippingIndex",
            "metadata": {"name": name},
            "spec": {
                "target": {"path": {"uri": self.data, "format": "parquet"}},
                "store": {"parquet": {"location": self.base}},
                "indexes": [{"type": "MIN_MAX", "column": "price"}],
                **spec,
            },
        }
        path.write_text(yaml.safe_dump(document))
        return path


INDEXES = [
    {"type": "PARTITION", "column": "day"},
    {"type": "MIN_MAX", "column": "price"},
    {"type": "MIN_MAX", "column": "person.age"},
    {"type": "VALUE_SET", "column": "name", "parameters": {"limit": "50"}},
    {"type": "BLOOM_FILTER", "column": "name", "parameters": {"ndv": "100", "fpp": "0.1"}},
    {"type": "VALUE_SET", "expression": "lower(name)"},
]
WHERE = "day > '2024-01-01'"


def by_sql(spark: SparkSession, lake: Lake) -> None:
    sqlfrontend.sql(
        spark,
        f"""CREATE SKIPPING INDEX ON parquet.`{lake.data}` (
            day PARTITION, price MIN_MAX, person.age MIN_MAX, name VALUE_SET(50),
            name BLOOM_FILTER(false, 100, 0.1), lower(name) VALUE_SET
        ) WHERE {WHERE} WITH (location = '{lake.base}', incremental_refresh = true)""",
    )


def by_seed(spark: SparkSession, lake: Lake) -> None:
    sqlfrontend.sql(
        spark,
        f"""CREATE SKIPPING INDEX ON parquet.`{lake.data}` FOR COLUMNS (
            day PARTITION, price MIN_MAX, person.age MIN_MAX, name VALUE_LIST(50),
            name BLOOM_FILTER(ndv = 100, fpp = 0.1), lower(name) VALUE_LIST
        ) WHERE {WHERE} WITH (location = '{lake.base}', refresh_mode = 'INCREMENTAL')""",
    )


def by_builder(spark: SparkSession, lake: Lake) -> None:
    (
        skipping_index(spark, lake.base)
        .on_path(lake.data)
        .filter_by(WHERE)
        .add_partitions("day")
        .add_min_max("price", "person.age")
        .add_value_set("name", limit=50)
        .add_bloom_filter("name", ndv=100, fpp=0.1)
        .add_expression("VALUE_SET", "lower(name)")
        .refreshed("INCREMENTAL")
        .create()
    )


def by_command(spark: SparkSession, lake: Lake) -> None:
    items = (
        "day PARTITION, price MIN_MAX, person.age MIN_MAX",
        "name VALUE_SET(50)",
        "name BLOOM_FILTER(false, 100, 0.1)",
        "lower(name) VALUE_SET",
    )
    indexes = [part for item in items for part in ("--index", item)]
    assert command("create", lake, "--where", WHERE, "--mode", "incremental", *indexes) == 0


def by_resource(spark: SparkSession, lake: Lake) -> None:
    path = lake.declare(indexes=INDEXES, where=WHERE, refresh={"mode": "INCREMENTAL"})
    assert run_command(["index", "apply", "-f", str(path)]) == 0


INTERFACES: tuple[Callable[[SparkSession, Lake], None], ...] = (
    by_sql,
    by_seed,
    by_builder,
    by_command,
    by_resource,
)


def command(name: str, lake: Lake, *arguments: str) -> int:
    """Run `snaploom index NAME` about the data in this process, and so in its Spark."""
    return run_command(["index", name, lake.data, "--location", lake.base, *arguments])


def printed(text: str) -> dict:
    """The one JSON document of a command."""
    document: dict = json.loads(text)
    return document
