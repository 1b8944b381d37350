"""One run of one output: what all of its steps share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from snaploom.engine.fold import Weave
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
    """The plan, and the state that it rests on."""
    writer: Run
    """In whose name it writes."""
    job: Job
    """The caller's decisions."""
    record: RunRecord
    """Facts for the Report."""

    @property
    def output(self) -> OutputDataset:
        """The output."""
        return self.prepared.bundle.output

    def weave(self, frames: Mapping[str, DataFrame], snapshots: int = 1) -> Weave:
        """The inputs of one snapshot, or of several together.

        Args:
            frames: by field name.
            snapshots: how many the root's rows are of.
        """
        bundle = self.prepared.bundle
        relationships = {one.name: one for one in bundle.data_relationships}
        return Weave(self.prepared.plan.tree, frames, relationships, snapshots)
