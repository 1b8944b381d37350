"""The page about skipping indexes: types, statements, settings, Python, store, refusals."""

from __future__ import annotations

import ast
import inspect

from generation.indextypes import parameters_table, served_table, types_table
from generation.markdown import NOTE, block, table
from generation.sourcetext import (
    assigned_docs,
    class_named,
    field_docs,
    meaning,
    module_tree,
    named,
    public_methods,
    signature,
)
from snaploom import skipping
from snaploom.plugins.flint import options
from snaploom.plugins.flint.options import Auth, OpenSearchOptions
from snaploom.skipping.core import definition, filetable
from snaploom.skipping.formats import parquetfiles
from snaploom.skipping.indexes.base import ENTRY_POINTS as TYPES_GROUP
from snaploom.skipping.lifecycle.operations import USUAL
from snaploom.skipping.spark.optimizer import requests
from snaploom.skipping.spark.relations import fingerprint
from snaploom.skipping.statements import columns as parameters
from snaploom.skipping.statements import columns as properties
from snaploom.skipping.stores import catalog, folder
from snaploom.skipping.stores.catalog import BELIEVED_SECONDS
from snaploom.skipping.stores.catalog import ENTRY_POINTS as STORES_GROUP
from snaploom.skipping.stores.folder import ENTRY_POINTS as FORMS_GROUP

GRAMMAR = """
CREATE SKIPPING INDEX [IF NOT EXISTS] ON target
  [FOR COLUMNS] ( subject TYPE [( parameters )] [, ...] )
  [WHERE condition]
  [WITH ( name [=] value [, ...] )]

REFRESH    SKIPPING INDEX ON target [FULL | INCREMENTAL | AUTO]
DESC[RIBE] SKIPPING INDEX ON target
ALTER      SKIPPING INDEX ON target WITH ( name [=] value [, ...] )
DROP       SKIPPING INDEX ON target
VACUUM     SKIPPING INDEX ON target
RECOVER    SKIPPING INDEX ON target
ANALYZE    SKIPPING INDEX ON target
SHOW FLINT INDEX | INDEXES [EXTENDED] IN catalog[.database]

target:   [[catalog.]database.]table | format.`path`
subject:  column | struct.field | (column, column) | any SQL expression
"""

_JOIN_SETTINGS = (
    ("spark.snaploom.skipping.join.enabled", "`true`",
     "`false`: keys of the other side of a join do not decide which files are read."),
    ("spark.snaploom.skipping.join.keys", "`10000`",
     "So many different keys of the other side are used at most, of so many rows where these have "
     "to be computed first (`UNION`, `DISTINCT`, filters)."),
)  # fmt: skip
_DEFAULTS = {requests.ENABLED: "`true`", requests.EVALUATE_ONLY: "`false`",
             requests.FLINT_ENABLED: "`true`", requests.USAGE: "`true`"}  # fmt: skip

_OF_THE_PEER = frozenset({
    "refresh_interval", "scheduler_mode", "checkpoint_location", "watermark_delay", "output_mode",
    "index_settings", "id_expression", "extra_options",
})  # fmt: skip

_SUMS = {
    "files": "Listed, before skipping.",
    "kept_files": "Left to be read.",
    "kept_bytes": "Their size.",
    "last_error": "The message of the last one.",
}
"""Fields whose meaning the code gives by their neighbours."""


def skipping_page() -> str:
    """The page."""
    return "\n".join([
        "# Skipping\n",
        NOTE,
        "Skipping indexes: their types, the statements about them, settings, Python and the "
        "store. A query is never refused because of an index: it reads every file, and a warning "
        "and a counter show it. [Skip files](../how-to/skip-files.md) shows them at work; "
        "[what is proved](../concepts.md#skipping-files) is why no row is lost. The commands are "
        "those of [`snaploom index`](cli.md#snaploom-index-create), the resource is a "
        "[SkippingIndex](kinds/skippingindex.md).\n",
        *_types(),
        *_statements(),
        *_sessions(),
        *_python(),
        *_store(),
        *_flint(),
    ])  # fmt: skip


def _types() -> list[str]:
    kept = inspect.getdoc(definition) or ""
    rows = kept[kept.index("| Spark type") : kept.index("Everything else")].strip()
    formats = ", ".join(f"`{each}`" for each in fingerprint.FORMATS)
    return [
        "## Index types\n",
        "Beside what its type keeps, every index counts the rows with and without a value.\n",
        types_table(),
        f"A column may have indexes of several types; a file is dropped when any of them proves "
        f"that it is not needed. More types come by the entry-point group `{TYPES_GROUP}`.\n",
        "### Parameters\n",
        parameters_table(),
        "### What each type serves\n",
        "Asked of the types themselves. Conditions joined by AND, OR and NOT are taken apart; the "
        "literal may stand on either side; `<=>`, `BETWEEN`, `CASE`, `IF`, `coalesce`, `isnan` and "
        "boolean columns become these. GEO_BOX answers for each of its two columns.\n",
        served_table(),
        "### When a file is the same\n",
        f"{_SAME_FILE}\n",
        "### Columns and formats\n",
        f"Formats: {formats}. Columns inside files and partition columns, fields of structs "
        "(`a.b`), and deterministic expressions over them, of these types:\n",
        f"{rows}\n",
        "No index is kept about arrays, maps, whole structs, intervals, variants, collated strings "
        "and CHAR, whose padding changes what is compared. VARCHAR is `string`.\n",
    ]


_SAME_FILE = """\
An index covers a file only while it is the file that was indexed. `snaploom index describe` shows
the comparison (`same file`, and `sameFile` in JSON), always of path, length and modification time:

| files in | also compared |
|-|-|
| a local disk, a mounted volume | inode and change time |
| a store whose Hadoop client lists tags (`EtagSource`: S3A, ABFS) | the tag, if both the index \
and the query's listing have it |
| HDFS | the number that the name node gave the file, if the listing has it |
| other stores, HDFS behind `viewfs` | nothing |

Local files are compared whenever a query runs, also when a frame is collected again. Elsewhere a
frame keeps Spark's listing: read the folder again after files in it were replaced.

Without the additional comparison, a rewritten file of the same length whose time is set back looks
unchanged; so does a file on HDFS that is truncated, appended to its old length and set back.
Refresh with mode FULL after such a change. Copied folders, restored backups and changed permissions
count as changes until the next refresh. Mounts that renumber inodes (some FUSE drivers) make
indexes useless: read the store by its own scheme there."""


def _statements() -> list[str]:
    own = [
        [f"`{name}`", ", ".join(f"`{value}`" for value in values) or "text",
         "at creation" if name in properties.FIXED else "always"]
        for name, values in properties.PROPERTIES.items()
        if name not in _OF_THE_PEER
    ]  # fmt: skip
    positions = inspect.getdoc(parameters) or ""
    by_position = positions[positions.index("| type") : positions.index("Every type")].strip()
    peers = ", ".join(f"`{name}`" for name in properties.PROPERTIES if name in _OF_THE_PEER)
    return [
        "## Statements\n",
        "Through `skipping.sql(spark, text)`, and through `spark.sql` of a session in which "
        "skipping is enabled. A statement that is meant to be one of these and is misspelt is "
        "refused, pointing at the word; it never reaches Spark's parser.\n",
        block("text", GRAMMAR.strip("\n")),
        "`FOR COLUMNS` is the older form of Flint's manual; `VALUE_LIST` is read as `VALUE_SET`. "
        "Parameters are given by name, `(limit = 50)`, which every type takes, or by position:\n",
        f"{by_position}\n",
        "A key label is a parameter of every type: `price MIN_MAX(key_label = 'prices')`. "
        "`WHERE` chooses files by partition columns and `_metadata.file_path`; files outside are "
        "always read. `DESCRIBE` returns `indexed_col_name`, `data_type`, `skip_type`.\n",
        "### Properties\n",
        table(["`WITH`", "values", "may be set"], own),
        "`auto_refresh = true` and `incremental_refresh = true` are Flint's names for "
        "`refresh_mode` AUTO and INCREMENTAL; two of them that disagree are refused. Flint's "
        f"{peers} are kept and shown, and change nothing: nothing follows files by a stream.\n",
        "`ANALYZE` shows which indexes would help, as `snaploom index advise` does; `RECOVER` "
        "cleans up after an operation that failed or died.\n",
    ]


def _sessions() -> list[str]:
    meanings = assigned_docs(module_tree(requests.__name__).body)
    docs = {str(getattr(requests, name)): text for name, text in meanings.items()}
    docs[catalog.LOCATIONS] = assigned_docs(module_tree(catalog.__name__).body)["LOCATIONS"]
    docs[parquetfiles.SETTING] = (
        "Where keys of encrypted indexes are, such as `vault+https://host:8200/v1/transit`; "
        "keys that are given to `enable` go first."
    )
    internal = {*fingerprint.REQUESTED, requests.TRACE}
    rows = [
        [f"`{name}`", _DEFAULTS.get(name, ""), docs[name].replace(" (seed)", "")]
        for name in requests.REQUESTED
        if name not in internal
    ]
    rows += [[f"`{name}`", default, text] for name, default, text in _JOIN_SETTINGS]
    watched = ", ".join(f"`{name}`" for name in fingerprint.SETTINGS)
    return [
        "## Settings of a session\n",
        "Read when a query is planned, so `spark.conf.set` counts from the next query on. What "
        f"another process commits is seen after {BELIEVED_SECONDS:g} seconds at most.\n",
        table(["setting", "default", "meaning"], rows),
        "### Settings that readers depend on\n",
        "An index is used only by queries that read as it was built. Of the session these count, "
        f"where they matter to the format: {watched}. Options of the reader count too, but those "
        "that choose files, find schemas, or are for writing.\n",
        "An index over an expression is used only where Spark's version, Java's, both time zones, "
        "and every setting `spark.sql.*` that differs from Spark's default are what they were when "
        "it was built, but for settings that cannot change a value:\n",
        table(
            ["decides", "settings, or how their names begin"],
            [[why, ", ".join(names)] for why, names in _harmless_by_reason().items()],
        ),
    ]


def _harmless_by_reason() -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for name, why in fingerprint.HARMLESS_SETTINGS.items():
        names.setdefault(why, []).append(f"`{name}`")
    return names


def _python() -> list[str]:
    rows = []
    for place in skipping.PLACES.values():
        module, _, name = place.partition(":")
        node = named(module_tree(module), name)
        if isinstance(node, ast.FunctionDef):
            rows.append([f"`{signature(node)}`", meaning(ast.get_docstring(node) or "")])
    builder = class_named(
        module_tree("snaploom.skipping.spark.interfaces.indexbuilder"), "IndexBuilder"
    )
    verbs = [
        [f"`.{signature(node)}`", meaning(ast.get_docstring(node) or "")]
        for node in public_methods(builder)
    ]
    manage = class_named(
        module_tree("snaploom.skipping.spark.interfaces.manage"), "SkippingIndexes"
    )
    operations = [
        [f"`.{signature(node)}`", meaning(ast.get_docstring(node) or "")]
        for node in public_methods(manage)
        if not node.decorator_list
    ]
    counting = module_tree("snaploom.skipping.spark.optimizer.usage")
    sums = field_docs(class_named(counting, "Statistics"))
    return [
        "## Python\n",
        "`from snaploom import skipping`; these are functions of that module.\n",
        table(["function", "meaning"], rows),
        "### The builder\n",
        "What `skipping_index(...)` returns. Every verb returns a new builder.\n",
        table(["verb", "meaning"], verbs),
        "### Operations\n",
        "`snaploom.skipping.spark.interfaces.manage.SkippingIndexes(spark, location)`; subjects "
        "are `TableName(parts)` or `PathName(format, path, options)` of "
        "`snaploom.skipping.statements.syntax`.\n",
        table(["method", "meaning"], operations),
        "### Statistics\n",
        "Fields of what `statistics(spark)` returns.\n",
        table(
            ["field", "meaning"],
            [[f"`{name}`", text or _SUMS[name]] for name, text in sums.items()],
        ),
    ]


def _store() -> list[str]:
    text = inspect.getdoc(folder) or ""
    rows = inspect.getdoc(filetable) or ""
    columns = rows[rows.index("| column") : rows.index("`<id>` is the")].strip()
    return [
        "## The store\n",
        "One folder for each index, below the location. `NATIVE` is this form; nothing but "
        "`spark.read.parquet` is needed to look at it.\n",
        block("text", text.split("```")[1].strip("\n")),
        "A state is one JSON document, written by put-if-absent of the next number; it names the "
        "segments that count. A segment's later row about a path hides an earlier one. Columns of "
        "segments:\n",
        f"{columns}\n",
        "The states of an index are those of "
        "[IndexState](kinds/skippingindex.md#indexstate). An operation gives a sign of life every "
        f"{USUAL.heartbeat_seconds:g} seconds and is taken for dead after "
        f"{USUAL.abandoned_after_seconds:g}; then the next operation, or `recover`, puts things "
        f"back. Segments that no state needs are removed {USUAL.grace_seconds / 3600:g} hour "
        "after they were written.\n",
        "A location is a folder of a local file system (a path or `file:` URI), `memory:` in "
        "tests, or `opensearch://host:port` ([OpenSearch](../how-to/opensearch-indexes.md)). Other "
        f"places register in the entry-point group `{STORES_GROUP}`, other forms of a folder in "
        f"`{FORMS_GROUP}`.\n",
    ]


def _flint() -> list[str]:
    tree = module_tree("snaploom.plugins.flint.options")
    docs = field_docs(class_named(tree, "OpenSearchOptions"))
    defaults = OpenSearchOptions()
    by_field: dict[str, list[str]] = {}
    for name, kept_as in options.OPTION_NAMES.items():
        by_field.setdefault(kept_as, []).append(f"`{name}`")
    rows = [
        [" or ".join(names), _default(getattr(defaults, kept_as)), docs[kept_as]]
        for kept_as, names in by_field.items()
    ]
    return [
        "### Options of flint\n",
        "Of the data source `flint`, in lower or upper case; as settings of a session with the "
        "prefix `spark.datasource.flint.`; and behind the `?` of a location in OpenSearch. `auth` "
        "is `noauth` (or `false`), `basic` or `sigv4`. A refresh policy is `NONE`, `IMMEDIATE` or "
        "`WAIT_UNTIL`, or OpenSearch's own word for it. Others are refused.\n",
        table(["option", "default", "meaning"], rows),
    ]


def _default(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool | Auth) else str(value)
    return f"`{text}`" if text else ""
