"""The one place where modules are imported when they are first needed, by dotted name.

Spark takes seconds to import and to start; `snaploom --help` and `plan --offline` must not wait
for it. A parser of SQL takes a fifth of `validate`, and many declarations have no SQL. Everything
else in the library imports at the top, so that the layers stay checkable.
"""

from __future__ import annotations

from importlib import import_module

from snaploom.extras import missing_package

BUILD_SESSION = "snaploom.jobs.session.spark:build_session"
READING_SESSION = "snaploom.jobs.session.spark:reading_session"
SIBLING_SESSION = "snaploom.jobs.session.spark:sibling_session"
WEAVE = "snaploom.jobs.weaving.sparkruns:weave_outputs"
CHECK_CONTENT = "snaploom.jobs.published.contentcheck:check_content"
ESTIMATE = "snaploom.jobs.weaving.sparkruns:estimated"
PREVIEW = "snaploom.jobs.weaving.sparkruns:preview"
INDEX_PLACES = "snaploom.jobs.indexes.targets:places_on_publish"
COMPARE_DATA = "snaploom.jobs.published.rowdiff:compare_data"
INDEX = "snaploom.jobs.indexes.indexjobs:carry_out"
EXPLAIN_INDEX = "snaploom.jobs.indexes.indexjobs:explain_query"
INDEX_STATES = "snaploom.site.indexstates:index_states"
ADVISE = "snaploom.jobs.indexes.advicejobs:advise_files"
SORT = "snaploom.jobs.indexes.advicejobs:sort_files"
SORT_SNAPSHOTS = "snaploom.jobs.published.snapshotsort:sort_snapshots"
PUBLISHED_FRAME = "snaploom.engine.publishedfiles.frame:published_frame"
HADOOP_STORES = "snaploom.hadoop.store:hadoop_stores"
FOLDER_DECLARED = "snaploom.jobs.declarations.declarationfiles:folder_declared"
OPEN_PLACE = "snaploom.jobs.session.folderstores:open_place"
DISCOVER = "snaploom.discovery.discover:discover"
READ_DATABASE = "snaploom.jobs.databasecontents:read_database"
FAILURES = "snaploom.cli.errordisplay:show_failure"
READ_CONTRACT = "snaploom.jobs.contracts.contractfile:read_contract"
JUDGE_SQL = "snaploom.planning.sqlgate.parsedfacts:judge"
INSTALL_DRIVER = "snaploom.jobs.driverfetch:install_jar"
COLUMN_SNAPSHOTS = "snaploom.listing.columnsnapshots:column_snapshots"
SUBMITTED_FILES = "snaploom.jobs.session.submittedfiles:submitted_files"
LINEAGE = "snaploom.jobs.lineage.runlistener:LineageListener"

LIBRARY = {
    "DataRelationship": "snaploom.project.resources:DataRelationship",
    "DataSource": "snaploom.project.resources:DataSource",
    "FieldTransformer": "snaploom.project.resources:FieldTransformer",
    "InvalidDeclarations": "snaploom.models.finding:InvalidDeclarations",
    "MetadataApplicator": "snaploom.project.resources:MetadataApplicator",
    "OutputDataset": "snaploom.project.resources:OutputDataset",
    "Project": "snaploom.project.project:Project",
    "RunFailed": "snaploom.project.results:RunFailed",
    "SkippingIndex": "snaploom.project.resources:SkippingIndex",
    "SnaploomError": "snaploom.errors:SnaploomError",
    "__version__": "snaploom.version:VERSION",
    "absences": "snaploom.reader:absences",
    "load": "snaploom.project.project:load",
    "read": "snaploom.reader:read",
    "schema": "snaploom.reader:schema",
    "to_yaml": "snaploom.models.yamltext:to_yaml",
}
"""The public names of `snaploom` itself."""

SKIPPING = {
    "disable": "snaploom.skipping.spark.interfaces.enable:disable",
    "enable": "snaploom.skipping.spark.interfaces.enable:enable",
    "explain": "snaploom.skipping.spark.interfaces.explain:explain",
    "is_enabled": "snaploom.skipping.spark.interfaces.enable:is_enabled",
    "reset_statistics": "snaploom.skipping.spark.interfaces.enable:reset_statistics",
    "skipping_index": "snaploom.skipping.spark.interfaces.indexbuilder:skipping_index",
    "skipping_indexes": "snaploom.skipping.spark.interfaces.indexbuilder:skipping_indexes",
    "sql": "snaploom.skipping.spark.interfaces.sqlfrontend:sql",
    "statistics": "snaploom.skipping.spark.interfaces.enable:statistics",
    "without_skipping": "snaploom.skipping.spark.interfaces.enable:without_skipping",
}
"""The public names of `snaploom.skipping`: all of them need Spark."""


def resolve(name: str) -> object:
    """The object that `package.module:attribute` names.

    Raises:
        PackageMissing: it needs a package that is not installed; the hint names the extra.
    """
    module, _, attribute = name.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except ImportError as error:
        missing = missing_package(error)
        if missing is None:
            raise
        raise missing from error
