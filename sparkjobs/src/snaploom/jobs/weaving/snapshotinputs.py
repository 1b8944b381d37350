"""Inputs of one snapshot: its sources as they were read, without those left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from pyspark.sql.types import StructType

from snaploom.engine.schemachecks import SchemaOutcome, check_schemas
from snaploom.engine.sources.port import SourceFrame
from snaploom.jobs.session.errortranslation import translated
from snaploom.jobs.weaving.preparation import Prepared
from snaploom.jobs.weaving.schemahistory import SchemaHistory
from snaploom.jobs.weaving.snapshotsources import Reading
from snaploom.jobs.weaving.valuelesscolumns import ValuelessColumns
from snaploom.planning.plan import PlannedSnapshot
from snaploom.planning.steps import ReadSource
from snaploom.storage.state import FolderState


@dataclass(frozen=True)
class SnapshotInputs:
    """The sources of one snapshot, and what their schemas lead to."""

    outcome: SchemaOutcome
    """Whether a field is missing, what is left out, and warnings."""
    used: Mapping[str, SourceFrame]
    """By field name, the sources that take part; empty where the outcome stops the snapshot."""


class InputReader:
    """Reads the sources of the snapshots of one run."""

    def __init__(
        self,
        prepared: Prepared,
        history: SchemaHistory,
        state: Callable[[], FolderState],
        read: Callable[[ReadSource], SourceFrame],
    ) -> None:
        """Index the declarations that every snapshot needs.

        Args:
            prepared: the plan, and what it rests on.
            history: schemas of what is published.
            state: gives what is published now; asked where a column may have no value.
            read: reads one source.
        """
        bundle, self._tree = prepared.bundle, prepared.plan.tree
        self._state = state
        self._read = read
        self._valueless = ValuelessColumns(bundle, self._tree, history)
        others = bundle.output.spec.data_model.other_data_sources
        self._others = {other.field_name: other for other in others}
        self._relationships = {one.name: one for one in bundle.data_relationships}

    @property
    def looks_at_published(self) -> bool:
        """Whether what is read may depend on what is published by then."""
        return bool(self._valueless.sources)

    def inputs(self, planned: PlannedSnapshot) -> SnapshotInputs:
        """Read the sources of a snapshot, as far as they take part.

        Raises:
            SourceError: one of them cannot be read.
        """

        @cache
        def published_rows() -> StructType | None:
            return self._valueless.published(self._state(), planned.time)

        def read(step: ReadSource) -> SourceFrame:
            with translated(f"DataSource/{step.source}"):
                return self._valueless.typed(step.field_name, self._read(step), published_rows)

        sources = (step for step in planned.steps if isinstance(step, ReadSource))
        reading = Reading(sources, read)
        outcome = check_schemas(
            self._tree, reading, self._others, self._relationships, self._valueless.sources
        )
        if outcome.stop is not None:
            return SnapshotInputs(outcome, {})
        left_out = {exclusion.field_name for exclusion in outcome.excluded}
        used = {name: reading.source(name) for name in reading if name not in left_out}
        return SnapshotInputs(outcome, used)
