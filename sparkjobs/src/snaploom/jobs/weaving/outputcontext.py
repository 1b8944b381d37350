"""One run of one output: what all of its steps share."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from snaploom.jobs.job import Job
from snaploom.jobs.reports.runrecord import RunRecord
from snaploom.jobs.weaving.preparation import Prepared
from snaploom.models.outputdataset import OutputDataset
from snaploom.storage.writeridentity import Run


@dataclass(frozen=True)
class OutputRun:
    """One run of one output: what all of its steps share."""

    spark: SparkSession
    """The session."""
    prepared: Prepared
    """The plan, and what it rests on."""
    writer: Run
    """In whose name it writes."""
    job: Job
    """What the caller decided."""
    record: RunRecord
    """What becomes the Report."""

    @property
    def output(self) -> OutputDataset:
        """The output."""
        return self.prepared.bundle.output
