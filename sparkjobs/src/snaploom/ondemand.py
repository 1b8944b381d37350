"""Imports on demand: the one border that keeps Spark and other slow packages out of `import`.

Packages and plug-ins that only some installations have are found here too, by extra or entry point.

`snaploom --help`, `plan --offline` and runs with nothing due must not wait for Spark, nor
`validate` for a parser of SQL that many declarations do without. Functions that need them are
called as `ondemand.name(...)`: it is imported at that moment, and type checkers see the function
itself. Every other module of the library imports at its top (ruff holds that), so that layers stay
checkable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points, version
from typing import TYPE_CHECKING, cast

from snaploom.errors import IndexNotPossible, SnaploomError

if TYPE_CHECKING:
    from snaploom import reader
    from snaploom.cli.console import show_failure as show_failure
    from snaploom.engine.publishedfiles.frame import published_frame as published_frame
    from snaploom.parquet.footers import read_footer as read_footer
    from snaploom.policy import sql
    from snaploom.run.databases import install_jar as install_jar
    from snaploom.run.declarations import folder_declared as folder_declared
    from snaploom.run.declarations import read_declarations as read_declarations
    from snaploom.run.indexes.indexrequests import places_on_publish as places_on_publish
    from snaploom.run.indexes.jobs import carry_out as carry_out
    from snaploom.run.indexes.jobs import explain_query as explain_query
    from snaploom.run.indexes.jobs import follow_publication as follow_publication
    from snaploom.run.published.content import check_content as check_content
    from snaploom.run.published.rowdiff import compare_data as compare_data
    from snaploom.run.session.spark import build_session as build_session
    from snaploom.run.session.spark import open_place as open_place
    from snaploom.run.session.spark import reading_session as reading_session
    from snaploom.run.session.spark import sibling_session as sibling_session
    from snaploom.run.session.spark import submitted_files as submitted_files
    from snaploom.run.weaving.preparation import table_library as table_library
    from snaploom.run.weaving.sparkruns import plan_in_session as plan_in_session
    from snaploom.run.weaving.sparkruns import weave_in_session as weave_in_session
    from snaploom.skipping.spark.builds.clusteredwrite import balanced as balanced
    from snaploom.skipping.spark.builds.clusteredwrite import clustering_under as clustering_under
    from snaploom.skipping.spark.builds.clusteredwrite import sorted_frame as sorted_frame
    from snaploom.sources.files.footers import column_snapshots as column_snapshots
    from snaploom.spark.hadoopstore import hadoop_stores as hadoop_stores

    judge_sql = sql.judge
    read_folder = reader.read

VERSION = version("snaploom")
"""Written into Reports, manifests and metrics."""

EXTRAS = {
    "duckdb": "discover",
    "fastavro": "discover",
    "numpy": "spark",
    "opensearchpy": "opensearch",
    "pandas": "spark",
    "py4j": "spark",
    "pyarrow": "spark",
    "pyspark": "spark",
}
"""By the name that is imported. `data` brings some of them too, for Sparks of others."""


class PackageMissing(SnaploomError):
    """A package of an extra, or a plug-in, is not installed."""


def missing_package(error: BaseException) -> PackageMissing | None:
    """The error to show where an import failed for want of an extra; None for other failures."""
    seen: BaseException | None = error
    while seen is not None:
        name = (seen.name or "").partition(".")[0] if isinstance(seen, ModuleNotFoundError) else ""
        if name in EXTRAS:
            return PackageMissing(
                "a package that this needs is not installed",
                found=f"no package {name}",
                expected=f"the extra {EXTRAS[name]} of snaploom",
                hint=f"pip install 'snaploom[{EXTRAS[name]}]'",
            )
        seen = seen.__cause__ or seen.__context__
    return None


def plugged(group: str, name: str, what: str) -> object:
    """Load the object that a plug-in registers as an entry point.

    `what` is the subject of messages.

    Raises:
        PackageMissing: no installed package registers it, or one cannot be loaded.
    """
    found = f"no entry point {name} of the group {group}"
    for entry in entry_points(group=group, name=name):
        try:
            return cast(object, entry.load())
        except (ImportError, AttributeError) as error:
            if missing := missing_package(error):
                raise missing from error
            found = f"{entry.value}: {error}"
    raise PackageMissing(
        f"{what} is not installed",
        found=found,
        expected="a plug-in that registers it; Snaploom's own are in snaploom.plugins",
        hint="install snaploom with all its packages: pip install --force-reinstall snaploom",
    )


def load_registered(
    entry: EntryPoint,
    what: str,
    members: Iterable[str] = (),
    error: type[SnaploomError] = IndexNotPossible,
) -> object:
    """Load the object of an entry point, which has `members`; `what` names its kind in messages.

    Raises:
        SnaploomError: an `error`, if its code cannot be loaded or is for another Snaploom.
    """
    try:
        found: object = entry.load()
    except (ImportError, AttributeError) as failure:
        raise error(
            f"{what} {entry.name} cannot be loaded: {failure}",
            found=entry.value,
            expected="a package whose modules can be imported",
            hint="install what the package that registers it needs, or uninstall that package",
        ) from failure
    missing = [member for member in members if not hasattr(found, member)]
    if missing:
        raise error(
            f"{what} {entry.name} lacks {', '.join(missing)}",
            found=entry.value,
            expected="what this version of Snaploom asks of it",
            hint="install a version of the package that registers it which fits this Snaploom",
        )
    return found


PLACES = {
    "balanced": "snaploom.skipping.spark.builds.clusteredwrite:balanced",
    "build_session": "snaploom.run.session.spark:build_session",
    "carry_out": "snaploom.run.indexes.jobs:carry_out",
    "check_content": "snaploom.run.published.content:check_content",
    "clustering_under": "snaploom.skipping.spark.builds.clusteredwrite:clustering_under",
    "column_snapshots": "snaploom.sources.files.footers:column_snapshots",
    "compare_data": "snaploom.run.published.rowdiff:compare_data",
    "explain_query": "snaploom.run.indexes.jobs:explain_query",
    "folder_declared": "snaploom.run.declarations:folder_declared",
    "follow_publication": "snaploom.run.indexes.jobs:follow_publication",
    "hadoop_stores": "snaploom.spark.hadoopstore:hadoop_stores",
    "install_jar": "snaploom.run.databases:install_jar",
    "judge_sql": "snaploom.policy.sql:judge",
    "open_place": "snaploom.run.session.spark:open_place",
    "places_on_publish": "snaploom.run.indexes.indexrequests:places_on_publish",
    "plan_in_session": "snaploom.run.weaving.sparkruns:plan_in_session",
    "published_frame": "snaploom.engine.publishedfiles.frame:published_frame",
    "read_declarations": "snaploom.run.declarations:read_declarations",
    "read_footer": "snaploom.parquet.footers:read_footer",
    "read_folder": "snaploom.reader:read",
    "reading_session": "snaploom.run.session.spark:reading_session",
    "show_failure": "snaploom.cli.console:show_failure",
    "sibling_session": "snaploom.run.session.spark:sibling_session",
    "sorted_frame": "snaploom.skipping.spark.builds.clusteredwrite:sorted_frame",
    "submitted_files": "snaploom.run.session.spark:submitted_files",
    "table_library": "snaploom.run.weaving.preparation:table_library",
    "weave_in_session": "snaploom.run.weaving.sparkruns:weave_in_session",
}
"""The names above, each as `module:attribute`."""


def attributes_of(module: str, places: Mapping[str, str]) -> Callable[[str], object]:
    """Return the `__getattr__` of a module whose names are imported when they are first used."""

    def found(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return _resolve(places[name])

    return found


def _resolve(place: str) -> object:
    """Import what `module:attribute` names."""
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
