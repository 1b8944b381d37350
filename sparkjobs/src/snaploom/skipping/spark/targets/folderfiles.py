"""Files of a folder known from names and session, without opening any."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from snaploom.hadoop.filestatus import readable_uri
from snaploom.skipping.core.definition import SkippingDefinition, Target
from snaploom.skipping.spark.relations.fingerprint import (
    REQUESTED,
    Header,
    is_unchanged,
    partition_columns,
    unusable,
)
from snaploom.skipping.spark.relations.janino import JavaRule
from snaploom.skipping.spark.targets.targetfiles import (
    INFERRED,
    PATTERN,
    ListedFiles,
    ListedFolder,
    list_folder,
    list_relation,
    only_chosen,
)
from snaploom.skipping.spark.targets.targetreader import own_session


@dataclass(frozen=True)
class FolderListing:
    """Behind the port `FileListing`."""

    spark: SparkSession
    """The user's session."""
    target: Target
    """Where the files are."""
    header: Header
    """How they are read; without columns but those of partitions."""
    listed: ListedFiles
    """The files that there are."""

    def reads_alike(self, definition: SkippingDefinition) -> bool:
        """Whether unchanged files are read as when they were indexed."""
        return (
            definition.target == self.target
            and definition.partition_columns == partition_columns(self.header)
            and is_unchanged(definition.fingerprint, self.header)
        )

    def list_files(self, where: str) -> pa.Table:
        """The files that a condition chooses, as identity columns.

        Raises:
            IndexNotPossible: it speaks of something else than files.
        """
        session = own_session(self.spark)
        return only_chosen(session, where, partition_columns(self.header), self.listed)


def file_listing_of(
    spark: SparkSession, path: str, uri: str, file_format: str, options: Mapping[str, str]
) -> FolderListing | None:
    """Listing of a folder; None where Spark needs no look into files or reports the problem."""
    if file_format.lower() not in INFERRED:
        return None
    try:
        found = _listed(spark, path, uri, file_format, options)
    except (PySparkException, Py4JJavaError):
        return None
    if found is None or unusable(found.header):
        return None
    target = Target(
        uri=cast(Sequence[str], found.header["roots"])[0].rstrip("/"),
        format=str(found.header["format"]),
        options=tuple(sorted(options.items())),
    )
    return FolderListing(spark, target, found.header, found.listed)


def _listed(
    spark: SparkSession, path: str, uri: str, file_format: str, options: Mapping[str, str]
) -> ListedFolder | None:
    """Folder listed without Spark, or by Spark; None where a path stands for several."""
    if not PATTERN.search(path):
        found = list_folder(spark, uri, file_format, options)
        if found is not None:
            return found
    reader = spark.read.format(file_format).options(**options).schema(StructType([]))
    rule = JavaRule(spark)
    frame = reader.load(readable_uri(spark, path))
    headers = rule.describe(frame._jdf, REQUESTED)
    if len(headers) != 1:
        return None
    header = cast(Header, json.loads(headers[0]))
    if len(cast(Sequence[str], header["roots"])) != 1:
        return None
    return ListedFolder(header, list_relation(rule, frame, partition_columns(header)))
