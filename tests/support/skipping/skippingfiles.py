"""Targets, indexes and oracles for tests of building."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame

from snaploom.skipping.core.definition import IndexDefinition
from snaploom.skipping.spark.targets.sparktarget import SparkTarget

Row = Mapping[str, object]


def index(
    target: SparkTarget, type_name: str, *names: str, index_id: str = "i1"
) -> IndexDefinition:
    """An index over columns."""
    return IndexDefinition(index_id, type_name, tuple(target.column(name) for name in names))


def expression_index(target: SparkTarget, type_name: str, text: str) -> IndexDefinition:
    """An index over an expression."""
    return IndexDefinition("i1", type_name, (target.expression(text),))


def build(target: SparkTarget, *indexes: IndexDefinition, where: str = "") -> list[Row]:
    """Rows about all files, in the order of their paths."""
    files = target.list_files(where)
    pieces = list(target.build(indexes, files, lambda done, total: None))
    rows = pa.concat_tables(pieces).to_pylist() if pieces else []
    return sorted(rows, key=lambda row: str(row["path"]))


def one_file(frame: DataFrame, folder: Path, name: str, file_format: str = "parquet") -> Path:
    """Write a frame as one file of a folder."""
    scratch = folder.parent / f".{folder.name}-scratch"
    frame.coalesce(1).write.format(file_format).mode("overwrite").save(str(scratch))
    (written,) = (path for path in scratch.iterdir() if path.name.startswith("part-"))
    folder.mkdir(parents=True, exist_ok=True)
    shutil.move(written, folder / name)
    shutil.rmtree(scratch)
    return folder / name


def names(rows: Iterable[Row]) -> list[str]:
    """Names of the files that rows are about."""
    return [str(row["path"]).rsplit("/", 1)[-1] for row in rows]
