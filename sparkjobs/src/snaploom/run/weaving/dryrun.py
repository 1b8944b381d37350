"""The rows that a run would publish for one snapshot, without publishing or writing them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession

from snaploom.engine.fold import Recording, Weave, fold
from snaploom.errors import ArgumentInvalid, SnaploomError
from snaploom.models.allowances import Allowances
from snaploom.models.common import EpochNanos, format_instant
from snaploom.output.folder import is_unused, open_folder
from snaploom.plan.bundle import Bundle
from snaploom.plan.plan import PlannedSnapshot
from snaploom.plan.steps import Action
from snaploom.plan.times import Selection
from snaploom.run.session.spark import translated
from snaploom.run.weaving.history import SchemaHistory
from snaploom.run.weaving.inputs import InputReader
from snaploom.run.weaving.preparation import Prepared, folder_store, prepare
from snaploom.run.weaving.requests import PlanRequest, RunOptions
from snaploom.sources.readers import located


@contextmanager
def dry_woven(
    spark: SparkSession,
    bundle: Bundle,
    time: EpochNanos,
    moment: EpochNanos,
    allow: Allowances,
    check: Callable[[], None],
) -> Iterator[DataFrame]:
    """The rows of a snapshot as they would be woven now; computed when they are asked for.

    The snapshot is planned as a restatement where it is published, else as one that is due. Row
    counts of joins are not proved: rows that a join multiplied have a key twice.

    `check` is called before the sources are read; what it raises comes out.

    Raises:
        ArgumentInvalid: a run would not weave this snapshot.
        SourceChanged: a source was written to before the rows were computed, at the end.
        SnaploomError: what preflight and the reading of sources find, as a run raises it.
    """
    store = folder_store(bundle.output, allow=allow)
    published = {} if is_unused(store) else open_folder(store).log.read().versions
    selection = (
        Selection(restated=time)
        if time in published
        else Selection(first=time, end=EpochNanos(time + 1))
    )
    request = PlanRequest(bundle, moment, RunOptions(selection, allow=allow))
    with prepare(spark, request) as prepared:
        planned = _due(prepared, time)
        check()
        reader = InputReader(
            prepared,
            SchemaHistory(store),
            lambda: prepared.state,
            lambda step: prepared.readers[step.source].read(step.time),
        )
        inputs = reader.inputs(planned)
        if inputs.outcome.stop is not None:
            raise inputs.outcome.stop.error()
        frames = {name: item.frame for name, item in inputs.used.items()}
        relationships = {one.name: one for one in bundle.data_relationships}
        with translated():
            # Observations would be counted again by each query over the frame.
            woven = fold(Weave(prepared.plan.tree, frames, relationships), Recording())
        try:
            with translated():
                yield woven
        except SnaploomError as error:
            raise located(error, inputs.used.values(), spark, allow) from error
        prepared.sources.look_again(inputs.used.values())


def _due(prepared: Prepared, time: EpochNanos) -> PlannedSnapshot:
    candidates = {one.time: one for one in prepared.plan.snapshots or ()}
    planned = candidates.get(time)
    if planned is not None and planned.action is Action.PUBLISH:
        return planned
    reason = f"{planned.reason.value}: {planned.message}" if planned else "no candidate"
    raise ArgumentInvalid(
        f"a run would not weave the snapshot of {format_instant(time)}",
        path="data",
        found=reason,
        expected="a published snapshot whose sources are there, or one that is due",
        hint="'snaploom plan' lists what is due",
    )
