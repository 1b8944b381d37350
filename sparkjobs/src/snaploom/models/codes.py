"""Every code that a finding can have: what it means, how grave it is, and what to do.

Codes are stable: a number is never given a second meaning. SL10x to SL12x come from reading files
and resources, SL13x to SL18x from validation, SL19x from what is asked for, SL30x from planning.
Severity belongs to the code; only where `severity` is None does the caller decide.
"""

from __future__ import annotations

from dataclasses import dataclass

from snaploom.models.finding import Finding, Severity


@dataclass(frozen=True)
class Code:
    """One code of the catalogue."""

    code: str
    title: str
    severity: Severity | None
    meaning: str
    fix: str


def _error(code: str, title: str, meaning: str, fix: str) -> Code:
    return Code(code, title, Severity.ERROR, meaning, fix)


def _warning(code: str, title: str, meaning: str, fix: str) -> Code:
    return Code(code, title, Severity.WARNING, meaning, fix)


def _either(code: str, title: str, meaning: str, fix: str) -> Code:
    return Code(code, title, None, meaning, fix)


CODES = (
    _error(
        "SL101", "File not readable",
        "A path that was given does not exist or cannot be read.",
        "Check the spelling of the path and its permissions.",
    ),
    _error(
        "SL102", "File too large",
        "A file is larger, nested deeper, or expands by aliases to more than is ever sensible.",
        "Split the file; write repeated parts once, in a resource that others name.",
    ),
    _error(
        "SL103", "Not UTF-8",
        "A file is not text in UTF-8.",
        "Save it as UTF-8.",
    ),
    _error(
        "SL104", "Not YAML",
        "A file breaks the rules of YAML; documents after the fault are not read.",
        "Correct the place that is named; indent with spaces, never with tabs.",
    ),
    _error(
        "SL105", "Duplicate key",
        "A key stands twice in the same mapping, so that one value would hide the other.",
        "Remove one of the two.",
    ),
    _error(
        "SL106", "Not a resource",
        "A document (or an item of a List) is not a mapping.",
        "Begin the document with `apiVersion`, `kind`, `metadata` and `spec`.",
    ),
    _warning(
        "SL107", "Foreign document",
        "A document belongs to another API group; it is passed over.",
        "Nothing, or keep Snaploom's resources in a folder of their own.",
    ),
    _error(
        "SL108", "Wrong apiVersion",
        "A document has no apiVersion, or a version of snaploom.io that this Snaploom does not "
        "know.",
        "Write `apiVersion: snaploom.io/v1alpha1`.",
    ),
    _error(
        "SL109", "Unknown kind",
        "A document has no kind, or one that snaploom.io does not have.",
        "Use one of the six kinds, in the singular, such as `DataSource`.",
    ),
    _error(
        "SL110", "Unknown field",
        "A field does not exist at this place; nothing is ignored silently.",
        "Correct the name, or remove the field.",
    ),
    _error(
        "SL111", "Missing field",
        "A required field is absent.",
        "Add it.",
    ),
    _error(
        "SL112", "Wrong type",
        "A value has another type than the field; nothing is converted silently.",
        "Write a value of the expected type; put text that looks like a number, a boolean or null "
        "in quotes.",
    ),
    _error(
        "SL113", "Value not allowed",
        "A value is outside its range, length, pattern or list of names.",
        "Choose a value that is allowed.",
    ),
    _error(
        "SL114", "Not exactly one",
        "Of several fields exactly one must be given; none was, or more than one.",
        "Keep one of them.",
    ),
    _error(
        "SL115", "Member listed twice",
        "A list has two members that are, or identify, the same.",
        "Remove one of the two.",
    ),
    _error(
        "SL116", "Fields contradict each other",
        "Fields of one object are each legal, but not together.",
        "Follow the message.",
    ),
    _error(
        "SL117", "Virtual sources swapped",
        "A virtual source has the fields of the other kind. The headings of an early design "
        "document had the two swapped: simpleVirtual reads one source at each of its snapshots, "
        "complexVirtual reads the latest snapshot of several and has a snapshotQuery.",
        "Rename `simpleVirtual` to `complexVirtual`, or the other way round.",
    ),
    _error(
        "SL118", "Resource declared twice",
        "Two documents declare the same kind and name.",
        "Remove or rename one of the two.",
    ),
    _error(
        "SL119", "No resources",
        "The paths that were given contain no resource of snaploom.io.",
        "Give a folder or file that has some; files in folders must end in .yaml or .yml.",
    ),
    _warning(
        "SL120", "Name not usable in Kubernetes",
        "The name works on a laptop, but Kubernetes allows lower-case letters, digits, `-` and "
        "`.` only.",
        "Rename the resource if it is ever to be applied to a cluster.",
    ),
    _either(
        "SL130", "Reference to nothing",
        "A resource names another that is not there. An error on the command line, a warning at "
        "admission, where the other may still come.",
        "Correct the name, or add the resource.",
    ),
    _error(
        "SL131", "Regular expression not valid",
        "A regular expression cannot be compiled.",
        "Correct it; `\\` must be written `\\\\` in double quotes.",
    ),
    _error(
        "SL132", "Time zone unknown",
        "A time zone is not in the tz database.",
        "Use a name such as `Australia/Melbourne` or `UTC`.",
    ),
    _error(
        "SL133", "Cron expression not valid",
        "A cron expression is not five valid fields, or never comes due.",
        "Write minute, hour, day of month, month and day of week.",
    ),
    _error(
        "SL134", "Time not valid",
        "A time cannot be parsed or does not exist, or a range ends before it begins.",
        "Write ISO 8601 with an offset, such as `2020-01-31T00:00:00Z`.",
    ),
    _error(
        "SL135", "Names equal ignoring case",
        "Two names in one list differ at most in case; Spark takes them for the same.",
        "Rename or remove one of the two.",
    ),
    _error(
        "SL140", "Prefix not valid",
        "sourceUriPrefix breaks its grammar, or captures a name that the data has too.",
        "Write literal text with captures `{NAME:TYPE}`; end with a literal character.",
    ),
    _error(
        "SL141", "Prefix and glob do not fit",
        "No file that the glob matches can begin with sourceUriPrefix.",
        "Make both begin with the same folders.",
    ),
    _error(
        "SL142", "Snapshot field has the wrong type",
        "The field that tells the snapshot is captured or declared with a type that its "
        "timeFormat cannot be read from.",
        "Change the capture's TYPE, the field's dataType or the timeFormat.",
    ),
    _warning(
        "SL143", "Password in the spec",
        "Credentials are written in the declaration itself; clusters refuse that.",
        "Use fromEnvironment or fromSecret.",
    ),
    _warning(
        "SL144", "JDBC URL",
        "A raw JDBC URL is accepted only where whoever runs this allows one; clusters refuse it "
        "unless the operator's setting `allowJdbcUrl` is true.",
        "Use driver, host, port, database and options.",
    ),
    _error(
        "SL145", "Database connection",
        "What is declared cannot be the address of a table in a database of this kind.",
        "Correct host, database, tableReference, isolationLevel or credentials.",
    ),
    _error(
        "SL146", "Option of a driver",
        "Options of JDBC drivers can run code or read files, so that only known ones are accepted.",
        "Leave the option out.",
    ),
    _error(
        "SL147", "Table predicate",
        "A predicate is not one whole condition, so that it would change the statement around it.",
        "Write what may stand behind WHERE, without comments and semicolons.",
    ),
    _error(
        "SL150", "SQL not parsable",
        "A query or expression is not valid Spark SQL.",
        "Correct the place that is named.",
    ),
    _error(
        "SL151", "SQL not allowed here",
        "A query uses a clause or function that this place does not allow.",
        "Remove it; use complexVirtual for joins and subqueries.",
    ),
    _error(
        "SL152", "Query reads something else",
        "A query reads a table that is not one of its declared aliases.",
        "Read the aliases only, and declare every source that is read.",
    ),
    _error(
        "SL153", "Snapshot placeholder",
        "A `{{ SNAPSHOT | FORMAT }}` placeholder is missing, misplaced or has an unknown format.",
        "Use `{{ SNAPSHOT | UNIX_SECONDS }}` or `{{ SNAPSHOT | UNIX_MILLISECONDS }}` in the "
        "dataQuery of a complexVirtual source, and nowhere else.",
    ),
    _error(
        "SL154", "Simple virtual source over a virtual one",
        "A simpleVirtual source reads another virtual source.",
        "Read the physical source directly, or use complexVirtual.",
    ),
    _error(
        "SL155", "Cycle of virtual sources",
        "Virtual sources read each other in a circle.",
        "Break the circle at one of the places that are named.",
    ),
    _error(
        "SL160", "Source in two representations",
        "A source has the key of a relationship in two ways.",
        "Keep it in one representation; declare a second relationship for the other key.",
    ),
    _error(
        "SL161", "Keys of different length",
        "Representations of a relationship have different numbers of components.",
        "Give every representation the same components, in the same order.",
    ),
    _error(
        "SL162", "Key types differ",
        "The same component is compared as different types in two representations.",
        "Write the same castDataType at the same place of every joinKey.",
    ),
    _error(
        "SL163", "Query and fields differ",
        "The query of a key component must read exactly the fields that are declared for it.",
        "Declare every column that the query reads, and no other.",
    ),
    _error(
        "SL164", "Type cannot be compared",
        "A key cannot be compared as this type.",
        "Use a castDataType such as `{string: {}}`.",
    ),
    _error(
        "SL165", "Transformer beside its field",
        "A cast, an expression or a drop is to leave its field as it is: the result would have the "
        "same name as the field, or there would be none.",
        "Make a copy first, by a rename with replaceInputs false, and change the copy.",
    ),
    _error(
        "SL170", "Field name taken",
        "A field of the output has a name that is reserved or taken, ignoring case.",
        "Choose another fieldName.",
    ),
    _error(
        "SL171", "Source listed twice",
        "A DataSource occurs more than once in an OutputDataset, the root included.",
        "Declare a simpleVirtual source over it for the second role.",
    ),
    _error(
        "SL172", "Interval too short for the partition",
        "Intervals are shorter than the times that partition folders can tell apart.",
        "Use a finer timestampFormat or a longer interval.",
    ),
    _error(
        "SL173", "Folder not absolute",
        "folderUri must be an absolute path or URI.",
        "Write `/folder/` or `scheme://bucket/folder/`.",
    ),
    _error(
        "SL174", "Folders overlap",
        "Two OutputDatasets have the same folder, or one's folder lies in the other's.",
        "Give every OutputDataset a folder of its own.",
    ),
    _error(
        "SL175", "Exclusion of a stranger",
        "An exclusion names a source that the relationship does not have.",
        "Correct the name, or remove it.",
    ),
    _warning(
        "SL176", "Relationship not used",
        "A relationship is listed, but joins fewer than two of the listed sources.",
        "Remove it, or add the sources that it should join.",
    ),
    _warning(
        "SL178", "Compression that few can read",
        "JSON Lines compressed with SNAPPY uses Hadoop's framing, which few tools outside Hadoop "
        "and Spark can read.",
        "Set dataCompression to GZIP or NONE.",
    ),
    _warning(
        "SL179", "Nothing to do, ever",
        "Settings are legal, but together they mean that nothing will ever happen.",
        "Follow the message.",
    ),
    _error(
        "SL180", "Length of zero",
        "A length of time must be longer than nothing.",
        "Give one of its parts.",
    ),
    _error(
        "SL181", "Circle of outputs",
        "An output reads files that it publishes itself, directly or through other outputs, so "
        "that every publication would ask for the next.",
        "Break the circle at one of the outputs that are named: read the files of its sources "
        "instead, or publish elsewhere.",
    ),
    _error(
        "SL182", "Spark setting refused",
        "A setting of `run.spark` reaches beyond the pods of its own run, has a field of its own, "
        "or takes a name that the operator needs. Refused in a cluster only.",
        "Leave it out; whoever installed the operator can make it for everybody.",
    ),
    _warning(
        "SL185", "Index type not known",
        "The type of an index is none of the built-in ones, so a registered type must bring it.",
        "Correct the name, or register the type where the job runs.",
    ),
    _error(
        "SL186", "Index not possible",
        "An index has columns or parameters that its type cannot use.",
        "Follow the message.",
    ),
    _error(
        "SL187", "Index names clash",
        "Two indexes would be stored under names of which one begins with the other.",
        "Rename a column, leave one index out, or use the form NATIVE.",
    ),
    _error(
        "SL188", "Expectation not possible",
        "An expectation (`checks[]`) is not about columns of the output, or is neither true nor "
        "false.",
        "Follow the message.",
    ),
    _error(
        "SL189", "Column not of the output",
        "`clusterBy` names a column that the output does not have.",
        "Write columns of the root as data.column, and those of others as fieldName.data.column.",
    ),
    _either(
        "SL190", "Not built yet",
        "This version of Snaploom knows the setting but cannot carry it out. An error for plan "
        "and run, a warning for validate.",
        "Leave it out, or use a version that has it.",
    ),
    _error(
        "SL191", "Request not valid",
        "A command was asked for a name that is not among the resources, or given an option that "
        "it cannot read.",
        "Correct the name or the option.",
    ),
    _error(
        "SL192", "Preflight failed",
        "The folder or a source contradicts the declarations, or cannot be reached.",
        "Do what the message says; its first word is the reason, which has a section of its own "
        "among the reasons.",
    ),
    _error(
        "SL301", "Ambiguous join tree",
        "There are several equally good ways to reach a source from the root.",
        "Give one relationship a lower antiPriority, or exclude sources.",
    ),
    _error(
        "SL302", "Source not reachable",
        "No relationship leads from the root to a source, and its pathMissingMode is ERROR.",
        "Add the relationship or the source that the hint names, or set pathMissingMode.",
    ),
    _warning(
        "SL303", "Source left out",
        "No relationship leads from the root to a source; its pathMissingMode leaves it out.",
        "Nothing, or add the relationship that the hint names.",
    ),
    _error(
        "SL304", "Join tree too deep",
        "A source lies further from the root than maxDepth allows.",
        "Raise maxDepth, or relate the source to one that is nearer to the root.",
    ),
    _error(
        "SL305", "Partition shared",
        "Two snapshots would be published into the same partition folder.",
        "Choose a finer timestampFormat; ISO8601_DATE_TIME tells all times apart.",
    ),
    _warning(
        "SL306", "Newest snapshot of an open interval",
        "With preference NEWEST an interval that has not ended is published with what is newest "
        "at that moment, so the result depends on when the run starts.",
        "Set onlyClosedIntervals to true, or prefer OLDEST.",
    ),
    _warning(
        "SL307", "Source without snapshots",
        "A source has no snapshot at all: no file matches its globs, or what it reads is empty.",
        "Check that the data is there, and how the place is spelt.",
    ),
    _warning(
        "SL308", "Relationship never used",
        "A relationship could join sources of the output, but the join tree has better ways to all "
        "of them.",
        "Remove it, or lower its antiPriority where it is meant to be used.",
    ),
)  # fmt: skip

CODE_BY_ID = {code.code: code for code in CODES}


def make_finding(
    code: str,
    message: str,
    *,
    resource: str = "",
    path: str = "",
    found: str = "",
    expected: str = "",
    hint: str = "",
    severity: Severity | None = None,
) -> Finding:
    """A finding with the severity of its code.

    Args:
        code: a code of the catalogue.
        message: what is wrong, one sentence.
        resource: `Kind/name`.
        path: field path inside the resource.
        found: what was found.
        expected: what would have been right.
        hint: what to do; omitted, what the catalogue says of the code in general.
        severity: only for codes whose severity the caller decides.
    """
    catalogued = CODE_BY_ID[code]
    grave = catalogued.severity or severity
    assert grave is not None, f"{code} needs a severity"
    return Finding(
        code=code,
        severity=grave,
        resource=resource,
        path=path,
        message=message,
        hint=hint or catalogued.fix,
        found=found,
        expected=expected,
    )
