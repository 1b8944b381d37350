"""Small models on real Spark: frames in, one published-like snapshot with its counts out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import StructType

from snaploom.engine.fold import Weave
from snaploom.engine.rowcounts import RowCounts, Weaving
from snaploom.engine.write import WrittenFiles, write_frame
from snaploom.models.datarelationship import DataRelationship
from snaploom.models.outputdataset import DataCompression, DataFormat, DataModel, OtherDataSource
from snaploom.plan.tree import JoinTree, join_graph, plan_tree

START = {
    "year": 2020, "month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0, "nano": 0,
    "timezone": "UTC",
}  # fmt: skip


def key_field(name: str, data_type: str = "integer", **component: Any) -> dict[str, Any]:
    return {"fields": [{"fieldName": name, "dataType": {data_type: {}}}], **component}


def relationship(name: str, keys: Mapping[str, Sequence[dict[str, Any]]]) -> DataRelationship:
    """A relationship; `keys` has the components by source."""
    return DataRelationship.parse(
        {
            "apiVersion": "snaploom.io/v1alpha1",
            "kind": "DataRelationship",
            "metadata": {"name": name},
            "spec": {
                "representations": [
                    {"dataSources": [source], "joinKey": list(components)}
                    for source, components in keys.items()
                ]
            },
        }
    )


def same_key(name: str, sources: str, data_type: str = "integer") -> DataRelationship:
    """A relationship over sources (separated by spaces) that all call the key by its name."""
    return relationship(name, {s: [key_field(name, data_type)] for s in sources.split()})


@dataclass
class Loom:
    """A model of which tests set what they are about; sources and fields have the same names."""

    root: str
    others: Sequence[str | dict[str, Any]]
    relationships: Sequence[DataRelationship]
    group_by: dict[str, list[str]] = field(default_factory=dict)
    max_depth: int = 14

    @property
    def model(self) -> DataModel:
        filter_ = {"fromInterval": {"intervalStartDate": START, "intervalLength": {"day": 1}}}
        return DataModel.parse(
            {
                "rootDataSource": {"dataSource": self.root, "snapshotFilter": filter_},
                "otherDataSources": [self._other(other) for other in self.others],
                "dataRelationships": [{"name": r.name} for r in self.relationships],
                "maxDepth": self.max_depth,
            }
        )

    @property
    def settings(self) -> dict[str, OtherDataSource]:
        return {other.field_name: other for other in self.model.other_data_sources}

    @property
    def tree(self) -> JoinTree:
        tree = plan_tree(join_graph(self.model, self.relationships))
        assert tree.is_complete
        return tree

    @property
    def by_name(self) -> dict[str, DataRelationship]:
        return {r.name: r for r in self.relationships}

    def weave(self, frames: Mapping[str, DataFrame]) -> Weave:
        """`frames` by source; one that is missing is left out with what hangs on it."""
        by_field = {
            node.field_name: frames[node.source]
            for node in self.tree.nodes
            if node.source in frames
        }
        return Weave(self.tree, by_field, self.by_name)

    def _other(self, other: str | dict[str, Any]) -> dict[str, Any]:
        settings = {"dataSource": other} if isinstance(other, str) else dict(other)
        settings.setdefault("fieldName", settings["dataSource"])
        names = self.group_by.get(settings["dataSource"])
        if names:
            settings.setdefault("transformations", {"groupBy": {"fieldNames": names}})
        return settings


@dataclass(frozen=True)
class Woven:
    """What a woven snapshot holds, read back from its files."""

    frame: DataFrame
    counts: RowCounts
    schema: StructType

    def rows(self, *order: str) -> list[Row]:
        return (self.frame.orderBy(*order) if order else self.frame).collect()


def weave_into(
    folder: Path,
    weave: Weave,
    spark: SparkSession,
    data_format: DataFormat = DataFormat.PARQUET,
    compression: DataCompression = DataCompression.NONE,
    *,
    counts_late: bool = False,
) -> Woven:
    """Write one snapshot and settle its counts, as a run does."""
    group, uri = f"test-{folder}", f"file:{folder}/snapshot"
    weaving = Weaving(weave, counts_late=counts_late)
    spark.sparkContext.setJobGroup(group, "test")
    schema = write_frame(weaving.frame, uri, data_format, compression)
    (counts,) = weaving.settle(spark, group, WrittenFiles(spark, uri, data_format, schema))
    name = {DataFormat.PARQUET: "parquet", DataFormat.JSONL: "json"}.get(
        data_format, "org.apache.spark.sql.avro.AvroFileFormat"
    )
    reader = spark.read.format(name).option("__globPaths__", "false")
    if data_format is not DataFormat.PARQUET:
        reader = reader.schema(schema)
    return Woven(reader.load(uri), counts, schema)
