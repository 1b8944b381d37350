"""Published snapshots of nested rows like those of the flights example, to be sorted."""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from support.storage.folders import MODEL, a_run, agrees, day

from snaploom.engine.write import write_frame
from snaploom.files.stores import open_store
from snaploom.models.outputdataset import DataCompression, DataFormat
from snaploom.output.entries import FolderIdentity, FolderSettings
from snaploom.output.folder import Folder, open_folder, prepare_folder
from snaploom.output.publication import SnapshotTarget, WriteResult, publish
from snaploom.output.state import FolderState
from snaploom.plugins.advice.requests import SnapshotsSorted, place_of_folder
from snaploom.plugins.advice.sort import sort_snapshots
from snaploom.run.runevents import Interruption
from snaploom.skipping.core.valueorder import SortRequest

ROWS, FILES = 4000, 4


def flights(spark: SparkSession, number: int = 0, rows: int = ROWS) -> DataFrame:
    """Nested rows of one snapshot; `flight` is anywhere in every file."""
    return (
        spark.range(0, rows, 1, FILES)
        .selectExpr(
            f"named_struct('id', id, 'flight', (id * 7919) % {rows}, 'delay', IF(id % 10 = 0, NULL,"
            f" CAST((id * 31) % 500 AS double) / 7 + {number})) AS data",
            "IF(id % 7 = 0, NULL, named_struct('data', named_struct('name', concat('c', id % 20)),"
            " 'legs', array(named_struct('at', timestamp_micros(id * 1000003))))) AS carrier",
            "map('k', id) AS extra",
            "CAST(id % 100 AS decimal(10, 2)) AS price",
        )
        .withMetadata("price", {"comment": "in euro"})
    )


def published_folder(
    spark: SparkSession,
    root: Path,
    data_format: DataFormat = DataFormat.PARQUET,
    snapshots: int = 1,
    rows: int = ROWS,
    rows_too_many: int = 0,
) -> Folder:
    """A folder with some snapshots, as a run writes them; the manifest may count too many rows."""
    settings = FolderSettings(
        data_format=data_format.value,
        data_compression="ZSTD" if data_format is not DataFormat.JSONL else "GZIP",
        partition_field_name="day",
        timestamp_format="UNIX_MILLISECONDS",
        output_timezone="",
    )
    identity = FolderIdentity(output="flights", root="customer")
    folder = prepare_folder(open_store(str(root), create=True), settings, identity, a_run())
    for number in range(snapshots):
        frame = flights(spark, number, rows)

        def write(uri: str, frame: DataFrame = frame) -> WriteResult:
            compression = DataCompression(settings.data_compression)
            schema = write_frame(frame, uri, data_format, compression)
            return WriteResult(rows + rows_too_many, schema.json(), spark_version=spark.version)

        partition = f"day={day(number) // 1_000_000}"
        target = SnapshotTarget(day(number), partition, "plan", MODEL)
        publish(folder, a_run(), target, write, agrees)
    return folder


def state_of(root: Path) -> FolderState:
    return open_folder(open_store(str(root), create=False)).log.read()


def sort_quietly(root: Path, request: SortRequest) -> SnapshotsSorted:
    """Sort every snapshot as the command does, in a thread that hears no signals."""
    place = place_of_folder(str(root), (), lambda uri: open_store(uri, create=False))
    assert place is not None
    return sort_snapshots(place, request, (), lambda *_: None, lambda: None, Interruption())
