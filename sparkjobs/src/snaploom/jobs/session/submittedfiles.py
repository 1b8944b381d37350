"""Files, by Hadoop's client in the JVM that `spark-submit` has started, before there is a session.

A run that finds nothing due then asks the cluster for no executor: these are asked for when a
SparkContext is made, and Hadoop's client needs none. What cannot be answered without a doubt is
left to the session, which reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from snaploom.engine.hadoopfiles import HadoopFiles
from snaploom.errors import SnaploomError
from snaploom.jobs.session.spark import client_before_context
from snaploom.listing.listedfile import ListedFile
from snaploom.listing.otherfiles import SparkNeeded
from snaploom.models.allowances import Allowances
from snaploom.models.run import RunSettings
from snaploom.storage.objectstore import ObjectStore


@dataclass(frozen=True)
class SubmittedFiles:
    """`OtherFiles` by Hadoop's client; a failure is no answer."""

    files: HadoopFiles

    def matches(self, glob: str, resource: str) -> Sequence[ListedFile]:
        """As `OtherFiles.matches`."""
        with _left_to_the_session(glob):
            return self.files.matches(glob, resource)

    def folders(self, glob: str, is_hidden: Callable[[str], bool]) -> None:
        """As `OtherFiles.folders`."""
        return self.files.folders(glob, is_hidden)

    def exists(self, uri: str) -> bool:
        """As `OtherFiles.exists`."""
        with _left_to_the_session(uri):
            return self.files.exists(uri)

    def store(self, uri: str, create: bool) -> ObjectStore:
        """As `OtherFiles.store`."""
        with _left_to_the_session(uri):
            return self.files.store(uri, create)

    def end(self, file: ListedFile, length: int) -> bytes:
        """As `OtherFiles.end`."""
        return self.files.end(file, length)


def submitted_files(run: RunSettings, allow: Allowances) -> SubmittedFiles:
    """The files, as a session with these settings will see them.

    Args:
        run: the resource's run settings.
        allow: what it may ask for beyond the built-in lists.

    Raises:
        SparkNeeded: the settings are refused, or the JVM does not answer.
    """
    with _left_to_the_session("the JVM"):
        return SubmittedFiles(HadoopFiles(client_before_context(run, allow)))


@contextmanager
def _left_to_the_session(place: str) -> Iterator[None]:
    try:
        yield
    except (SnaploomError, Py4JError, PySparkException) as error:
        raise SparkNeeded(f"{place}: {error}") from error
