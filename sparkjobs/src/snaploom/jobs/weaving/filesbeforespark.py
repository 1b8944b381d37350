"""Access to files that are on no local disk, before there is a session.

In a process of `spark-submit`, Hadoop's client in its JVM (`jobs.session.submittedfiles`). Anywhere
else a bucket of S3 is asked directly, unless something configures Hadoop's client that is only
known when it has started: it might list another server, and "nothing is due" would be wrong.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import cached_property

from snaploom import ondemand
from snaploom.jobs.hadoopsettings import SUBMITTED, configured_elsewhere
from snaploom.listing.bucketfiles import BucketFiles, is_in_bucket
from snaploom.listing.listedfile import ListedFile
from snaploom.listing.otherfiles import NoOtherFiles, OtherFiles, SparkNeeded
from snaploom.models.allowances import Allowances
from snaploom.models.run import RunSettings
from snaploom.storage.objectstore import ObjectStore


class FilesBeforeSpark:
    """`OtherFiles` of a process that has no session."""

    def __init__(self, run: RunSettings, allow: Allowances) -> None:
        """Nothing is asked yet.

        Args:
            run: settings of the session that is to come.
            allow: what they may ask for beyond the built-in lists.
        """
        self._run = run
        self._allow = allow

    def matches(self, glob: str, resource: str) -> Sequence[ListedFile]:
        """As `OtherFiles.matches`."""
        return self._files_of(glob).matches(glob, resource)

    def folders(self, glob: str, is_hidden: Callable[[str], bool]) -> Sequence[str] | None:
        """As `OtherFiles.folders`."""
        return self._files_of(glob).folders(glob, is_hidden)

    def exists(self, uri: str) -> bool:
        """As `OtherFiles.exists`."""
        return self._files_of(uri).exists(uri)

    def store(self, uri: str, create: bool) -> ObjectStore:
        """As `OtherFiles.store`."""
        return self._files_of(uri).store(uri, create)

    def end(self, file: ListedFile, length: int) -> bytes:
        """As `OtherFiles.end`."""
        return self._files_of(file.uri).end(file, length)

    def _files_of(self, uri: str) -> OtherFiles:
        if _has_session():
            return NoOtherFiles()  # it may have settings of its own, and is at hand
        if SUBMITTED in os.environ:
            return self._submitted
        if not is_in_bucket(uri):
            return NoOtherFiles()
        other = configured_elsewhere(self._run, os.environ)
        if other:
            raise SparkNeeded(f"{uri}: Hadoop's client is configured by {other}")
        return self._buckets

    @cached_property
    def _submitted(self) -> OtherFiles:
        return ondemand.submitted_files(self._run, self._allow)

    @cached_property
    def _buckets(self) -> BucketFiles:
        return BucketFiles(os.environ)


def _has_session() -> bool:
    """Whether Spark is at work in this process; where it was never imported, it is not."""
    context = sys.modules.get("pyspark.core.context")
    return context is not None and context.SparkContext._active_spark_context is not None
