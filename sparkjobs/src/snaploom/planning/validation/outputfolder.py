"""Where an output is published: an absolute folder of its own, in a form that can be read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from snaploom.models.codes import make_finding
from snaploom.models.common import CheckMode
from snaploom.models.finding import Finding
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.outputfolder import DataCompression, DataFormat
from snaploom.planning.commonchecks.fields import Findings, zone_findings
from snaploom.planning.prefix import normal_uri

FOLDER = "spec.outputFolder"
"""Path of the checked field."""
_JARS = "jars"
"""Part of the names of all settings by which Spark is given jars."""
_ABSOLUTE = re.compile(r"/|file:/|[A-Za-z][A-Za-z0-9+.-]*://[^/]")


def folder_findings(output: OutputDataset) -> Findings:
    """Everything that is wrong with one output's folder by itself."""
    folder = output.spec.output_folder
    partitioned = folder.snapshot_format.hive_partitioned
    zone = partitioned.output_timezone if partitioned else "UTC"
    return (
        *_absolute(output),
        *_checkpoints(output),
        *zone_findings(zone, output, f"{FOLDER}.snapshotFormat.hivePartitioned.outputTimezone"),
        *_readable(output),
        *_table(output),
    )


def _absolute(output: OutputDataset) -> Findings:
    uri = output.spec.output_folder.folder_uri
    steps = {".", ".."} & set(uri.split("/"))
    if _ABSOLUTE.match(uri) and not steps:
        return ()
    return (
        make_finding(
            "SL173",
            "the folder must be absolute, without `.` and `..`",
            resource=output.identity,
            path=f"{FOLDER}.folderUri",
            found=uri,
            expected="/folder/ or scheme://bucket/folder/",
        ),
    )


def _checkpoints(output: OutputDataset) -> Findings:
    uri = output.spec.run.checkpoint_uri
    if uri is None:
        return ()
    path = "spec.run.checkpointUri"
    if not _ABSOLUTE.match(uri) or {".", ".."} & set(uri.split("/")):
        code, message = "SL173", "the folder must be absolute, without `.` and `..`"
        expected = "/folder/ or scheme://bucket/folder/"
    else:
        own = comparable_folder(output.spec.output_folder.folder_uri)
        place = comparable_folder(uri)
        if not place.startswith(own) and not own.startswith(place):
            return ()
        code, message = "SL174", "checkpoints would lie in the output's folder, or around it"
        expected = "a folder apart from the output's"
    return (
        make_finding(
            code, message, resource=output.identity, path=path, found=uri, expected=expected
        ),
    )


def _readable(output: OutputDataset) -> Findings:
    folder = output.spec.output_folder
    if (folder.data_format, folder.new_compression) != (
        DataFormat.JSONL,
        DataCompression.SNAPPY,
    ):
        return ()
    return (
        make_finding(
            "SL178",
            "JSON Lines compressed with SNAPPY can be read by few tools outside Hadoop and Spark",
            resource=output.identity,
            path=f"{FOLDER}.dataCompression",
            found="SNAPPY (default)" if folder.data_compression is None else "SNAPPY",
            expected="GZIP or NONE",
        ),
    )


def _table(output: OutputDataset) -> Iterator[Finding]:
    """Settings that an Iceberg table needs, lacks, or declares in another way."""
    folder = output.spec.output_folder
    if folder.data_format is not DataFormat.ICEBERG:
        return
    if not brings(output, "iceberg"):
        yield make_finding(
            "SL149",
            "publishing needs Iceberg's library on Spark's class path, which only a run can see",
            resource=output.identity,
            path=f"{FOLDER}.dataFormat",
            found="ICEBERG, and no jar of Iceberg in run.spark.sparkConf",
            expected="iceberg-spark-runtime for the Spark that is used",
        )
    if folder.incompatible_schema is CheckMode.WARN:
        yield make_finding(
            "SL184",
            "an Iceberg table has one schema, so that no snapshot can break with it",
            resource=output.identity,
            path=f"{FOLDER}.incompatibleSchema",
            found="WARN",
            expected="FAIL",
        )
    if folder.register_table is not None:
        yield make_finding(
            "SL184",
            "an Iceberg table is not registered as a table of files beside it",
            resource=output.identity,
            path=f"{FOLDER}.registerTable",
            found=folder.register_table.name,
            expected="an output without it",
            hint="read the table at `<folderUri>iceberg`, or register that place in your catalog",
        )


def brings(output: OutputDataset, library: str) -> bool:
    """Whether the run's own Spark configuration names a jar of a library."""
    spark = output.spec.run.spark
    settings = {} if spark is None else spark.spark_conf
    return any(library in value.lower() for key, value in settings.items() if _JARS in key)


def comparable_folder(uri: str) -> str:
    """The URI of a folder in one of the spellings that lead to it, with `/` at its end."""
    scheme, separator, rest = normal_uri(uri).rpartition("://")
    return scheme + separator + re.sub(r"/+", "/", f"{rest}/")
