"""Before a run: preflight of folder and sources, then the plan (rule W5).

`plan` without `--offline` shows what this finds, `run` begins with it; nothing is written here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass

from pyspark.sql import SparkSession

from snaploom.engine.iceberg import IcebergLibrary, require_iceberg
from snaploom.engine.sources.opened import Sources
from snaploom.engine.sources.port import SourceReader
from snaploom.jobs.declarations.declarationfiles import refuse
from snaploom.jobs.published.runestimate import Estimate, estimate_of
from snaploom.jobs.reports.observations import Observations
from snaploom.jobs.session.errortranslation import translated
from snaploom.jobs.session.folderstores import open_place
from snaploom.jobs.weaving.schemahistory import compare_structure
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.outputfolder import DataFormat
from snaploom.models.run import OnEmptyRoot
from snaploom.models.times import EpochNanos
from snaploom.models.times import now as current_time
from snaploom.planning.availability import Action
from snaploom.planning.bundle import Bundle
from snaploom.planning.emptysources import refuse_empty_root
from snaploom.planning.intervals import SourceSnapshots
from snaploom.planning.plan import PublishedState, RunPlan, plan_offline, plan_run
from snaploom.planning.retention import HeldSnapshot
from snaploom.planning.selection import EVERYTHING, Selection
from snaploom.storage.fixedsettings import folder_identity, folder_settings
from snaploom.storage.folder import inspect_folder
from snaploom.storage.icebergtable import TableLibrary
from snaploom.storage.listingcache import Listings
from snaploom.storage.objectstore import ObjectStore
from snaploom.storage.runcleanup import waiting
from snaploom.storage.state import FolderState


@dataclass(frozen=True)
class Prepared:
    """All that a run needs to begin."""

    bundle: Bundle
    plan: RunPlan
    sources: Sources
    """What opens them."""
    readers: Mapping[str, SourceReader]
    """By name of the source; what each listed stays as it is for this run."""
    state: FolderState
    """What the folder held when the plan was made."""
    listings: Listings
    """What was learned of the sources' files, to be kept for the next run."""
    published: PublishedState
    """What planning knows of the folder."""
    present: EpochNanos
    """The instant to which ages are measured when snapshots are deleted."""


@contextmanager
def prepare(
    spark: SparkSession,
    bundle: Bundle,
    now: EpochNanos,
    limit: int | None = None,
    observations: Observations | None = None,
    selection: Selection = EVERYTHING,
    clock: Callable[[], EpochNanos] = current_time,
    allow: Allowances = NO_ALLOWANCES,
    is_strict: bool = False,
) -> Iterator[Prepared]:
    """Look at folder and sources, and plan; what sources hold is released at the end of the block.

    Args:
        spark: the session.
        bundle: the output, and what it refers to.
        now: the instant of planning.
        limit: snapshots to publish at most.
        observations: filled with what is observed.
        selection: which snapshots are wanted.
        clock: the time at which files are listed.
        allow: what declarations may use beyond the built-in lists.
        is_strict: whether a root without any snapshot is a failure in any case.

    Raises:
        NoUniqueJoinTree: the join tree is ambiguous or does not reach every source.
        InvalidDeclarations: anything else that the plan finds wrong.
        PublicationError: the folder is not ours, or contradicts the declarations.
        SourceError: a source cannot be listed.
        RootEmpty: the root has no snapshot, and that is to be a failure.
    """
    output = bundle.output
    table_library(spark, output)
    observations = observations or Observations()
    offline = plan_offline(bundle)
    refuse(offline.findings)
    store = folder_store(output)
    state = inspect_folder(
        store,
        folder_settings(output),
        folder_identity(output),
        accept_root_change=output.spec.run.accept_root_change,
        adopt_folder=output.spec.run.adopt_folder,
    )
    observations.state = state
    compare_structure(output, state, offline.tree)
    listings = Listings(store, clock())
    with closing(Sources(spark, bundle, now, listings, allow)) as sources:
        readers = {node.source: sources.reader(node.source) for node in offline.tree.nodes}
        listed: dict[str, SourceSnapshots] = {}
        for name, reader in readers.items():
            listed[name] = _listing(reader)
            observations.see_listing(name, listed[name])
        published = published_state(store, state)
        present = min(now, clock())
        plan = plan_run(bundle, listed, published, now, limit, selection, present)
        refuse(plan.findings)
        if is_strict or output.spec.run.on_empty_root is OnEmptyRoot.FAIL:
            root = offline.tree.root.source
            refuse_empty_root(bundle.source(root), listed[root])
        yield Prepared(bundle, plan, sources, readers, state, listings, published, present)


def estimate(prepared: Prepared) -> Estimate:
    """About what it will take to publish all that is due."""
    due = sum(one.action is Action.PUBLISH for one in prepared.plan.snapshots or ())
    return estimate_of(prepared.state, due)


def table_library(spark: SparkSession, output: OutputDataset) -> TableLibrary | None:
    """What makes versions of an output's Iceberg table; None where it is to have none.

    Raises:
        PublicationError: Spark has no Iceberg.
    """
    if output.spec.output_folder.data_format is not DataFormat.ICEBERG:
        return None
    require_iceberg(spark, output.identity)
    return IcebergLibrary(spark)


def folder_store(
    output: OutputDataset, *, create: bool = False, allow: Allowances = NO_ALLOWANCES
) -> ObjectStore:
    """The store of an output's folder."""
    return open_place(output.spec.output_folder.folder_uri, create, output.spec.run, allow)


def published_state(store: ObjectStore, state: FolderState) -> PublishedState:
    """What planning must know of a folder."""
    return PublishedState(
        tuple(HeldSnapshot(version.time, version.created_at) for version in state.timeline),
        tuple(sorted(state.tombstoned_times)),
        waiting(store, state),
    )


def _listing(reader: SourceReader) -> SourceSnapshots:
    with translated(f"DataSource/{reader.name}"):
        return reader.listing()
