"""The four interfaces to skipping indexes, each used as its users do, over one small dataset."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from pyspark.sql import DataFrame, SparkSession

from snaploom.cli.main import run_command
from snaploom.skipping.core.definition import SkippingDefinition
from snaploom.skipping.spark.interfaces import enable
from snaploom.skipping.spark.interfaces.indexbuilder import skipping_index
from snaploom.skipping.stores.catalog import open_base
from snaploom.skipping.stores.port import StoredState

SETTINGS = ("spark.sql.session.timeZone", "spark.sql.not.set")

SetConf = Callable[[str, str], None]
"""Sets a setting of the session until the test ends."""

FILES = 4
ROWS_PER_FILE = 10


@dataclass(frozen=True)
class Request:
    header: dict
    lengths: list[int]
    modified: list[int]
    paths: list[str]

    @classmethod
    def parse(cls, text: str) -> Request:
        header, lengths, modified, *paths = text.split("\n")
        return cls(
            json.loads(header),
            [int(length) for length in lengths.split(",") if length],
            [int(time) for time in modified.split(",") if time],
            paths,
        )


class KeepNamed:
    """Keeps files with a piece in their path. Wrong on purpose: what was dropped is then seen."""

    def __init__(self, piece: str = "part-00000") -> None:
        self.piece = piece
        self.requests: list[Request] = []
        self.headers: list[dict] = []
        self.listings: dict[str, str] = {}
        """Files by the name of their listing, as they were sent."""

    def request(self, text: str) -> Request:
        """A request with its files, which may have been sent with an earlier one; remembered."""
        header, _, files = text.partition("\n")
        name = json.loads(header)["listing"]
        files = self.listings.setdefault(name, files)
        self.requests.append(Request.parse(f"{header}\n{files}"))
        return self.requests[-1]

    def __call__(self, text: str) -> str | None:
        request = self.request(text)
        return "".join("1" if self.piece in path else "0" for path in request.paths)

    def concerns(self, header: str) -> bool:
        self.headers.append(json.loads(header))
        return True

    @property
    def filters(self) -> list:
        return self.requests[-1].header["filters"]


class Truthful(KeepNamed):
    """Knows that `part-0000n` of `write_parts` holds the ids from 10 n to 10 n + 9."""

    def __call__(self, text: str) -> str | None:
        request = self.request(text)
        wanted = [
            part[3][1] // ROWS_PER_FILE
            for part in request.header["filters"]
            if part[0] == "EqualTo" and part[2][:2] == ["col", "id"] and part[3][0] == "lit"
        ]
        return "".join(
            "1" if all(f"part-{number:05}" in path for number in wanted) else "0"
            for path in request.paths
        )


COLUMNS = ("id", "cast(id as string) as text", "id % 3 as part")


def write_parts(
    spark: SparkSession,
    path: Path,
    source: str = "parquet",
    columns: Sequence[str] = COLUMNS,
    partition_by: Sequence[str] = (),
) -> str:
    """Four files of ten rows, ordered by id; returns their folder."""
    frame = spark.range(0, FILES * ROWS_PER_FILE, 1, FILES).selectExpr(*columns)
    frame.write.format(source).partitionBy(*partition_by).save(str(path))
    return str(path)


def plan_text(frame: DataFrame) -> str:
    explain: Callable[[str], str] = frame._jdf.queryExecution().explainString
    mode = frame.sparkSession._jvm.org.apache.spark.sql.execution.ExplainMode.fromString("extended")
    return explain(mode)


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
    enable.sql(
        spark,
        f"""CREATE SKIPPING INDEX ON parquet.`{lake.data}` (
            day PARTITION, price MIN_MAX, person.age MIN_MAX, name VALUE_SET(50),
            name BLOOM_FILTER(false, 100, 0.1), lower(name) VALUE_SET
        ) WHERE {WHERE} WITH (location = '{lake.base}', incremental_refresh = true)""",
    )


def by_seed(spark: SparkSession, lake: Lake) -> None:
    enable.sql(
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
    document: dict = json.loads(text)
    return document
