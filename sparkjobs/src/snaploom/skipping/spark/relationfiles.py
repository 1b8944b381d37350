"""The files of a relation as Spark lists them now, with the values of their partitions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import pyarrow as pa
from pyspark.sql import DataFrame

from snaploom.skipping.core.filetable import IDENTITY_FIELDS
from snaploom.skipping.spark.expressions import Literal, literal
from snaploom.skipping.spark.janino import JavaRule


@dataclass(frozen=True)
class ListedFiles:
    """One listing."""

    files: pa.Table
    """Identity columns of `snaploom.skipping.core.filetable`, and nothing else."""
    partitions: Mapping[str, tuple[Literal, ...]]
    """Values of the partition columns by path."""


def list_relation(
    rule: JavaRule, frame: DataFrame, partition_columns: Sequence[tuple[str, str]]
) -> ListedFiles:
    """Files of the one relation that a frame reads, at the time at which the frame was made.

    A path with a line break cannot be passed and is left out: such a file stays unknown.
    """
    header, lengths, modified, *paths = rule.listing(frame._jdf).split("\n")
    facts = cast(Mapping[str, Sequence[object]], json.loads(header))
    etags = facts.get("etags", [None] * len(paths))
    rows = zip(paths, _numbers(lengths), _numbers(modified), etags, strict=True)
    known = [row for row in rows if row[0]]
    columns = list(zip(*known, strict=True)) or [() for _ in IDENTITY_FIELDS]
    files = pa.table(
        [
            pa.array(values, kind)
            for values, (_, kind) in zip(columns, IDENTITY_FIELDS, strict=True)
        ],
        pa.schema(list(IDENTITY_FIELDS)),
    )
    values = cast(Sequence[Sequence[object]], facts["partitions"])
    types = [data_type for _, data_type in partition_columns]
    partitions = {
        path: tuple(literal(value, kind) for value, kind in zip(row, types, strict=True))
        for path, row in zip(paths, values, strict=True)
        if path
    }
    return ListedFiles(files, partitions)


def _numbers(joined: str) -> list[int]:
    return [int(number) for number in joined.split(",")] if joined else []
