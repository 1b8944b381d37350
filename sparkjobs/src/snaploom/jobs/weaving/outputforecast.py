"""Forecast of a run's checks of the output's own schema.

The frame is woven and not computed: whether keys and checks can be resolved, whether the format can
hold the columns, and whether they can be read together with what is published then. What retention
deletes behind a publication no longer counts for the next one, as in the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from snaploom.engine.expectations import Expectations
from snaploom.engine.fold import Weave
from snaploom.engine.outputschema import refuse_unwritable
from snaploom.engine.rowcounts import Weaving
from snaploom.jobs.weaving.preparation import Prepared, folder_store
from snaploom.jobs.weaving.schemahistory import SchemaHistory, refuse_conflicts
from snaploom.models.times import EpochNanos
from snaploom.planning.intervals import settings_of
from snaploom.planning.retention import HeldSnapshot, removals_before


class OutputForecast:
    """The snapshots of one run, in its order."""

    def __init__(self, prepared: Prepared) -> None:
        """Read the schemas of what is published.

        Args:
            prepared: the plan, and what the folder holds.

        Raises:
            StorageError: they cannot be read.
        """
        self._bundle = prepared.bundle
        self._tree = prepared.plan.tree
        self._present = prepared.present
        self._held = {snapshot.time: snapshot for snapshot in prepared.published.held}
        history = SchemaHistory(folder_store(prepared.bundle.output))
        self._schemas = dict(history.schemas(prepared.state))
        self._woven: dict[tuple[tuple[str, str], ...], str] = {}

    def check(self, time: EpochNanos, frames: Mapping[str, DataFrame]) -> None:
        """Raise what the run would raise of a snapshot, before it is written.

        Args:
            time: of the snapshot.
            frames: the sources that it is woven from, by field name.

        Raises:
            SourceError: a key cannot be evaluated, or the format cannot hold the columns.
            CheckInvalid: a check cannot be measured on these columns.
            HistoryIncompatible: types that cannot be read together with what is published.
        """
        key = tuple((name, frame.schema.json()) for name, frame in frames.items())
        output = self._bundle.output
        if key not in self._woven:
            relationships = {one.name: one for one in self._bundle.data_relationships}
            woven = Weaving(Weave(self._tree, frames, relationships)).frame
            Expectations(output, woven)
            refuse_unwritable(woven.schema, output.spec.output_folder.data_format)
            self._woven[key] = woven.schema.json()
        others = [one for one in self._schemas.items() if one[0] != time]
        refuse_conflicts(output, others, time, self._woven[key])
        self._schemas[time] = self._woven[key]

    def publish(self, time: EpochNanos, coming: Sequence[EpochNanos]) -> None:
        """Take a snapshot as published, and as deleted what retention deletes behind it.

        Args:
            time: of the snapshot.
            coming: those that the run has still to publish.
        """
        self._held[time] = HeldSnapshot(time, self._present)
        spec = self._bundle.output.spec
        periods = settings_of(spec.data_model.root_data_source.snapshot_filter).intervals
        rules = spec.output_folder.snapshot_auto_delete
        for gone in removals_before(coming, rules, self._held.values(), self._present, periods):
            self._held.pop(gone.time)
            self._schemas.pop(gone.time, None)
