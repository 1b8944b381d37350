"""The page of limits: every number at which Snaploom stops, from the constant that decides it.

Constants are read from the source, with the string under each, which gives the origin of the
number. A test looks for constants that are named like limits and stand in no list.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from annotated_types import Ge, Le, MaxLen

from generation.markdown import NOTE, table
from generation.sourcetext import assigned_docs, class_named, module_tree
from snaploom.models.base import ApiModel
from snaploom.models.outputdataset import DataModel, OutputDatasetSpec
from snaploom.models.skippingindex import SkippingIndexSpec
from snaploom_operator.settings import Limits, OperatorSettings

PAGE = "operating/limits.md"
"""Below `docs/`."""
HOUR, DAY = 3600, 86_400


@dataclass(frozen=True)
class Limit:
    """One constant that users or operators can meet."""

    where: str
    """Module and name: `snaploom.loading.filetexts:MAX_BYTES`, or `module:Class.field`."""
    what: str
    """What is limited."""
    beyond: str
    """What happens beyond it."""
    unit: str = ""
    """`bytes`, `seconds`, `nanoseconds`, or a noun; empty for a bare number."""

    @property
    def value(self) -> str:
        """The number, for people."""
        return _for_people(constant(self.where), self.unit)

    @property
    def why(self) -> str:
        """Where the number comes from: what stands under the constant."""
        body, name = _scope(self.where)
        return assigned_docs(body).get(name, "")


DECLARATIONS = (
    Limit("snaploom.loading.filetexts:MAX_BYTES", "a file of YAML", "`SL102`", "bytes"),
    Limit("snaploom.loading.composer:MAX_DEPTH", "nesting of YAML", "`SL102`", "levels"),
    Limit(
        "snaploom.loading.composer:MAX_ALIASED_NODES",
        "what aliases of YAML repeat",
        "`SL102`",
        "nodes",
    ),
    Limit(
        "snaploom.models.projectfile:LONGEST_VALUE",
        "the value of a variable",
        "`SL123`",
        "characters",
    ),
    Limit(
        "snaploom.jobs.weaving.snapshot:MOST_WEAVINGS",
        "attempts to weave a snapshot while its sources change",
        "`SourceChanged`, and nothing is published",
    ),
    Limit(
        "snaploom.jobs.weaving.runoptions:MOST_PARALLEL_SNAPSHOTS",
        "snapshots of an output that are woven at a time",
        "the command is refused",
    ),
    Limit(
        "snaploom.discovery.thresholds:MOST_FILES",
        "files below one URI of `init --from`",
        "the rest is left out, and named",
    ),
    Limit(
        "snaploom.discovery.thresholds:MOST_TABLES",
        "tables of one database that `init --from` looks into",
        "the rest is left out, and named",
    ),
    Limit(
        "snaploom.discovery.fileformat:MOST_COLUMNS",
        "columns of a source that `init --from` declares",
        "the source is left out, and named",
    ),
    Limit(
        "snaploom.discovery.thresholds:LONGEST_NAME",
        "the name of a column that `init --from` declares",
        "the source is left out, and named",
        "characters",
    ),
    Limit(
        "snaploom.discovery.thresholds:LONGEST_URI",
        "a path that `init --from` declares",
        "the source is left out, and named",
        "characters",
    ),
    Limit(
        "snaploom.discovery.avrofile:LONGEST_BLOCK",
        "a block of Avro that `init --from` reads, unpacked",
        "the source is left out, and named",
        "bytes",
    ),
    Limit(
        "snaploom.discovery.thresholds:MOST_JOINS",
        "sources of the output that `init --from` writes",
        "the rest is declared, and not joined",
    ),
    Limit(
        "snaploom_operator.submit.manifests:MOST_BYTES",
        "all declarations of one run together, packed",
        "reason `BundleTooLarge`",
        "bytes",
    ),
    Limit(
        "snaploom_operator.submit.localrunner:MOST_UNPACKED",
        "a packed Bundle, unpacked by a local operator",
        "the run fails",
        "bytes",
    ),
    Limit(
        "snaploom_operator.decide.runsteps:LONGEST_RUN",
        "the name of a run",
        "the resource's name in it is cut",
        "characters",
    ),
    Limit(
        "snaploom_operator.decide.runview:GRACE_SECONDS",
        "how long a reference may be missing",
        "`Stalled` with `ReferenceMissing`",
        "seconds",
    ),
)
RUNS = (
    Limit(
        "snaploom.planning.rowchanges:MOST_SAMPLES",
        "rows of each kind that `diff --data` shows",
        "refused",
    ),
    Limit(
        "snaploom.site.collection:MOST_REPORT_BYTES",
        "a Report that `page --report` reads",
        "an error",
        "bytes",
    ),
    Limit(
        "snaploom.planning.intervals:MOST_CANDIDATES",
        "intervals of a root with data at any time",
        "reason `TooManyCandidates`",
    ),
    Limit(
        "snaploom.engine.sources.snapshotcolumn:MOST_VALUES",
        "different values of a snapshot column",
        "reason `SnapshotValueInvalid`",
    ),
    Limit(
        "snaploom.engine.sources.queries.complex:MOST_INTERVALS",
        "different intervals of a `snapshotQuery`",
        "reason `SnapshotValueInvalid`",
    ),
    Limit(
        "snaploom.engine.sources.files.text.recordchecks:MOST_SUSPECTS",
        "lines of JSON that are looked at a second time",
        "the rest is read as Spark reads it",
    ),
    Limit(
        "snaploom.engine.sources.files.text.recordchecks:LONGEST_SUSPECT",
        "characters of such a line",
        "it is read as Spark reads it",
    ),
    Limit(
        "snaploom.engine.sources.files.text.recordchecks:LONGEST_FILE",
        "a file of JSON with `multiLine` that is looked at",
        "it is read as Spark reads it",
        "bytes",
    ),
    Limit(
        "snaploom.jobs.driverlock:MOST_LOCK_BYTES",
        "a lock file of JDBC drivers",
        "an error",
        "bytes",
    ),
    Limit(
        "snaploom.jobs.driverfetch:MOST_JAR_BYTES",
        "the jar of a JDBC driver",
        "it is not installed",
        "bytes",
    ),
    Limit(
        "snaploom.engine.rowcounts:MOST_COUNTED_LEAVES",
        "leaves of the tree whose NULL keys are counted",
        "no warning about NULL keys for the rest",
    ),
    Limit(
        "snaploom.jobs.weaving.snapshotsahead:MOST_ROOT_BYTES",
        "rows of the root, as Spark estimates them, of snapshots that one job weaves",
        "the next job weaves the rest",
        "bytes",
    ),
    Limit(
        "snaploom.jobs.weaving.snapshotsahead:MOST_COUNTERS",
        "snapshots that one job weaves, times the root's joins and one",
        "the next job weaves the rest",
    ),
    Limit(
        "snaploom.storage.cloudstores:LONGEST_OBJECT",
        "one file of an output on S3",
        "reason `FileTooLong`",
        "bytes",
    ),
    Limit(
        "snaploom.storage.numberedlog:COMMIT_ATTEMPTS",
        "races that a commit loses in a row",
        "reason `CommitContended`",
    ),
    Limit(
        "snaploom.storage.leaseholder:LeaseTerms.patience",
        "wait for another run at work on the folder",
        "reason `LeaseNotObtained`",
        "seconds",
    ),
    Limit(
        "snaploom.storage.leaseholder:LeaseTerms.duration",
        "a lease of a run that is not renewed",
        "another run takes it",
        "seconds",
    ),
    Limit(
        "snaploom.storage.cloudstores:RETRY_TIMEOUT",
        "one request to a store, with its repetitions",
        "a reason of the store, and another attempt",
        "seconds",
    ),
    Limit(
        "snaploom.storage.stagedcommit:LEFTOVER_GRACE",
        "age of files of an unknown run in a partition",
        "its run is revoked, and they go",
        "nanoseconds",
    ),
    Limit(
        "snaploom.jobs.weaving.clocks:TOLERATED",
        "a clock that is behind, without a word",
        "a warning, or reason `ClockBehind`",
        "nanoseconds",
    ),
    Limit(
        "snaploom.jobs.reports.size:LARGEST_REPORT",
        "a Report in its ConfigMap",
        "details, then the oldest snapshots, are left out",
        "bytes",
    ),
    Limit(
        "snaploom.engine.sources.snapshotcolumn:MOST_PAIRS",
        "pairs of file and value that a run leaves to the next",
        "files are read again",
    ),
    Limit(
        "snaploom.listing.columnsnapshots:MOST_FOOTERS",
        "files whose footers are read before there is a session",
        "Spark is started",
    ),
    Limit(
        "snaploom.storage.listingcache:MOST_KEPT",
        "files and values that are kept of a source",
        "files are read again",
    ),
    Limit(
        "snaploom.jobs.lineage.sender:MOST_FAILURES",
        "events of lineage that fail in a row",
        "the rest of the run sends none",
    ),
    Limit(
        "snaploom.storage.subtreestore:KEPT_FOR",
        "age of a shared subtree that no run takes",
        "it is removed, and computed again",
        "nanoseconds",
    ),
)
OPERATOR = (
    Limit(
        "snaploom_operator.conditions:MOST_BYTES",
        "a whole status",
        "lists in it are cut",
        "bytes",
    ),
    Limit(
        "snaploom_operator.decide.decide:MOST_JOINS",
        "joins in a status",
        "the ConfigMap `NAME-plan` has all",
    ),
    Limit(
        "snaploom.storage.statussummary:SHOWN",
        "snapshots in a status",
        "the newest ones; `snaploom snapshots` lists all",
    ),
    Limit(
        "snaploom_operator.submit.manifests:LONGEST_REPORT",
        "a Report that is read",
        "its run shows that there is no valid report",
        "characters",
    ),
    Limit(
        "snaploom_operator.submit.manifests:MOST_VALUES",
        "values of a Report that is read",
        "its run shows that there is no valid report",
    ),
    Limit(
        "snaploom_operator.cluster.requests:MOST_LEVELS",
        "levels of nesting of an object that is read",
        "the object is kept as unreadable",
    ),
    Limit(
        "snaploom_operator.conditions:LONGEST_MESSAGE",
        "the message of a condition",
        "it is cut",
        "bytes",
    ),
    Limit(
        "snaploom_operator.apply.events:BURST",
        "events of one resource at once",
        "later ones are left out until one a minute is allowed again",
    ),
    Limit(
        "snaploom_operator.queues:LONGEST_BACKOFF",
        "wait between attempts at a resource",
        "no longer than this",
        "seconds",
    ),
    Limit(
        "snaploom_operator.serve.health:HEARTBEAT_TIMEOUT",
        "the reconcile loop without a heartbeat",
        "`/healthz` fails",
        "seconds",
    ),
    Limit(
        "snaploom_operator.cluster.lease:LEASE_DURATION",
        "a Lease that is not renewed",
        "another operator acquires it",
        "seconds",
    ),
    Limit(
        "snaploom_operator.decide.runsteps:SETTLE_SECONDS",
        "wait for the report of an application that ended",
        "the run is judged without it",
        "seconds",
    ),
    Limit(
        "snaploom_operator.cluster.requests:REQUEST_SECONDS",
        "one request to the API server",
        "it is tried again",
        "seconds",
    ),
)
WEBHOOK = (
    Limit(
        "snaploom_operator.admission.request:LARGEST_BODY",
        "a review",
        "`admission.failurePolicy` decides",
        "bytes",
    ),
    Limit(
        "snaploom_operator.admission.webhook:REVIEW_SECONDS",
        "one review",
        "`admission.failurePolicy` decides",
        "seconds",
    ),
    Limit(
        "snaploom_operator.admission.webhook:MOST_AT_ONCE",
        "reviews at once",
        "`admission.failurePolicy` decides",
    ),
    Limit(
        "snaploom_operator.admission.webhook:MOST_BODIES",
        "bodies of reviews that are read at once, shared among senders",
        "503 to the sender with most; `admission.failurePolicy` decides",
    ),
    Limit(
        "snaploom_operator.admission.webhook:BODY_SECONDS",
        "one body of a review",
        "`admission.failurePolicy` decides",
        "seconds",
    ),
    Limit(
        "snaploom_operator.serve.http:MOST_ANSWERS",
        "requests for metrics, probes or pages at once, shared among senders",
        "503 to the sender with most",
    ),
    Limit(
        "snaploom_operator.admission.judge:MOST_OF_A_NAMESPACE",
        "reviews of one namespace at once",
        "`admission.failurePolicy` decides",
    ),
    Limit(
        "snaploom_operator.serve.http:MOST_CONNECTIONS",
        "connections to the webhook",
        "those without a request are closed",
    ),
    Limit(
        "snaploom_operator.admission.request:MOST_VALUES",
        "values in a review",
        "`admission.failurePolicy` decides",
    ),
    Limit(
        "snaploom_operator.admission.conflicts:DEPENDANTS_JUDGED",
        "dependants that a change is judged for",
        "a warning; reconciling judges the rest",
    ),
    Limit(
        "snaploom_operator.admission.conflicts:LARGEST_DEPENDANTS",
        "characters of dependants that a change is judged for",
        "a warning; reconciling judges the rest",
    ),
    Limit(
        "snaploom_operator.admission.request:LONGEST_WARNINGS",
        "all warnings of a review",
        "the rest is counted",
        "characters",
    ),
    Limit(
        "snaploom_operator.cluster.certificates:LIFE",
        "validity of the webhook's certificate",
        "it is renewed after two thirds",
        "days",
    ),
)
PAGES = (
    Limit(
        "snaploom.site.server:MOST_AT_ONCE",
        "requests to `snaploom serve` at once",
        "503",
    ),
    Limit(
        "snaploom.site.server:LONGEST_ANSWER",
        "one request to `snaploom serve`",
        "its connection is closed",
        "seconds",
    ),
    Limit(
        "snaploom_operator.serve.pages:LONGEST_TOKEN",
        "a bearer token",
        "401",
        "characters",
    ),
    Limit(
        "snaploom_operator.serve.pages:USER_SECONDS",
        "how long a token counts after it ended",
        "the API server is asked again",
        "seconds",
    ),
    Limit(
        "snaploom_operator.serve.pages:RIGHT_SECONDS",
        "how long a right counts after it was taken away",
        "the API server is asked again",
        "seconds",
    ),
    Limit(
        "snaploom_operator.serve.pages:MOST_USERS",
        "tokens whose answers are kept",
        "the oldest answer is dropped",
    ),
    Limit(
        "snaploom_operator.serve.pages:MOST_RIGHTS",
        "answers about users and namespaces that are kept",
        "the oldest answer is dropped",
    ),
    Limit(
        "snaploom_operator.serve.pages:MOST_REVIEWS",
        "reviews at once",
        "others wait",
    ),
    Limit(
        "snaploom_operator.serve.pages:ANSWER_SECONDS",
        "one answer",
        "503",
        "seconds",
    ),
    Limit(
        "snaploom.site.statusdocument:MOST_OUTPUTS",
        "outputs in the list",
        "the rest is counted",
    ),
)
INDEXES = (
    Limit(
        "snaploom.skipping.indexes.valueset:MOST",
        "`limit` of a VALUE_SET",
        "reason `IndexNotPossible`",
    ),
    Limit(
        "snaploom.skipping.indexes.minmax:LONGEST_BOUND",
        "a text or binary as a bound",
        "a least value is cut, a greatest one not kept",
        "bytes",
    ),
    Limit(
        "snaploom.skipping.indexes.bloomfilter:MOST_CAPACITY",
        "values of a BLOOM_FILTER",
        "reason `IndexNotPossible`",
    ),
    Limit(
        "snaploom.skipping.indexes.bloomfilter:MOST_PROBES",
        "values times files asked of Bloom filters",
        "those files are read",
    ),
    Limit(
        "snaploom.skipping.indexes.tokens:MOST_PIECES",
        "members of an IN list for TOKENS",
        "all files are read",
    ),
    Limit(
        "snaploom.skipping.spark.optimizer.translation.catalyst:MOST_REWRITTEN_VALUES",
        "members of an IN list over an expression",
        "that condition leaves out no file",
    ),
    Limit(
        "snaploom.skipping.spark.optimizer.translation.ranges:MOST_STEPS",
        "expressions inside one another, of which a range of the column is concluded",
        "that condition leaves out no file",
    ),
    Limit(
        "snaploom.skipping.core.predicates:LARGEST_MODULUS",
        "divisor of a remainder (`c % k`), in units of the column's type",
        "that condition leaves out no file",
    ),
    Limit(
        "snaploom.skipping.spark.builds.clusteredwrite:MOST_COLUMNS",
        "columns of `clusterBy` on a curve",
        "reason `SortNotPossible`",
    ),
    Limit(
        "snaploom.interop.opensearch.flintrows:LONGEST_TERM",
        "a text in OpenSearch",
        "it is not indexed, and its file is read",
        "characters",
    ),
    Limit(
        "snaploom.skipping.stores.catalog:BELIEVED_SECONDS",
        "how long a state of an index is believed",
        "it is read again",
        "seconds",
    ),
)
SQL = (
    Limit(
        "snaploom.planning.sqlgate.lexer:MOST_CHARACTERS", "a text of SQL", "`SL150`", "characters"
    ),
    Limit(
        "snaploom.planning.sqlgate.lexer:MOST_TOKENS",
        "words, values and signs of a text of SQL",
        "`SL150`",
    ),
    Limit("snaploom.planning.sqlgate.lexer:MOST_LITERALS", "values of a text of SQL", "`SL150`"),
    Limit(
        "snaploom.planning.sqlgate.lexer:MOST_NESTING",
        "nesting of a text of SQL",
        "`SL150`",
        "levels",
    ),
    Limit(
        "snaploom.sparkgate.gate:MOST_NODES",
        "parts of a text of SQL, as Spark parses it",
        "the run fails; the error names the text",
    ),
    Limit(
        "snaploom.planning.judging.worker:MOST_SECONDS",
        "processor time for a text of SQL, or the regular expressions of a resource, in a cluster",
        "`SL150`, `SL131`",
        "seconds",
    ),
    Limit(
        "snaploom.planning.judging.worker:MOST_MEMORY",
        "memory for a text of SQL, or the regular expressions of a resource, in a cluster",
        "`SL150`, `SL131`",
        "bytes",
    ),
    Limit(
        "snaploom.planning.regexes:MAX_PROGRAM",
        "a regular expression, compiled",
        "`SL131`",
        "bytes",
    ),
    Limit(
        "snaploom.planning.regexes:MAX_REPEAT", "a repetition in a regular expression", "`SL131`"
    ),
    Limit(
        "snaploom.planning.regexes:MAX_NAME",
        "a name that a rename reads or gives",
        "reason `SourceSchemaInvalid`",
        "characters",
    ),
    Limit(
        "snaploom.planning.judging.regexlist:MAX_INSTRUCTIONS",
        "all regular expressions of a resource, compiled",
        "`SL131`",
    ),
)
FOLDERS = (
    Limit(
        "snaploom.storage.parquetfooters:LONGEST",
        "a footer of a Parquet file",
        "the file itself is read",
        "bytes",
    ),
    Limit(
        "snaploom.storage.compactthrift:LONGEST_PATHS",
        "paths of the columns of a Parquet file, together",
        "as for a footer that is too long",
        "bytes",
    ),
    Limit(
        "snaploom.storage.pathnames:LONGEST_NAME",
        "the name of a file in a folder",
        "reason `ManifestCorrupt`",
        "bytes",
    ),
    Limit(
        "snaploom.skipping.stores.statedocument:LONGEST_STATE",
        "a state of an index",
        "the index is not used",
        "bytes",
    ),
    Limit(
        "snaploom.skipping.stores.folder:LONGEST_SEGMENT",
        "a segment of an index",
        "the index is not used",
        "bytes",
    ),
    Limit(
        "snaploom.skipping.formats.boundedparquet:LONGEST_FOOTER",
        "a footer of an index",
        "the index is not used",
        "bytes",
    ),
    Limit(
        "snaploom.skipping.formats.boundedparquet:MOST_DECODED",
        "columns of one file of an index",
        "the index is not used",
        "bytes",
    ),
    Limit(
        "snaploom.skipping.formats.parquetpages:LONGEST_PAGE",
        "a page of an index",
        "the index is not used",
        "bytes",
    ),
    Limit(
        "snaploom.skipping.formats.parquetpages:MOST_PAGES",
        "pages of a column of an index",
        "the index is not used",
    ),
    Limit(
        "snaploom.interop.xskipper.storereader:MOST_BYTES",
        "a metadata store of Xskipper",
        "reason `IndexUnreadable`",
        "bytes",
    ),
    Limit(
        "snaploom.interop.xskipper.storereader:MOST_PARTS",
        "files of a metadata store of Xskipper",
        "reason `IndexUnreadable`",
    ),
    Limit(
        "snaploom.interop.opensearch.client:LONGEST_ANSWER",
        "an answer of OpenSearch",
        "reason `AnswerTooLong`",
        "bytes",
    ),
    Limit(
        "snaploom.interop.opensearch.shardreader:MOST_HITS",
        "documents of an index in OpenSearch",
        "the index is not used",
    ),
    Limit(
        "snaploom.skipping.stores.usage:LONGEST_DOCUMENT",
        "usage of an index by one session",
        "it is not counted",
        "bytes",
    ),
)
LIMITS = (*DECLARATIONS, *SQL, *RUNS, *OPERATOR, *WEBHOOK, *PAGES, *INDEXES, *FOLDERS)

_FIELDS: tuple[tuple[type[ApiModel], str, str], ...] = (
    (DataModel, "other_data_sources", "sources beside the root"),
    (DataModel, "data_relationships", "relationships"),
    (DataModel, "max_depth", "`maxDepth`, the depth of the join tree"),
    (OutputDatasetSpec, "checks", "`checks`"),
    (SkippingIndexSpec, "indexes", "`indexes` of one SkippingIndex"),
    (OperatorSettings, "watch_namespaces", "`watchNamespaces`"),
    (OperatorSettings, "workers", "`operator.workers`"),
    (Limits, "runs", "`operator.limits.runs`, runs in flight in all"),
    (Limits, "runs_per_namespace", "`operator.limits.runsPerNamespace`"),
)

_INTRODUCTION = """\
Every number at which Snaploom stops, cuts or refuses, from the constants that decide it, each with
where it comes from. Lengths of single fields are in the pages of the
[kinds](../reference/kinds/outputdataset.md); what a machine manages within them is measured in
[Sizing](sizing.md).
"""


def limits_page() -> str:
    """The page."""
    parts = ["# Limits\n", NOTE, _INTRODUCTION, "## In declarations and settings\n"]
    columns = ["what", "default", "at most"]
    parts.append(table(columns, [_field_row(*each) for each in _FIELDS]))
    for title, limits in (
        ("Declarations", DECLARATIONS),
        ("Text that is run", SQL),
        ("Runs", RUNS),
        ("The operator", OPERATOR),
        ("The webhook", WEBHOOK),
        ("Pages", PAGES),
        ("Skipping indexes", INDEXES),
        ("What is read of folders and servers", FOLDERS),
    ):
        parts += [f"## {title}\n", _limits_table(limits)]
    return "\n".join(parts)


def constant(where: str) -> object:
    """The value of a constant, computed from its text.

    Raises:
        ValueError: there is no such constant.
    """
    body, name = _scope(where)
    for node in body:
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        target = node.target if isinstance(node, ast.AnnAssign) else target
        if isinstance(target, ast.Name) and target.id == name:
            assert isinstance(node, ast.Assign | ast.AnnAssign)
            assert node.value is not None
            code = compile(ast.Expression(node.value), where, "eval")
            return eval(code, {"__builtins__": {}, "timedelta": timedelta})
    raise ValueError(f"there is no constant {where}")


def _scope(where: str) -> tuple[list[ast.stmt], str]:
    """The statements among which a constant is, and its name there."""
    module, _, path = where.partition(":")
    tree = module_tree(module)
    owner, _, name = path.rpartition(".")
    return (class_named(tree, owner).body if owner else tree.body), name


def _limits_table(limits: Iterable[Limit]) -> str:
    rows = [[each.what, each.value, each.beyond, each.why] for each in limits]
    return table(["what", "limit", "beyond it", "where it comes from"], rows)


def _field_row(model: type[ApiModel], name: str, what: str) -> list[str]:
    field = model.model_fields[name]
    bounds = {type(each): each for each in field.metadata}
    longest, greatest = bounds.get(MaxLen), bounds.get(Le)
    most = longest.max_length if isinstance(longest, MaxLen) else None
    most = greatest.le if isinstance(greatest, Le) else most
    default = f"{field.default:,}" if Ge in bounds else ""
    return [what, default, f"{most:,}"]


def _for_people(value: object, unit: str) -> str:
    if isinstance(value, timedelta):
        return f"{value.days} days" if unit == "days" else f"{value.total_seconds():g} seconds"
    if not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no number")
    if unit == "nanoseconds":
        return _duration(value / 1e9)
    if unit == "seconds":
        return _duration(value)
    if unit == "bytes" and value % 1024 == 0:
        return _binary(int(value))
    return f"{value:,} {unit}".strip()


def _duration(seconds: float) -> str:
    for size, noun in ((DAY, "days"), (HOUR, "hours"), (60, "minutes")):
        if seconds >= 2 * size and seconds % size == 0:
            return f"{seconds / size:g} {noun}"
    return f"{seconds:g} seconds"


def _binary(count: int) -> str:
    for size, noun in ((1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB")):
        if count % size == 0:
            return f"{count // size:,} {noun}"
    return f"{count:,} bytes"
