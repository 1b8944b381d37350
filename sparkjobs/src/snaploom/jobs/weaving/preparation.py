"""Before a run: preflight of folder and sources with a session, then the plan (rule W5).

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
from snaploom.jobs.reports.observations import Observations
from snaploom.jobs.session.errortranslation import translated
from snaploom.jobs.session.folderstores import open_place
from snaploom.jobs.weaving.preflight import PlannedRun, plan_listed
from snaploom.jobs.weaving.runrequest import PlanRequest
from snaploom.listing.sourcefiles import SourceFiles
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.outputfolder import DataFormat
from snaploom.models.times import EpochNanos
from snaploom.models.times import now as current_time
from snaploom.planning.intervals import SourceSnapshots
from snaploom.storage.icebergtable import TableLibrary
from snaploom.storage.listingcache import Listings
from snaploom.storage.objectstore import ObjectStore


@dataclass(frozen=True)
class Prepared(PlannedRun):
    """All that a run needs to begin."""

    sources: Sources
    """Opens them."""
    readers: Mapping[str, SourceReader]
    """By name of the source; what each listed stays as it is for this run."""
    listings: Listings
    """Listings of the sources' files, to be kept for the next run."""


@contextmanager
def prepare(
    spark: SparkSession,
    request: PlanRequest,
    observations: Observations | None = None,
    clock: Callable[[], EpochNanos] = current_time,
    files: SourceFiles | None = None,
) -> Iterator[Prepared]:
    """Look at folder and sources, and plan; what sources hold is released at the end of the block.

    Args:
        spark: the session.
        request: what is to be planned.
        observations: filled with what is observed.
        clock: the time at which files are listed.
        files: what was listed before there was a session.

    Raises:
        NoUniqueJoinTree: the join tree is ambiguous or does not reach every source.
        InvalidDeclarations: anything else that the plan finds wrong.
        PublicationError: the folder is not ours, or contradicts the declarations.
        SourceError: a source cannot be listed.
        RootEmpty: the root has no snapshot, and that is to be a failure.
    """
    bundle = request.bundle
    table_library(spark, bundle.output)
    store = folder_store(bundle.output)
    listings, allow = Listings(store, clock()), request.options.allow
    with closing(Sources(spark, bundle, request.moment, listings, allow, files)) as sources:
        planned = plan_listed(
            request,
            store,
            lambda name: _listing(sources.reader(name)),
            clock,
            observations or Observations(),
        )
        yield Prepared(
            planned.bundle,
            planned.plan,
            planned.state,
            planned.published,
            planned.present,
            sources=sources,
            readers={node.source: sources.reader(node.source) for node in planned.plan.tree.nodes},
            listings=listings,
        )


def table_library(spark: SparkSession, output: OutputDataset) -> TableLibrary | None:
    """Return the library that writes an output's Iceberg table; None for other formats.

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


def _listing(reader: SourceReader) -> SourceSnapshots:
    with translated(f"DataSource/{reader.name}"):
        return reader.listing()
