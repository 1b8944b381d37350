"""How Spark's tasks commit files on S3, which has no rename.

By default Spark writes a task's files elsewhere and renames them, which S3A does by copying. With
the module `spark-hadoop-cloud` they are uploaded to where they belong, and become visible when the
job commits (the magic committer). Either way they go into staging first; promotion is ours.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from snaploom.hadoop.jvm import jvm_of

_log = logging.getLogger(__name__)

S3 = "s3a:"
PROTOCOL = "org.apache.spark.internal.io.cloud.PathOutputCommitProtocol"
COMMITTERS: Mapping[str, str] = {
    "spark.sql.sources.commitProtocolClass": PROTOCOL,
    "spark.sql.parquet.output.committer.class": (
        "org.apache.spark.internal.io.cloud.BindingParquetOutputCommitter"
    ),
}
"""Settings by which each file system's own committer is asked for; others than S3A keep Spark's."""

WRITE_OPTIONS: Mapping[str, str] = {"fs.s3a.committer.name": "magic"}

WITHOUT_MODULE = (
    "files are uploaded to S3 and then copied by Spark's tasks, once more than needed: the module "
    "spark-hadoop-cloud is not on Spark's classpath"
)
"""The message of a write without the module."""


def committer_options(spark: SparkSession, uri: str) -> Mapping[str, str]:
    """Options of a write into a folder; the session gets the committers when it has their classes.

    The settings stay in the session: taken back, they could be missing to a write of another
    thread that is just planned.
    """
    if not uri.startswith(S3):
        return {}
    if not has_committers(spark):
        _log.warning("%s", WITHOUT_MODULE)
        return {}
    for name, value in COMMITTERS.items():
        spark.conf.set(name, value)
    return WRITE_OPTIONS


def remove_marker(spark: SparkSession, uri: str) -> None:
    """Remove the empty object `<folder>/` by which S3A marks a folder that it was to write into.

    S3A never does, and nobody else can name it: every run would leave one for ever. The folder's
    files are not touched; a failure is only that the object stays.
    """
    if not uri.startswith(S3):
        return
    jvm = jvm_of(spark)
    bucket, _, folder = uri.removeprefix(f"{S3}//").partition("/")
    try:
        path = jvm.org.apache.hadoop.fs.Path(uri)
        files = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
        client = files.getS3AInternals().getAmazonS3Client("the mark of a staging folder")
        request = jvm.software.amazon.awssdk.services.s3.model.DeleteObjectRequest.builder()
        client.deleteObject(request.bucket(bucket).key(f"{folder.rstrip('/')}/").build())
    except (Py4JError, TypeError) as error:  # TypeError: a class that is not there
        _log.debug("%s keeps the mark of a folder: %s", uri, error)


def has_committers(spark: SparkSession) -> bool:
    """Whether the module `spark-hadoop-cloud` is on the classpath."""
    jvm = jvm_of(spark)
    try:
        jvm.org.apache.spark.util.Utils.classForName(PROTOCOL, False, False)
    except Py4JError:
        return False
    return True
