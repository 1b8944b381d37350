"""Imports on demand: the one border that keeps Spark and other slow packages out of `import`.

`snaploom --help`, `plan --offline` and runs with nothing due must not wait for Spark. Functions
that need it are called as `ondemand.name(...)`: it is imported at that moment, and type checkers
see the function itself. Packages below offer theirs in the same way.
"""

from typing import TYPE_CHECKING

from snaploom.installed import attributes_of

if TYPE_CHECKING:
    from snaploom import reader
    from snaploom.cli.console import show_failure as show_failure
    from snaploom.engine.publishedfiles.frame import published_frame as published_frame
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
    from snaploom.spark.hadoopstore import hadoop_stores as hadoop_stores

    read_folder = reader.read

PLACES = {
    "balanced": "snaploom.skipping.spark.builds.clusteredwrite:balanced",
    "build_session": "snaploom.run.session.spark:build_session",
    "carry_out": "snaploom.run.indexes.jobs:carry_out",
    "check_content": "snaploom.run.published.content:check_content",
    "clustering_under": "snaploom.skipping.spark.builds.clusteredwrite:clustering_under",
    "compare_data": "snaploom.run.published.rowdiff:compare_data",
    "explain_query": "snaploom.run.indexes.jobs:explain_query",
    "folder_declared": "snaploom.run.declarations:folder_declared",
    "follow_publication": "snaploom.run.indexes.jobs:follow_publication",
    "hadoop_stores": "snaploom.spark.hadoopstore:hadoop_stores",
    "install_jar": "snaploom.run.databases:install_jar",
    "open_place": "snaploom.run.session.spark:open_place",
    "places_on_publish": "snaploom.run.indexes.indexrequests:places_on_publish",
    "plan_in_session": "snaploom.run.weaving.sparkruns:plan_in_session",
    "published_frame": "snaploom.engine.publishedfiles.frame:published_frame",
    "read_declarations": "snaploom.run.declarations:read_declarations",
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

if not TYPE_CHECKING:
    __getattr__ = attributes_of(__name__, PLACES)
