"""Findings about declarations, and their codes about files, resources, values and sources."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from snaploom.errors import SnaploomError
from snaploom.models.base import ApiModel

# Findings: errors and warnings about declarations, in one shape for every caller.


class Severity(StrEnum):
    """Whether a finding stops the work."""

    ERROR = "ERROR"
    """The work cannot go on."""
    WARNING = "WARNING"
    """The work goes on."""


class Finding(ApiModel):
    """One error or warning, its place, and its fix."""

    code: str
    """Stable code, `SL` and three digits; `snaploom.models.codes` documents each."""
    severity: Severity
    """ERROR stops the work, WARNING does not."""
    resource: str
    """`Kind/name`; empty when the fault is in a file before any resource could be read."""
    path: str = ""
    """Field path inside the resource, such as `spec.dataModel.maxDepth`."""
    message: str
    """The fault, one sentence."""
    hint: str = ""
    """The fix."""
    found: str = ""
    """The value found, as the user would recognise it."""
    expected: str = ""
    """The correct form."""
    file: str = ""
    """The file, as the user named it; empty when it came from a cluster."""
    line: int = 0
    """Line in the file, from 1; 0 when unknown."""
    column: int = 0
    """Column in the line, from 1; 0 when unknown."""

    @property
    def is_error(self) -> bool:
        """Whether this finding stops the work."""
        return self.severity is Severity.ERROR


def errors_of(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Only the findings that stop the work."""
    return tuple(finding for finding in findings if finding.is_error)


class InvalidDeclarations(SnaploomError):
    """Declarations that cannot be worked with; carries every finding, not only the first."""

    reason = "Invalid"
    exit_code = 2

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        errors = errors_of(self.findings)
        super().__init__("; ".join(f"{f.resource} {f.path}: {f.message}" for f in errors))


class NoUniqueJoinTree(InvalidDeclarations):
    """Every error is an ambiguous or an unreachable join tree."""

    reason = "NoUniqueJoinTree"
    exit_code = 3


# One code of the catalogue, and whether it or its caller sets the severity of a finding.


@dataclass(frozen=True)
class Code:
    """One code of the catalogue."""

    code: str
    """`SL` and three digits."""
    title: str
    """A few words, which no other code has."""
    severity: Severity | None
    """Severity; None where the caller decides."""
    meaning: str
    """The fault, for the reader who looks up the code."""
    fix: str
    """The fix."""


def error(code: str, title: str, meaning: str, fix: str) -> Code:
    """A code that is always an error."""
    return Code(code, title, Severity.ERROR, meaning, fix)


def warning(code: str, title: str, meaning: str, fix: str) -> Code:
    """A code that is always a warning."""
    return Code(code, title, Severity.WARNING, meaning, fix)


def either(code: str, title: str, meaning: str, fix: str) -> Code:
    """A code that is an error or a warning, as the caller decides."""
    return Code(code, title, None, meaning, fix)


# Codes of reading files and resources: SL10x to SL12x.

READING = (
    error(
        "SL101", "File not readable",
        "A path that was given does not exist or cannot be read.",
        "Check the spelling of the path and its permissions.",
    ),
    error(
        "SL102", "File too large",
        "A file is larger, nested deeper, or expands by aliases to more than is ever sensible.",
        "Split the file; write repeated parts once, in a resource that others name.",
    ),
    error(
        "SL103", "Not UTF-8",
        "A file is not text in UTF-8.",
        "Save it as UTF-8.",
    ),
    error(
        "SL104", "Not YAML",
        "A file breaks the rules of YAML; documents after the fault are not read.",
        "Correct the place that is named; indent with spaces, never with tabs.",
    ),
    error(
        "SL105", "Duplicate key",
        "A key stands twice in the same mapping, so that one value would hide the other.",
        "Remove one of the two.",
    ),
    error(
        "SL106", "Not a resource",
        "A document (or an item of a List) is not a mapping.",
        "Begin the document with `apiVersion`, `kind`, `metadata` and `spec`.",
    ),
    warning(
        "SL107", "Foreign document",
        "A document belongs to another API group; it is passed over.",
        "Nothing, or keep Snaploom's resources in a folder of their own.",
    ),
    error(
        "SL108", "Wrong apiVersion",
        "A document has no apiVersion, or a version of snaploom.io that this Snaploom does not "
        "know.",
        "Write `apiVersion: snaploom.io/v1alpha1`.",
    ),
    error(
        "SL109", "Unknown kind",
        "A document has no kind, or one that snaploom.io does not have.",
        "Use one of the six kinds, in the singular, such as `DataSource`.",
    ),
    error(
        "SL110", "Unknown field",
        "A field does not exist at this place; nothing is ignored silently.",
        "Correct the name, or remove the field.",
    ),
    error(
        "SL111", "Missing field",
        "A required field is absent.",
        "Add it.",
    ),
    error(
        "SL112", "Wrong type",
        "A value has another type than the field; nothing is converted silently.",
        "Write a value of the expected type; put text that looks like a number, a boolean or null "
        "in quotes.",
    ),
    error(
        "SL113", "Value not allowed",
        "A value is outside its range, length, pattern or list of names.",
        "Choose a value that is allowed.",
    ),
    error(
        "SL114", "Not exactly one",
        "Of several fields exactly one must be given; none was, or more than one.",
        "Keep one of them.",
    ),
    error(
        "SL115", "Member listed twice",
        "A list has two members that are, or identify, the same.",
        "Remove one of the two.",
    ),
    error(
        "SL116", "Fields contradict each other",
        "Fields of one object are each legal, but not together.",
        "Change or leave out one of the fields that the finding names.",
    ),
    error(
        "SL117", "Virtual sources swapped",
        "A virtual source has the fields of the other kind. The headings of an early design "
        "document had the two swapped: simpleVirtual reads one source at each of its snapshots, "
        "complexVirtual reads the latest snapshot of several and has a snapshotQuery.",
        "Rename `simpleVirtual` to `complexVirtual`, or the other way round.",
    ),
    error(
        "SL118", "Resource declared twice",
        "Two documents declare the same kind and name.",
        "Remove or rename one of the two.",
    ),
    error(
        "SL119", "No resources",
        "The paths that were given contain no resource of snaploom.io.",
        "Give a folder or file that has some; files in folders must end in .yaml or .yml.",
    ),
    warning(
        "SL120", "Name not usable in Kubernetes",
        "The name works on a laptop, but Kubernetes allows lower-case letters, digits, `-` and "
        "`.` only.",
        "Rename the resource if it is ever to be applied to a cluster.",
    ),
    error(
        "SL121", "Variable without a value",
        "A URI, name or time names a variable that neither the project file, nor the environment "
        "that was chosen, nor `--set` gives a value.",
        "Correct the name, or give it a value under `variables` of `snaploom.yaml`.",
    ),
    error(
        "SL122", "Variable in a wrong place",
        "A variable stands where none is replaced: variables are for URIs, paths, names of "
        "resources and places, and times, never for SQL, patterns, options or credentials.",
        "Write the value itself.",
    ),
    error(
        "SL123", "Project not valid",
        "The project file, or the environment or variable that was asked for, cannot be used.",
        "Correct `snaploom.yaml`, or the names after `--env` and `--set`.",
    ),
    either(
        "SL124", "Variable not used",
        "`--set` gives a value to a variable that no declaration names: an error where the project "
        "file has no such variable either.",
        "Correct the name, or leave it out.",
    ),
)  # fmt: skip


# Codes of single values and of sources, their queries included: SL13x to SL15x.

SOURCES = (
    either(
        "SL130", "Reference to nothing",
        "A resource names another that is not there. An error on the command line, a warning at "
        "admission, where the other may still come.",
        "Correct the name, or add the resource.",
    ),
    error(
        "SL131", "Regular expression not valid",
        "A regular expression cannot be compiled, needs a feature beyond linear-time search "
        "(lookahead, lookbehind, backreferences, atomic groups, conditions, possessive "
        "repetitions), or takes too large a program.",
        "Correct the expression at the place that is named; in double quotes YAML wants `\\\\` for "
        "`\\`.",
    ),
    error(
        "SL132", "Time zone unknown",
        "A time zone is not in the tz database.",
        "Use a name such as `Australia/Melbourne` or `UTC`.",
    ),
    error(
        "SL133", "Cron expression not valid",
        "A cron expression is not five valid fields, or never comes due.",
        "Write minute, hour, day of month, month and day of week.",
    ),
    error(
        "SL134", "Time not valid",
        "A time cannot be parsed or does not exist, or a range ends before it begins.",
        "Write ISO 8601 with an offset, such as `2020-01-31T00:00:00Z`.",
    ),
    error(
        "SL135", "Names equal ignoring case",
        "Two names in one list differ at most in case; Spark takes them for the same.",
        "Rename or remove one of the two.",
    ),
    error(
        "SL136", "File format not allowed",
        "Spark finds data sources by name and by class, and some of them connect to servers or "
        "write; so only file formats of a list are read.",
        "Use a format of the list, or have it added: the chart's `allow.formats`, or "
        "`--allow formats=NAME`.",
    ),
    error(
        "SL137", "Format option not allowed",
        "Options of a format can name classes, keys, servers and files, so that only those of a "
        "list are given to Spark, and each holds only what it is for.",
        "Leave the option out or correct its value, or have it added: the chart's "
        "`allow.options`, or `--allow options=FORMAT.OPTION`.",
    ),
    warning(
        "SL138", "Secret outside credentials",
        "A password, a key or a token is visible to everybody who may read the resource. "
        "Clusters refuse that.",
        "Use the credentials of a source or an index, or variables of the job that come from a "
        "Secret; then change the secret, since others have seen it.",
    ),
    error(
        "SL139", "Environment variable of something else",
        "Credentials name an environment variable of a cloud, a tool or Snaploom itself, whose "
        "value would be sent to the server of the declaration.",
        "Set a variable for this server only, and name it.",
    ),
    error(
        "SL140", "Prefix not valid",
        "sourceUriPrefix breaks its grammar, or captures a name that the data has too.",
        "Write literal text with captures `{NAME:TYPE}`; end with a literal character.",
    ),
    error(
        "SL141", "Prefix and glob do not fit",
        "No file that the glob matches can begin with sourceUriPrefix.",
        "Make both begin with the same folders.",
    ),
    error(
        "SL142", "Snapshot field has the wrong type",
        "The field of the snapshot time is captured or declared with a type that its "
        "timeFormat cannot be read from.",
        "Change the capture's TYPE, the field's dataType or the timeFormat.",
    ),
    warning(
        "SL143", "Password in the spec",
        "Credentials are written in the declaration itself; clusters refuse that.",
        "Use fromEnvironment or fromSecret.",
    ),
    warning(
        "SL144", "JDBC URL",
        "A raw JDBC URL is accepted only where the administrator allows it; clusters refuse it "
        "unless the operator's setting `allowJdbcUrl` is true.",
        "Use driver, host, port, database and options.",
    ),
    error(
        "SL145", "Database connection",
        "The declaration cannot be the address of a table in a database of this kind.",
        "Correct host, database, tableReference, isolationLevel or credentials.",
    ),
    error(
        "SL146", "Option of a driver",
        "Options of JDBC drivers can run code or read files, so that only known ones are accepted.",
        "Leave the option out.",
    ),
    error(
        "SL147", "Table predicate",
        "A predicate is not one whole condition, so that it would change the statement around it.",
        "Write a condition as it stands behind WHERE, without comments and semicolons.",
    ),
    error(
        "SL148", "Not with a table format",
        "A source of format `iceberg` or `delta` is one table: it has its own files, schema and "
        "versions.",
        "Leave the field out; to choose or shape columns, use a FieldTransformer or a "
        "simpleVirtual source.",
    ),
    warning(
        "SL149", "Library not declared",
        "Spark reads and writes tables of Iceberg, and reads those of Delta, by a library of "
        "theirs. No jar of it is declared, so it must be where the job runs.",
        "Put the jar into the job's image, or on a laptop into Spark's folder of jars. "
        "`spark.jars.packages` in run.spark.sparkConf needs an administrator's entry in the list "
        "`sparkConf` (chart value `allow.sparkConf`, or `--allow sparkConf=spark.jars.packages`).",
    ),
    error(
        "SL150", "SQL not parsable",
        "A query or expression is not valid Spark SQL.",
        "Correct the text at the line and column that the message names; a name that is no plain "
        "word needs backticks.",
    ),
    error(
        "SL151", "SQL not allowed here",
        "A query uses a clause or function that this place does not allow.",
        "Remove it; use complexVirtual for joins and subqueries.",
    ),
    error(
        "SL152", "Query reads something else",
        "A query reads a table that is not one of its declared aliases.",
        "Read the aliases only, and declare every source that is read.",
    ),
    error(
        "SL153", "Snapshot placeholder",
        "A `{{ SNAPSHOT | FORMAT }}` placeholder is missing, misplaced or has an unknown format.",
        "Use `{{ SNAPSHOT | UNIX_SECONDS }}` or `{{ SNAPSHOT | UNIX_MILLISECONDS }}` in the "
        "dataQuery of a complexVirtual source, and nowhere else.",
    ),
    error(
        "SL154", "Simple virtual source over a virtual one",
        "A simpleVirtual source reads another virtual source.",
        "Read the physical source directly, or use complexVirtual.",
    ),
    error(
        "SL155", "Cycle of virtual sources",
        "Virtual sources read each other in a circle.",
        "Break the circle at one of the places that are named.",
    ),
    error(
        "SL156", "SQL gives other rows each time",
        "A key, a transformer, an index's expression or a query depends on chance, on the time, on "
        "the user or on the place where Spark computes a row: uuid(), rand(), now(), CURRENT_DATE, "
        "DATE 'now', TABLESAMPLE. Spark computes rows again when a task or a run is tried again, "
        "and rows would be lost or doubled. A check, and the `where` of an index, may read the "
        "clock.",
        "Use columns of the data, a hash of columns, or the placeholder of the snapshot's time.",
    ),
    warning(
        "SL157", "Query depends on the order of rows",
        "An aggregate such as first() or collect_list(), or LIMIT without ORDER BY, takes the "
        "rows that Spark meets first, so that another run over the same rows may publish other "
        "values.",
        "Use min, max or max_by over a unique column, sort_array(...), or ORDER BY before LIMIT.",
    ),
    error(
        "SL158", "Column not declared",
        "The schema of a source is declared, and a snapshot field, join key, rootKey, groupBy "
        "or query over it names a column that is neither in schemaFields nor captured from the "
        "path. The source is read with the declared columns only.",
        "Correct the name, or add the column to schemaFields.",
    ),
    warning(
        "SL159", "Texts of keys differ",
        "Two sides of a relationship declare types whose equal values have different texts, such "
        "as 1 and 1.0, and are compared as text, since no castDataType is given.",
        "Give the castDataType that the message names, in every representation.",
    ),
)  # fmt: skip
