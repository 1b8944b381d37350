"""A small indexed data set, and queries counted with skipping on and off."""

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from snaploom.skipping.core.definition import IndexDefinition
from snaploom.skipping.spark.interfaces.enable import decider_of, without_skipping
from snaploom.skipping.spark.interfaces.indexbuilder import IndexBuilder, skipping_index
from snaploom.skipping.spark.interfaces.manage import SkippingIndexes
from snaploom.skipping.spark.optimizer.usage import RelationOutcome, Statistics
from snaploom.skipping.spark.targets.sparktarget import SparkTarget
from snaploom.skipping.statements.syntax import PathName

Row = Mapping[str, object]


def index(
    target: SparkTarget, type_name: str, *names: str, index_id: str = "i1"
) -> IndexDefinition:
    return IndexDefinition(index_id, type_name, tuple(target.column(name) for name in names))


def expression_index(target: SparkTarget, type_name: str, text: str) -> IndexDefinition:
    return IndexDefinition("i1", type_name, (target.expression(text),))


def build(target: SparkTarget, *indexes: IndexDefinition, where: str = "") -> list[Row]:
    """Rows about all files, in the order of their paths."""
    files = target.list_files(where)
    pieces = list(target.build(indexes, files, lambda done, total: None))
    rows = pa.concat_tables(pieces).to_pylist() if pieces else []
    return sorted(rows, key=lambda row: str(row["path"]))


def one_file(frame: DataFrame, folder: Path, name: str, file_format: str = "parquet") -> Path:
    scratch = folder.parent / f".{folder.name}-scratch"
    frame.coalesce(1).write.format(file_format).mode("overwrite").save(str(scratch))
    (written,) = (path for path in scratch.iterdir() if path.name.startswith("part-"))
    folder.mkdir(parents=True, exist_ok=True)
    shutil.move(written, folder / name)
    shutil.rmtree(scratch)
    return folder / name


def names(rows: Iterable[Row]) -> list[str]:
    return [str(row["path"]).rsplit("/", 1)[-1] for row in rows]


FILES = 5
ROWS_PER_FILE = 20

COLUMNS = (
    "id",
    "cast(id as int) i",
    "concat('k', lpad(cast(id as string), 3, '0')) c",
    "date_add(date'2024-01-01', cast(id as int)) dt",
    "timestamp_seconds(1704067200 + id * 86400) ts",
    "cast(id as decimal(10,2)) dec",
    "if(id % 20 = 3, cast('NaN' as double), cast(id as double)) d",
    "if(id < 40, null, id) n",
    "id >= 60 as flag",
    "struct(id as x) as st",
    "id % 2 as odd",
)
INDEXED = ("id", "i", "c", "dt", "ts", "dec", "d", "n", "flag", "st.x")


def write_files(spark: SparkSession, folder: Path, source: str = "parquet") -> str:
    """Five files of twenty rows, ordered by id."""
    rows = spark.range(0, FILES * ROWS_PER_FILE, 1, FILES).selectExpr(*COLUMNS)
    kept = rows if source in ("parquet", "orc", "json") else rows.drop("st")
    kept.write.format(source).save(str(folder))
    return str(folder)


def build_index(
    spark: SparkSession,
    location: str,
    path: str,
    columns: Sequence[str] = INDEXED,
    change: Callable[[IndexBuilder], IndexBuilder] = lambda builder: builder,
    source: str = "parquet",
) -> None:
    builder = skipping_index(spark, location=location).on_path(path, source)
    change(builder.add_min_max(*columns)).create()
    SkippingIndexes(spark, location).refresh(PathName(source, path, ()))


def last(spark: SparkSession) -> RelationOutcome:
    return counted(spark).recent[-1]


def counted(spark: SparkSession) -> Statistics:
    return decider_of(spark).counting.read()


def on_and_off(spark: SparkSession, query: Callable[[], DataFrame]) -> tuple[list, list]:
    on = sorted(map(str, query().collect()))
    with without_skipping(spark):
        return on, sorted(map(str, query().collect()))
