"""Deciders for tests of the optimizer rule: they go by the names of files, and remember."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

SETTINGS = ("spark.sql.session.timeZone", "spark.sql.not.set")

SetConf = Callable[[str, str], None]
"""Sets a setting of the session until the test ends."""

FILES = 4
ROWS_PER_FILE = 10


@dataclass(frozen=True)
class Request:
    """What the rule sent."""

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
        """Filters of the last request."""
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
    """Spark's own EXPLAIN."""
    explain: Callable[[str], str] = frame._jdf.queryExecution().explainString
    mode = frame.sparkSession._jvm.org.apache.spark.sql.execution.ExplainMode.fromString("extended")
    return explain(mode)
