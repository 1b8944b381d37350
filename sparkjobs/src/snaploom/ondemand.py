"""Imports on demand: the one border that keeps Spark and other slow packages out of `import`.

`snaploom --help`, `plan --offline` and runs with nothing due must not wait for Spark, nor
`validate` for a parser of SQL that many declarations do without. What needs them is called as
`ondemand.name(...)`: it is imported at that moment, and type checkers see the function itself.
Every other module of the library imports at its top (ruff holds that), so that layers stay
checkable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from snaploom.extras import missing_package

if TYPE_CHECKING:
    from snaploom import reader
    from snaploom.cli.errordisplay import show_failure as show_failure
    from snaploom.discovery.discover import discover as discover
    from snaploom.engine.publishedfiles.frame import published_frame as published_frame
    from snaploom.hadoop.store import hadoop_stores as hadoop_stores
    from snaploom.interop.flintspark import datasource
    from snaploom.jobs.contracts.contractfile import read_contract as read_contract
    from snaploom.jobs.databasecontents import read_database as read_database
    from snaploom.jobs.declarations.declarationfiles import folder_declared as folder_declared
    from snaploom.jobs.declarations.declarationfiles import read_declarations as read_declarations
    from snaploom.jobs.driverfetch import install_jar as install_jar
    from snaploom.jobs.indexes.advicejobs import advise_files as advise_files
    from snaploom.jobs.indexes.advicejobs import sort_files as sort_files
    from snaploom.jobs.indexes.indexjobs import carry_out as carry_out
    from snaploom.jobs.indexes.indexjobs import explain_query as explain_query
    from snaploom.jobs.indexes.targets import places_on_publish as places_on_publish
    from snaploom.jobs.lineage.runlistener import LineageListener as LineageListener
    from snaploom.jobs.published.contentcheck import check_content as check_content
    from snaploom.jobs.published.rowdiff import compare_data as compare_data
    from snaploom.jobs.published.snapshotsort import sort_snapshots as sort_snapshots
    from snaploom.jobs.session.folderstores import open_place as open_place
    from snaploom.jobs.session.spark import build_session as build_session
    from snaploom.jobs.session.spark import reading_session as reading_session
    from snaploom.jobs.session.spark import sibling_session as sibling_session
    from snaploom.jobs.session.submittedfiles import submitted_files as submitted_files
    from snaploom.jobs.weaving.sparkruns import plan_in_session as plan_in_session
    from snaploom.jobs.weaving.sparkruns import weave_in_session as weave_in_session
    from snaploom.listing.columnsnapshots import column_snapshots as column_snapshots
    from snaploom.planning.sqlgate import parsedfacts
    from snaploom.site.indexstates import index_states as index_states

    judge_sql = parsedfacts.judge
    offer_flint = datasource.offer
    read_folder = reader.read

PLACES = {
    "LineageListener": "snaploom.jobs.lineage.runlistener:LineageListener",
    "advise_files": "snaploom.jobs.indexes.advicejobs:advise_files",
    "build_session": "snaploom.jobs.session.spark:build_session",
    "carry_out": "snaploom.jobs.indexes.indexjobs:carry_out",
    "check_content": "snaploom.jobs.published.contentcheck:check_content",
    "column_snapshots": "snaploom.listing.columnsnapshots:column_snapshots",
    "compare_data": "snaploom.jobs.published.rowdiff:compare_data",
    "discover": "snaploom.discovery.discover:discover",
    "explain_query": "snaploom.jobs.indexes.indexjobs:explain_query",
    "folder_declared": "snaploom.jobs.declarations.declarationfiles:folder_declared",
    "hadoop_stores": "snaploom.hadoop.store:hadoop_stores",
    "index_states": "snaploom.site.indexstates:index_states",
    "install_jar": "snaploom.jobs.driverfetch:install_jar",
    "judge_sql": "snaploom.planning.sqlgate.parsedfacts:judge",
    "offer_flint": "snaploom.interop.flintspark.datasource:offer",
    "open_place": "snaploom.jobs.session.folderstores:open_place",
    "places_on_publish": "snaploom.jobs.indexes.targets:places_on_publish",
    "plan_in_session": "snaploom.jobs.weaving.sparkruns:plan_in_session",
    "published_frame": "snaploom.engine.publishedfiles.frame:published_frame",
    "read_contract": "snaploom.jobs.contracts.contractfile:read_contract",
    "read_declarations": "snaploom.jobs.declarations.declarationfiles:read_declarations",
    "read_database": "snaploom.jobs.databasecontents:read_database",
    "read_folder": "snaploom.reader:read",
    "reading_session": "snaploom.jobs.session.spark:reading_session",
    "show_failure": "snaploom.cli.errordisplay:show_failure",
    "sibling_session": "snaploom.jobs.session.spark:sibling_session",
    "sort_files": "snaploom.jobs.indexes.advicejobs:sort_files",
    "sort_snapshots": "snaploom.jobs.published.snapshotsort:sort_snapshots",
    "submitted_files": "snaploom.jobs.session.submittedfiles:submitted_files",
    "weave_in_session": "snaploom.jobs.weaving.sparkruns:weave_in_session",
}
"""The names above, each as `module:attribute`."""


def attributes_of(module: str, places: Mapping[str, str]) -> Callable[[str], object]:
    """Return the `__getattr__` of a module whose names are imported when they are first used.

    Args:
        module: its dotted name.
        places: by name, `module:attribute`.
    """

    def found(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return _resolve(places[name])

    return found


def _resolve(place: str) -> object:
    """Import what `module:attribute` names.

    Raises:
        PackageMissing: it needs a package that is not installed; the hint names the extra.
    """
    module, _, attribute = place.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except ImportError as error:
        missing = missing_package(error)
        if missing is None:
            raise
        raise missing from error


if not TYPE_CHECKING:
    __getattr__ = attributes_of(__name__, PLACES)
